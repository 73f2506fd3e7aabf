"""A batch, checked -> its tasks done, its table and page written, and what is said about it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kinst.rewriter.commandline.apart import NamedFile, check_apart
from kinst.rewriter.shell.command_output import json_array, remark, write_lines
from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.rewriter.shell.progress import Progress
from kinst.rewriter.shell.wording import counted
from kinst.runtime.batch.coverage import merged
from kinst.runtime.batch.journal import JOURNAL, Journal, open_journal, peek
from kinst.runtime.batch.page import batch_page_lines
from kinst.runtime.batch.pool import Results, Tasks
from kinst.runtime.batch.rows import COLUMNS, COVERAGE, GOOD, Answer, Row, table_rows
from kinst.runtime.batch.table_files import TableFormat, write_table
from kinst.runtime.batch.tasks import Task

_SHOWN: Final = 12  # characters of a digest
_REPORTS: Final = "reports"  # a folder beside the table


@dataclass(frozen=True, slots=True)
class Place:
    """Where a batch keeps what it finds, and in which format the table is."""

    folder: Path
    form: TableFormat
    read: tuple[NamedFile, ...] = ()  # the files that the batch reads: none of them may be one of these
    csv_is_safe: bool = False  # whether no cell of a CSV table is a formula to a spreadsheet

    def report(self, digest: str) -> Path:
        """The page about a run. Its row leads there, if it is there."""
        return self.folder / _REPORTS / f"{digest}.html"

    def files(self) -> tuple[Path, ...]:
        """All files that are written."""
        return self.folder / JOURNAL, self.table, self.coverage, self.page

    @property
    def table(self) -> Path:
        """The table, a row for each task or input."""
        return self.folder / f"table.{self.form.value}"

    @property
    def coverage(self) -> Path:
        """Which instructions calls have reached."""
        return self.folder / f"coverage.{self.form.value}"

    @property
    def page(self) -> Path:
        """All of it as a page."""
        return self.folder / "index.html"


def by_digest(tasks: Iterable[Task]) -> dict[str, Task]:
    """Each task once."""
    return {task.digest(): task for task in tasks}


def show_tasks(tasks: Tasks, folder: Path, form: str) -> None:
    """Print the tasks, and which are done already (--dry-run), as text or json."""
    known = peek(folder)
    if form == "json":
        write_lines(json_array(_task_value(digest, task, is_done=digest in known) for digest, task in tasks.items()))
        return
    write_lines(_task_line(digest, task, is_done=digest in known) for digest, task in tasks.items())
    left = len(tasks.keys() - known)
    write_lines([f"{counted(len(tasks), 'task')}, {left:,} to do"])


def _task_value(digest: str, task: Task, *, is_done: bool) -> dict[str, Any]:
    what = {"image": task.image.name, "what": task.work.what, "input": task.work.given}
    return {"task": digest, "kind": task.kind, **what, "done": is_done}


def _task_line(digest: str, task: Task, *, is_done: bool) -> str:
    return f"{digest[:_SHOWN]}  {'done' if is_done else 'to do':5}  {_named(task)}"


def _named(task: Task) -> str:
    words = (task.image.name, task.work.what, task.work.given)
    return f"{task.kind:7}  {'  '.join(filter(None, words))}"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What else a user wants of a batch."""

    retry: bool = False  # what failed before is done again
    form: str = "text"  # of what is printed at the end: text or json
    verbose: bool = False  # each task is told of as it is done


def carry_out(
    tasks: Tasks, place: Place, results: Callable[[Tasks], Results], progress: Progress, wishes: Wishes
) -> int:
    """Do what is not done yet, and write the table and the page. Returns the exit code: 1 if something failed.

    Args:
        tasks: all of the batch, by digest.
        place: where results are, and will be.
        results: does tasks.
        progress: shows how far it has come.
        wishes: what else is wanted.

    Raises:
        UsageError: it would write over what it reads.
        KinstError: the place is used by another process, or what is there is not ours.
        KeyboardInterrupt: what was done until then is kept.
    """
    check_apart(place.read, [NamedFile("the output", one) for one in place.files()])
    place.folder.mkdir(parents=True, exist_ok=True)
    with open_journal(place.folder) as journal:
        done = {digest for digest in tasks if (journal.is_good(digest) if wishes.retry else digest in journal)}
        left = {digest: task for digest, task in tasks.items() if digest not in done}
        with progress("tasks", len(tasks)) as tell:
            tell(len(done))
            for digest, answer in results(left) if left else ():
                _keep_report(place.report(digest), answer)
                journal.add(digest, answer)
                tell(1)
                if wishes.verbose:
                    remark(_news(tasks[digest], answer))
        return _written(tasks, journal, place, len(done), wishes.form)


def _keep_report(path: Path, answer: Answer) -> None:
    """Write the page about a run before its row is in the journal, if there is one."""
    if answer.report:
        path.parent.mkdir(exist_ok=True)
        with replaced_file(path) as file:
            file.write(answer.report)


def _news(task: Task, answer: Answer) -> Iterator[str]:
    """A task that is done, with what became of it."""
    outcomes = Counter(row["outcome"] for row in answer.rows)
    told = ", ".join(
        f"{number:,} {outcome}" if len(answer.rows) > 1 else outcome for outcome, number in outcomes.items()
    )
    why = answer.rows[0]["reason"] if len(answer.rows) == 1 and answer.rows[0].get("reason") else ""
    yield f"{_named(task)}: {told}{why and f': {why.splitlines()[0]}'}"


def _written(tasks: Tasks, journal: Journal, place: Place, before: int, form: str) -> int:
    rows = _Rows(tasks, journal, place)
    write_table(place.table, rows, COLUMNS, place.form, csv_is_safe=place.csv_is_safe)
    coverage = merged(tasks, journal)
    if coverage:
        write_table(place.coverage, coverage, COVERAGE, place.form, csv_is_safe=place.csv_is_safe)
    write_lines(batch_page_lines(place.folder.name, rows, coverage), place.page)
    value = _value(rows, coverage, len(tasks), before, place)
    write_lines([json.dumps(value, indent=2)] if form == "json" else _told(value))
    return 0 if all(outcome in GOOD for _, outcome in rows.outcomes) else 1


class _Rows:
    """All rows, read from the journal each time: there may be more than memory should hold."""

    def __init__(self, tasks: Tasks, journal: Journal, place: Place) -> None:
        self._tasks, self._journal, self._place = tasks, journal, place
        self.outcomes = Counter[tuple[str, str]]()  # kind and outcome, of the last pass

    def __iter__(self) -> Iterator[Row]:
        self.outcomes.clear()
        for digest, task in self._tasks.items():
            report = self._place.report(digest)
            known = {"report": f"{_REPORTS}/{report.name}"} if report.is_file() else {"report": None}
            for row in table_rows(task, digest, self._journal.answer(digest)):
                self.outcomes[row["kind"], row["outcome"]] += 1
                yield row | known


def _value(rows: _Rows, coverage: Sequence[Row], count: int, before: int, place: Place) -> dict[str, Any]:
    """What is printed at the end, as JSON."""
    outcomes: dict[str, dict[str, int]] = {kind: {} for kind in sorted({kind for kind, _ in rows.outcomes})}
    for (kind, outcome), number in rows.outcomes.most_common():
        outcomes[kind][outcome] = number
    value: dict[str, Any] = {"tasks": count, "before": before, "outcomes": outcomes}
    if coverage:
        known = [row for row in coverage if row["inputs"] is not None]
        value["coverage"] = {"instructions": len(known), "reached": sum(row["inputs"] > 0 for row in known)}
    return value | {"table": str(place.table), "page": str(place.page)}


def _told(value: Mapping[str, Any]) -> Iterator[str]:
    """The same as lines."""
    before = f", {value['before']:,} of them before" if value["before"] else ""
    yield f"{counted(value['tasks'], 'task')} done{before}"
    for kind, outcomes in value["outcomes"].items():
        yield f"{kind:8} " + ", ".join(f"{number:,} {outcome}" for outcome, number in outcomes.items())
    if "coverage" in value:
        found = value["coverage"]
        yield f"coverage {found['reached']:,} of {counted(found['instructions'], 'instruction')}"
    yield f"written  {value['table']}, {value['page']}"

"""A checked batch -> its tasks are performed, its table and page written, and a summary printed."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
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
from kinst.runtime.batch.run_coverage import FOLDER, add_up, page_lines, renamed
from kinst.runtime.batch.table_files import TableFormat, write_table
from kinst.runtime.batch.tasks import Places, Task
from kinst.targets.values import dataclass

_SHOWN: Final = 12  # characters of a digest
_REPORTS: Final = "reports"  # a folder beside the table


@dataclass(frozen=True, slots=True)
class Destination:
    """The folder for the results of a batch, and the format of the table."""

    folder: Path
    form: TableFormat
    read: tuple[NamedFile, ...] = ()  # the files that the batch reads: none of them may be one of these
    csv_is_safe: bool = False  # whether no cell of a CSV table is a formula to a spreadsheet
    places: Places = field(default_factory=dict)  # where the images are

    def report(self, digest: str) -> Path:
        """The page about a run, to which its row links if it exists."""
        return self.folder / _REPORTS / f"{digest}.html"

    def covered(self, digest: str) -> Path:
        """The file of what a run ran, which its row names if it exists."""
        return self.folder / FOLDER / f"{digest}.json"

    def files(self) -> tuple[Path, ...]:
        """All files that a batch writes."""
        return self.folder / JOURNAL, self.table, self.coverage, self.page

    @property
    def table(self) -> Path:
        """The table, a row for each task or input."""
        return self.folder / f"table.{self.form.value}"

    @property
    def coverage(self) -> Path:
        """The table of instructions that calls have reached."""
        return self.folder / f"coverage.{self.form.value}"

    @property
    def page(self) -> Path:
        """The page with all results."""
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
class BatchOptions:
    """The options of a batch that do not change its tasks."""

    retry: bool = False  # whether tasks that failed before are performed again
    form: str = "text"  # of the summary: text or json
    verbose: bool = False  # whether each task is reported as it finishes


def run_batch(
    tasks: Tasks,
    destination: Destination,
    results: Callable[[Tasks], Results],
    progress: Progress,
    options: BatchOptions,
) -> int:
    """Perform the tasks that are not done yet, and write the table and the page. Returns the exit code: 1 if one
    failed.

    Args:
        tasks: all of the batch, by digest.
        destination: where results are, and will be.
        results: performs tasks.
        progress: shows how many tasks are done.
        options: how.

    Raises:
        UsageError: it would overwrite a file that it reads.
        KinstError: the destination is used by another process, or what is there is not ours.
        KeyboardInterrupt: what was done until then is kept.
    """
    check_apart(destination.read, [NamedFile("the output", one) for one in destination.files()])
    destination.folder.mkdir(parents=True, exist_ok=True)
    with open_journal(destination.folder) as journal:
        done = {digest for digest in tasks if (journal.is_good(digest) if options.retry else digest in journal)}
        left = {digest: task for digest, task in tasks.items() if digest not in done}
        with progress("tasks", len(tasks)) as advance:
            advance(len(done))
            for digest, answer in results(left) if left else ():
                # In this order: a task in the journal is not performed again, so its page must exist by then.
                _keep(destination.report(digest), answer.report)
                image = tasks[digest].image
                path = destination.places.get(image.sha256, image.name)
                _keep(destination.covered(digest), renamed(answer.covered, image.name, path))
                journal.add(digest, answer)
                advance(1)
                if options.verbose:
                    remark(_news(tasks[digest], answer))
        return _written(tasks, journal, destination, len(done), options.form)


def _keep(path: Path, content: bytes) -> None:
    """Write a file about a run before its row is in the journal, if there is one."""
    if content:
        path.parent.mkdir(exist_ok=True)
        with replaced_file(path) as file:
            file.write(content)


def _news(task: Task, answer: Answer) -> Iterator[str]:
    """A line about a task that is done, with its outcome."""
    outcomes = Counter(row["outcome"] for row in answer.rows)
    counts = ", ".join(
        f"{number:,} {outcome}" if len(answer.rows) > 1 else outcome for outcome, number in outcomes.items()
    )
    why = answer.rows[0]["reason"] if len(answer.rows) == 1 and answer.rows[0].get("reason") else ""
    yield f"{_named(task)}: {counts}{why and f': {why.splitlines()[0]}'}"


def _written(tasks: Tasks, journal: Journal, destination: Destination, before: int, form: str) -> int:
    rows = _Rows(tasks, journal, destination)
    write_table(destination.table, rows, COLUMNS, destination.form, csv_is_safe=destination.csv_is_safe)
    coverage = merged(tasks, journal)
    if coverage:
        write_table(destination.coverage, coverage, COVERAGE, destination.form, csv_is_safe=destination.csv_is_safe)
    covered = [path for digest in tasks if (path := destination.covered(digest)).is_file()]
    ran = add_up(covered, destination.folder / FOLDER)
    write_lines(batch_page_lines(destination.folder.name, rows, coverage, list(page_lines(ran))), destination.page)
    value = _value(rows, coverage, len(tasks), before, destination)
    if ran is not None:
        value["code"] = {"runs": ran.runs, "functions": ran.functions, "ran": ran.ran, "page": str(ran.page)}
    write_lines([json.dumps(value, indent=2)] if form == "json" else _summary(value))
    return 0 if all(outcome in GOOD for _, outcome in rows.outcomes) else 1


class _Rows:
    """All rows, read from the journal each time: there may be more than fit into memory."""

    def __init__(self, tasks: Tasks, journal: Journal, destination: Destination) -> None:
        self._tasks, self._journal, self._place = tasks, journal, destination
        self.outcomes = Counter[tuple[str, str]]()  # kind and outcome, of the last pass

    def __iter__(self) -> Iterator[Row]:
        self.outcomes.clear()
        for digest, task in self._tasks.items():
            report, covered = self._place.report(digest), self._place.covered(digest)
            known = {
                "report": f"{_REPORTS}/{report.name}" if report.is_file() else None,
                "code": f"{FOLDER}/{covered.name}" if covered.is_file() else None,
            }
            for row in table_rows(task, digest, self._journal.answer(digest)):
                self.outcomes[row["kind"], row["outcome"]] += 1
                yield row | known


def _value(rows: _Rows, coverage: Sequence[Row], count: int, before: int, destination: Destination) -> dict[str, Any]:
    """The summary, for JSON."""
    outcomes: dict[str, dict[str, int]] = {kind: {} for kind in sorted({kind for kind, _ in rows.outcomes})}
    for (kind, outcome), number in rows.outcomes.most_common():
        outcomes[kind][outcome] = number
    value: dict[str, Any] = {"tasks": count, "before": before, "outcomes": outcomes}
    if coverage:
        known = [row for row in coverage if row["inputs"] is not None]
        value["coverage"] = {"instructions": len(known), "reached": sum(row["inputs"] > 0 for row in known)}
    return value | {"table": str(destination.table), "page": str(destination.page)}


def _summary(value: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the summary."""
    before = f", {value['before']:,} of them before" if value["before"] else ""
    yield f"{counted(value['tasks'], 'task')} done{before}"
    for kind, outcomes in value["outcomes"].items():
        yield f"{kind:8} " + ", ".join(f"{number:,} {outcome}" for outcome, number in outcomes.items())
    if "coverage" in value:
        found = value["coverage"]
        yield f"coverage {found['reached']:,} of {counted(found['instructions'], 'instruction')}"
    if "code" in value:
        ran = value["code"]
        functions, boots = counted(ran["functions"], "function"), counted(ran["runs"], "boot")
        yield f"code     {ran['ran']:,} of {functions} ran in {boots}"
    yield f"written  {value['table']}, {value['page']}"

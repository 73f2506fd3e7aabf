"""What is done again, and what is not."""

import csv
from pathlib import Path

from click import Command, Context

from kinst.rewriter.shell.progress import silent
from kinst.runtime.batch.command import BatchOptions, Destination, by_digest, run_batch
from kinst.runtime.batch.pool import Results, Tasks
from kinst.runtime.batch.rows import Answer, Outcome
from kinst.runtime.batch.table_files import TableFormat
from kinst.runtime.batch.tasks import InputFile, Rewrite, Run, Task

RUN = by_digest([Task(InputFile("a", "0" * 64, 1), Run("t", "p", has_report=True), "1")])
TASKS = by_digest(Task(InputFile("a", "0" * 64, 1), Rewrite(outcome.value), "1") for outcome in Outcome)


def test_what_failed_is_done_again_if_that_is_wanted(tmp_path: Path) -> None:
    destination, asked = Destination(tmp_path / "out", TableFormat.CSV), list[list[str]]()

    def results(tasks: Tasks) -> Results:
        asked.append([task.work.what for task in tasks.values()])
        for digest, task in tasks.items():
            is_first = len(asked) == 1
            yield digest, Answer(({"outcome": task.work.what if is_first else "done", "reason": None},))

    with Context(Command("kinst-batch")):
        statuses = [
            run_batch(TASKS, destination, results, silent, BatchOptions(retry=retry))
            for retry in (False, False, True, True)
        ]
    assert asked == [[one.value for one in Outcome], [one.value for one in Outcome if not one.is_good]]
    assert statuses == [1, 1, 0, 0]


def test_a_row_leads_to_its_report_as_long_as_that_is_there(tmp_path: Path) -> None:
    destination = Destination(tmp_path / "out", TableFormat.CSV)
    (digest,) = RUN

    def results(tasks: Tasks) -> Results:
        for one in tasks:
            yield one, Answer(({"outcome": "done"},), report=b"<p>the page")

    def listed() -> list[str]:
        with Context(Command("kinst-batch")):
            assert run_batch(RUN, destination, results, silent, BatchOptions()) == 0
        with destination.table.open(newline="") as file:
            return [row["report"] for row in csv.DictReader(file)]

    assert listed() == [f"reports/{digest}.html"]
    assert (destination.folder / "reports" / f"{digest}.html").read_bytes() == b"<p>the page"
    assert "the page" not in (destination.folder / "journal.jsonl").read_text()
    assert listed() == [f"reports/{digest}.html"]  # from the journal
    (destination.folder / "reports" / f"{digest}.html").unlink()
    assert listed() == [""]

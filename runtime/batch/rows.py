"""The table of a batch: its columns, and the rows of a task."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

from kinst.runtime.batch.tasks import Call, Task
from kinst.targets.values import dataclass

Row = dict[str, Any]

# name -> type and meaning. What a kind of task does not have is null. A change of a meaning is a new `tasks.FORMAT`.
COLUMNS: Final[Mapping[str, tuple[type, str]]] = {
    "task": (str, "digest of the task: of the image's bytes and all that is asked of it"),
    "kind": (str, "rewrite, run or call"),
    "image": (str, "the image, as it was named"),
    "sha256": (str, "of the image"),
    "machine": (str, "amd64, arm64 or riscv64"),
    "what": (str, "the probes, the program or the function"),
    "input": (str, "command line, files or arguments"),
    "outcome": (str, "done; refused, with the reason; or failed, timeout, memory, crashed"),
    "reason": (str, "why it was refused or failed, or why a guest stopped for good"),
    "seconds": (float, "of CPU that the task took, by itself"),
    "megabytes": (int, "of memory that it took at most"),
    "sites": (int, "rewrite: instructions that were patched"),
    "probes": (int, "rewrite: probes that the patched image has"),
    "refused_sites": (int, "rewrite: instructions that could not be, with the reasons in `remarks`"),
    "added": (int, "rewrite: bytes behind the original's end"),
    "proved": (str, "rewrite: what was checked"),
    "remarks": (str, "what the command would print on stderr"),
    "end": (str, "run, call: why it ended"),
    "exit_status": (int, "run: what exit() said"),
    "status": (int, "run: what kinst-run would exit with: 0 if it ended as requested"),
    "records": (int, "run: how many records clauses made"),
    "aggregations": (str, "run: all of them, JSON: {name: [[keys, value], ...]}"),
    "printed": (str, "run: what printf(), printa() and trace() gave, the first 4,000 characters"),
    "console": (str, "run: the last 2,000 characters of the guest's console"),
    "report": (str, "run: the page about it, in the folder of the table"),
    "code": (str, "run: what ran of the image, JSON as of kinst-run --coverage, in the folder of the table"),
    "result": (str, "call: what the function returned, hexadecimal"),
    "covered": (int, "call: instructions that the input reached"),
    "path": (str, "call: the same for inputs that reached the same instructions"),
    "new": (int, "call: instructions that no earlier input of the same task reached"),
}


class Outcome(Enum):
    """The outcome of a task, or of one of its inputs."""

    DONE = "done"
    REFUSED = "refused"  # the image or what is asked of it cannot be, and the reason says why
    FAILED = "failed"  # what must hold does not, or a defect of ours
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASHED = "crashed"

    @property
    def is_good(self) -> bool:
        """Whether it is a result, and not a failure that may be worth a retry."""
        return self in (Outcome.DONE, Outcome.REFUSED)


GOOD: Final = frozenset(outcome.value for outcome in Outcome if outcome.is_good)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a task: rows without the columns that describe the task, and what calls reached."""

    rows: tuple[Row, ...]
    coverage: tuple[Row, ...] = ()  # see `COVERAGE`
    seconds: float = 0.0
    megabytes: int = 0
    report: bytes = b""  # the page about a run; it becomes a file of its own, and is not in the journal
    covered: bytes = (
        b""  # and so does what ran: JSON as of kinst-run --coverage, which names the image as the task does
    )

    @property
    def is_good(self) -> bool:
        """Whether no row is a failure."""
        return all(row["outcome"] in GOOD for row in self.rows)


COVERAGE: Final[Mapping[str, tuple[type, str]]] = {
    "image": (str, "the image, as it was named"),
    "function": (str, "of the instruction"),
    "offset": (int, "of the instruction in its function"),
    "instruction": (str, "as assembly"),
    "hits": (int, "how often it was executed, in all calls"),
    "inputs": (int, "how many inputs reached it; 0: none did"),
    "first": (int, "the number of the first input that did"),
    "refused": (str, "why it cannot be counted; then nothing is known of it"),
}


def failure(task: Task, outcome: Outcome, reason: str) -> Answer:
    """The answer for a task of which only is known how it failed. Of calls, each input has a row."""
    row = {"outcome": outcome.value, "reason": reason}
    if isinstance(task.work, Call):
        return Answer(tuple({**row, "input": text} for text in task.work.inputs))
    return Answer((row,))


def table_rows(task: Task, digest: str, answer: Answer) -> Iterator[Row]:
    """The rows of the table, with all columns."""
    count = max(1, len(answer.rows))  # the time of a task is divided among its rows, so that a column of them adds up
    own = {
        "task": digest,
        "kind": task.kind,
        "image": task.image.name,
        "sha256": task.image.sha256,
        "what": task.work.what,
        "input": task.work.given,
        "seconds": round(answer.seconds / count, 6),
        "megabytes": answer.megabytes,
    }
    for row in answer.rows:
        found = {**own, **row}
        yield {name: found.get(name) for name in COLUMNS}

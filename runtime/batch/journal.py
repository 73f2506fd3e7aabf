"""Answers -> a file with a line for each task, which is read when the batch is started again.

A line is written at once and whole; one that is not, since the process was killed meanwhile, is dropped.
"""

import fcntl
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import BinaryIO, Final

from kinst.runtime.batch.rows import Answer
from kinst.runtime.batch.schema import checked
from kinst.runtime.batch.tasks import DIGEST_LENGTH
from kinst.targets.errors import KinstError, UsageError

JOURNAL: Final = "journal.jsonl"
_DIGEST: Final = re.compile(f"[0-9a-f]{{{DIGEST_LENGTH}}}")
_FIELDS: Final = tuple(field.name for field in fields(Answer) if field.name not in ("report", "covered"))


class Journal:
    """The answers of a batch on disk, by the digests of their tasks."""

    def __init__(self, file: BinaryIO) -> None:
        """`file`: opened to be read and appended to."""
        self._file = file
        self._places: dict[str, int] = {}  # of lines; the last one of a task counts
        self._is_good: dict[str, bool] = {}
        self._read()

    def _read(self) -> None:
        end = 0
        for line in iter(self._file.readline, b""):
            if not line.endswith(b"\n"):  # torn: the next line must not be appended to it
                break
            self._note(line, end)
            end += len(line)
        self._file.truncate(end)

    def _note(self, line: bytes, place: int) -> None:
        try:
            digest, answer = _entry(line)
        except ValueError:
            raise KinstError(
                f"{self._file.name}: is not a journal of kinst-batch, or is damaged at byte {place}"
            ) from None
        self._places[digest], self._is_good[digest] = place, answer.is_good

    def __contains__(self, digest: str) -> bool:
        return digest in self._places

    def is_good(self, digest: str) -> bool:
        """Whether a task was performed and did not fail."""
        return self._is_good.get(digest, False)

    def add(self, digest: str, answer: Answer) -> None:
        """Append the answer of a task."""
        value = {name: getattr(answer, name) for name in _FIELDS}  # `asdict` would copy each row
        line = json.dumps({"task": digest, **value}, separators=(",", ":")).encode() + b"\n"
        place = self._file.seek(0, 2)  # for the index only: a file opened by "a" is written at its end anyway
        self._file.write(line)
        self._file.flush()
        self._places[digest], self._is_good[digest] = place, answer.is_good

    def answer(self, digest: str) -> Answer:
        """The answer of a task that was performed."""
        self._file.seek(self._places[digest])
        return _entry(self._file.readline())[1]


def _entry(line: bytes) -> tuple[str, Answer]:
    """A line -> a task's digest and its answer. Raises ValueError: it is not a line of a journal."""
    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict) or value.keys() != {"task", *_FIELDS}:
        raise ValueError("no entry")
    digest = value.pop("task")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ValueError("no digest")
    return digest, checked(**value)


@contextmanager
def open_journal(folder: Path) -> Iterator[Journal]:
    """The journal in a folder, for one process at a time.

    Raises:
        UsageError: another process uses it.
        KinstError: it cannot be read.
        OSError: it cannot be written.
    """
    with (folder / JOURNAL).open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{folder}: another kinst-batch uses it") from None
        file.seek(0)
        yield Journal(file)


def peek(folder: Path) -> frozenset[str]:
    """The digests in the journal of a folder, which need not exist; nothing is written."""
    path = folder / JOURNAL
    if not path.exists():
        return frozenset()
    start = len('{"task":"')  # `add` writes the digest first, without blanks: so rows need not be parsed
    with path.open("rb") as file:
        return frozenset(line[start : start + DIGEST_LENGTH].decode("ascii", "replace") for line in file)

"""A machine -> the file of a snapshot. What is in the file is the guest alone: its memory has its own bytes where
probes are, and no trampoline, so that any other program can start from it."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.machine.snapshots.devices import graph_of
from kinst.runtime.machine.snapshots.ram import Part, content_of, filled, parts_of
from kinst.runtime.machine.snapshots.snapshot import cpu_problems, take_state
from kinst.runtime.tracing.snapshots.format import Facts, Header, SnapshotError, write_header
from kinst.runtime.tracing.snapshots.state_text import state_text
from kinst.targets.compression import zstd_writer
from kinst.targets.errors import MachineError

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System

_RUN: Final = 256  # pages that are handled at once
Bytes = tuple[int, bytes]  # a physical address, and what is there


def write_snapshot(
    path: Path,
    system: "System",
    facts: Facts,
    own: Iterable[Bytes],
    copies: Sequence[int],
    site: int | None,
    new: Sequence[bytes],
) -> None:
    """Write a file, which appears when it is complete.

    Args:
        path: of the file.
        system: the machine, between two turns; or at a probe that fires at `site`.
        facts: what a machine must be like that continues from it.
        own: the guest's own bytes where memory has others.
        copies: how far copies of the image's code are from it, in bytes.
        site: see `system`; None: between two turns.
        new: the states of the CPUs as the board starts them, of which whoever reads the file has the same.

    Raises:
        MachineError: something cannot be kept at the moment, or no reader would believe it.
        SnapshotError: the file cannot be written.
    """
    state = take_state(system, graph_of(system), site)
    for number, problem in cpu_problems(state, system, new):
        raise MachineError(f"{path}: not written: CPU {number} has a state that snapshots do not know: {problem}")
    parts = parts_of(system.memory)
    ram = _Ram(parts, _pristine(parts, own))
    digest = hashlib.sha256()
    for content in ram.contents():
        digest.update(content)
    regions = tuple((part.base, part.size) for part in parts)
    header = Header(facts, state_text(state), regions, tuple(ram.runs()), digest.hexdigest(), tuple(copies), state.time)
    try:
        with replaced_file(path) as file:
            _write(file, header, ram)
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be written: {error.strerror}") from None


def _write(file: BinaryIO, header: Header, ram: "_Ram") -> None:
    write_header(file, header)
    with zstd_writer(file) as out:
        for content in ram.contents():
            out.write(content)


class _Ram:
    """The pages that are not empty."""

    def __init__(self, parts: Sequence[Part], changed: Mapping[int, bytes]) -> None:
        """`changed`: pages that are written otherwise than they are, by number."""
        self._parts, self._changed = parts, changed
        self._runs = [self._runs_of(part) for part in parts]

    def _runs_of(self, part: Part) -> list[tuple[int, int]]:
        pages = filled(content_of(part))
        cuts = np.flatnonzero(np.diff(pages) != 1) + 1
        return [(int(run[0]), len(run)) for run in np.split(pages, cuts) if len(run)]

    def runs(self) -> Iterator[tuple[int, int]]:
        """First page and number of pages, numbered through all parts."""
        for part, runs in zip(self._parts, self._runs, strict=True):
            yield from ((part.offset // PAGE + first, count) for first, count in runs)

    def contents(self) -> Iterator[bytes]:
        """All pages, some at a time."""
        for part, runs in zip(self._parts, self._runs, strict=True):
            content, offset = content_of(part), part.offset // PAGE
            for first, count in runs:
                for start in range(first, first + count, _RUN):
                    end = min(start + _RUN, first + count)
                    yield self._restored(content[start:end].tobytes(), offset + start, offset + end)

    def _restored(self, content: bytes, start: int, end: int) -> bytes:
        numbers = [number for number in self._changed if start <= number < end] if self._changed else []
        if not numbers:
            return content
        found = bytearray(content)
        for number in numbers:
            found[(number - start) * PAGE : (number - start + 1) * PAGE] = self._changed[number]
        return bytes(found)


def _pristine(parts: Sequence[Part], own: Iterable[Bytes]) -> dict[int, bytes]:
    """The pages in which the guest has other bytes than memory, by number."""
    pages: dict[int, bytearray] = {}
    for address, content in own:
        for at, byte in enumerate(content, address):
            number = _number(parts, at)
            if number is not None:
                if number[0] not in pages:
                    pages[number[0]] = bytearray(number[1])
                pages[number[0]][at % PAGE] = byte
    return {number: bytes(page) for number, page in pages.items()}


def _number(parts: Sequence[Part], address: int) -> tuple[int, memoryview] | None:
    """The number of the page at a physical address, and its bytes."""
    for part in parts:
        if part.base <= address < part.base + part.size:
            at = (address - part.base) // PAGE
            return part.offset // PAGE + at, content_of(part)[at].data
    return None

"""A process that stands at its start -> how it ended, and what each patched file that it had loaded has counted.

It and all that it starts are traced (ptrace): when one of them ends, its memory is still there. Which of its mappings
are a patched file's, the file's number tells: names are those of another namespace. What an emulator of user programs
maps for its guest is found alike.
"""

import ctypes
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from kinst.targets.standalone import Action

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_CONT, _SETOPTIONS = 7, 0x4200
_OPTIONS: Final = 0x2 | 0x4 | 0x8 | 0x10 | 0x40 | 0x100000  # fork, vfork, clone, exec, exit; none outlives us
_EXIT_EVENT: Final = 6
_WALL: Final = 0x40000000


@dataclass(frozen=True, slots=True)
class Counted:
    """A patched file: its number, where its data are behind its lowest mapping, and how many words these have. Of a
    ring, only the number of records."""

    path: Path
    inode: int
    distance: int
    words: int

    @classmethod
    def of(cls, path: Path) -> "Counted":
        """What a standalone image keeps."""
        image = open_image(path)
        manifest = find_manifest(image)
        assert manifest is not None
        assert manifest.standalone is not None
        alone = manifest.standalone
        first = min((one for one in image.segments if one.kind == PT_LOAD), key=lambda one: one.address)
        lowest = first.address - first.offset
        words = alone.size // 8 if alone.action is Action.COUNT else 1
        return cls(path, path.stat().st_ino, alone.address - lowest, words)


@dataclass(slots=True)
class Ended:
    """How the first process ended, as a shell would say it; and of each file the number of processes that had it, and
    their counters, the highest of each."""

    status: int = 0
    processes: dict[Path, int] = field(default_factory=dict)
    counters: dict[Path, NDArray[np.uint64]] = field(default_factory=dict)


def watch(first: int, files: Sequence[Counted], seconds: int) -> Ended:
    """Let it run, and all that it starts, to the end.

    Raises:
        TimeoutError: it takes longer.
    """
    watched = _Watched(first, {one.inode: one for one in files})
    with _limit(seconds):
        try:
            watched.run()
        finally:
            watched.kill()
    return watched.ended


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def expired(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class _Watched:
    def __init__(self, first: int, files: Mapping[int, Counted]) -> None:
        self._first, self._files, self.ended = first, files, Ended()
        self._seen, self._alive, self._begun = dict[tuple[int, Path], NDArray[np.uint64]](), {first}, False

    def run(self) -> None:
        """Until none is left."""
        while self._alive:
            process, status = os.waitpid(-1, _WALL)
            self._alive.add(process)
            if not os.WIFSTOPPED(status):
                self._alive.discard(process)
                if process == self._first:
                    self.ended.status = os.waitstatus_to_exitcode(status) % 256
                continue
            _go_on(process, self._signal(process, status))
        for (_, path), counters in self._seen.items():
            self.ended.processes[path] = self.ended.processes.get(path, 0) + 1
            known = self.ended.counters.get(path, counters)
            self.ended.counters[path] = np.maximum(known, counters)

    def kill(self) -> None:
        """Those that are left."""
        for process in self._alive:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while self._alive:
            process, status = os.waitpid(-1, _WALL)
            if os.WIFSTOPPED(status):
                _go_on(process, 0)
            else:
                self._alive.discard(process)

    def _signal(self, process: int, status: int) -> int:
        """The signal that a stopped process is to get: none if it stopped for us."""
        event, number = status >> 16, os.WSTOPSIG(status)
        if event == _EXIT_EVENT:
            self._read(process)
        if not self._begun:
            _LIBC.ptrace(_SETOPTIONS, process, None, ctypes.c_void_p(_OPTIONS))
            self._begun = True
            return 0
        return 0 if event or number == signal.SIGSTOP else number  # with which those begin that it starts

    def _read(self, process: int) -> None:
        with suppress(OSError):  # of a thread whose process is gone already
            for found, start in self._mapped(process):
                with Path(f"/proc/{process}/mem").open("rb") as memory:
                    memory.seek(start + found.distance)
                    data = memory.read(8 * found.words)
                self._seen[_process_of(process), found.path] = np.frombuffer(data, np.uint64)

    def _mapped(self, process: int) -> Iterator[tuple[Counted, int]]:
        """Those files that a process has mapped, and where what they begin with is, or would be."""
        left = dict(self._files)
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            words = line.split(maxsplit=5)
            found = left.pop(int(words[4]), None)
            if found is not None:
                yield found, int(words[0].partition("-")[0], 16) - int(words[2], 16)


def _process_of(thread: int) -> int:
    status = Path(f"/proc/{thread}/status").read_text()
    return int(status.partition("Tgid:")[2].split(maxsplit=1)[0])


def _go_on(process: int, number: int) -> None:
    _LIBC.ptrace(_CONT, process, None, ctypes.c_void_p(number))

"""The file of a disk -> bytes that a guest reads and writes: in the file itself, or in a copy of what it changes.

A file is locked while it is a disk: shared by runs that do not write to it, or exclusively by one that does.
"""

import errno
import fcntl
import mmap
import os
import stat
import weakref
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, Protocol

from kinst.runtime.machine.host_memory import host_memory
from kinst.targets.errors import MachineError, UsageError

SECTOR: Final = 512
_PAGE: Final = 4096
_CHECKED: Final = 4096  # pages that are copied between two checks of the host's memory
_LEFT: Final = 256 << 20  # bytes of the host's memory that copies leave
_MAP_NORESERVE: Final = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Python names it from 3.13 on


class Content(dict[int, bytes]):
    """What a memory has, by page: those that are not empty, or not as they were."""


class DiskMode(Enum):
    """Where a guest's writes go."""

    COPY = "copy"  # to a copy in memory, which is discarded at the end
    READ_WRITE = "rw"  # to the file
    READ_ONLY = "ro"  # nowhere: they fail


class Disk(Protocol):
    """Bytes of a fixed size. The device checks that accesses are inside."""

    @property
    def name(self) -> bytes:
        """The file's name, without its folder."""
        ...

    @property
    def size(self) -> int:
        """In bytes: a positive multiple of 512."""
        ...

    @property
    def is_read_only(self) -> bool:
        """Whether it must not be written to."""
        ...

    def read(self, offset: int, buffers: Sequence[memoryview]) -> None:
        """Fill buffers from `offset` on. Raises OSError."""
        ...

    def write(self, offset: int, buffers: Sequence[memoryview]) -> None:
        """Write buffers one after the other, from `offset` on. Raises OSError."""
        ...

    def flush(self) -> None:
        """Return when all that was written is on stable storage. Raises OSError."""
        ...


def open_disk(path: Path, mode: DiskMode = DiskMode.COPY) -> Disk:
    """A file as a disk, locked as long as the disk exists.

    Raises:
        UsageError: it cannot be a disk.
        MachineError: it is in use.
    """
    flags = os.O_RDWR if mode is DiskMode.READ_WRITE else os.O_RDONLY
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK)  # a FIFO without a writer must not wait forever
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise UsageError(f"{path}: cannot be a disk: {getattr(error, 'strerror', error)}") from None
    try:
        size = _checked_size(path, descriptor)
        _lock(path, descriptor, mode)
        if mode is DiskMode.COPY:
            return CopiedDisk(os.fsencode(path.name), os.dup(descriptor), size)
        return FileDisk(os.fsencode(path.name), os.dup(descriptor), size, is_read_only=mode is DiskMode.READ_ONLY)
    except OSError as error:
        raise UsageError(f"{path}: cannot be a disk: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _checked_size(path: Path, descriptor: int) -> int:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: cannot be a disk: not a regular file")
    if status.st_size == 0 or status.st_size % SECTOR:
        raise UsageError(
            f"{path}: cannot be a disk: its size, {status.st_size:,} bytes, is no multiple of {SECTOR} above 0"
        )
    return status.st_size


def _lock(path: Path, descriptor: int, mode: DiskMode) -> None:
    kind = fcntl.LOCK_EX if mode is DiskMode.READ_WRITE else fcntl.LOCK_SH
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        what = "in use" if mode is DiskMode.READ_WRITE else "being written"
        raise MachineError(f"{path}: is {what} as the disk of another run, or given twice") from None


class FileDisk:
    """A disk whose writes go to the file, or that is read-only. System calls and no mapping: if the host's disk is
    full, a write fails, and no SIGBUS ends the process."""

    def __init__(self, name: bytes, descriptor: int, size: int, *, is_read_only: bool) -> None:
        """Takes the descriptor, and closes it in the end."""
        self.name, self.size, self.is_read_only = name, size, is_read_only
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def read(self, offset: int, buffers: Sequence[memoryview]) -> None:
        """Fill buffers from the file. Raises OSError, also where the file has become shorter."""
        _check_whole(os.preadv(self.descriptor, buffers, offset), buffers)

    def write(self, offset: int, buffers: Sequence[memoryview]) -> None:
        """Write to the file. Raises OSError."""
        _check_whole(os.pwritev(self.descriptor, buffers, offset), buffers)

    def state(self) -> tuple[()]:
        """Nothing, for a snapshot. Raises MachineError: the guest writes to the file itself, which goes on without
        it."""
        if not self.is_read_only:
            name = self.name.decode(errors="replace")
            raise MachineError(f"disk {name}: is written itself (rw), and a snapshot cannot bring it back: use a copy")
        return ()

    def restore(self, state: object) -> None:
        """Do nothing: it has not changed."""

    def flush(self) -> None:
        """Wait until it is on the host's disk. Raises OSError."""
        os.fdatasync(self.descriptor)


def _check_whole(moved: int, buffers: Sequence[memoryview]) -> None:
    if moved != sum(map(len, buffers)):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


class CopiedDisk:
    """A disk whose file is never written: a private mapping, in which a page that is written to becomes a copy."""

    is_read_only = False

    def __init__(self, name: bytes, descriptor: int, size: int, available: Callable[[], int] = host_memory) -> None:
        """Takes the descriptor, and closes it in the end. `available`: gives the bytes that the host has left."""
        self.name, self.size = name, size
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        # Without MAP_NORESERVE the kernel may refuse to map a file that is larger than its memory.
        flags = mmap.MAP_PRIVATE | _MAP_NORESERVE
        self._content = memoryview(mmap.mmap(descriptor, size, flags, mmap.PROT_READ | mmap.PROT_WRITE))
        self._is_copied = bytearray(-(-size // _PAGE))
        self._copies = 0
        self._available = available

    def read(self, offset: int, buffers: Sequence[memoryview]) -> None:
        """Fill buffers. Raises OSError where the file has become shorter."""
        self._check_file()
        for buffer in buffers:
            buffer[:] = self._content[offset : offset + len(buffer)]
            offset += len(buffer)

    def write(self, offset: int, buffers: Sequence[memoryview]) -> None:
        """Change the copy. Raises OSError if the host's memory would run out, and as `read`."""
        self._check_file()
        self._copy(offset, sum(map(len, buffers)))
        for buffer in buffers:
            self._content[offset : offset + len(buffer)] = buffer
            offset += len(buffer)

    def _check_file(self) -> None:
        """Raise OSError if the file has become shorter. Access to a mapped page past its end, even a copied one, is a
        SIGBUS, which ends the process."""
        if os.fstat(self.descriptor).st_size < self.size:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _copy(self, offset: int, size: int) -> None:
        """Count the pages that will be copied. Raises OSError if memory is short: a guest can fill a disk of any
        size."""
        first, end = offset // _PAGE, -(-(offset + size) // _PAGE)
        copies = self._copies + self._is_copied.count(0, first, end)
        if copies // _CHECKED != self._copies // _CHECKED and self._available() < _LEFT + size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._is_copied[first:end] = bytes((1,)) * (end - first)
        self._copies = copies

    def state(self) -> Content:
        """What the guest has written, for a snapshot."""
        pages = (at for at, is_copied in enumerate(self._is_copied) if is_copied) if self._copies else ()
        return Content({at: bytes(self._content[at * _PAGE : (at + 1) * _PAGE]) for at in pages})

    def restore(self, state: Mapping[int, bytes]) -> None:
        """Return to what `state` gave, of this disk or another one with the same file. Raises OSError: the file has
        become shorter."""
        self._check_file()
        for at in (at for at, is_copied in enumerate(self._is_copied) if is_copied and at not in state):
            place = slice(at * _PAGE, min((at + 1) * _PAGE, self.size))
            self._content[place] = os.pread(self.descriptor, place.stop - place.start, place.start)
        self._is_copied[:] = bytes(len(self._is_copied))
        for at, content in state.items():
            self._content[at * _PAGE : at * _PAGE + len(content)] = content
            self._is_copied[at] = 1
        self._copies = len(state)

    def flush(self) -> None:
        """Do nothing: a copy does not outlive the run."""

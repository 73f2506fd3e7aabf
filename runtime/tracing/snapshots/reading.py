"""The file of a snapshot -> a machine that continues from it.

RAM is not copied. It becomes a private mapping of a file that has all of it, uncompressed: pages are read when the
guest touches them. That file is kept in the user's cache under the digest of what it has, so that only the first start
from a snapshot decompresses it.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.rewriter.shell.kept_files import forget_old, kept_folder
from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.machine.snapshots.devices import graph_of
from kinst.runtime.machine.snapshots.ram import RamBase, parts_of
from kinst.runtime.machine.snapshots.snapshot import cpu_problems, restore_state
from kinst.runtime.machine.snapshots.state import MachineState, cpu_contents
from kinst.runtime.tracing.snapshots.format import Header, SnapshotError, read_header
from kinst.runtime.tracing.snapshots.state_text import state_of
from kinst.targets.compression import zstd_reader
from kinst.targets.errors import MachineError

if TYPE_CHECKING:
    from kinst.runtime.machine.snapshots.object_graph import ObjectGraph
    from kinst.runtime.machine.system import System

_FOLDER: Final = "snapshots"
_SUFFIX: Final = ".ram"
_KEPT: Final = 8  # files of uncompressed RAM
_RUN: Final = 256  # pages that are handled at once
Reader = Callable[[int], bytes]


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, if it is a regular one. Raises SnapshotError."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror}") from None
    with file:
        if not path.is_file():
            raise SnapshotError(f"{path}: is not a regular file")
        yield file


def header_of(path: Path) -> Header:
    """What a snapshot says of its machine. Raises SnapshotError."""
    with opened(path) as file:
        return read_header(path, file)


def restore(path: Path, system: "System") -> Header:
    """Let a machine continue from a snapshot: a new one, whose board was started with the same image. Raises
    SnapshotError: the file is damaged, or the machine is another."""
    with opened(path) as file:
        header = read_header(path, file)
        graph = graph_of(system)
        state = checked(path, header, system, graph)
        descriptor = _ram_file(path, file, header)
    try:
        system.memory.keep(RamBase(parts_of(system.memory), descriptor))
        restore_state(system, graph, state)
    except MachineError as error:
        raise SnapshotError(f"{path}: {error}") from None
    finally:
        os.close(descriptor)
    return header


def checked(path: Path, header: Header, system: "System", graph: "ObjectGraph") -> MachineState:
    """The state that a header says, which fits a machine with these devices. Raises SnapshotError: it does not."""
    parts = parts_of(system.memory)
    if tuple((part.base, part.size) for part in parts) != header.regions:
        raise SnapshotError(f"{path}: has other RAM than the machine {system.facts.name} has")
    try:
        state = state_of(header.state, graph, len(system.cpus))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        what = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise SnapshotError(f"{path}: is damaged: {what}") from None
    check_cpus(path, state, system, cpu_contents(system))
    return state


def check_cpus(path: Path, state: MachineState, system: "System", new: Sequence[bytes]) -> None:
    """Raise SnapshotError if a CPU has what no guest can have brought about. `new`: the states of CPUs of a machine
    that was just made."""
    for number, problem in cpu_problems(state, system, new):
        raise SnapshotError(f"{path}: is damaged: CPU {number}: {problem}")


def _ram_file(path: Path, file: BinaryIO, header: Header) -> int:
    """The descriptor of a file with all RAM."""
    folder = kept_folder(_FOLDER)
    if folder is None:
        return _in_memory(path, file, header)
    kept = folder / f"{header.key}{_SUFFIX}"
    with suppress(OSError):
        descriptor = os.open(kept, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        if os.fstat(descriptor).st_size == header.size:
            kept.touch()
            return descriptor
        os.close(descriptor)
    try:
        with fresh_file(kept) as out:
            _unpack(path, file, header, out.fileno())
        forget_old(folder, _SUFFIX, _KEPT)
        return os.open(kept, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # no room for it
        with opened(path) as again:
            return _in_memory(path, again, read_header(path, again))


def _in_memory(path: Path, file: BinaryIO, header: Header) -> int:
    try:
        descriptor = os.memfd_create("kinst snapshot")
        _unpack(path, file, header, descriptor)
    except OSError as error:
        raise SnapshotError(f"{path}: no room for its {header.size >> 20} MiB of RAM: {error.strerror}") from None
    return descriptor


def _unpack(path: Path, file: BinaryIO, header: Header, out: int) -> None:
    """Write RAM to a file, as it was; empty pages are holes. Raises SnapshotError: it is not what the header says."""
    read, digest = zstd_reader(file), hashlib.sha256()
    os.ftruncate(out, header.size)
    for first, count in header.runs:
        for start in range(first, first + count, _RUN):
            size = min(_RUN, first + count - start) * PAGE
            content = _exactly(path, read, size)
            digest.update(content)
            os.pwrite(out, content, start * PAGE)
    if _more(path, read) or digest.hexdigest() != header.pages:
        raise SnapshotError(f"{path}: is damaged: its memory is not what was written")


def _exactly(path: Path, read: Reader, size: int) -> bytes:
    content = _read(path, read, size)
    while 0 < len(content) < size:
        more = _read(path, read, size - len(content))
        if not more:
            break
        content += more
    if len(content) != size:
        raise SnapshotError(f"{path}: is cut short")
    return content


def _more(path: Path, read: Reader) -> bool:
    return bool(_read(path, read, 1))


def _read(path: Path, read: Reader, size: int) -> bytes:
    try:
        return read(size)
    except ValueError as error:
        raise SnapshotError(f"{path}: is damaged: {error}") from None

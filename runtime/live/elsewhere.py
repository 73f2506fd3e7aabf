"""The monitor of a QEMU that somebody else started -> its guest's memory, while that runs.

Where the memory is in a file that QEMU shares (memory-backend-file or -memfd, share=on) it is read there, and the guest
is not asked. QEMU writes any other into a file of ours for each reading (pmemsave).
"""

import os
import re
import select
import socket
import stat
import struct
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kinst.runtime.live.monitor import Monitor, MonitorError
from kinst.runtime.live.ram import ranges_of
from kinst.runtime.readout.files import RawDump
from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.targets.errors import MachineError, UsageError

_TCP: Final = re.compile(r"(?P<host>\[[^\[\]/]+\]|[^:/]*):(?P<port>[0-9]{1,5})")
_PORTS: Final = range(1, 1 << 16)
_PATIENCE: Final = 5.0  # seconds to connect
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred: process, user, group


class QmpSource:
    """A monitor's socket; implements `kinst.runtime.readout.memory.Source`. A monitor serves one client at a time: we
    leave as soon as its answers are there."""

    is_live = True

    def __init__(self, text: str) -> None:
        """`text` is qmp:PATH, or qmp:HOST:PORT. Nothing is connected yet. Raises UsageError: it is neither."""
        self.name = text
        place, found = text.removeprefix("qmp:"), _TCP.fullmatch(text.removeprefix("qmp:"))
        if not place or (found is not None and int(found["port"]) not in _PORTS):
            raise UsageError(f"--read {text}: qmp:SOCKET, for example qmp:/tmp/monitor, or qmp:HOST:PORT")
        self._place: str | tuple[str, int] = place
        if found is not None:
            self._place = found["host"].strip("[]") or "localhost", int(found["port"])
        self._shared: RawDump | None = None
        self._process: int | None = None  # a descriptor; None: it is not of this host
        self._has_ended = False

    @contextmanager
    def open(self) -> Iterator[Memory]:
        """See `Source`. A shared file is still there when QEMU has ended: it is read once more then."""
        if self._has_ended:
            raise MachineError(f"{self.name}: QEMU has ended")
        if self._shared is not None:
            self._has_ended = self._process is not None and bool(select.select([self._process], (), (), 0)[0])
            yield self._shared
            return
        with self._connected() as (monitor, process):
            self._shared = self._shared_by(monitor, process)
            if self._shared is None:
                yield _Saved(self.name, monitor)
                return
        if process:
            self._process = os.pidfd_open(process)
            weakref.finalize(self, os.close, self._process)
        yield self._shared

    @contextmanager
    def _connected(self) -> Iterator[tuple[Monitor, int]]:
        """The monitor, and QEMU's process; 0: it is not of this host."""
        try:
            connection = _connection(self._place)
            process = _process_of(connection)
            monitor = Monitor(connection)
        except (OSError, MonitorError) as error:
            raise MachineError(f"{self.name}: {_why(error)}") from None
        with monitor:
            yield monitor, process

    def _shared_by(self, monitor: Monitor, process: int) -> RawDump | None:
        tree = monitor.human("info mtree -f")
        for backend in monitor.ask("query-memdev"):
            ranges = [*ranges_of(tree, str(backend.get("id", "")))]
            if ranges and backend.get("share") and (file := _file_of(monitor, backend, process)) is not None:
                return RawDump(self.name, file, ranges, (Space.PHYSICAL,))
        return None


def _connection(place: str | tuple[str, int]) -> socket.socket:
    """Raises OSError."""
    if not isinstance(place, str):
        return socket.create_connection(place, _PATIENCE)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_PATIENCE)
        connection.connect(place)
    except OSError:
        connection.close()
        raise
    return connection


class _Saved:
    """Memory that QEMU saves for each reading; implements `kinst.runtime.readout.memory.Memory`."""

    spaces: Sequence[Space] = (Space.PHYSICAL,)
    is_slow = True

    def __init__(self, name: str, monitor: Monitor) -> None:
        self._name, self._monitor = name, monitor

    def read(self, space: Space, address: int, size: int) -> bytes:
        """See `Memory`."""
        with TemporaryDirectory(prefix="kinst-memory-") as folder:
            path = Path(folder) / "memory"
            try:
                self._monitor.ask("pmemsave", val=address, size=size, filename=str(path))
                found = path.read_bytes()
            except (MonitorError, OSError) as error:
                raise UnreadableError(f"{self._name}: {space.value} address {address:#x}: {_why(error)}") from None
        if len(found) != size:
            raise UnreadableError(f"{self._name}: there are no {size} bytes at {space.value} address {address:#x}")
        return found

    def find(self, content: bytes) -> Iterator[int]:
        """See `Memory`."""
        del content
        return iter(())


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return getattr(error, "strerror", None) or str(error)


def _process_of(connection: socket.socket) -> int:
    """The process at the other end of a socket of this host; 0: it is not known."""
    if connection.family != socket.AF_UNIX:
        return 0
    return int(_CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0])


def _file_of(monitor: Monitor, backend: Mapping[str, Any], process: int) -> int | None:
    """A descriptor of the file that a backend shares: by its path, or where it has none (a memfd) or was removed, among
    those that QEMU has open. None: we cannot open it."""
    size, path = int(backend["size"]), ""
    with suppress(MonitorError):  # a memfd has no path
        path = str(monitor.ask("qom-get", path=f"/objects/{backend['id']}", property="mem-path"))
    for candidate in (Path(path), *_opened(process, path)) if path else _opened(process, path):
        with suppress(OSError):
            descriptor = os.open(candidate, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_size >= size:
                return descriptor
            os.close(descriptor)
    return None


def _opened(process: int, path: str) -> Iterator[Path]:
    """The files of a process that are a memory backend's: in a folder, or of that name, or without any."""
    with suppress(OSError):
        for link in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                target = str(link.readlink())
                if target.startswith(path or "/memfd:memory-backend-memfd"):
                    yield link

"""Where a debugger finds the guest, the value of --gdb: [HOST:]PORT or unix:PATH."""

import socket
from pathlib import Path
from typing import Final

from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_LOOPBACK: Final = "127.0.0.1"
_UNIX: Final = "unix:"
_LONGEST: Final = 10  # digits of a port, zeros before it and all


@dataclass(frozen=True, slots=True)
class DebuggerAddress:
    """A TCP port of an interface (0: any free one), or the path of a Unix socket."""

    host: str = _LOOPBACK
    port: int = 0
    path: Path | None = None


def debugger_address(text: str) -> DebuggerAddress:
    """The address that --gdb names. Raises UsageError."""
    if text.startswith(_UNIX):
        if len(text) == len(_UNIX):
            raise UsageError(f"--gdb {text}: has no path: unix:PATH")
        return DebuggerAddress(path=Path(text[len(_UNIX) :]))
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not (port.isascii() and port.isdigit() and len(port) < _LONGEST and int(port) < 1 << 16):
        raise UsageError(f"--gdb {text}: is no [HOST:]PORT and no unix:PATH")
    return DebuggerAddress(host or (_LOOPBACK if not colon else "0.0.0.0"), int(port))


def listening(address: DebuggerAddress) -> socket.socket:
    """A socket that waits for a debugger. Raises UsageError: the address cannot be used."""
    try:
        if address.path is not None:
            _forget_stale(address.path)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(address.path))
        else:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            return socket.create_server((address.host, address.port), family=family, backlog=1)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--gdb {shown(address)}: {why}") from None
    listener.listen(1)
    return listener


def _forget_stale(path: Path) -> None:
    """Remove the socket of a run that was killed: nobody listens there any more."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()


def place_of(listener: socket.socket) -> str:
    """Where a debugger connects, in the words of gdb's `target remote`."""
    name = listener.getsockname()
    if isinstance(name, str):
        return name
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"


def shown(address: DebuggerAddress) -> str:
    """The address as it was given."""
    return f"{_UNIX}{address.path}" if address.path is not None else f"{address.host}:{address.port}"

"""Firings and console bytes -> text as dtrace(1) prints it. Lines stay whole, in the order in which things happened."""

from collections.abc import Callable
from typing import BinaryIO, Final

from kinst.runtime.providers.provider import Probe
from kinst.runtime.trap import Firing

HEADER: Final = b"%3s %6s %32s\n" % (b"CPU", b"ID", b"FUNCTION:NAME")
_PENDING: Final = 1 << 14  # lines kept before they are written


class TextConsumer:
    """dtrace's default output and the guest's console, in one stream or in two."""

    def __init__(self, output: BinaryIO, console: BinaryIO | None, describe: Callable[[int], Probe | None]) -> None:
        """`console` is None where the console goes to `output` too; `describe` knows a probe by its identifier."""
        self._output = output
        self._console = console
        self._describe = describe
        self._rows: dict[int, bytes] = {}
        self._pending: list[bytes] = []
        self._partial = bytearray()  # of the console's present line, while it shares the stream with firings
        self._has_firings = False

    def begin(self, *, with_header: bool) -> None:
        """Probes are enabled and the machine is about to run."""
        self._has_firings = with_header
        if with_header:
            self._pending.append(HEADER)

    def fired(self, firing: Firing) -> None:
        """A probe's default action."""
        probe = firing.enabling.probe
        row = self._rows.get(probe)
        if row is None:
            row = self._rows[probe] = self._row(probe)
        self._pending.append(b"%3d%b" % (firing.cpu, row))
        if len(self._pending) >= _PENDING:
            self.flush()

    def ignored(self, firing: Firing) -> None:
        """A probe's default action under -q: none."""

    def _row(self, identifier: int) -> bytes:
        probe = self._describe(identifier)
        name = "" if probe is None else f"{probe.function}:{probe.name}"
        return f" {identifier:6d} {name:>32s} \n".encode()

    def console(self, data: bytes) -> None:
        """The guest printed."""
        if self._console is not None:
            self._console.write(data)
        elif not self._has_firings:
            self._pending.append(data)
        else:
            self._partial += data
            if b"\n" in data:
                end = self._partial.rindex(b"\n") + 1
                self._pending.append(bytes(self._partial[:end]))
                del self._partial[:end]

    def flush(self) -> None:
        """Write what is complete."""
        if self._pending:
            self._output.write(b"".join(self._pending))
            self._pending.clear()
            self._output.flush()
        if self._console is not None:
            self._console.flush()

    def end(self) -> None:
        """The machine stopped: write the console's last line, complete or not."""
        if self._partial:
            self._pending.append(bytes(self._partial) + b"\n")
            self._partial.clear()
        self.flush()

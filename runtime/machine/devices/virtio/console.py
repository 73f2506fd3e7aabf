"""A console as a virtio device (virtio 1.2, 5.3): one port, two queues of plain bytes.

Output goes to the same place as that of the serial line. Input comes here instead of there once the guest has printed
through it: drivers offer buffers for input long before a program reads from them.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from kinst.runtime.machine.devices.virtio.device import Work
from kinst.runtime.machine.devices.virtio.split_queue import Chain, pieces
from kinst.runtime.machine.serial_line import SerialLine

RECEIVE, TRANSMIT = 0, 1  # queues
_QUEUE: Final = 128
_AT_ONCE: Final = 256  # bytes that are taken from the line
_PIECE: Final = 4096  # bytes that are printed at once: each costs the consumers of the console some time


class VirtioConsole:
    """The model of the console."""

    identity = 3
    class_code = 0x0780  # communication
    features = 0
    configuration = b""
    queues = (_QUEUE, _QUEUE)
    at_once = 16 * _PIECE

    def __init__(self, output: Callable[[bytes], None], line: SerialLine) -> None:
        """`output` gets what the guest prints; it receives from `line`."""
        self._output, self._line = output, line
        self._held = b""

    def attach(self, notify: Callable[[int], None]) -> None:
        """See `Model`."""
        self._line.connect(partial(self._receive, notify))

    def can_serve(self, queue: int) -> bool:
        """See `Model`: buffers for input wait until there is some."""
        return queue != RECEIVE or bool(self._held)

    def serve(self, chain: Chain) -> Work:
        """Print what a chain holds, and fill its writable buffers with input."""
        for piece in pieces(chain.readable, _PIECE):
            self._output(b"".join(piece))
            self._line.claim(self)
            yield _PIECE
        before = len(self._held)
        for buffer in chain.writable:
            part, self._held = self._held[: len(buffer)], self._held[len(buffer) :]
            buffer[: len(part)] = part
        return before - len(self._held)

    def _receive(self, notify: Callable[[int], None]) -> None:
        if not self._held:
            self._held = self._line.take(_AT_ONCE, self)
            if self._held:
                notify(RECEIVE)

"""The Raspberry Pi's own SD host controller, of which only drivers tell (Linux' drivers/mmc/host/bcm2835.c).

    0x00 command: 15 starts it  14 it failed  11 busy  10 no response  9 a long one  7 writes  6 reads  5:0 index
    0x04 argument   0x10 response (4)   0x20 status: 10, 9, 8 interrupts  6 timeout  0 data; a one clears
    0x30 power      0x34 state: 8:4 words in the FIFO  3:0 phase          0x38 configuration: which interrupt
    0x3c bytes of a block   0x40 FIFO   0x50 blocks

A command is obeyed before the write that gives it ends; data is moved as the FIFO has room for it.
"""

from collections import deque
from typing import Final

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.sd.card import SdCard
from kinst.runtime.machine.devices.sd.socket import Socket

KIND: Final = "bcm2835-sdhost"
_COMMAND, _ARGUMENT, _RESPONSE, _STATUS, _STATE, _SETTING = 0x00, 0x04, 0x10, 0x20, 0x34, 0x38
_BYTES, _FIFO, _BLOCKS, _POWER = 0x3C, 0x40, 0x50, 0x30
_PLAIN: Final = (_ARGUMENT, _POWER, _BYTES)
_READABLE: Final = (_COMMAND, _POWER, _STATE, _STATUS, _BYTES, _BLOCKS, *range(_RESPONSE, _RESPONSE + 16, 4))
_NEW, _FAILED, _WAITS, _SILENT, _LONG, _WRITES, _READS = 1 << 15, 1 << 14, 1 << 11, 1 << 10, 1 << 9, 1 << 7, 1 << 6
_BUSY_OVER, _BLOCK_OVER, _DATA_MOVED, _NO_DATA, _TIMEOUT, _HAS_DATA = 1 << 10, 1 << 9, 1 << 8, 1 << 7, 1 << 6, 1
_INTERRUPTS: Final = _BUSY_OVER | _BLOCK_OVER | _DATA_MOVED
_TELLS_BUSY, _TELLS_BLOCKS, _TELLS_DATA = 1 << 10, 1 << 8, 1 << 4
_AT_RESET: Final = 0xC60F  # thresholds of the FIFO; powered down
_PHASE, _DATA_MODE, _OFF = 0xF, 0x1, 0xF
_DEPTH: Final = 16  # words
_WORD: Final = (1 << 32) - 1


class Bcm2835SdHost:
    """The controller, without DMA."""

    size = 0x100

    def __init__(self, socket: Socket, line: Line) -> None:
        """Nothing was asked."""
        self._socket, self._line = socket, line
        self._words = {_STATE: _AT_RESET}
        self._left = 0  # bytes of data still to move
        self._fifo: deque[int] = deque()

    def _get(self, at: int) -> int:
        return self._words.get(at, 0)

    def _card(self) -> SdCard | None:
        return self._socket.card(KIND)

    def read(self, offset: int, size: int) -> int:
        """A register of 32 bits, or the low bytes of one."""
        if offset == _FIFO:
            value = self._fifo.popleft() if self._fifo else 0
            self._move()
        else:
            value = self._get(offset) if offset in _READABLE else 0
        return value & (1 << 8 * size) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """A register of 32 bits."""
        value &= _WORD
        if offset in _PLAIN:
            self._words[offset] = value
            return
        match offset:
            case 0x00:
                self._words[_COMMAND] = value
                if value & _NEW:
                    self._send()
            case 0x20:
                self._set_status(self._get(_STATUS) & ~value)
            case 0x34:
                self._words[_STATE] = value & ~_PHASE if value & _PHASE == _OFF else value
            case 0x38 | 0x40 | 0x50:
                self._write_data(offset, value)

    def _write_data(self, offset: int, value: int) -> None:
        """What lets data move."""
        if offset == _FIFO:
            if len(self._fifo) < _DEPTH:
                self._fifo.append(value)
        else:
            self._words[offset] = value
        if offset == _BLOCKS:
            self._left = value * self._get(_BYTES) & _WORD
        self._move()

    def _set_status(self, status: int) -> None:
        self._words[_STATUS] = status
        self._line(bool(status & _INTERRUPTS))

    def _notice(self, bits: int) -> None:
        self._set_status(self._get(_STATUS) | bits)

    def _send(self) -> None:
        """Obey the command."""
        command, card = self._get(_COMMAND), self._card()
        response = b"" if card is None else card.command(command & 0x3F, self._get(_ARGUMENT))
        if not command & _SILENT and (not response or (len(response) == 4 and command & _LONG)):
            self._words[_COMMAND] = command | _FAILED
            self._notice(_TIMEOUT)
        else:
            if not command & _SILENT:
                self._keep(response)
            if command & _WAITS and self._get(_SETTING) & _TELLS_BUSY:
                self._notice(_BUSY_OVER)
        self._move()
        self._words[_COMMAND] &= ~_NEW

    def _keep(self, response: bytes) -> None:
        bits = int.from_bytes(response, "big")
        for number in range(4):
            self._words[_RESPONSE + 4 * number] = bits >> 32 * number & _WORD

    # -- data ---------------------------------------------------------------------------------------------------------

    def _move(self) -> None:
        """Move data between card and FIFO as far as it goes. What is written is sent whether or not there is a card."""
        command, card = self._get(_COMMAND), self._card()
        if self._left:
            if command & _READS and card is not None and card.is_sending:
                self._fill(card)
            elif command & _WRITES:
                self._drain(card)
            if not self._left:
                self._words[_STATE] = self._words[_STATE] & ~_PHASE | _DATA_MODE
        self._words[_STATE] = self._words[_STATE] & ~(0x1F << 4) | len(self._fifo) << 4

    def _fill(self, card: SdCard) -> None:
        while self._left and len(self._fifo) < _DEPTH:
            size = min(4, self._left)
            content = card.read(size)
            if len(content) < size:
                self._left = 0
                self._notice(_NO_DATA)
                return
            self._fifo.append(int.from_bytes(content, "little"))
            self._left -= size
            self._notice_data()

    def _drain(self, card: SdCard | None) -> None:
        while self._left and self._fifo:
            size = min(4, self._left)
            word = self._fifo.popleft().to_bytes(4, "little")
            if card is not None:
                card.write(word[:size])
            self._left -= size
        each = self._get(_BYTES)
        if each and not self._left % each and self._get(_SETTING) & _TELLS_BLOCKS:
            self._notice(_BLOCK_OVER)
        self._notice_data()

    def _notice_data(self) -> None:
        self._notice(_HAS_DATA | (_DATA_MOVED if self._get(_SETTING) & _TELLS_DATA else 0))

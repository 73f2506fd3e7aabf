"""An SD host controller as the SD Association specifies it (SD Host Controller Simplified Specification 3.00), without
DMA: data goes through its buffer, a block at a time.

    0x00 DMA address     0x04 block size, count   0x08 argument         0x0c transfer mode, command
    0x10 response (4)    0x20 buffer              0x24 present state    0x28 host, power, gap, wakeup
    0x2c clock, timeout, reset                    0x30 status (normal, error; a one clears)
    0x34 status enable   0x38 signal enable       0x3c auto CMD12, host control 2
    0x40 capabilities    0x50 force events        0x54 ADMA             0xfc slot status, version

A command is obeyed, and its data there, before the write that gives it ends.
"""

from typing import Final

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.sd.card import SdCard
from kinst.runtime.machine.devices.sd.socket import Socket

KIND: Final = "sdhci"
_VERSION: Final = 0x2402  # 3.00; the vendor's number is QEMU's
_DMA: Final = 1 << 19 | 1 << 20 | 1 << 22 | 1 << 28  # of the capabilities: ADMA2, ADMA1, SDMA, wide addresses
_WORD: Final = (1 << 32) - 1
_BLOCK_SIZE: Final = 0xFFF
# Words at offsets
_BLOCKS, _ARGUMENT, _COMMAND, _RESPONSE, _BUFFER, _PRESENT = 0x04, 0x08, 0x0C, 0x10, 0x20, 0x24
_HOST, _CLOCK, _STATUS, _ENABLED, _SIGNALLED, _AUTOMATIC = 0x28, 0x2C, 0x30, 0x34, 0x38, 0x3C
_CAPABILITIES, _FORCE, _ADMA, _SLOT = 0x40, 0x50, 0x54, 0xFC
_PLAIN: Final = {
    0x00: _WORD,
    _ARGUMENT: _WORD,
    _AUTOMATIC: 0xFFFF,
    _ADMA: 0xFF,
    0x58: _WORD,
    0x5C: _WORD,
}  # the bits that can be written
# Present state
_INHIBITED, _ACTIVE, _WRITING, _READING, _HAS_ROOM, _HAS_DATA = 1 << 1, 1 << 2, 1 << 8, 1 << 9, 1 << 10, 1 << 11
_TRANSFER: Final = _INHIBITED | _ACTIVE | _WRITING | _READING | _HAS_ROOM | _HAS_DATA
_LINES_HIGH, _STABLE, _INSERTED, _WRITABLE = 0x1F0_0000, 1 << 17, 1 << 16 | 1 << 18, 1 << 19
# Status
_COMPLETE, _TRANSFERRED, _WRITE_READY, _READ_READY, _CARD_IN, _ERROR = 1, 1 << 1, 1 << 4, 1 << 5, 1 << 6, 1 << 15
_NO_RESPONSE, _NO_DATA, _AUTOMATIC_ERROR = 1 << 16, 1 << 20, 1 << 24
# Transfer mode; command, in the upper half of its word
_COUNTS, _STOPS, _READS, _MANY, _MODE = 1 << 1, 1 << 2, 1 << 4, 1 << 5, 0x36
_ANSWERED, _BUSY, _WITH_DATA = 3, 3, 1 << 5
_RUNS: Final = 0b111  # internal clock, that it is stable, and the card's clock
_RESET_ALL, _RESET_COMMAND, _RESET_DATA = 1, 2, 4


class Sdhci:
    """The controller. `capabilities`: what its register says, without DMA."""

    size = 0x100

    def __init__(self, socket: Socket, line: Line, capabilities: int, *, has_pending_insert: bool = False) -> None:
        """`has_pending_insert`: as the BCM2835's, it tells of a card's insertion when that is first enabled."""
        self._socket, self._line = socket, line
        self._capabilities = capabilities & ~_DMA
        self._reset()
        self._tells_insertion = has_pending_insert

    def _reset(self) -> None:
        self._words: dict[int, int] = {}
        self._state = 0  # of the transfer, as in the present state
        self._data = b""  # of the block that is in the buffer
        self._tells_insertion = False
        self._line(bool(self._interrupts()))

    def _get(self, at: int) -> int:
        return self._words.get(at, 0)

    def _card(self) -> SdCard | None:
        return self._socket.card(KIND)

    @property
    def _block(self) -> int:
        return self._get(_BLOCKS) & _BLOCK_SIZE

    @property
    def _count(self) -> int:
        return self._get(_BLOCKS) >> 16

    # -- registers ----------------------------------------------------------------------------------------------------

    def read(self, offset: int, size: int) -> int:
        """Read registers, each of 32 bits; a part of one, or two of them."""
        first = min(size, 4 - offset % 4)
        value = self._read_part(offset, first)
        return value if first == size else value | self.read(offset + first, size - first) << 8 * first

    def _read_part(self, offset: int, size: int) -> int:
        at, mask = offset & ~3, (1 << 8 * size) - 1
        if at == _BUFFER:
            return self._take(size) if offset & 3 == self._taken() & 3 else 0
        return self._value(at) >> 8 * (offset & 3) & mask

    def _value(self, at: int) -> int:
        match at:
            case 0x24:
                return self._present()
            case 0x40 | 0x44:
                return self._capabilities >> 8 * (at - _CAPABILITIES) & _WORD
            case 0xFC:
                return _VERSION << 16 | self._interrupts()
            case _:
                return self._get(at)

    def _present(self) -> int:
        card = self._card()
        held = card is not None and card.is_read_only
        return self._state | _LINES_HIGH | _STABLE | (0 if held else _WRITABLE) | (0 if card is None else _INSERTED)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write registers, each of 32 bits; a part of one, or two of them."""
        first = min(size, 4 - offset % 4)
        self._write_part(offset, first, value & (1 << 8 * first) - 1)
        if first < size:
            self.write(offset + first, size - first, value >> 8 * first)

    def _write_part(self, offset: int, size: int, value: int) -> None:
        at, shift = offset & ~3, 8 * (offset & 3)
        kept = ~((1 << 8 * size) - 1 << shift) & _WORD
        if at == _BUFFER:
            if offset & 3 == len(self._data) & 3:
                self._put(value.to_bytes(size, "little"))
        elif at in _PLAIN:
            self._words[at] = (self._get(at) & kept | value << shift) & _PLAIN[at]
        else:
            self._write_word(at, kept, value << shift)

    def _write_word(self, at: int, kept: int, value: int) -> None:
        written = self._get(at) & kept | value
        match at:
            case 0x04:
                self._set_blocks(written)
            case 0x0C:
                self._set_command(kept, written)
            case 0x28:
                self._set_host(written)
            case 0x2C:
                self._set_clock(kept, written)
            case 0x30:
                self._set_status(self._get(at) & ~value)
            case 0x34 | 0x38:
                self._enable(at, written)
            case 0x50:
                self._force(value)

    def _set_command(self, kept: int, written: int) -> None:
        """Mode and command; the write of its last byte gives it to the card."""
        self._words[_COMMAND] = written & (0xFFFF_0000 | _MODE)
        if not kept >> 24 and self._can_send():
            self._send()

    def _set_blocks(self, written: int) -> None:
        """Size and count; not in a transfer. A block is at most as large as the buffer."""
        if self._state & (_READING | _WRITING):
            return
        most = 512 << (self._capabilities >> 16 & 3)
        if written & _BLOCK_SIZE > most:
            written = written & ~_BLOCK_SIZE | most & _BLOCK_SIZE
        self._words[_BLOCKS] = written

    def _set_host(self, written: int) -> None:
        """Host and power; the latter stays off without a card, or at a voltage that it lacks. It stops at no gap."""
        voltage = written >> 9 & 7
        if self._card() is None or voltage < 5 or not self._capabilities >> 31 - voltage & 1:
            written &= ~(1 << 8)
        self._words[_HOST] = written & 0xFF00_FFFF

    def _set_clock(self, kept: int, written: int) -> None:
        if not kept >> 24:
            self._reset_part(written >> 24)
        stable = 2 if written & 1 else 0
        self._words[_CLOCK] = written & 0x00FF_FFFD | stable

    def _reset_part(self, what: int) -> None:
        match what:
            case 1:
                self._reset()
            case 2:
                self._set_status(self._get(_STATUS) & ~_COMPLETE)
            case 4:
                self._state, self._data = 0, b""
                self._set_status(self._get(_STATUS) & ~(_WRITE_READY | _READ_READY | _TRANSFERRED | 1 << 2 | 1 << 3))

    # -- interrupts ---------------------------------------------------------------------------------------------------

    def _set_status(self, status: int) -> None:
        """The bits of both halves; bit 15 says that there is one in the upper half."""
        self._words[_STATUS] = status & ~_ERROR | (_ERROR if status >> 16 else 0)
        self._line(bool(self._interrupts()))

    def _notice(self, bits: int) -> None:
        """Set those that are enabled."""
        self._set_status(self._get(_STATUS) | bits & self._get(_ENABLED))

    def _enable(self, at: int, written: int) -> None:
        self._words[at], status = written, self._get(_STATUS)
        if at == _ENABLED:
            status &= self._get(_ENABLED)
            if self._tells_insertion and self._get(_ENABLED) & _CARD_IN:
                status, self._tells_insertion = status | _CARD_IN, False
        self._set_status(status)

    def _interrupts(self) -> int:
        return int(bool(self._get(_STATUS) & self._get(_SIGNALLED)))

    def _force(self, value: int) -> None:
        """Let errors happen, of CMD12 and others."""
        self._words[_AUTOMATIC] = self._get(_AUTOMATIC) | value & 0xFFFF
        self._notice(value & 0xFFFF_0000 | (_AUTOMATIC_ERROR if self._words[_AUTOMATIC] else 0))

    # -- commands -----------------------------------------------------------------------------------------------------

    def _can_send(self) -> bool:
        """Whether the clock runs, and the data lines are free if it needs them."""
        command = self._get(_COMMAND) >> 16
        needs_lines = command & _WITH_DATA or (command & _ANSWERED == _BUSY and command >> 6 & 3 != 3)
        return self._get(_CLOCK) & _RUNS == _RUNS and not (self._state & _INHIBITED and needs_lines)

    def _send(self) -> None:
        command, card = self._get(_COMMAND) >> 16, self._card()
        self._words[_AUTOMATIC] = 0
        response = b"" if card is None else card.command(command >> 8 & 0x3F, self._get(_ARGUMENT))
        happened = _COMPLETE
        if command & _ANSWERED:
            self._keep(response)
            happened |= 0 if response else _NO_RESPONSE
            happened |= _TRANSFERRED if command & _ANSWERED == _BUSY else 0
        self._notice(happened)
        if self._block and command & _WITH_DATA and card is not None and response:
            self._begin(card)

    def _keep(self, response: bytes) -> None:
        """The response without its CRC, the last byte lowest."""
        if response:
            bits = int.from_bytes(response, "big") >> (8 if len(response) == 16 else 0)
            for number in range(4):
                self._words[_RESPONSE + 4 * number] = bits >> 32 * number & _WORD

    # -- data ---------------------------------------------------------------------------------------------------------

    def _begin(self, card: SdCard) -> None:
        self._data = b""
        if self._get(_COMMAND) & _READS:
            self._state |= _READING | _INHIBITED | _ACTIVE
            self._fill(card)
        else:
            self._state |= _WRITING | _INHIBITED | _ACTIVE | _HAS_ROOM
            self._notice(_WRITE_READY)

    def _is_last(self, left: int) -> bool:
        """Whether a transfer ends with `left` blocks to go."""
        mode = self._get(_COMMAND)
        return not mode & _MANY or bool(mode & _COUNTS and left == 0)

    def _fill(self, card: SdCard) -> None:
        """Get the next block from the card."""
        if self._get(_COMMAND) & _MANY and self._get(_COMMAND) & _COUNTS and not self._count:
            return
        self._data = card.read(self._block)
        if len(self._data) < self._block:
            self._data = b""
            self._notice(_NO_DATA)
            return
        self._state |= _HAS_DATA
        if self._is_last(self._count - 1):
            self._state &= ~_ACTIVE
        self._notice(_READ_READY)

    def _taken(self) -> int:
        """Bytes of the block in the buffer that the guest has read."""
        return self._block - len(self._data) if self._state & _HAS_DATA else 0

    def _take(self, size: int) -> int:
        """What the guest reads from the buffer."""
        if not self._state & _HAS_DATA:
            return 0
        taken, self._data = self._data[:size], self._data[size:]
        if not self._data:
            self._state &= ~_HAS_DATA
            self._advance()
        return int.from_bytes(taken, "little")

    def _put(self, content: bytes) -> None:
        """What the guest writes to the buffer."""
        if not self._state & _HAS_ROOM:
            return
        self._data += content
        if len(self._data) >= self._block:
            card, block = self._card(), self._data[: self._block]
            self._data = b""
            if card is not None:
                card.write(block)
            self._advance()

    def _advance(self) -> None:
        """A block is through: end the transfer, or begin the next block."""
        card = self._card()
        if self._get(_COMMAND) & _COUNTS:
            self._words[_BLOCKS] = self._get(_BLOCKS) - (1 << 16) & _WORD
        if card is None or self._is_last(self._count):
            self._end(card)
        elif self._state & _READING:
            self._fill(card)
        else:
            self._notice(_WRITE_READY)

    def _end(self, card: SdCard | None) -> None:
        if self._get(_COMMAND) & _STOPS and card is not None:
            response = card.command(12, 0)
            self._words[_RESPONSE + 12] = int.from_bytes(response, "big") & _WORD
        self._state = 0
        self._notice(_TRANSFERRED)

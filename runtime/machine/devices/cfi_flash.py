"""A bank of parallel NOR flash (Intel command set): commands and data by ordinary loads and stores.

Two 16-bit chips side by side on a 32-bit bus, as on QEMU's virt boards. Commands and answers are those of JESD68
(common flash interface) and Intel's data sheet 290667 (28F640J3). Operations take no time, so the status is always
"ready".
"""

from dataclasses import dataclass, field
from enum import Enum
from mmap import mmap
from typing import Final

_READY: Final = 0x80
_MANUFACTURER, _DEVICE = 0x89, 0x18  # Intel, 28F128J3 (16-bit: 0x0018)
_CHIP_BLOCK: Final = 0x20000  # bytes that one chip erases at a time; the bank erases twice that
_BUFFER_LOG2: Final = 11


class _Mode(Enum):
    ARRAY = "memory"
    QUERY = "common flash interface"
    IDENTIFICATION = "identification"
    STATUS = "status"
    PROGRAM = "the next write is data"
    ERASE = "the next write confirms"
    LOCK = "the next write says what"
    BUFFER_COUNT = "the next write is the number of words"
    BUFFER = "writes fill the buffer, then one confirms"


# The first byte of a command; all others are ignored. Drivers of the other command set use 0xf0 to reset.
_COMMANDS: Final = {
    0xFF: _Mode.ARRAY,
    0xF0: _Mode.ARRAY,
    0x98: _Mode.QUERY,
    0x90: _Mode.IDENTIFICATION,
    0x70: _Mode.STATUS,
    0x10: _Mode.PROGRAM,
    0x40: _Mode.PROGRAM,
    0x20: _Mode.ERASE,
    0x60: _Mode.LOCK,
    0xE8: _Mode.BUFFER_COUNT,
}


def _query_table(bank_size: int) -> bytes:
    """What a chip says about itself (JESD68 table 3), from index 0x10 on."""
    chip_size = bank_size // 2
    blocks = chip_size // _CHIP_BLOCK - 1
    identification = b"QRY\x01\x00\x31\x00\x00\x00\x00\x00"  # Intel extended command set; its table at 0x31
    timing = bytes((0x45, 0x55, 0, 0, 7, 7, 10, 0, 4, 4, 4, 0))  # voltages; log2 of typical times, then of their maxima
    geometry = bytes((chip_size.bit_length() - 1, 2, 0, _BUFFER_LOG2, 0, 1))  # 2: 16-bit bus; one kind of block
    block = (blocks & 0xFFFF).to_bytes(2, "little") + (_CHIP_BLOCK >> 8).to_bytes(2, "little")
    return bytes(0x10) + identification + timing + geometry + block + b"PRI10" + bytes(11)


@dataclass(slots=True)
class CfiFlash:
    """One bank of `size` bytes, which is a multiple of the 256 KiB that it erases at a time."""

    size: int
    content: mmap = field(init=False)  # a page takes no memory until it is used
    _mode: _Mode = field(default=_Mode.ARRAY, init=False)
    _table: bytes = field(init=False)
    _left: int = field(default=0, init=False)  # words of the write buffer still to come

    def __post_init__(self) -> None:
        self.content = mmap(-1, self.size)
        self._table = _query_table(self.size)

    def read(self, offset: int, size: int) -> int:
        """Memory, or the answer to the last command, which both chips give, each on its half of the bus."""
        if self._mode is _Mode.ARRAY:
            return int.from_bytes(self.content[offset : offset + size], "little")
        chip = self._answer(offset >> 2) & 0xFFFF
        bus = (chip | chip << 16) >> (offset & 3) * 8
        return bus & (1 << size * 8) - 1

    def _answer(self, index: int) -> int:
        if self._mode is _Mode.QUERY:
            return self._table[index] if index < len(self._table) else 0
        if self._mode is _Mode.IDENTIFICATION:
            # 0 and 1: manufacturer and device; 2 of each block: whether it is locked
            return (_MANUFACTURER, _DEVICE, 0, 0)[index & 3] if index & 0xFF < 4 else 0
        return _READY

    def write(self, offset: int, size: int, value: int) -> None:
        """A command, or the data that the last command waits for."""
        command = value & 0xFF
        match self._mode:
            case _Mode.PROGRAM:
                self._program(offset, size, value)
                self._mode = _Mode.STATUS
            case _Mode.ERASE:
                if command == 0xD0:
                    self._erase(offset)
                self._mode = _Mode.STATUS
            case _Mode.LOCK:
                self._mode = _Mode.STATUS
            case _Mode.BUFFER_COUNT:
                self._left = (value & 0xFFFF) + 1
                self._mode = _Mode.BUFFER
            case _Mode.BUFFER if self._left:
                self._program(offset, size, value)
                self._left -= 1
            case _:
                # 0xd0 ends a buffered write, 0x50 clears errors that never happen
                self._mode = _COMMANDS.get(command, _Mode.STATUS if command == 0xD0 else self._mode)

    def _program(self, offset: int, size: int, value: int) -> None:
        """Program data: this can only clear bits. Only erasing sets them."""
        for index in range(size):
            self.content[offset + index] &= value >> 8 * index & 0xFF

    def _erase(self, offset: int) -> None:
        start = offset & -2 * _CHIP_BLOCK
        self.content[start : start + 2 * _CHIP_BLOCK] = b"\xff" * (2 * _CHIP_BLOCK)

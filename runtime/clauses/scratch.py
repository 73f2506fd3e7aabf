"""D's own memory: what alloca, copyin and strings turned into pointers get, and the bytes of structs and arrays.

Its addresses are ones that no guest can use: bits 62 to 48 are neither all 0 nor all 1, so they are not canonical on
amd64 (48 or 57 bits) and riscv64 (Sv57); and bits 55 to 52 differ from each other, so they are no address on arm64
(52 bits) even if the top byte is a tag.
"""

from typing import Final

from kinst.runtime.trap.faults import Fault, FaultKind

TAG: Final = 0x7D5A  # bits 63 to 48 of all scratch addresses
_BASE: Final = TAG << 48
_KEPT: Final = _BASE | 1 << 47  # here begins what variables own
_KEPT_LIMIT: Final = 64 << 20  # bytes
_LARGEST: Final = 256 << 20  # of what a clause may have, whatever it asks for
_ALIGNMENT: Final = 8


class Scratch:
    """Two parts: one that each clause finds empty, and blocks that live as long as the session."""

    def __init__(self, limit: int) -> None:
        """`limit` is in bytes, for one clause; more is NOSCRATCH."""
        self._limit = limit
        self._data, self._used = bytearray(), 0
        self._kept = bytearray()

    def bound(self, limit: int) -> None:
        """Another limit, before the first clause: the option scratchsize."""
        self._limit = min(limit, _LARGEST)

    def reset(self) -> None:
        """A clause begins: what earlier ones allocated is gone."""
        self._used = 0

    def allocate(self, size: int) -> int:
        """The address of `size` zero bytes, until the clause ends."""
        begin = self._used
        if size < 0 or begin + size > self._limit:
            raise Fault(FaultKind.NOSCRATCH)
        end = begin + -(-size // _ALIGNMENT) * _ALIGNMENT
        self._data[begin:end] = bytes(end - begin)
        self._used = end
        return _BASE + begin

    def copy(self, text: bytes | int) -> int:
        """The address of a copy of a string, with its NUL; of NULL, 0."""
        if isinstance(text, int):
            return text
        address = self.allocate(len(text) + 1)
        begin = address - _BASE
        self._data[begin : begin + len(text)] = text
        return address

    def keep(self, size: int) -> int:
        """The address of `size` zero bytes for a variable. Fault NOSCRATCH: all together are too large."""
        if len(self._kept) + size > _KEPT_LIMIT:
            raise Fault(FaultKind.NOSCRATCH)
        address = _KEPT + len(self._kept)
        self._kept.extend(bytes(-(-size // _ALIGNMENT) * _ALIGNMENT))
        return address

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word."""
        data, begin = self._find(address, size)
        return int.from_bytes(data[begin : begin + size], "little")

    def read(self, address: int, size: int) -> bytes:
        """Bytes."""
        data, begin = self._find(address, size)
        return bytes(data[begin : begin + size])

    def string(self, address: int, limit: int) -> bytes:
        """Bytes up to the NUL, at most `limit`."""
        data, begin = self._find(address, 1)
        used = len(data) if data is self._kept else self._used
        end = min(begin + limit, used)
        found = data.find(0, begin, end)
        if found < 0 and end < begin + limit:
            raise Fault(FaultKind.BADADDR, address + used - begin)
        return bytes(data[begin : end if found < 0 else found])

    def store(self, address: int, size: int, value: int) -> None:
        """The low `size` bytes of `value`."""
        data, begin = self._find(address, size)
        data[begin : begin + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def write(self, address: int, content: bytes) -> None:
        """Bytes."""
        data, begin = self._find(address, len(content))
        data[begin : begin + len(content)] = content

    def _find(self, address: int, size: int) -> tuple[bytearray, int]:
        """Where [address, address + size) is; BADADDR if it is not all allocated."""
        if address >= _KEPT:
            data, begin, used = self._kept, address - _KEPT, len(self._kept)
        else:
            data, begin, used = self._data, address - _BASE, self._used
        if begin < 0 or size < 0 or begin + size > used:
            raise Fault(FaultKind.BADADDR, address)
        return data, begin

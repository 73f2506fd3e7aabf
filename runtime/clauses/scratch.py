"""D's own memory: for alloca, copyin and strings that become pointers, and for the bytes of structs and arrays.

No guest can use its addresses, so that one comparison of the upper 16 bits tells D's memory from the guest's. Bits 62
to 48 are neither all 0 nor all 1: the addresses are not canonical on amd64 (48 or 57 bits) and riscv64 (Sv57). Bits 55
to 52 differ from each other: they are not valid on arm64 (52 bits) either, even if the top byte is ignored (TBI).
"""

from typing import Final

from kinst.runtime.trap.faults import Fault, FaultKind

TAG: Final = 0x7D5A  # bits 63 to 48 of all scratch addresses
_BASE: Final = TAG << 48
_KEPT: Final = _BASE | 1 << 47  # the first address of what variables own
_KEPT_LIMIT: Final = 64 << 20  # bytes
_LARGEST: Final = 256 << 20  # bytes of scratchsize at most
_ALIGNMENT: Final = 8


class Scratch:
    """Memory in two parts: scratch space that is freed when a clause begins, and blocks of variables, which last as
    long as the session."""

    def __init__(self, limit: int) -> None:
        """`limit` is how many bytes one clause may allocate; more is NOSCRATCH."""
        self._limit = limit
        self._data, self._used = bytearray(), 0
        self._kept = bytearray()

    def bound(self, limit: int) -> None:
        """Set another limit (bytes), before the first clause: the option scratchsize."""
        self._limit = min(limit, _LARGEST)

    def reset(self) -> None:
        """Begin a clause: free what earlier ones allocated."""
        self._used = 0

    def allocate(self, size: int) -> int:
        """The address of `size` zero bytes, which last until the clause ends. Raises Fault NOSCRATCH."""
        begin = self._used
        if size < 0 or begin + size > self._limit:
            raise Fault(FaultKind.NOSCRATCH)
        end = begin + -(-size // _ALIGNMENT) * _ALIGNMENT
        self._data[begin:end] = bytes(end - begin)
        self._used = end
        return _BASE + begin

    def copy(self, text: bytes | int) -> int:
        """The address of a copy of a string, with its NUL; 0 for NULL. Raises Fault NOSCRATCH."""
        if isinstance(text, int):
            return text
        address = self.allocate(len(text) + 1)
        begin = address - _BASE
        self._data[begin : begin + len(text)] = text
        return address

    def keep(self, size: int) -> int:
        """The address of `size` zero bytes for a variable. Raises Fault NOSCRATCH when all of them are too large
        together."""
        if len(self._kept) + size > _KEPT_LIMIT:
            raise Fault(FaultKind.NOSCRATCH)
        address = _KEPT + len(self._kept)
        self._kept.extend(bytes(-(-size // _ALIGNMENT) * _ALIGNMENT))
        return address

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of `size` bytes. Raises Fault BADADDR."""
        data, begin = self._find(address, size)
        return int.from_bytes(data[begin : begin + size], "little")

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes from an address on. Raises Fault BADADDR."""
        data, begin = self._find(address, size)
        return bytes(data[begin : begin + size])

    def string(self, address: int, limit: int) -> bytes:
        """The bytes up to the NUL, without it, at most `limit`. Raises Fault BADADDR."""
        data, begin = self._find(address, 1)
        used = len(data) if data is self._kept else self._used
        end = min(begin + limit, used)
        found = data.find(0, begin, end)
        if found < 0 and end < begin + limit:
            raise Fault(FaultKind.BADADDR, address + used - begin)
        return bytes(data[begin : end if found < 0 else found])

    def store(self, address: int, size: int, value: int) -> None:
        """Store the low `size` bytes of `value`. Raises Fault BADADDR."""
        data, begin = self._find(address, size)
        data[begin : begin + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def write(self, address: int, content: bytes) -> None:
        """Write bytes. Raises Fault BADADDR."""
        data, begin = self._find(address, len(content))
        data[begin : begin + len(content)] = content

    def _find(self, address: int, size: int) -> tuple[bytearray, int]:
        """The block that holds [address, address + size), and the offset in it. Raises Fault BADADDR unless all is
        allocated."""
        if address >= _KEPT:
            data, begin, used = self._kept, address - _KEPT, len(self._kept)
        else:
            data, begin, used = self._data, address - _BASE, self._used
        if begin < 0 or size < 0 or begin + size > used:
            raise Fault(FaultKind.BADADDR, address)
        return data, begin

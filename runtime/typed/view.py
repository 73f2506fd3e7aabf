"""What typed values are read through: a guest's memory, and what its image says of types and addresses."""

from collections.abc import Callable
from typing import Final, Protocol

from kinst.runtime.trap.faults import Fault
from kinst.runtime.typed.errors import MemoryFaultError, OperandError
from kinst.targets.c_types import Aggregate, CType, EnumType, ImageTypes, Integer, IntegerKind, Pointer, size_of, strip
from kinst.targets.values import dataclass

LARGEST: Final = 1 << 26  # bytes that are read at once: a size in damaged debug information is not to fill our memory
ADDRESSES: Final = 1 << 64
_LONGEST_PATH: Final = 160  # characters of the way to a value that are kept


class Reads(Protocol):
    """Virtual memory. A bad address raises `Fault` BADADDR with the first address that cannot be read."""

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes from an address on."""
        ...

    def string(self, address: int, limit: int) -> bytes:
        """The bytes up to the NUL, without it, at most `limit`."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """Memory, and what is known of what is in it.

    `type_of` gives the type of a C text, and None if it names none; `describe` an address as module`function+0x1c, or
    as a number. `is_x87`: whether a long double is x87's.
    """

    memory: Reads
    types: ImageTypes
    type_of: Callable[[str], CType | None]
    describe: Callable[[int], str]
    is_x87: bool

    def read(self, address: int, size: int, path: str) -> bytes:
        """Bytes of the value that `path` leads to. Raises MemoryFaultError."""
        if size > LARGEST:
            raise OperandError(f"{path}: has {size:,} bytes, and {LARGEST:,} can be read at once: take a part of it")
        try:
            return self.memory.read(address % ADDRESSES, size)
        except Fault as fault:
            raise MemoryFaultError(path, fault.value, fault.text) from None

    def string(self, address: int, limit: int, path: str) -> bytes:
        """The bytes up to a NUL, at most `limit`. Raises MemoryFaultError."""
        try:
            return self.memory.string(address % ADDRESSES, min(limit, LARGEST))
        except Fault as fault:
            raise MemoryFaultError(path, fault.value, fault.text) from None

    def symbol(self, address: int) -> tuple[str, int] | None:
        """The function or variable that holds an address, and how far behind its start that is; None: none does."""
        _, quote, rest = self.describe(address % ADDRESSES).rpartition("`")
        name, _, offset = rest.partition("+0x")
        return (name, int(offset or "0", 16)) if quote and not name.startswith("0x") else None

    def complete(self, kind: CType) -> CType:
        """The same type; the definition of a struct or union that this one only declares."""
        plain = strip(kind)
        if isinstance(plain, Aggregate) and plain.members is None and plain.tag:
            return self.types.type_named(f"{plain.kind.value} {plain.tag}") or kind
        return kind

    def size_of(self, kind: CType) -> int | None:
        """Its size in bytes; None: it has none."""
        return size_of(self.complete(kind))


def onward(path: str, step: str) -> str:
    """A way that goes one step on. Of a long one only the end is kept: a walk may have a million steps."""
    found = path + step
    return found if len(found) <= _LONGEST_PATH else f"...{found[len(found) - _LONGEST_PATH // 2 :]}"


def is_text(kind: CType) -> bool:
    """Whether it is a character: of such, arrays are texts, and pointers point to some."""
    plain = strip(kind)
    return isinstance(plain, Integer) and plain.size == 1 and plain.kind is not IntegerKind.BOOLEAN


def is_integral(kind: CType) -> bool:
    """Whether its values are numbers without fractions: integers, enumerations, addresses."""
    return isinstance(strip(kind), Integer | EnumType | Pointer)

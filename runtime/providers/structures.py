"""Members of a kernel's structures: their offsets, from BTF or DWARF, and their values in the guest's memory."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from kinst.runtime.trap.faults import Fault
from kinst.targets.c_types import Aggregate, CType, ImageTypes, Pointer, size_of, strip

if TYPE_CHECKING:
    from kinst.runtime.providers.host import GuestMemory, ProviderHost

_ADDRESSES: Final = 1 << 64
_WORD: Final = 8

Way = tuple[tuple[int, int], ...]  # (offset, size) of each member on the way: pointers, then the value that is wanted


def find_way(types: ImageTypes, start: str, members: Sequence[str]) -> Way | None:
    """How to get from a structure, such as `struct task_struct`, to a member, or to a member of a structure that a
    member is or points to. None: the types do not have it."""
    kind: CType | None = types.type_named(start)
    way: list[tuple[int, int]] = []
    for name in members:
        structure = _structure(types, kind)
        member = None if structure is None else structure.find(name)
        if member is None:
            return None
        inside = way.pop()[0] if way and kind is not None and isinstance(strip(kind), Aggregate) else 0
        way.append((inside + member.offset, size_of(member.type) or 0))
        kind = member.type
    return tuple(way)


def _structure(types: ImageTypes, kind: CType | None) -> Aggregate | None:
    """The structure that this type is or points to; a declaration without members is looked up by its tag."""
    plain = None if kind is None else strip(kind)
    if isinstance(plain, Pointer):
        plain = strip(plain.target)
    if isinstance(plain, Aggregate) and plain.members is None:
        found = types.type_named(f"{plain.kind.value} {plain.tag}")
        plain = None if found is None else strip(found)
    return plain if isinstance(plain, Aggregate) else None


class Structures:
    """Numbers in a kernel's structures, by their addresses."""

    def __init__(self, host: "ProviderHost") -> None:
        """Nothing is read yet."""
        self._host = host
        self._way = cache(lambda start, *members: find_way(host.types, start, members))  # a search in all types

    def number(self, address: int, start: str, *members: str) -> int:
        """A member's value, unsigned, in the structure `start` at an address; 0 where types or memory do not have
        it."""
        way = self._way(start, *members)
        return followed(self._host.memory, address, way) if way else 0

    def member(self, address: int, start: str, *members: str) -> int:
        """Where a member is, in the structure `start` at an address; 0 where the types do not have it."""
        way = self._way(start, *members)
        if not way or not address:
            return 0
        holder = followed(self._host.memory, address, way[:-1]) if len(way) > 1 else address
        return holder + way[-1][0] if holder else 0


def followed(memory: "GuestMemory", address: int, way: Way) -> int:
    """The number at the end of a way; 0 where a pointer on it is NULL or points to no memory."""
    for offset, size in way:
        if not address:
            return 0
        try:
            address = memory.load((address + offset) % _ADDRESSES, min(size, _WORD))
        except Fault:
            return 0
    return address

"""Where the members of a struct or union are: the System V ABI for LP64, as gcc lays them out."""

from dataclasses import dataclass, field

from kinst.targets.c_types import AggregateKind, CType, Member, alignment_of, size_of

BITS = 8


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


@dataclass(slots=True)
class Layout:
    """A struct or union that is being laid out, member by member."""

    kind: AggregateKind
    alignment: int = 1
    members: list[Member] = field(default_factory=list)
    _next: int = 0  # the first free bit
    _end: int = 0  # bits: the end of the longest member so far

    def place(self, name: str, kind: CType) -> None:
        """Add a member of a complete type."""
        alignment = alignment_of(kind)
        start = _up(self._next, alignment * BITS)
        self._add(Member(name, kind, start // BITS), start + (size_of(kind) or 0) * BITS)
        self.alignment = max(self.alignment, alignment)

    def place_bits(self, name: str, kind: CType, width: int) -> None:
        """Add a bit-field of `width` bits of an integer type. It does not cross the boundary of a unit of its type.
        Width 0, which has no name, closes the current unit. Unnamed bit-fields do not align the struct."""
        unit = (size_of(kind) or 1) * BITS
        start = self._next
        if width == 0 or start // unit != (start + width - 1) // unit:
            start = _up(start, alignment_of(kind) * BITS)
        if not name:
            self._reach(start + width)
            return
        self._add(Member(name, kind, start // unit * unit // BITS, start % unit, width), start + width)
        self.alignment = max(self.alignment, alignment_of(kind))

    @property
    def size(self) -> int:
        """The size in bytes, with padding at the end."""
        return _up(self._end, self.alignment * BITS) // BITS

    def _add(self, member: Member, end: int) -> None:
        self.members.append(member)
        self._reach(end)

    def _reach(self, end: int) -> None:
        self._end = max(self._end, end)
        if self.kind is AggregateKind.STRUCT:
            self._next = end

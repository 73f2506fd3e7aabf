"""What readers of DWARF and BTF share: names of base types, places of bit-fields, alignment, structs read late."""

from collections.abc import Callable
from typing import Final

from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    CType,
    Float,
    Integer,
    IntegerKind,
    Member,
    alignment_of,
    size_of,
    strip,
)

# How compilers spell a type -> its canonical spelling in C. Others stay as they are.
_CANONICAL: Final = {
    "long int": "long",
    "long unsigned int": "unsigned long",
    "short int": "short",
    "short unsigned int": "unsigned short",
    "long long int": "long long",
    "long long unsigned int": "unsigned long long",
    "unsigned": "unsigned int",
    "bool": "_Bool",
}
_WORD: Final = 8
_LOADED: Final = (1, 2, 4, 8)  # bytes

Content = tuple[tuple[Member, ...], int, int | None]  # members, size, alignment (None: the natural one)
Load = Callable[[], Content | None]


class UnreadAggregate(Aggregate):
    """A struct or union whose members are read when they are needed. Otherwise one kernel struct would pull in
    thousands that it points to, directly or not.

    Until then the slots of `members`, `size` and `alignment` are unset, so Python calls `__getattr__`; later they cost
    nothing.
    """

    __slots__ = ("_load",)

    def __init__(self, kind: AggregateKind, tag: str, module: str, load: Load) -> None:
        """`load` gives the content; None: the image only declares it."""
        self.kind = kind
        self.tag = tag
        self.module = module
        self._load: Load | None = load

    def __getattr__(self, name: str) -> object:
        if name not in ("members", "size", "alignment"):
            raise AttributeError(name)
        load, self._load = self._load, None
        if load is None:  # asked again while its own members are laid out: it contains itself, which C does not allow
            return {"members": None, "size": 0, "alignment": 1}[name]
        content = load()
        if content is None:
            self.members, self.size, self.alignment = None, 0, 1
        else:
            members, size, alignment = content
            self.complete(members, size, natural_alignment(members, size) if alignment is None else alignment)
        value: object = getattr(self, name)
        return value


def base_type(name: str, size: int, *, is_signed: bool, kind: IntegerKind) -> CType:
    """An integer type. One too wide for a register is an array of words; one of a size that no load has (the record is
    damaged) an array of bytes."""
    if size > _WORD:
        return Array(Integer("unsigned long", _WORD, is_signed=False), size // _WORD)
    if size not in _LOADED:
        return Array(Integer("unsigned char", 1, is_signed=False, kind=IntegerKind.CHARACTER), size)
    return Integer(_CANONICAL.get(name, name), size, is_signed, kind)


def enum_base(size: int, *, is_signed: bool) -> Integer:
    """The integer type of an enumeration that names none; of a size that loads have, whatever damaged records say."""
    size = max((one for one in _LOADED if one <= size), default=1)
    if size == 1:
        return Integer("signed char" if is_signed else "unsigned char", 1, is_signed, IntegerKind.CHARACTER)
    name = {2: "short", 4: "int"}.get(size, "long")
    return Integer(name if is_signed else f"unsigned {name}", size, is_signed)


def float_type(name: str, size: int) -> Float:
    """The floating-point type of a base type of debug information; `size` in bytes."""
    return Float(name, size)


def bit_field(name: str, kind: CType, bit: int, width: int) -> Member:
    """A bit-field whose least significant bit is `bit` bits after the start of its struct.

    Its storage unit is the aligned one of its type. In a packed struct the field may straddle two of them: then the
    unit begins at the field's first byte.
    """
    unit = 8 * (size_of(kind) or 1)
    start = bit // unit * unit
    if bit + width > start + unit:
        start = bit & ~7
    if bit + width > start + unit:
        kind = _wider(kind, bit - start + width)
    if isinstance(kind, Array):
        return Member(name, kind, start // 8)
    return Member(name, kind, start // 8, bit - start, width)


def _wider(kind: CType, bits: int) -> CType:
    """A storage unit that holds a field of a packed struct; bytes where no word does."""
    plain = strip(kind)
    if bits > 8 * _WORD:
        return Array(Integer("unsigned char", 1, is_signed=False, kind=IntegerKind.CHARACTER), (bits + 7) // 8)
    is_signed = isinstance(plain, Integer) and plain.is_signed
    return Integer("long" if is_signed else "unsigned long", _WORD, is_signed)


def natural_alignment(members: tuple[Member, ...], size: int) -> int:
    """The alignment that the members require, as far as the layout keeps it: a packed struct has less."""
    alignment = max((alignment_of(member.type) for member in members), default=1)
    while alignment > 1 and not _is_aligned(members, size, alignment):
        alignment >>= 1
    return alignment


def _is_aligned(members: tuple[Member, ...], size: int, alignment: int) -> bool:
    if size % alignment:
        return False
    plain = (member for member in members if member.bit_size is None)
    return all(member.offset % min(alignment, alignment_of(member.type)) == 0 for member in plain)

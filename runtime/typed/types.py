"""Types of an image as Python code sees them: their names, sizes, members."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.typed.errors import NoMemberError, OperandError
from kinst.targets.c_types import Aggregate, Array, CType, EnumType, Function, Member, Pointer, strip
from kinst.targets.nearest import nearest

if TYPE_CHECKING:
    from kinst.runtime.typed.view import View


class Type:
    """A C type of an image. Its text is its spelling in C; two are equal if they are the same type.

    `objects.c_type("struct file *")` and an object's `type_` give one.
    """

    __slots__ = ("_view", "kind")

    def __init__(self, view: "View", kind: CType) -> None:
        """Made by `Objects.c_type`."""
        self._view = view
        self.kind = kind  # as debug information has it

    def __str__(self) -> str:
        return describe(self.kind)

    def __repr__(self) -> str:
        return f"Type({describe(self.kind)!r})"

    def __eq__(self, other: object) -> bool:
        return self.kind == other.kind if isinstance(other, Type) else NotImplemented

    def __hash__(self) -> int:
        return hash(describe(self.kind))

    @property
    def name(self) -> str:
        """Its spelling in C: "struct file *", "int [4]"."""
        return describe(self.kind)

    @property
    def size(self) -> int:
        """Its size in bytes. Raises OperandError: it has none, as void, functions, and what is only declared."""
        found = self._view.size_of(self.kind)
        if found is None:
            raise OperandError(f"{self}: has no size{_why(self._view)}")
        return found

    @property
    def members(self) -> "Mapping[str, Type]":
        """The members of a struct or union, by name, with those of anonymous ones inside. Raises OperandError: it is
        something else, or was only declared."""
        aggregate = aggregate_of(self._view, self.kind)
        found = ((name, aggregate.find(name)) for name in aggregate.names())
        return {name: Type(self._view, one.type) for name, one in found if one is not None}

    def offset(self, member: str) -> int:
        """The offset of a member in bytes; members of members with dots. Raises NoMemberError; OperandError: it is a
        bit-field."""
        found = place_of(self._view, self.kind, member)
        if found.bit_size is not None:
            raise OperandError(f"{self}: {member} is a bit-field: it has no address")
        return found.offset

    @property
    def target(self) -> "Type":
        """What a pointer points to, and of what an array's elements are. Raises OperandError: it is neither."""
        match strip(self.kind):
            case Pointer(target=found) | Array(element=found):
                return Type(self._view, found)
            case Function(result=found):
                return Type(self._view, found)
            case _:
                raise OperandError(f"{self}: points to nothing")

    @property
    def enumerators(self) -> Mapping[str, int]:
        """The values of an enumeration, by name. Raises OperandError: it is none."""
        plain = strip(self.kind)
        if not isinstance(plain, EnumType):
            raise OperandError(f"{self}: is no enumeration")
        return dict(plain.enumerators)


def aggregate_of(view: "View", kind: CType) -> Aggregate:
    """The struct or union that a type is. Raises OperandError: it is none, or its members are not known."""
    plain = strip(view.complete(kind))
    if not isinstance(plain, Aggregate):
        raise OperandError(f"{describe(kind)}: is no struct or union")
    if plain.members is None:
        raise OperandError(f"{describe(kind)}: was only declared: its members are not known{_why(view)}")
    return plain


def member_of(view: "View", kind: CType, name: str) -> Member:
    """A member of a struct or union. Raises NoMemberError, OperandError."""
    aggregate = aggregate_of(view, kind)
    found = aggregate.find(name)
    if found is None:
        raise NoMemberError(f"{describe(kind)}: has no member {name}{nearest(name, list(aggregate.names()))}")
    return found


def place_of(view: "View", kind: CType, names: str) -> Member:
    """A member of a member, with dots between their names, and its offset from the outermost. Raises NoMemberError."""
    offset, found = 0, None
    for name in names.split("."):
        found = member_of(view, kind, name)
        offset, kind = offset + found.offset, found.type
    assert found is not None, "a split text has a part"
    return Member(names, found.type, offset, found.bit_offset, found.bit_size)


def _why(view: "View") -> str:
    obstacle = view.types.obstacle()
    return f": {obstacle}" if obstacle else ""

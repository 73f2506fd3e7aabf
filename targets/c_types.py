"""C types as debug information describes them and as D programs declare them: LP64, little-endian.

Types are values, except `Aggregate`: a struct or union may refer to itself and be declared before it is defined, so it
is one object with an identity that is completed once. What D adds to C is in `kinst.runtime.dlang.types.types`.
"""

from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from typing import Protocol

from kinst.targets.values import dataclass

POINTER_SIZE = 8


class IntegerKind(Enum):
    """What an integer type is, apart from its size and sign."""

    PLAIN = "plain"
    CHARACTER = "character"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer type: `name` is its canonical C spelling, e.g. "unsigned long long"."""

    name: str
    size: int  # bytes: 1, 2, 4, 8
    is_signed: bool
    kind: IntegerKind = IntegerKind.PLAIN


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point type of `size` bytes, by its C name."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Void:
    """void: the type of what has no value."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer of 8 bytes to `target`."""

    target: "CType"


@dataclass(frozen=True, slots=True)
class Array:
    """`length` elements; None: unknown, as in `char name[]`."""

    element: "CType"
    length: int | None


@dataclass(frozen=True, slots=True)
class Function:
    """A function's prototype. `parameters` is None if it was declared without one: `int f()`."""

    result: "CType"
    parameters: tuple["CType", ...] | None
    is_variadic: bool = False


@dataclass(frozen=True, slots=True)
class Typedef:
    """Another name of a type. A name for a struct that refers to itself makes a cycle through the `Aggregate` only."""

    name: str
    target: "CType"


@dataclass(frozen=True, slots=True)
class Qualified:
    """`const` or `volatile` of a type."""

    target: "CType"
    is_const: bool = False
    is_volatile: bool = False


@dataclass(frozen=True, slots=True)
class EnumType:
    """An enumeration; its values are of `Integer` `base`. `tag` is empty where it has none."""

    tag: str
    base: Integer
    enumerators: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a struct or union. `name` is empty for an anonymous struct or union inside.

    A bit-field's `bit_offset` counts from the least significant bit of its storage unit: `offset` is that unit's byte
    offset, of the size of `type`.
    """

    name: str
    type: "CType"
    offset: int
    bit_offset: int = 0
    bit_size: int | None = None


class AggregateKind(Enum):
    """Whether an aggregate is a struct or a union."""

    STRUCT = "struct"
    UNION = "union"


@dataclass(slots=True, eq=False)
class Aggregate:
    """A struct or union. `members` is None until it is complete; `module` is where it was defined, if that is known."""

    kind: AggregateKind
    tag: str  # empty: it has none
    size: int = 0
    alignment: int = 1
    members: tuple[Member, ...] | None = field(default=None, repr=False)
    module: str = ""

    def complete(self, members: tuple[Member, ...], size: int, alignment: int) -> None:
        """Define what was only declared so far."""
        self.members, self.size, self.alignment = members, size, alignment

    def names(self) -> Iterator[str]:
        """The names that `find` knows."""
        for member in self.members or ():
            inner = strip(member.type)
            if member.name:
                yield member.name
            elif isinstance(inner, Aggregate):
                yield from inner.names()

    def find(self, name: str) -> Member | None:
        """The member of this name, also in an anonymous inner struct or union, with its offset from the start of this
        aggregate."""
        for member in self.members or ():
            if member.name == name:
                return member
        for member in self.members or ():
            inner = strip(member.type)
            if not member.name and isinstance(inner, Aggregate):
                found = inner.find(name)
                if found is not None:
                    return Member(name, found.type, member.offset + found.offset, found.bit_offset, found.bit_size)
        return None


CType = Integer | Float | Void | Pointer | Array | Function | Typedef | Qualified | EnumType | Aggregate


def strip(kind: CType) -> CType:
    """The type without typedefs and qualifiers."""
    while isinstance(kind, Typedef | Qualified):
        kind = kind.target
    return kind


def size_of(kind: CType) -> int | None:
    """Size in bytes; None for what has no size: functions, void, incomplete types."""
    match strip(kind):
        case Integer(size=size) | Float(size=size) | EnumType(base=Integer(size=size)):
            return size
        case Pointer():
            return POINTER_SIZE
        case Array(element=element, length=length):
            size_of_element = size_of(element)
            return None if size_of_element is None or length is None else size_of_element * length
        case Aggregate() as aggregate:
            return None if aggregate.members is None else aggregate.size
        case _:
            return None


def alignment_of(kind: CType) -> int:
    """Natural alignment in bytes."""
    match strip(kind):
        case Array(element=element):
            return alignment_of(element)
        case Aggregate() as aggregate:
            return aggregate.alignment
        case other:
            return size_of(other) or 1


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named object or function of an image. `address` is a link address; `type` is None where debug
    information does not give it."""

    name: str
    module: str
    address: int
    size: int
    type: CType | None = None


def is_complete(kind: CType) -> bool:
    """Whether it is neither a declared struct nor an array of unknown length, nor a name for one."""
    while isinstance(kind, Typedef | Qualified):
        kind = kind.target
    if isinstance(kind, Array):
        return kind.length is not None
    return not isinstance(kind, Aggregate) or kind.members is not None


class ImageTypes(Protocol):
    """What the traced image says about its types and symbols, by name. Implementations look up lazily.

    `module` is empty if the program names none, else the part before the backquote.
    """

    def type_named(self, name: str, module: str = "") -> CType | None:
        """A typedef or base type (`name` is "vnode_t"), or "struct x", "union x", "enum x"; complete if it can be."""
        ...

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """An enumeration constant and its type."""
        ...

    def symbol(self, name: str, module: str = "") -> Symbol | None:
        """A variable or function."""
        ...

    def function(self, name: str, module: str = "") -> Function | None:
        """The prototype of a function, for args[]; parameters with their types."""
        ...

    def symbols(self) -> Iterator[Symbol]:
        """All symbols, without types."""
        ...

    def obstacle(self) -> str:
        """Why a struct, union or enumeration that was looked up may be unknown: what debug information lacks. Empty if
        everything was found, or if there is no reason to give."""
        ...

    def sources(self) -> Iterator[str]:
        """Where types come from, as lines."""
        ...


class NoImageTypes:
    """`ImageTypes` of no image, or of one without names: nothing is found, and nothing is missing."""

    def type_named(self, name: str, module: str = "") -> CType | None:
        """None: no type is known."""

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """None: no enumeration is known."""

    def symbol(self, name: str, module: str = "") -> Symbol | None:
        """None: there are no variables or functions."""

    def function(self, name: str, module: str = "") -> Function | None:
        """None: no prototype is known."""

    def symbols(self) -> Iterator[Symbol]:
        """An empty iterator."""
        return iter(())

    def obstacle(self) -> str:
        """An empty text: nothing more could be known."""
        return ""

    def sources(self) -> Iterator[str]:
        """An empty iterator."""
        return iter(())

"""Pieces of generated Python: an expression's text with what is known about its value, and the generators'
interface."""

from dataclasses import replace
from typing import Final, Protocol

from kinst.runtime.clauses.environment import Environment
from kinst.runtime.clauses.state import State
from kinst.runtime.dlang.program import Expression
from kinst.runtime.dlang.types.types import DType, Dynamic, String, bare
from kinst.targets.c_types import Aggregate, Array, EnumType, Float, Function, Integer, Void
from kinst.targets.values import dataclass

WORD: Final = 1 << 64
HALF: Final = 1 << 63
# CPython's parser rejects 200 nested parentheses. One of our levels takes up to three. Anything deeper is outlined.
DEEP: Final = 45


@dataclass(frozen=True, slots=True)
class Scalar:
    """How an integer or pointer is stored."""

    size: int  # bytes
    is_signed: bool

    @property
    def low(self) -> int:
        """The smallest value."""
        return -1 << 8 * self.size - 1 if self.is_signed else 0

    @property
    def high(self) -> int:
        """The largest value."""
        return (1 << 8 * self.size - self.is_signed) - 1

    def wrapped(self, value: int) -> int:
        """The value in this range that has the same low bits."""
        value &= (1 << 8 * self.size) - 1
        return value if value <= self.high else value - (1 << 8 * self.size)


SIGNED: Final = Scalar(8, is_signed=True)
UNSIGNED: Final = Scalar(8, is_signed=False)


@dataclass(frozen=True, slots=True)
class Code:
    """An expression. `text` can be an operand of any operator. The value of an integer is in [low, high]. `depth`
    bounds how deeply its parentheses nest, in levels. `constant` is the value if it is known and computing it has no
    effect. `is_nullable`: it is a string that may be NULL, which is the number 0."""

    text: str
    low: int = 0
    high: int = 0
    depth: int = 1
    constant: int | bytes | None = None
    is_nullable: bool = False


def constant(value: int) -> Code:
    """The code of a constant number."""
    return Code(repr(value), value, value, 0, value)


def literal(value: bytes) -> Code:
    """The code of a constant string."""
    return Code(repr(value), 0, 0, 0, value)


def null() -> Code:
    """The code of NULL as a string."""
    return replace(constant(0), is_nullable=True)


def scalar_of(kind: DType) -> Scalar | None:
    """How values of a type are stored; None if not as integers. A floating-point number is stored as its bits."""
    match bare(kind):
        case Integer(size=size, is_signed=is_signed) | EnumType(base=Integer(size=size, is_signed=is_signed)):
            return Scalar(size, is_signed)
        case Float(size=size):
            return Scalar(size, is_signed=False) if size <= 8 else None
        case String() | Dynamic() | Array() | Aggregate() | Void():
            return None
        case _:
            return UNSIGNED


def word_of(kind: DType) -> Scalar:
    """The 64-bit range of a type's values in computations. Addresses are unsigned."""
    found = scalar_of(kind)
    return SIGNED if found is not None and found.is_signed else UNSIGNED


def is_string(kind: DType) -> bool:
    """Whether values of the type are bytes: strings."""
    return isinstance(bare(kind), String)


def is_reference(kind: DType) -> bool:
    """Whether values are addresses of the thing that the type describes: structs, unions and arrays."""
    stripped = bare(kind)
    return isinstance(stripped, Array | Aggregate | Function) or (isinstance(stripped, Float) and stripped.size > 8)


class Generator(Protocol):
    """What the generators of expressions use. `kinst.runtime.clauses.compile.expressions.Expressions` implements it."""

    def use_scratch(self) -> None:
        """The clause allocates scratch memory, which must be freed before it runs."""
        ...

    @property
    def state(self) -> State:
        """What all clauses of the session share."""
        ...

    @property
    def environment(self) -> Environment:
        """The session, as clauses use it."""
        ...

    @property
    def number(self) -> int:
        """The clause's index in the session's list."""
        ...

    @property
    def strsize(self) -> int:
        """The option strsize: the most bytes of a string, with its NUL."""
        ...

    @property
    def bound(self) -> dict[int, Code]:
        """The values of the enclosing `Bind` nodes, by their numbers."""
        ...

    def value(self, node: Expression) -> Code:
        """The value of a node; an integer is in the 64-bit range of its type."""
        ...

    def text(self, node: Expression) -> Code:
        """A string as bytes, or 0 for NULL."""
        ...

    def present(self, node: Expression) -> Code:
        """A string as bytes, for a use that reads it: NULL is a fault."""
        ...

    def test(self, node: Expression) -> Code:
        """Something that Python takes as true if the value is not zero."""
        ...

    def temporary(self) -> str:
        """The name of a new local variable, for use within the text of one expression."""
        ...

    def share(self) -> str:
        """The name of a new local variable that outlined expressions can use as well."""
        ...

    def local(self, name: str) -> str:
        """A local variable of the clause (cpu, probe, this, thread, time), which is assigned at its first use."""
        ...

    def bind(self, hint: str, value: object) -> str:
        """A name by which the clause reaches `value`."""
        ...

    def outline(self, lines: list[str]) -> Code:
        """A call of a new function inside the clause. `lines` are its body, which returns the value."""
        ...

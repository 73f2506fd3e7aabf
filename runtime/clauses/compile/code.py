"""Pieces of generated Python: an expression's text with what is known of its value, and what the generators share."""

from dataclasses import dataclass, replace
from typing import Final, Protocol

from kinst.runtime.clauses.environment import Environment
from kinst.runtime.clauses.state import State
from kinst.runtime.dlang.program import Expression
from kinst.runtime.dlang.types.types import DType, Dynamic, String, bare
from kinst.targets.c_types import Aggregate, Array, EnumType, Float, Function, Integer, Void

WORD: Final = 1 << 64
HALF: Final = 1 << 63
# Python refuses 200 nested parentheses. A level of ours takes up to three; what is deeper becomes its own function.
DEEP: Final = 45


@dataclass(frozen=True, slots=True)
class Scalar:
    """How an integer or pointer is kept."""

    size: int  # bytes
    is_signed: bool

    @property
    def low(self) -> int:
        """The least value."""
        return -1 << 8 * self.size - 1 if self.is_signed else 0

    @property
    def high(self) -> int:
        """The greatest value."""
        return (1 << 8 * self.size - self.is_signed) - 1

    def fold(self, value: int) -> int:
        """The value that has the same low bits."""
        value &= (1 << 8 * self.size) - 1
        return value if value <= self.high else value - (1 << 8 * self.size)


SIGNED: Final = Scalar(8, is_signed=True)
UNSIGNED: Final = Scalar(8, is_signed=False)


@dataclass(frozen=True, slots=True)
class Code:
    """An expression. `text` can be an operand of anything; an integer's value is in [low, high]; `depth` bounds how
    deep its parentheses nest, in levels; `constant` is the value where it is known and nothing happens on the way;
    `is_nullable`: of a string that may be NULL, which is the number 0."""

    text: str
    low: int = 0
    high: int = 0
    depth: int = 1
    constant: int | bytes | None = None
    is_nullable: bool = False


def constant(value: int) -> Code:
    """A number."""
    return Code(repr(value), value, value, 0, value)


def literal(value: bytes) -> Code:
    """A string."""
    return Code(repr(value), 0, 0, 0, value)


def null() -> Code:
    """The string that there is not."""
    return replace(constant(0), is_nullable=True)


def scalar_of(kind: DType) -> Scalar | None:
    """How a type's values are kept; None: not as integers. A floating-point number is its bits."""
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
    """The 64-bit range that values of a type are in while they are computed with: addresses are unsigned."""
    found = scalar_of(kind)
    return SIGNED if found is not None and found.is_signed else UNSIGNED


def is_string(kind: DType) -> bool:
    """Whether values are bytes."""
    return isinstance(bare(kind), String)


def is_reference(kind: DType) -> bool:
    """Whether values are addresses of what the type describes."""
    stripped = bare(kind)
    return isinstance(stripped, Array | Aggregate | Function) or (isinstance(stripped, Float) and stripped.size > 8)


class Generator(Protocol):
    """What generators of expressions ask of each other: `kinst.runtime.clauses.compile.expressions.Expressions`."""

    uses_scratch: bool  # the clause allocates scratch memory: it finds it empty

    @property
    def state(self) -> State:
        """What clauses share."""
        ...

    @property
    def environment(self) -> Environment:
        """The session."""
        ...

    @property
    def number(self) -> int:
        """The clause's."""
        ...

    @property
    def strsize(self) -> int:
        """The option: a string has at most so many bytes."""
        ...

    @property
    def bound(self) -> dict[int, Code]:
        """What `Bind` nodes around this one evaluated."""
        ...

    def value(self, node: Expression) -> Code:
        """A value, an integer in the 64-bit range of its type."""
        ...

    def text(self, node: Expression) -> Code:
        """A string, or 0 for NULL."""
        ...

    def present(self, node: Expression) -> Code:
        """A string that is read where it is: NULL is a fault."""
        ...

    def test(self, node: Expression) -> Code:
        """What Python takes for true if the value is not zero."""
        ...

    def temporary(self) -> str:
        """A new local variable's name, for use in one expression's text."""
        ...

    def share(self) -> str:
        """A new local variable's name, also for use in outlined expressions."""
        ...

    def local(self, name: str) -> str:
        """A local variable of the clause that is assigned where it is first used: cpu, probe, this, thread, time."""
        ...

    def bind(self, hint: str, value: object) -> str:
        """A name by which the clause reaches `value`."""
        ...

    def outline(self, lines: list[str]) -> Code:
        """A call of a new function inside the clause with these lines; they return its value."""
        ...

"""The expressions of a checked program, and the variables in them."""

from dataclasses import field
from enum import Enum

from kinst.runtime.dlang.syntax.errors import Span
from kinst.runtime.dlang.types.types import DType, String
from kinst.targets.values import dataclass


class Scope(Enum):
    """Where a variable lives."""

    GLOBAL = "global"
    THREAD = "self"
    CLAUSE = "this"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the program. `keys` are the types of an associative array's keys, None for a plain variable. Scope
    and name identify it, so variables compare by value."""

    scope: Scope
    name: str
    type: DType = field(compare=False)
    keys: tuple[DType, ...] | None = field(default=None, compare=False)


# Each has `type`.


@dataclass(frozen=True, slots=True)
class Integer:
    """A constant, in the range of its type."""

    type: DType
    value: int


@dataclass(frozen=True, slots=True)
class Text:
    """A constant string."""

    type: String
    value: bytes


@dataclass(frozen=True, slots=True)
class Builtin:
    """A builtin variable: timestamp, arg0, probefunc, ...; with an index regs, uregs, and args, which has the type of
    the argument."""

    type: DType
    name: str
    index: "Expression | None" = None


@dataclass(frozen=True, slots=True)
class Linked:
    """The address of something in the image, by its link address: where it is when the clause runs depends on whether
    the guest was loaded elsewhere, or has relocated itself."""

    type: DType
    address: int
    module: str = ""  # of the image


@dataclass(frozen=True, slots=True)
class Read:
    """The value of a variable, or of an element of an associative array."""

    type: DType
    variable: Variable
    keys: "tuple[Expression, ...]" = ()


@dataclass(frozen=True, slots=True)
class Load:
    """The value at an address: a scalar is loaded by its size and sign; a struct, union or array is its address.
    A bit-field has `bits` = (offset from bit 0 of the loaded unit, width); `type` is its declared type. `is_user`: the
    address is in user space (userland pointers)."""

    type: DType
    address: "Expression"
    bits: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Unary:
    """- ~ ! on integers and pointers."""

    type: DType
    operator: str
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic in 64 bits: * / % + - << >> & ^ |, and comparisons < <= > >= == !=. `type` is the result's;
    division, modulo and >> follow its sign. Operands are already converted to one sign, which `is_signed` gives for
    comparisons. Pointer arithmetic is already scaled. Strings are only compared, with strings."""

    type: DType
    operator: str
    left: "Expression"
    right: "Expression"
    is_signed: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Logical:
    """&& || with short circuit, ^^ without: 0 or 1."""

    type: DType
    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Conditional:
    """condition ? then : otherwise."""

    type: DType
    condition: "Expression"
    then: "Expression"
    otherwise: "Expression"


@dataclass(frozen=True, slots=True)
class Comma:
    """`left, right`: left is evaluated for its effect only."""

    type: DType
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Convert:
    """To an integer or pointer type: truncated to its size and then extended by its sign, unless `keeps_bits`: then
    all 64 bits stay, and only the type is another. From string to pointer: the address of a copy in scratch memory."""

    type: DType
    operand: "Expression"
    keeps_bits: bool = False


@dataclass(frozen=True, slots=True)
class StringOf:
    """The string at an address (char *, char[] of `limit` bytes, or an integer), read up to NUL or strsize."""

    type: String
    operand: "Expression"
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    """Store `value` into a variable, an array's element, or memory of D's own (`Load` whose address leads into scratch;
    a guest's address is a BADADDR fault), or a register of the CPU (regs[]). The result is the value as stored. Structs
    are copied."""

    type: DType
    target: "Read | Load | Builtin"
    value: "Expression"


@dataclass(frozen=True, slots=True)
class Update:
    """`target = target operator value`; the target's keys and address are evaluated once. `gives_old`: for x++, x--."""

    type: DType
    target: "Read | Load | Builtin"
    operator: str
    value: "Expression"
    gives_old: bool
    is_signed: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A subroutine by name (docs/facts/dlang.md, Subroutines); arguments are converted to its parameters' types."""

    type: DType
    function: str
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Bind:
    """Evaluate `value` once and name it `number` in `body`: a parameter of an inline or translator."""

    type: DType
    number: int  # unique in the clause
    value: "Expression"
    body: "Expression"


@dataclass(frozen=True, slots=True)
class Bound:
    """The value that the `Bind` of this number evaluated."""

    type: DType
    number: int


@dataclass(frozen=True, slots=True)
class StackKey:
    """stack(), ustack(), jstack() as an aggregation's key or printf's %k argument."""

    type: DType
    is_user: bool
    frames: int | None  # None: the option decides


@dataclass(frozen=True, slots=True)
class SymbolKey:
    """sym, func, mod, usym, ufunc, umod, uaddr of an address."""

    type: DType
    kind: str
    address: "Expression"


Expression = (
    Integer
    | Text
    | Builtin
    | Linked
    | Read
    | Load
    | Unary
    | Binary
    | Logical
    | Conditional
    | Comma
    | Convert
    | StringOf
    | Assign
    | Update
    | Call
    | Bind
    | Bound
    | StackKey
    | SymbolKey
)

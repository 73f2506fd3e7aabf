"""A checked program: the checker makes it, the compiler makes code from it, and the consumer prints what it records.

Everything is resolved: names are slots, members are addresses, inlines and translators are expanded, and every node has
its type. Values at run time:

- an integer or pointer is a Python int in the 64-bit range of its type's sign (a narrow type's *value* may exceed its
  width inside an expression and in a variable, as in libdtrace; memory, records and casts to it truncate);
- a string is `bytes` without NUL, not longer than strsize; NULL is the number 0, which equals the empty string but has
no text to read;
- a struct, union or array is the address of its bytes: in the guest, or in scratch memory
  (`kinst.runtime.clauses.scratch`), whose addresses no guest can have, so one `Load` serves both;
- a stack or symbol key is what `kinst.runtime.clauses.environment` calls `Stack` and `SymbolName`.
"""

from dataclasses import dataclass, field
from enum import Enum

from kinst.runtime.dlang.syntax.errors import Span
from kinst.runtime.dlang.syntax.tree import UNNAMED
from kinst.runtime.dlang.types.types import DType, String
from kinst.targets.c_types import CType


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


# -- expressions: each has `type` -------------------------------------------------------------------------------------


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
    """The address of something in the image, which was linked at `address`: the guest may have moved itself."""

    type: DType
    address: int


@dataclass(frozen=True, slots=True)
class Read:
    """The value of a variable, or of an element of an associative array."""

    type: DType
    variable: Variable
    keys: "tuple[Expression, ...]" = ()


@dataclass(frozen=True, slots=True)
class Load:
    """What is at an address: a scalar is loaded by its size and sign; a struct, union or array is its address.
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
    a guest's address is a BADADDR fault). The result is the value as stored. Structs are copied."""

    type: DType
    target: "Read | Load"
    value: "Expression"


@dataclass(frozen=True, slots=True)
class Update:
    """`target = target operator value`; the target's keys and address are evaluated once. `gives_old`: for x++, x--."""

    type: DType
    target: "Read | Load"
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

# -- aggregations -----------------------------------------------------------------------------------------------------


class AggregatingFunction(Enum):
    """The functions that combine values into an aggregation."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    STDDEV = "stddev"
    QUANTIZE = "quantize"
    LQUANTIZE = "lquantize"
    LLQUANTIZE = "llquantize"


def spelled(name: str) -> str:
    """The name of an aggregation as a program spells it; that of a bare `@` is `UNNAMED`."""
    return "@" if name == UNNAMED else f"@{name}"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """@name: what its keys are and how it aggregates. `number` counts from 1 in the order of the text."""

    number: int
    name: str
    function: AggregatingFunction
    keys: tuple[DType, ...]
    parameters: tuple[int, ...] = ()  # lquantize: base, limit, step; llquantize: factor, low, high, steps
    is_signed: bool = True  # of the aggregated value

    @property
    def shown(self) -> str:
        """The name as a program spells it."""
        return spelled(self.name)


# -- actions ----------------------------------------------------------------------------------------------------------
# Each action that records leaves one value in the record, in the order of `Clause.actions`.


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression that is evaluated for its effect. Records nothing."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Aggregate:
    """@a[keys] = f(value, increment). Records nothing in the buffer."""

    aggregation: Aggregation
    keys: tuple[Expression, ...]
    value: Expression | None  # None for count()
    increment: Expression | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """trace(value): records the value; bytes for a struct or array. `as_characters`: a char[] that prints as text."""

    value: Expression


@dataclass(frozen=True, slots=True)
class TraceMemory:
    """tracemem(address, size, dynamic size): records bytes."""

    address: Expression
    size: int
    dynamic: Expression | None


@dataclass(frozen=True, slots=True)
class Print:
    """print(value): records (value or bytes); `type` is what it is shown as."""

    value: Expression
    type: DType


@dataclass(frozen=True, slots=True)
class PrintMemory:
    """printm(size, memref): records bytes."""

    size: int
    reference: Expression


@dataclass(frozen=True, slots=True)
class Printf:
    """printf, system, freopen: records a tuple of the arguments' values. `format` has been checked."""

    kind: str  # "printf", "system", "freopen"
    format: bytes
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Printa:
    """printa(format, @a, ...): records nothing but that it happened (None)."""

    format: bytes | None
    aggregations: tuple[Aggregation, ...]


@dataclass(frozen=True, slots=True)
class StackTrace:
    """stack, ustack, jstack: records a Stack."""

    is_user: bool
    frames: int | None
    string_size: int = 0


@dataclass(frozen=True, slots=True)
class SymbolTrace:
    """sym, func, mod, usym, ... as an action: records a SymbolName."""

    key: SymbolKey


@dataclass(frozen=True, slots=True)
class Exit:
    """exit(status): records the status; tracing ends."""

    status: Expression


@dataclass(frozen=True, slots=True)
class Speculate:
    """speculate(id): the rest of the clause records into that buffer. Records nothing itself."""

    number: Expression


@dataclass(frozen=True, slots=True)
class Commit:
    """commit(id). Records nothing itself."""

    number: Expression


@dataclass(frozen=True, slots=True)
class Discard:
    """discard(id). Records nothing itself."""

    number: Expression


@dataclass(frozen=True, slots=True)
class ChangeAggregation:
    """clear, trunc, normalize, denormalize (`kind`): records the argument's value or None."""

    kind: str
    aggregation: Aggregation
    argument: Expression | None


@dataclass(frozen=True, slots=True)
class SetOption:
    """setopt(option[, value]): records a tuple of the strings."""

    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """ftruncate(): records None."""


@dataclass(frozen=True, slots=True)
class Destructive:
    """stop, raise, breakpoint, panic, chill (`kind`): acts at once and records nothing."""

    kind: str
    argument: Expression | None


Action = (
    Evaluate
    | Aggregate
    | Trace
    | TraceMemory
    | Print
    | PrintMemory
    | Printf
    | Printa
    | StackTrace
    | SymbolTrace
    | Exit
    | Speculate
    | Commit
    | Discard
    | ChangeAggregation
    | SetOption
    | Truncate
    | Destructive
)


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause for one probe description. `actions` is empty for the default action, which records that the probe
    fired. `action_numbers[i]` is DTrace's number, from 1, of the first action that `actions[i]` stands for. ERROR's
    arg2 and error messages count this way: each argument of printf and each key of an aggregation is one action."""

    description: str
    predicate: Expression | None
    actions: tuple[Action, ...]
    action_numbers: tuple[int, ...]
    span: Span
    record_size: int  # bytes of its record in a buffer, with the header; 0: it records nothing


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program: its clauses in the order of the text, and what they use."""

    clauses: tuple[Clause, ...]
    aggregations: tuple[Aggregation, ...]
    variables: tuple[Variable, ...]
    types: tuple[CType, ...] = ()  # declared by the program; print() shows them by name
    destructive: str = ""  # the first function or action that is, empty if none is

    @property
    def is_destructive(self) -> bool:
        """Whether it changes more than what is recorded."""
        return bool(self.destructive)

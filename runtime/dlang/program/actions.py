"""The statements of a checked program: aggregations and actions."""

from enum import Enum

from kinst.runtime.dlang.program.expressions import Expression, SymbolKey, Variable
from kinst.runtime.dlang.syntax.errors import Span
from kinst.runtime.dlang.syntax.tree import UNNAMED
from kinst.runtime.dlang.types.types import DType
from kinst.targets.c_types import CType
from kinst.targets.values import dataclass


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
    """trace(value): records the value; bytes for a struct or array."""

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
    """stop, raise, breakpoint, panic, chill, override, skip (`kind`): acts at once and records nothing."""

    kind: str
    argument: Expression | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """snapshot(file): writes a snapshot of the guest at once. Records nothing."""

    file: Expression


# By what the consumer does with their records. It handles each one: for a new one, mypy names the places that do not.
Shown = Trace | Print | TraceMemory | PrintMemory | StackTrace | SymbolTrace  # one value is shown
Performed = Printa | Exit | ChangeAggregation | SetOption | Truncate  # done by who consumes the record
Recording = Shown | Printf | Performed
Unrecorded = Evaluate | Aggregate | Speculate | Commit | Discard | Destructive | Snapshot
Action = Recording | Unrecorded


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

    @property
    def recorded(self) -> list[Recording]:
        """The actions that have a value in its record, in this order."""
        return [action for action in self.actions if not isinstance(action, Unrecorded)]


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program: its clauses in the order of the text, and what they use."""

    clauses: tuple[Clause, ...]
    aggregations: tuple[Aggregation, ...]
    variables: tuple[Variable, ...]
    types: tuple[CType, ...] = ()  # declared by the program; print() shows them by name
    destructive: tuple[str, ...] = ()  # the functions and actions that are, in the order of the text

    @property
    def is_destructive(self) -> bool:
        """Whether it changes more than what is recorded."""
        return bool(self.destructive)

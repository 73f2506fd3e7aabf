"""Checked parts of an expression, before they are combined.

An `Operand` is an expression of the checked program together with what only the checker needs: whether it can be
assigned to, whether it is a constant, which variable or translation it is.
"""

from dataclasses import field, replace
from enum import Enum

from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Scope
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import Span
from kinst.runtime.dlang.types.conversions import is_signed
from kinst.runtime.dlang.types.types import UINTPTR, VOID, DType, Dynamic
from kinst.targets.c_types import Aggregate, CType
from kinst.targets.values import dataclass

WORD_MASK = (1 << 64) - 1
AGGREGATION = Dynamic("aggregation")
TRANSLATED = Dynamic("translated")


class Use(Enum):
    """What an expression is used for. It matters because D's variables are created when they are assigned."""

    READ = "read"  # a variable must have been declared or assigned
    TOUCH = "touch"  # self-> and this-> variables and arrays may be new: the caller gives them their type
    CREATE = "create"  # global variables may be new too
    ADDRESS = "address"  # as TOUCH, for the operand of &


PREFIXES = {Scope.GLOBAL: "", Scope.THREAD: "self->", Scope.CLAUSE: "this->"}


@dataclass(slots=True)
class DeclaredVariable:
    """What is known about a variable so far. It is new until it has a type."""

    scope: Scope
    name: str
    label: str  # its name in the checked program: unique where two programs give one name different types
    type: DType | None = None
    is_array: bool = False
    keys: tuple[DType, ...] | None = None
    variable: program.Variable | None = None

    def become_array(self, keys: tuple[DType, ...] | None = None) -> None:
        """The variable is an associative array, with keys of these types if they are known."""
        self.is_array, self.keys = True, keys

    def give(self, kind: DType, label: str) -> None:
        """Fix the type, and the name in the checked program."""
        self.type, self.label = kind, label
        self.variable = program.Variable(self.scope, self.label, kind, self.keys)

    @property
    def spelling(self) -> str:
        """The variable as programs write it: `x`, `self->x` or `this->x`."""
        return PREFIXES[self.scope] + self.name


@dataclass(frozen=True, slots=True)
class Translator:
    """`translator output < input name > { members }`. `weights`: how many nodes the expansion of each member adds."""

    output: CType
    aggregate: Aggregate
    input: DType
    name: str
    members: dict[str, tree.TranslatorMember] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Translation:
    """`xlate <type>(value)`: a struct, or a pointer to one, that exists only as its members."""

    translator: Translator
    value: program.Expression
    is_pointer: bool

    def dereferenced(self, operand: "Operand") -> "Operand":
        """The struct that a translated pointer points to."""
        return replace(operand, translation=replace(self, is_pointer=False))


@dataclass(slots=True)
class Operand:
    """A checked part. `constant` is its value if libdtrace folds it too: literals, enumerators and what is computed
    from them, but not `sizeof variable`."""

    type: DType
    value: program.Expression
    constant: int | None = None
    is_lvalue: bool = False
    is_writable: bool = False
    is_variable: bool = False  # a variable of D: it has no address
    entry: DeclaredVariable | None = None  # where the variable's type is kept
    translation: Translation | None = None
    action: str = ""  # the action whose call this is: it has no value
    size: int | None = None  # what sizeof says, if it is not the type's size
    memory: program.Load | None = None  # where it is in memory, if `value` is not that `Load`: strings inside structs

    @property
    def target(self) -> program.Expression:
        """The variable or the memory that an assignment to this operand stores to."""
        return self.value if self.memory is None else self.memory


def is_free(value: program.Expression) -> bool:
    """Whether a value can be evaluated any number of times without cost or effect."""
    match value:
        case program.Integer() | program.Text() | program.Bound():
            return True
        case program.Builtin(index=None):
            return True
        case _:
            return False


def ranged(value: int, kind: DType) -> int:
    """A 64-bit value as a signed or unsigned number, as `kind` is."""
    value &= WORD_MASK
    return value - (1 << 64) if value >> 63 and is_signed(kind) else value


def constant_operand(kind: DType, value: int) -> Operand:
    """An integer constant."""
    value = ranged(value, kind)
    return Operand(kind, program.Integer(kind, value), constant=value)


def value_operand(value: program.Expression) -> Operand:
    """An expression that is only a value."""
    return Operand(value.type, value)


def action_operand(name: str, kind: DType = VOID) -> Operand:
    """The call of an action. Operators refuse its type, and whatever takes its value refuses the action."""
    return Operand(kind, program.Call(kind, name, ()), action=name)


def computed(
    kind: DType, symbol: str, left: program.Expression, right: program.Expression, span: Span
) -> program.Expression:
    """An operation on two converted operands. The type of its result decides whether it is signed."""
    return program.Binary(kind, symbol, left, right, is_signed(kind), span)


def address_of(operand: Operand) -> program.Expression:
    """Where the bytes of a struct, union or array are."""
    value = operand.value
    return value.address if isinstance(value, program.Load) and value.bits is None else value


def shifted(address: program.Expression, offset: int, span: Span) -> program.Expression:
    """An address plus a constant; constants that are added one after another become one."""
    if offset == 0:
        return address
    match address:
        case program.Integer(value=base):
            return program.Integer(UINTPTR, (base + offset) & WORD_MASK)
        case program.Binary(type=kind, operator="+", left=left, right=program.Integer(value=base)) if kind is UINTPTR:
            return computed(UINTPTR, "+", left, program.Integer(UINTPTR, (base + offset) & WORD_MASK), span)
        case _:
            return computed(UINTPTR, "+", address, program.Integer(UINTPTR, offset & WORD_MASK), span)

"""Variables of D: they spring into being when they are assigned, with the type of the value."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kinst.runtime.dlang import program
from kinst.runtime.dlang.builtins import ARRAYS, VARIABLES
from kinst.runtime.dlang.check.compatibility import is_accepted
from kinst.runtime.dlang.check.converting import as_string, as_word_of_sign, converted
from kinst.runtime.dlang.check.operands import Operand, Reader, Use
from kinst.runtime.dlang.program import Scope
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.syntax.nearest import nearest
from kinst.runtime.dlang.types.conversions import (
    is_integer,
    is_pointer,
    is_signed,
    is_string,
    is_string_like,
    is_void,
    is_whole,
)
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import INT64, STRING, DType, Dynamic, bare
from kinst.targets.c_types import Array

NEW = Dynamic("variable")  # nothing was assigned yet
ARRAY = Dynamic("associative array")  # named without its index
PREFIXES = {Scope.GLOBAL: "", Scope.THREAD: "self->", Scope.CLAUSE: "this->"}
SCOPES = {"self": Scope.THREAD, "this": Scope.CLAUSE}


@dataclass(slots=True)
class Entry:
    """What is known of a variable so far. It is new until it has a type."""

    scope: Scope
    name: str
    label: str  # its name in the program, of its own where two programs give one name different types
    type: DType | None = None
    is_array: bool = False
    keys: tuple[DType, ...] | None = None
    variable: program.Variable | None = None

    def give(self, kind: DType) -> None:
        """Fix the type."""
        self.type = kind
        self.variable = program.Variable(self.scope, self.label, kind, self.keys)

    @property
    def spelling(self) -> str:
        """As programs write it."""
        return PREFIXES[self.scope] + self.name


def _tables() -> dict[Scope, dict[str, Entry]]:
    return {scope: {} for scope in Scope}


@dataclass(slots=True)
class Variables:
    """All variables of a session, those of clauses for each program alone."""

    tables: dict[Scope, dict[str, Entry]] = field(default_factory=_tables)
    _earlier: dict[str, list[Entry]] = field(default_factory=dict)  # clause-locals of earlier programs

    def begin_program(self) -> None:
        """A new program text: it does not know the this-> variables of those before."""
        for name, entry in self.tables[Scope.CLAUSE].items():
            self._earlier.setdefault(name, []).append(entry)
        self.tables[Scope.CLAUSE] = {}

    def find(self, scope: Scope, name: str) -> Entry | None:
        """A variable that was named before."""
        return self.tables[scope].get(name)

    def assigned(self) -> Iterator[str]:
        """Names of variables that were declared or assigned, as programs spell them."""
        for table in self.tables.values():
            yield from (entry.spelling for entry in table.values() if entry.type is not None and "%" not in entry.name)

    def is_known_global(self, name: str) -> bool:
        """Whether a global variable has this name."""
        return name in self.tables[Scope.GLOBAL]

    def create(self, scope: Scope, name: str) -> Entry:
        """A new variable, without a type yet."""
        clashes = len(self._earlier.get(name, ())) if scope is Scope.CLAUSE else 0
        entry = Entry(scope, name, f"{name}#{clashes + 1}" if clashes else name)
        self.tables[scope][name] = entry
        return entry

    def declare(self, scope: Scope, name: str, kind: DType, keys: tuple[DType, ...] | None) -> None:
        """A variable that the program declares, unknown so far."""
        entry = self.create(scope, name)
        entry.is_array, entry.keys = keys is not None, keys
        self._settle(entry, kind)

    def assume_integer(self, operand: Operand) -> Operand:
        """++, !, - and their like make a new variable an int64_t."""
        return self.give(operand, INT64)

    def give(self, operand: Operand, kind: DType) -> Operand:
        """The operand of a variable that is new no more."""
        entry = operand.entry
        if entry is None or operand.type != NEW:
            return operand
        if entry.type is None:
            self._settle(entry, kind)
        keys = operand.value.keys if isinstance(operand.value, program.Read) else ()
        return entry_operand(entry, keys)

    def _settle(self, entry: Entry, kind: DType) -> None:
        """Two programs' this->x of the same type are one variable, as their numbers would be in DTrace."""
        if entry.scope is Scope.CLAUSE:
            same = (earlier for earlier in self._earlier.get(entry.name, ()) if earlier.type == kind)
            entry.label = next((earlier.label for earlier in same), entry.label)
        entry.give(kind)

    def declared(self) -> tuple[program.Variable, ...]:
        """All variables that have a type."""
        early = [entry for entries in self._earlier.values() for entry in entries]
        now = [entry for table in self.tables.values() for entry in table.values()]
        return tuple(dict.fromkeys(entry.variable for entry in early + now if entry.variable is not None))


def entry_operand(entry: Entry, keys: tuple[program.Expression, ...] = ()) -> Operand:
    """A variable or an element of an array."""
    kind = entry.type if entry.type is not None else NEW
    variable = entry.variable or program.Variable(entry.scope, entry.label, kind, entry.keys)
    value = program.Read(kind, variable, keys)
    return Operand(kind, value, is_lvalue=True, is_writable=True, is_variable=True, entry=entry)


def undefined(reader: Reader, entry: Entry, span: Span) -> DError:
    """A variable is read that was never assigned."""
    own = (*VARIABLES, *ARRAYS) if entry.scope is Scope.GLOBAL else ()
    hint = nearest(entry.spelling, (*own, *reader.variables.assigned()))
    return DError("D_VAR_UNDEF", f"{entry.spelling} has not yet been declared or assigned{hint}", span)


def scoped(reader: Reader, node: tree.ScopedName, use: Use) -> Operand:
    """self->name and this->name: naming one makes it, reading it needs an assignment before."""
    entry = scoped_entry(reader, node)
    if entry.is_array:
        if use is Use.READ:
            raise _wrong_count(entry, 0, node.span)
        return Operand(ARRAY, entry_operand(entry).value, is_lvalue=True, is_writable=True, is_variable=True)
    if entry.type is None and use is Use.READ:
        raise undefined(reader, entry, node.span)
    return entry_operand(entry)


def scoped_entry(reader: Reader, node: tree.ScopedName) -> Entry:
    """What stands for self->name, new or not."""
    scope = SCOPES[node.scope]
    return reader.variables.find(scope, node.name) or reader.variables.create(scope, node.name)


# -- elements of associative arrays -----------------------------------------------------------------------------------


def element(reader: Reader, entry: Entry, node: tree.Index, use: Use) -> Operand:
    """array[keys]. The first use decides how many keys there are and of which types."""
    if entry.type is None and use is Use.READ:
        raise undefined(reader, entry, node.span)
    operands = [reader.operand(index) for index in node.indexes]
    if entry.keys is None:
        entry.keys = tuple(key_type(operand.type, number, node.span) for number, operand in enumerate(operands, 1))
    check_keys(f"{entry.spelling}[ ]", entry.keys, operands, node.span)
    return entry_operand(entry, tuple(map(key_value, operands, entry.keys)))


def key_type(kind: DType, number: int, span: Span) -> DType:
    """The type of a key: text of any kind is a string by value."""
    is_text = is_string_like(kind) and isinstance(bare(kind), Array)
    if is_void(kind) or kind in (NEW, ARRAY):
        raise DError("D_KEY_TYPE", f"{describe(kind)} expression may not be used as an index: key #{number}", span)
    if is_text:
        return STRING
    is_word = is_integer(kind) or (is_pointer(kind) and not isinstance(bare(kind), Array))
    if is_word or is_string(kind) or is_whole(kind):
        return kind
    raise DError("D_KEY_TYPE", f"{describe(kind)} expression may not be used as an index: key #{number}", span)


def check_keys(name: str, keys: tuple[DType, ...], operands: list[Operand], span: Span) -> None:
    """Compare a use of an array (or inline) with what its keys are: D_PROTO_LEN, D_PROTO_ARG."""
    if len(operands) != len(keys):
        passed = f"{len(operands)} arg{'' if len(operands) == 1 else 's'} passed, {len(keys)} expected"
        raise DError("D_PROTO_LEN", f"{name} prototype mismatch: {passed}", span)
    for number, (operand, key) in enumerate(zip(operands, keys, strict=True), 1):
        if not is_accepted(key, operand):
            text = f"{name} key #{number} is incompatible with prototype:"
            raise DError(
                "D_PROTO_ARG", f"{text}\n\tprototype: {describe(key)}\n\t      key: {describe(operand.type)}", span
            )


def _wrong_count(entry: Entry, passed: int, span: Span) -> DError:
    expected = len(entry.keys or ())
    text = f"{entry.spelling}[ ] prototype mismatch: {passed} args passed, {expected} expected"
    return DError("D_PROTO_LEN", text, span)


def key_value(operand: Operand, kind: DType) -> program.Expression:
    """A key as it is compared: integers in all their 64 bits, since keys of other widths are the same keys."""
    if is_string(kind):
        return as_string(operand.value)
    if is_integer(kind):
        return as_word_of_sign(operand.value, signed=is_signed(kind))
    return converted(operand.value, kind)

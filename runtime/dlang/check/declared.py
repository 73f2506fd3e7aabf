"""What a program has declared so far: variables, inlines and translators, by name."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.compatibility import is_accepted
from kinst.runtime.dlang.check.operands import DeclaredVariable, Operand, Translator, constant_operand
from kinst.runtime.dlang.program import Scope
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.types.conversions import are_compatible
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.types import INT, INT64, DType, Dynamic, bare
from kinst.targets.c_types import EnumType, ImageTypes
from kinst.targets.values import dataclass

NEW = Dynamic("variable")  # nothing has been assigned yet


def _tables() -> dict[Scope, dict[str, DeclaredVariable]]:
    return {scope: {} for scope in Scope}


@dataclass(slots=True)
class Variables:
    """All variables of a session. Clause-local ones (this->) belong to one program each."""

    tables: dict[Scope, dict[str, DeclaredVariable]] = field(default_factory=_tables)
    _earlier: dict[str, list[DeclaredVariable]] = field(default_factory=dict)  # clause-locals of earlier programs

    def begin_program(self) -> None:
        """A new program text begins, in which the this-> variables of earlier ones are not visible."""
        for name, entry in self.tables[Scope.CLAUSE].items():
            self._earlier.setdefault(name, []).append(entry)
        self.tables[Scope.CLAUSE] = {}

    def find(self, scope: Scope, name: str) -> DeclaredVariable | None:
        """The variable, if it has been named; else None."""
        return self.tables[scope].get(name)

    def assigned(self) -> Iterator[str]:
        """Names of variables that were declared or assigned, as programs spell them."""
        for table in self.tables.values():
            yield from (entry.spelling for entry in table.values() if entry.type is not None and "%" not in entry.name)

    def is_known_global(self, name: str) -> bool:
        """Whether a global variable has this name."""
        return name in self.tables[Scope.GLOBAL]

    def create(self, scope: Scope, name: str) -> DeclaredVariable:
        """A new variable, without a type yet."""
        clashes = len(self._earlier.get(name, ())) if scope is Scope.CLAUSE else 0
        entry = DeclaredVariable(scope, name, f"{name}#{clashes + 1}" if clashes else name)
        self.tables[scope][name] = entry
        return entry

    def declare(self, scope: Scope, name: str, kind: DType, keys: tuple[DType, ...] | None) -> None:
        """Add a variable that the program declares. It must not exist yet. `keys`: of an associative array."""
        entry = self.create(scope, name)
        if keys is not None:
            entry.become_array(keys)
        self._settle(entry, kind)

    def assume_integer(self, operand: Operand) -> Operand:
        """The operand; if it is a new variable, it becomes an int64_t, as ++, !, - and the like make it."""
        return self.give(operand, INT64)

    def give(self, operand: Operand, kind: DType) -> Operand:
        """The operand; if it is a new variable, that has the type `kind` from now on."""
        entry = operand.entry
        if entry is None or operand.type != NEW:
            return operand
        if entry.type is None:
            self._settle(entry, kind)
        keys = operand.value.keys if isinstance(operand.value, program.Read) else ()
        return entry_operand(entry, keys)

    def _settle(self, entry: DeclaredVariable, kind: DType) -> None:
        """Fix the type. this->x of two programs is one variable if its type is the same, since libdtrace gives both the
        same id; of two types, they are two variables."""
        label = entry.label
        if entry.scope is Scope.CLAUSE:
            same = (earlier for earlier in self._earlier.get(entry.name, ()) if earlier.type == kind)
            label = next((earlier.label for earlier in same), label)
        entry.give(kind, label)

    def declared(self) -> tuple[program.Variable, ...]:
        """All variables that have a type."""
        early = [entry for entries in self._earlier.values() for entry in entries]
        now = [entry for table in self.tables.values() for entry in table.values()]
        return tuple(dict.fromkeys(entry.variable for entry in early + now if entry.variable is not None))


def entry_operand(entry: DeclaredVariable, keys: tuple[program.Expression, ...] = ()) -> Operand:
    """A variable, or with `keys` an element of an associative array, as an operand."""
    kind = entry.type if entry.type is not None else NEW
    variable = entry.variable or program.Variable(entry.scope, entry.label, kind, entry.keys)
    value = program.Read(kind, variable, keys)
    return Operand(kind, value, is_lvalue=True, is_writable=True, is_variable=True, entry=entry)


@dataclass(frozen=True, slots=True)
class Inline:
    """One definition. Without parameters, `operand` takes its place wherever it is used."""

    name: str
    type: DType
    operand: Operand
    keys: tuple[DType, ...] | None  # types of the parameters
    names: tuple[str, ...]
    body: tree.Expression
    weight: int  # parts of the expanded expression


@dataclass(slots=True)
class Inlines:
    """All inlines of a session, the constants that every program has, and the parameters that are in scope."""

    constants: Mapping[str, int]  # R_RAX, NULL, SIGINT and the like
    image: ImageTypes
    scope: TypeScope
    defined: dict[str, Inline] = field(default_factory=dict)
    _bound: dict[str, Operand] = field(default_factory=dict)

    @contextmanager
    def parameters(self, bound: dict[str, Operand]) -> Iterator[None]:
        """Within this context only these parameters are in scope."""
        outer, self._bound = self._bound, bound
        try:
            yield
        finally:
            self._bound = outer

    def parameter(self, name: str) -> Operand | None:
        """A parameter of the inline or translator that is being read."""
        bound = self._bound.get(name)
        return None if bound is None else replace(bound)

    def constant(self, name: str) -> Operand | None:
        """What DTrace's libraries define as inlines; and the program's own enumerators, which libdtrace treats as
        inlines. None for other names."""
        known = self.constants.get(name)
        if known is not None:
            return constant_operand(INT, known)
        return self.own_enumerator(name)

    def known(self) -> Iterator[str]:
        """Names of inlines, and of the constants that come from no debug information."""
        yield from (*self.defined, *self.constants)

    def own_enumerator(self, name: str) -> Operand | None:
        """An enumerator that the program declared."""
        found = self.scope.enumerator(name)
        if found is None or found == self.image.enumerator(name):
            return None
        return constant_operand(*found)

    def enumerator(self, name: str) -> Operand | None:
        """An enumerator of the image."""
        found = self.image.enumerator(name)
        return None if found is None else constant_operand(*found)

    def tag_of(self, kind: DType, name: str) -> Operand | None:
        """The enumerator of this name in this enumeration; None if it has none."""
        plain = bare(kind)
        if not isinstance(plain, EnumType) or name in self._bound:
            return None
        value = dict(plain.enumerators).get(name)
        return None if value is None else constant_operand(plain, value)


@dataclass(slots=True)
class Translators:
    """All translators of a session."""

    declared: list[Translator] = field(default_factory=list)

    def find(self, source: Operand, output: DType, *, exact: bool = False) -> Translator | None:
        """The translator to `output` from exactly the operand's type, or else from a type that the operand is
        compatible with. None if there is no such translator."""
        plain = bare(output)
        fitting = [one for one in self.declared if are_compatible(one.aggregate, plain)]
        for one in fitting:
            if are_compatible(one.input, source.type):
                return one
        if exact:
            return None
        return next((one for one in fitting if is_accepted(one.input, source)), None)

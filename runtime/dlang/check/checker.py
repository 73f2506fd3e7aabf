"""A syntax tree -> a program that can be compiled: names are resolved, types known, rules checked."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.actions import action_count, actions_of, record_size
from kinst.runtime.dlang.check.declarations import inlines, pragmas, provider_declarations, translators
from kinst.runtime.dlang.check.declarations.variables import SCOPES, key_type
from kinst.runtime.dlang.check.declared import Inlines
from kinst.runtime.dlang.check.expressions import Expressions, Session, refuse_valueless
from kinst.runtime.dlang.check.key_types import settled
from kinst.runtime.dlang.check.libraries import INLINES
from kinst.runtime.dlang.context import CheckContext, MatchedProbes
from kinst.runtime.dlang.program import Action, Expression, Program, Scope
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.conversions import is_scalar
from kinst.runtime.dlang.types.declare import check_class
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import DType
from kinst.runtime.dlang.versions import is_own
from kinst.targets.c_types import Function
from kinst.targets.values import dataclass

_UNKNOWN_VARIABLE: Final = ("D_IDENT_UNDEF", "D_VAR_UNDEF")


@dataclass(frozen=True, slots=True)
class _Body:
    predicate: Expression | None
    actions: tuple[Action, ...]
    numbers: tuple[int, ...]
    record_size: int


class Checker:
    """Checks the programs of one session one after another: they share globals, types, inlines, translators and
    aggregations."""

    def __init__(self, context: CheckContext) -> None:
        scope = TypeScope(context.types, context.options.number("strsize"), self._is_variable)
        known = Inlines({**context.constants, **context.arch.register_names}, context.types, scope)
        known.defined.update(INLINES)
        self._session = Session(context, scope, known)

    def is_type(self, name: str) -> bool:
        """Whether a word (or module`word) names a type, for the parser. A variable hides a type of the image."""
        module, _, word = name.rpartition("`")
        if not module and self._is_variable(word):
            return False
        return self._session.scope.lookup(word, module) is not None

    def check(self, unit: tree.Unit) -> Program:
        """The checked form of one program text. Raises DError with the tag and place of the first error."""
        session = self._session
        session.variables.begin_program()
        self.declare(unit)
        clauses: list[program.Clause] = []
        destructive: tuple[str, ...] = ()
        for item in unit.items:
            if isinstance(item, tree.Clause):
                with _bounded(item):
                    made, destroys = self._clause(item)
                clauses += made
                destructive += destroys
        pragmas.finish(Expressions(session))
        known = session.program.aggregations
        variables, types = session.variables.declared(), session.scope.declared
        return Program(settled(clauses, known), tuple(known.values()), variables, types, destructive)

    def settled(self, checked: Program) -> Program:
        """A program that was checked before others, with the final types of the aggregations that they share: a later
        use may have wider keys."""
        known = self._session.program.aggregations
        aggregations = tuple([known[one.name] for one in checked.aggregations])
        return replace(checked, clauses=settled(checked.clauses, known), aggregations=aggregations)

    def load(self, name: str, unit: tree.Unit) -> None:
        """Check a library. If it depends on a provider, module or library that does not exist, the rest of it is
        silently left out, as in libdtrace: not every machine has what a library is about. Raises DError for all other
        errors."""
        state = self._session.program
        try:
            with state.in_library():
                self.declare(unit)
        except DError as error:
            if error.tag != "D_PRAGMA_DEPEND":
                raise
        else:
            state.libraries.add(name)

    def declare(self, unit: tree.Unit) -> None:
        """Check what is outside clauses, in the order of the text, each item with those before it in effect. Clauses
        are checked later, when all declarations are known."""
        outside = Expressions(self._session)
        for item in unit.items:
            with _bounded(item):
                _declare(outside, item)

    def _is_variable(self, name: str) -> bool:
        session = self._session
        known = session.inlines
        if is_own(name, session.context.options) or name in known.defined or known.constant(name) is not None:
            return True
        return session.variables.is_known_global(name)

    # -- clauses ------------------------------------------------------------------------------------------------------

    def _clause(self, node: tree.Clause) -> tuple[list[program.Clause], tuple[str, ...]]:
        clauses: list[program.Clause] = []
        destructive: tuple[str, ...] = ()
        # A clause with several descriptions is checked once for all that have the same argument types: nothing else of
        # a description affects its statements.
        bodies: dict[object, _Body] = {}
        for description in node.descriptions:
            matched = self._matched(description)
            key = matched.arguments, matched.is_mixed, matched.count == 0
            body = bodies.get(key)
            if body is None:
                reader = Expressions(self._session, matched)
                body = bodies[key] = _body(reader, node)
                destructive += reader.state.destructive
            if matched.count:
                clauses.append(
                    program.Clause(
                        matched.description, body.predicate, body.actions, body.numbers, node.span, body.record_size
                    )
                )
        return clauses, destructive

    def _matched(self, description: tree.ProbeDescription) -> MatchedProbes:
        try:
            return self._session.context.probes.match(description.text)
        except DError as error:
            raise DError(error.tag, error.message, error.span or description.span) from error


@contextmanager
def _bounded(item: tree.TopLevel) -> Iterator[None]:
    try:
        yield
    except RecursionError as error:
        raise DError("D_SYNTAX", "the program is nested too deeply", item.span) from error


def _declare(outside: Expressions, item: tree.TopLevel) -> None:
    match item:
        case tree.Clause():
            pass
        case tree.Declaration():
            _declaration(outside, item)
        case tree.Inline():
            _inline(outside, item)
        case tree.Translator():
            translators.declare(outside, item)
        case tree.ProviderDeclaration():
            provider_declarations.declare(item, outside)
        case tree.Pragma():
            pragmas.apply(item, outside)


def _body(reader: Expressions, node: tree.Clause) -> _Body:
    """A clause's predicate and statements. A variable gets its type by the first assignment that is checked. The
    statements come first, since the common idiom is a predicate that tests what the clause assigns, as in
    /!start/ { start = timestamp; }. If that fails because they need a variable that the predicate assigns, the
    predicate comes first."""
    try:
        actions = _actions(reader, node)
    except DError as error:
        if node.predicate is None or error.tag not in _UNKNOWN_VARIABLE:
            raise
        reader.forget_state()
        predicate = _predicate(reader, node.predicate)
        return _numbered(reader, predicate, _actions(reader, node))
    return _numbered(reader, None if node.predicate is None else _predicate(reader, node.predicate), actions)


def _numbered(reader: Expressions, predicate: Expression | None, actions: tuple[Action, ...]) -> _Body:
    numbers: list[int] = []
    number = 1
    for action in actions:
        numbers.append(number)
        number += action_count(action)
    options = reader.context.options
    size = record_size(actions, options.number("strsize"), options.number("stackframes"))
    return _Body(predicate, actions, tuple(numbers), size)


def _actions(reader: Expressions, node: tree.Clause) -> tuple[Action, ...]:
    actions: list[Action] = []
    for statement in node.statements or ():
        assert isinstance(statement, tree.ExpressionStatement), "`sugar` has expanded `if`"
        actions += actions_of(statement, reader)
    return tuple(actions)


def _predicate(reader: Expressions, node: tree.Expression) -> Expression:
    operand = reader.operand(node)
    if not is_scalar(operand.type):
        raise DError("D_PRED_SCALAR", "predicate result must be of scalar type", node.span)
    refuse_valueless(node, operand)
    return operand.value


# -- declarations -----------------------------------------------------------------------------------------------------


def _declaration(reader: Expressions, node: tree.Declaration) -> None:
    storage = check_class(node.specifiers)
    if storage == "typedef" or not node.declarators:
        reader.scope.declare(node, reader.constant)
        return
    for declarator in node.declarators:
        kind = reader.scope.resolve(node.specifiers, declarator, reader.constant)
        if storage == "extern" or isinstance(kind, Function):
            _extern(reader, declarator, kind)
        else:
            keys = reader.scope.declarator_keys(declarator, reader.constant)
            _variable(reader, declarator, SCOPES.get(storage, Scope.GLOBAL), kind, keys)


def _extern(reader: Expressions, declarator: tree.Declarator, kind: DType) -> None:
    """An `extern` declaration. If the image has the symbol, its type there must be the same."""
    symbol = reader.context.types.symbol(declarator.name)
    if symbol is not None and symbol.type is not None and describe(symbol.type) != describe(kind):
        text = f"current: {describe(kind)}, previous: {describe(symbol.type)}"
        raise DError("D_DECL_IDRED", f"identifier redeclared: {declarator.name} ({text})", declarator.span)


def _variable(
    reader: Expressions, declarator: tree.Declarator, scope: Scope, kind: DType, keys: tuple[DType, ...] | None
) -> None:
    name = declarator.name
    if scope is Scope.GLOBAL and (is_own(name, reader.context.options) or _is_inline(reader, name)):
        raise DError("D_DECL_IDRED", f"built-in identifier redeclared: {name}", declarator.span)
    if keys is not None and scope is Scope.CLAUSE:
        text = f"associative arrays may not be declared as local variables: {name}"
        raise DError("D_DECL_LOCASSC", text, declarator.span)
    if keys is not None:
        keys = tuple(key_type(key, number, declarator.span) for number, key in enumerate(keys, 1))
    entry = reader.variables.find(scope, name)
    if entry is None:
        reader.variables.declare(scope, name, kind, keys)
    elif entry.type != kind or entry.keys != keys:
        previous = "nothing" if entry.type is None else describe(entry.type)
        text = f"identifier redeclared: {name} (current: {describe(kind)}, previous: {previous})"
        raise DError("D_DECL_IDRED", text, declarator.span)


def _is_inline(reader: Expressions, name: str) -> bool:
    return name in reader.inlines.defined or reader.inlines.constant(name) is not None


def _inline(reader: Expressions, node: tree.Inline) -> None:
    name = node.declarator.name
    if check_class(node.specifiers):
        text = "specified storage class not appropriate for inline declaration"
        raise DError("D_DECL_BADCLASS", text, node.specifiers.span)
    if any(isinstance(part, tree.ArrayPart) for part in node.declarator.parts[:1]):
        raise DError("D_DECL_ARRNULL", f"inline declaration cannot be of scalar array type: {name}", node.span)
    inlines.define(reader, node, reader.scope.resolve(node.specifiers, node.declarator, reader.constant))

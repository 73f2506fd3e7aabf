"""Checked expressions -> Python expressions. A table gives the generator of each kind of node; those of control flow
and conversions are here."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from kinst.runtime.clauses.compile import arithmetic, lvalues
from kinst.runtime.clauses.compile.arithmetic import COMPARISONS, fit, truth
from kinst.runtime.clauses.compile.builtins import builtin
from kinst.runtime.clauses.compile.calls import call, stack, symbol
from kinst.runtime.clauses.compile.code import (
    DEEP,
    UNSIGNED,
    Code,
    Generator,
    constant,
    is_reference,
    is_string,
    literal,
    null,
    scalar_of,
    word_of,
)
from kinst.runtime.clauses.environment import Environment
from kinst.runtime.clauses.state import State
from kinst.runtime.clauses.text_functions import present
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Expression
from kinst.runtime.dlang.types.types import bare
from kinst.targets.c_types import Array

# Facts about the hit, each with the statement that assigns its local variable where it is first used. `time` is read
# once in a clause: D's timestamp does not change while a clause runs.
LOCALS: Final[Mapping[str, str]] = {
    "cpu": "cpu = firing.cpu",
    "probe": "probe = firing.enabling.probe",
    "this": "this = frames[cpu]",
    "thread": "thread = thread_of(firing)",
    "time": "time = now()",
    "wall": "wall = wall_now()",
}
_NOT_A_WORD: Final = re.compile(r"\W", re.ASCII)


class Expressions:
    """The expressions of one clause; implements `Generator`. `lines` are the statements so far, each with the number of
    its action, so that the line of a fault gives the action."""

    def __init__(
        self, state: State, environment: Environment, number: int, sources: Mapping[str, str] = LOCALS
    ) -> None:
        self.state, self.environment, self.number = state, environment, number
        self.strsize = max(environment.option("strsize"), 1)
        self.lines: list[tuple[int, str]] = []
        self.action = 0
        self.names: dict[str, object] = {}
        self.outlined: list[list[str]] = []
        self.shared: list[str] = []  # variables that outlined functions share with the clause
        self._temporaries = 0
        self.bound: dict[int, Code] = {}
        self.uses_scratch = False
        self._known: dict[int, str] = {}
        self._sources = sources  # the statement that assigns each local variable
        self._locals: set[str] = set()
        self._keep: list[object] = []

    # -- statements ---------------------------------------------------------------------------------------------------

    def begin_action(self, number: int) -> None:
        """What follows belongs to the action with this DTrace number."""
        self.action = number

    def next_action(self) -> None:
        """What follows belongs to the next action."""
        self.action += 1

    def use_scratch(self) -> None:
        """See `Generator`."""
        self.uses_scratch = True

    def emit(self, line: str) -> None:
        """Add a statement to the current action."""
        self.lines.append((self.action, line))

    def local(self, name: str) -> str:
        """See `Generator`."""
        if name not in self._locals:
            self._locals.add(name)
            if name == "this":
                self.local("cpu")
                self.names["frames"] = self.state.variables.frames
            self.names.setdefault("thread_of", self.environment.profile.thread)
            self.names.setdefault("now", self.environment.now)
            self.names.setdefault("wall_now", self.environment.wall)
            self.emit(self._sources[name])
        return name

    def reread_time(self) -> None:
        """Let the clause read the time again: chill() lets it pass."""
        if "time" in self._locals:
            self.emit(self._sources["time"])

    def temporary(self) -> str:
        """See `Generator`."""
        self._temporaries += 1
        return f"t{self._temporaries}"

    def share(self) -> str:
        """See `Generator`."""
        self.shared.append(f"b{len(self.shared)}")
        return self.shared[-1]

    def bind(self, hint: str, value: object) -> str:
        """See `Generator`."""
        found = self._known.get(id(value))
        if found is None:
            self._keep.append(value)  # otherwise its id could be reused for another object
            found = self._known[id(value)] = f"{_NOT_A_WORD.sub('_', hint)}_{len(self._known)}"
            self.names[found] = value
        return found

    def outline(self, lines: list[str]) -> Code:
        """See `Generator`."""
        self.outlined.append(lines)
        return Code(f"part{len(self.outlined)}()")

    # -- expressions --------------------------------------------------------------------------------------------------

    def value(self, node: Expression) -> Code:
        """See `Generator`."""
        return self._shallow(_VALUES[type(node)](self, node))

    def text(self, node: Expression) -> Code:
        """See `Generator`."""
        if is_string(node.type):
            return self.value(node)
        return self._shallow(_string_at(self, node, None))

    def present(self, node: Expression) -> Code:
        """See `Generator`."""
        code = self.text(node)
        if not code.is_nullable:
            return code
        name, check = self.temporary(), self.bind("present", present)
        return self._shallow(Code(f"(({name} := {code.text}) or {check}({name}))", depth=code.depth + 1))

    def test(self, node: Expression) -> Code:
        """See `Generator`."""
        match node:
            case program.Binary(operator=symbol) if symbol in COMPARISONS:
                return self._shallow(arithmetic.comparison(self, node))
            case program.Logical():
                return self._shallow(arithmetic.logical(self, node))
            case program.Unary(operator="!"):
                return self._shallow(arithmetic.negation(self, node))
            case _:
                return self.value(node)

    def recorded(self, node: Expression) -> Code:
        """A value as records and keys hold it. Only here is it truncated to the size of its type: variables and
        intermediate results have 64 bits. A struct or array is its bytes."""
        if is_string(node.type):
            return self.present(node)
        if is_reference(node.type):
            return lvalues.content(self, node)
        code, scalar = self.value(node), scalar_of(node.type)
        return code if scalar is None else fit(self, code, scalar)

    def _shallow(self, code: Code) -> Code:
        if code.depth <= DEEP:
            return code
        outlined = self.outline([f"return {code.text}"])
        return replace(code, text=outlined.text, depth=outlined.depth, constant=None)


def _integer(_generator: Generator, node: program.Integer) -> Code:
    return null() if is_string(node.type) else constant(word_of(node.type).wrapped(node.value))


def _linked(generator: Generator, node: program.Linked) -> Code:
    environment = generator.environment
    locate = generator.bind("locate", environment.locate_beside.get(node.module, environment.locate))
    return Code(f"{locate}({node.address}, firing.site)", 0, UNSIGNED.high)


def _literal(generator: Generator, node: program.Text) -> Code:
    return literal(node.value[: generator.strsize])


def _logical(generator: Generator, node: program.Logical) -> Code:
    return truth(arithmetic.logical(generator, node))


def _comma(generator: Generator, node: program.Comma) -> Code:
    waiting: list[Expression] = [node]  # a loop: chains may be longer than Python's stack, on both sides
    codes: list[Code] = []
    while waiting:
        part = waiting.pop()
        if isinstance(part, program.Comma):
            waiting += [part.right, part.left]
        else:
            codes.append(generator.value(part))
    depth = max(code.depth for code in codes) + 1
    return replace(codes[-1], text="(" + ", ".join(code.text for code in codes) + ")[-1]", depth=depth, constant=None)


def _conditional(generator: Generator, node: program.Conditional) -> Code:
    """`?:`. A long chain, a ? b : c ? d : ..., is outlined: one line per condition in place of nested parentheses."""
    choices: list[tuple[Code, Code]] = []
    rest: Expression = node
    while isinstance(rest, program.Conditional):
        choices.append((generator.test(rest.condition), _branch(generator, node, rest.then)))
        rest = rest.otherwise
    last = _branch(generator, node, rest)
    low = min(last.low, *(code.low for _, code in choices))
    high = max(last.high, *(code.high for _, code in choices))
    is_nullable = last.is_nullable or any(code.is_nullable for _, code in choices)
    if len(choices) > DEEP // 4:
        lines = [f"if {test.text}: return {code.text}" for test, code in choices]
        outlined = generator.outline([*lines, f"return {last.text}"])
        return Code(outlined.text, low, high, is_nullable=is_nullable)
    text, depth = last.text, last.depth
    for test, code in reversed(choices):
        text, depth = f"({code.text} if {test.text} else {text})", max(depth, test.depth, code.depth) + 1
    return Code(text, low, high, depth, is_nullable=is_nullable)


def _branch(generator: Generator, whole: program.Conditional, node: Expression) -> Code:
    if is_string(whole.type):
        return generator.text(node)
    return (
        fit(generator, generator.value(node), word_of(whole.type)) if scalar_of(whole.type) else generator.value(node)
    )


def _convert(generator: Generator, node: program.Convert) -> Code:
    if is_string(node.type):
        return generator.text(node.operand)
    scalar = scalar_of(node.type)
    if is_string(node.operand.type) and scalar is not None:
        text = _characters(generator, node.operand)
        generator.use_scratch()
        copy = generator.bind("copy_string", generator.state.scratch.copy)
        return fit(generator, Code(f"{copy}({text.text})", 0, UNSIGNED.high, text.depth + 1), scalar)
    code = generator.value(node.operand)
    if scalar is None:
        return code
    return fit(generator, code, word_of(node.type) if node.keeps_bits else scalar)


def _characters(generator: Generator, node: Expression) -> Code:
    """The text at the address of a string. A literal is in DIF's string table in full, even if it is longer than
    strsize."""
    return literal(node.value) if isinstance(node, program.Text) else generator.text(node)


def _string_of(generator: Generator, node: program.StringOf) -> Code:
    if is_string(node.operand.type):
        return generator.text(node.operand)
    return _string_at(generator, node.operand, node.limit)


def _string_at(generator: Generator, node: Expression, limit: int | None) -> Code:
    """The string at an address. Address 0 gives NULL, which is not a fault until it is read."""
    address = fit(generator, generator.value(node), UNSIGNED)
    if address.constant == 0:
        return null()
    match bare(node.type):
        case Array(length=int(length)) if limit is None:
            limit = length
        case _:
            pass
    return lvalues.string_at(generator, address, generator.strsize if limit is None else min(limit, generator.strsize))


def _bind(generator: Generator, node: program.Bind) -> Code:
    value = generator.value(node.value)
    if value.constant is not None:
        generator.bound[node.number] = value
        return generator.value(node.body)
    # A tuple evaluates in order: first the assignment, then the body, which is the result. The variable is shared,
    # since the body may be outlined.
    name = generator.share()
    generator.bound[node.number] = replace(value, text=name, depth=0)
    body = generator.value(node.body)
    depth = max(value.depth + 1, body.depth) + 1
    return replace(body, text=f"(({name} := {value.text}), {body.text})[1]", depth=depth, constant=None)


def _bound(generator: Generator, node: program.Bound) -> Code:
    return generator.bound[node.number]


_VALUES: Final[Mapping[type, Callable[[Generator, Any], Code]]] = {
    program.Integer: _integer,
    program.Text: _literal,
    program.Builtin: builtin,
    program.Linked: _linked,
    program.Read: lvalues.read,
    program.Load: lvalues.load,
    program.Unary: arithmetic.unary,
    program.Binary: arithmetic.binary,
    program.Logical: _logical,
    program.Conditional: _conditional,
    program.Comma: _comma,
    program.Convert: _convert,
    program.StringOf: _string_of,
    program.Assign: lvalues.assign,
    program.Update: lvalues.update,
    program.Call: call,
    program.Bind: _bind,
    program.Bound: _bound,
    program.StackKey: stack,
    program.SymbolKey: symbol,
}

"""Actions -> statements. What an action records goes into a local variable, and the record is made at the end of the
clause: a clause that a fault aborts records nothing, while its assignments stay (DTrace Guide, "dtrace Provider"). Each
expression has its own line, so that the line number of a fault gives DTrace's number of the action."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kinst.runtime.clauses.compile import lvalues
from kinst.runtime.clauses.compile.arithmetic import fit
from kinst.runtime.clauses.compile.calls import stack_trace
from kinst.runtime.clauses.compile.code import SIGNED, UNSIGNED, WORD, Code, Scalar
from kinst.runtime.clauses.compile.expressions import Expressions
from kinst.runtime.clauses.environment import Memory
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Expression

_STATUS: Final = Scalar(4, is_signed=True)


class Actions:
    """Generates the actions of one clause. `records` has the Python text of each value of the record so far."""

    def __init__(self, expressions: Expressions, record_size: int) -> None:
        self.expressions = expressions
        self.record_size = record_size
        self.records: list[str] = []
        self.speculation: str | None = None  # the variable with the number of the speculation that takes the record
        self._is_written = False

    def add(self, action: program.Action, number: int) -> None:
        """Add an action, with DTrace's number for it."""
        self.expressions.begin_action(number)
        _EMITTERS[type(action)](self, action)

    def record(self, code: Code) -> None:
        """Add a value to the record."""
        self.records.append(self.evaluated(code))

    def evaluated(self, code: Code) -> str:
        """The name of a variable that is assigned the value at this point of the clause; a constant is its own name."""
        if code.constant is not None or code.text == "None":
            return code.text
        name = self.expressions.temporary()
        self.expressions.emit(f"{name} = {code.text}")
        return name

    def write_record(self) -> None:
        """Append the record, after everything that may abort the clause, but before the first commit(), since the
        record may belong to the speculation that it commits. D permits no recording action after commit()."""
        if self._is_written or not self.record_size:
            return
        self._is_written = True
        expressions = self.expressions
        state = expressions.state
        values = "".join(text + ", " for text in self.records)
        cpu, probe = expressions.local("cpu"), expressions.local("probe")
        time = "time" if expressions.environment.records_time else "0"
        record = f"({cpu}, {probe}, {expressions.number}, {time}, ({values}))"
        if self.speculation is not None:
            append = expressions.bind("append_speculatively", state.speculations.append)
            expressions.emit(f"{append}({self.speculation}, {record})")
        else:
            expressions.emit(f"{expressions.bind('append', state.buffers.append)}({record})")

    def method(self, owner: object, name: str) -> str:
        """The name by which the clause calls a method."""
        return self.expressions.bind(name, getattr(owner, name))


_NOTHING: Final = Code("None")


def _evaluate(actions: Actions, action: program.Evaluate) -> None:
    """An expression as a statement; an assignment then needs no value."""
    expressions = actions.expressions
    match action.expression:
        case program.Assign() as node:
            expressions.emit(lvalues.assign_statement(expressions, node))
        case program.Update() as node:
            expressions.emit(lvalues.update_statement(expressions, node))
        case node:
            code = expressions.value(node)
            if code.constant is None:
                expressions.emit(code.text)


def _aggregate(actions: Actions, action: program.Aggregate) -> None:
    """An aggregation. To DTrace it is several actions, each with a number that a fault reports: the aggregation's id,
    each key, the increment, the function. The value is evaluated last, as its action comes last."""
    expressions = actions.expressions
    expressions.next_action()
    keys = _numbered(actions, action.keys)
    if keys:
        expressions.next_action()
    cpu = expressions.local("cpu")
    updater = expressions.bind("update", expressions.state.aggregations.updater(action.aggregation))
    increment = "1"
    if action.increment is not None:
        increment = actions.evaluated(expressions.value(action.increment))
        expressions.next_action()
    value = "1" if action.value is None else expressions.value(action.value).text
    expressions.emit(f"{updater}({cpu}, ({''.join(key + ', ' for key in keys)}), {value}, {increment})")


def _numbered(actions: Actions, nodes: tuple[Expression, ...]) -> list[str]:
    """Evaluate values of which each is one of DTrace's actions. Returns their names."""
    names = []
    for index, node in enumerate(nodes):
        if index:
            actions.expressions.next_action()
        names.append(actions.evaluated(actions.expressions.recorded(node)))
    return names


def _trace(actions: Actions, action: program.Trace | program.Print) -> None:
    actions.record(actions.expressions.recorded(action.value))


def _trace_memory(actions: Actions, action: program.TraceMemory) -> None:
    expressions = actions.expressions
    address = fit(expressions, expressions.value(action.address), UNSIGNED)
    read = expressions.bind("read", expressions.environment.memory.read)
    if action.dynamic is None:
        actions.record(Code(f"{read}({address.text}, {action.size})"))
        return
    size = fit(expressions, expressions.value(action.dynamic), UNSIGNED)
    # As in the kernel, all `size` bytes are copied, and may fault; the dynamic size only limits what is shown. 0 is
    # none.
    actions.record(Code(f"{read}({address.text}, {action.size})[:{size.text} or None]"))


def _print_memory(actions: Actions, action: program.PrintMemory) -> None:
    expressions = actions.expressions
    reference = fit(expressions, expressions.value(action.reference), UNSIGNED)
    reader = expressions.bind("read_reference", _reference_reader(expressions.environment.memory))
    actions.record(Code(f"{reader}({reference.text}, {action.size})"))


def _reference_reader(memory: Memory) -> Callable[[int, int], bytes]:
    """A function that reads memory through a memref(), which is an address and a size, a word each."""

    def read(reference: int, limit: int) -> bytes:
        return memory.read(memory.load(reference, 8), min(memory.load((reference + 8) % WORD, 8), limit))

    return read


def _tuple(actions: Actions, action: program.Printf | program.SetOption) -> None:
    names = _numbered(actions, action.arguments)
    actions.records.append(f"({''.join(text + ', ' for text in names)})")


def _no_value(actions: Actions, _action: program.Action) -> None:
    """An action that the consumer performs when it comes to the record: there is nothing to evaluate."""
    actions.record(_NOTHING)


def _stack(actions: Actions, action: program.StackTrace) -> None:
    actions.record(stack_trace(actions.expressions, action.frames, is_user=action.is_user))


def _symbol(actions: Actions, action: program.SymbolTrace) -> None:
    actions.record(actions.expressions.value(action.key))


def _exit(actions: Actions, action: program.Exit) -> None:
    expressions = actions.expressions
    status = actions.evaluated(fit(expressions, expressions.value(action.status), _STATUS))
    # The other clauses of this firing return at once. This one goes on: the kernel, too, runs an ECB to its end.
    expressions.emit("state.is_tracing = False")
    expressions.emit(f"{actions.method(expressions.environment, 'exit')}({status})")
    actions.records.append(status)


def _speculate(actions: Actions, action: program.Speculate) -> None:
    """speculate(): the rest of the clause is skipped if there is no space or no speculation (number 0)."""
    expressions = actions.expressions
    number = actions.evaluated(fit(expressions, expressions.value(action.number), SIGNED))
    reserve = actions.method(expressions.state.speculations, "reserve")
    cpu = expressions.local("cpu")
    expressions.emit(f"if not {reserve}({number}, {cpu}, {actions.record_size}): return")
    actions.speculation = number


def _finish(actions: Actions, action: program.Commit | program.Discard) -> None:
    expressions = actions.expressions
    number = fit(expressions, expressions.value(action.number), SIGNED)
    name = "discard"
    if isinstance(action, program.Commit):
        actions.write_record()
        name = "commit"
    finish = actions.method(expressions.state.speculations, name)
    cpu = expressions.local("cpu")
    expressions.emit(f"{finish}({number.text}, {cpu})")


def _change(actions: Actions, action: program.ChangeAggregation) -> None:
    expressions = actions.expressions
    actions.record(_NOTHING if action.argument is None else expressions.recorded(action.argument))


def _destructive(actions: Actions, action: program.Destructive) -> None:
    expressions = actions.expressions
    argument = "0" if action.argument is None else expressions.value(action.argument).text
    act = actions.method(expressions.environment, "destructive")
    expressions.emit(f"{act}(firing, {action.kind!r}, {argument})")
    if action.kind == "chill":
        expressions.reread_time()


def _snapshot(actions: Actions, action: program.Snapshot) -> None:
    expressions = actions.expressions
    file = actions.evaluated(expressions.recorded(action.file))
    expressions.emit(f"{expressions.bind('snapshot', expressions.environment.snapshot)}({file})")


_EMITTERS: Final[Mapping[type, Callable[[Actions, Any], None]]] = {
    program.Evaluate: _evaluate,
    program.Aggregate: _aggregate,
    program.Trace: _trace,
    program.TraceMemory: _trace_memory,
    program.Print: _trace,
    program.PrintMemory: _print_memory,
    program.Printf: _tuple,
    program.Printa: _no_value,
    program.StackTrace: _stack,
    program.SymbolTrace: _symbol,
    program.Exit: _exit,
    program.Speculate: _speculate,
    program.Commit: _finish,
    program.Discard: _finish,
    program.ChangeAggregation: _change,
    program.SetOption: _tuple,
    program.Truncate: _no_value,
    program.Destructive: _destructive,
    program.Snapshot: _snapshot,
}

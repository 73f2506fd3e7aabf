"""A checked clause -> a Python function that runs when its probe fires.

The function is generated once, as source text: constants are folded, names are bound, and a value is wrapped to 64 bits
only where it may have left that range. Nothing is interpreted at a hit. A clause with the predicate
/cpu == 0/ and the actions `self->t = timestamp; printf("%d", regs[0] / 2);` becomes

    def clause(firing):
     if not state.is_tracing: return
     if not reserve(firing.cpu, 24): return
     try:
      cpu = firing.cpu
      if not (cpu == 0): return
      time = now()
      thread = thread_of(firing)
      store_t_1(time, thread, cpu)
      t1 = (firing.frame.regs[0] // 2)
      probe = firing.enabling.probe
      append_2((cpu, probe, 0, 0, ((t1, ), )))
     except Fault as fault:
      abort(firing, fault)
"""

from collections.abc import Callable, Mapping

from kinst.runtime.clauses.compile.actions import Actions
from kinst.runtime.clauses.compile.expressions import LOCALS, Expressions
from kinst.runtime.clauses.environment import Environment
from kinst.runtime.clauses.state import State
from kinst.runtime.dlang.program import Clause
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing

Compiled = Callable[[Firing], None]
OnFault = Callable[[Firing, int, int, Fault], None]  # the numbers are those of the clause and of its action


def compile_clause(
    clause: Clause,
    number: int,
    state: State,
    environment: Environment,
    sources: Mapping[str, str] | None = None,
    on_fault: OnFault | None = None,
) -> Compiled:
    """The function of a clause. `number` is its index in the session's list, by which records and faults name it.
    `sources` replaces statements of `LOCALS`, which read facts about the hit, for a clause that does not run at the
    hit. `on_fault` is called instead of the environment's `fault`.

    Raises:
        DError: D_UNKNOWN if the clause nests too deeply, or if its structs and arrays are too large.
    """
    try:
        compilation = _Compilation(clause, number, state, environment, {**LOCALS, **(sources or {})})
        return compilation.function(on_fault or environment.fault)
    except (RecursionError, MemoryError) as error:  # Python's parser raises MemoryError at its own limits
        raise DError("D_UNKNOWN", "expression is nested too deep", clause.span) from error
    except Fault as fault:
        raise DError("D_UNKNOWN", "structs and arrays of the program are too large", clause.span) from fault


class _Compilation:
    """One clause while it is compiled."""

    def __init__(
        self, clause: Clause, number: int, state: State, environment: Environment, sources: Mapping[str, str]
    ) -> None:
        self._clause, self._number, self._state, self._environment = clause, number, state, environment
        self._expressions = Expressions(state, environment, number, sources)
        self._actions = Actions(self._expressions, clause.record_size)

    def function(self, on_fault: OnFault) -> Compiled:
        """Generate the text, compile it, bind its names."""
        self._body()
        expressions = self._expressions
        source, numbers = self._source()
        names = expressions.names
        names.update(state=self._state, Fault=Fault, abort=self._aborter(numbers, on_fault))
        names.update(reserve=self._state.buffers.reserve, reset=self._state.scratch.reset)
        exec(compile(source, f"<clause {self._number}>", "exec"), names)  # the text is generated here
        compiled: Compiled = names["clause"]  # type: ignore[assignment]
        return compiled

    # -- the body -----------------------------------------------------------------------------------------------------

    def _body(self) -> None:
        expressions, clause = self._expressions, self._clause
        if self._environment.records_time:
            expressions.local("time")  # before the predicate: a record has the time of the hit, not of its last action
        if clause.predicate is not None:
            test = expressions.test(clause.predicate)
            if not test.constant:  # /1/ needs no test
                expressions.emit(f"if not {test.text}: return")
        for action, number in zip(clause.actions, clause.action_numbers, strict=True):
            self._actions.add(action, number)
        self._actions.write_record()

    # -- the text -----------------------------------------------------------------------------------------------------

    def _source(self) -> tuple[str, list[int]]:
        """The text of the function, and for each of its lines the number of its action."""
        expressions = self._expressions
        lines = [(0, "def clause(firing):"), (0, " if not state.is_tracing: return")]
        # dtrace_probe() reserves the record before it evaluates the predicate: without space, nothing of the clause
        # runs, its assignments included.
        if self._clause.record_size:
            lines.append((0, f" if not reserve(firing.cpu, {self._clause.record_size}): return"))
        lines += [(0, line) for line in self._parts()]
        lines.append((0, " try:"))
        if expressions.uses_scratch:
            lines.append((0, "  reset()"))
        lines += [(action, "  " + line) for action, line in expressions.lines] or [(0, "  return")]
        lines += [(0, " except Fault as fault:"), (0, "  abort(firing, fault)")]
        return "\n".join(line for _, line in lines), [0, *(action for action, _ in lines)]

    def _parts(self) -> list[str]:
        """The lines of functions inside the clause, for expressions that would nest too deeply."""
        expressions = self._expressions
        if not expressions.outlined:
            return []
        lines = [f" {name} = None" for name in expressions.shared]
        shared = [f"  nonlocal {name}" for name in expressions.shared]
        for index, part in enumerate(expressions.outlined, 1):
            lines += [f" def part{index}():", *shared, *("  " + line for line in part)]
        return lines

    def _aborter(self, numbers: list[int], on_fault: OnFault) -> Callable[[Firing, Fault], None]:
        """A function that reports a fault. The line number in the traceback gives the action: a clause that does not
        fault pays nothing for it."""
        number = self._number

        def abort(firing: Firing, fault: Fault) -> None:
            traceback = fault.__traceback__
            assert traceback is not None
            action = numbers[traceback.tb_lineno]
            fault.__traceback__ = None  # it would keep its frames alive
            on_fault(firing, number, action, fault)

        return abort

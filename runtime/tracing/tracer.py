"""Compiled clauses and a machine -> a traced run: BEGIN, drains, ERROR, exit, END, and the output.

This is what dtrace(1) and the kernel's dtrace.c do together. A drain is dtrace_work(): a snapshot of the aggregations
(aggrate), then the records (switchrate), whose actions see that snapshot. Two things differ, since nothing runs while
we consume: hits that were recorded or counted are delivered first (`fold`, `settle`), and an action on aggregations
sees them as they are at that hit, not at the next drain.

Implements `kinst.runtime.clauses.environment.Environment`.
"""

import copy
import time
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from kinst.runtime.clauses.aggregations import AggregationStore, Contents
from kinst.runtime.clauses.alike_hits import AlikeHits, takes_together
from kinst.runtime.clauses.buffers import Buffers
from kinst.runtime.clauses.compile.clause import compile_clause
from kinst.runtime.clauses.compile.counting import compile_counting, reads_of
from kinst.runtime.clauses.compile.replaying import compile_replay, reads_of_replayed
from kinst.runtime.clauses.deliveries import ClauseDeliveries
from kinst.runtime.clauses.environment import (
    ErrorRecord,
    GuestProfile,
    Memory,
    Record,
    Stacks,
    Symbols,
    UserStacks,
    UserSymbols,
)
from kinst.runtime.clauses.hits_seen import HitsSeen
from kinst.runtime.clauses.speculations import Speculations
from kinst.runtime.clauses.state import State
from kinst.runtime.clauses.tasks_seen import TasksSeen
from kinst.runtime.consumer.messages import Drop
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.program import Aggregate, Clause, Program
from kinst.runtime.dlang.record_layout import WORD, printed_values
from kinst.runtime.hits.actions import Count
from kinst.runtime.hits.combining import ClauseAction, Combining, all_of
from kinst.runtime.hits.explained import delivery_text
from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.providers.dtrace import BEGIN, END, ERROR, TRACER_THREAD
from kinst.runtime.providers.provider import Action, Identifiers, Probe
from kinst.runtime.tracing.enablings import Enabled, Enablings
from kinst.runtime.tracing.hits import Hit, PythonAction, TypedValues, enclosed
from kinst.runtime.tracing.host.contract import blank_firing
from kinst.runtime.tracing.host.destructive import DestructiveActions, check_allowed
from kinst.runtime.tracing.host.ending import Ending
from kinst.runtime.tracing.host.listening import Listening
from kinst.runtime.tracing.host.schedule import Schedule
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.tracing.interventions import Permitted
from kinst.runtime.tracing.losses import Losses
from kinst.runtime.tracing.programs.matching import Matching
from kinst.runtime.tracing.programs.prompt_actions import prompt_actions
from kinst.runtime.tracing.repeated_errors import RepeatedErrors
from kinst.runtime.tracing.snapshots.by_program import ProgramSnapshots
from kinst.runtime.trap.delivery import Delivery, Way
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import KinstError

_LARGEST: Final = 1 << 36  # bytes of a buffer: with bufresize=manual, more is an error in place of a smaller buffer
_VIRTUAL_EPOCH: Final = 946_684_800 * 10**9  # 2000-01-01, at which the wall clock of a machine with virtual time starts


class Output(Protocol):
    """Where output goes. Classes in `kinst.runtime.consumer` implement it."""

    def consume(self, taken: Sequence[Record | ErrorRecord | bytes]) -> None:
        """Print records, errors and the guest's console, in their order."""
        ...

    def drops(self, drops: Iterable[Drop]) -> None:
        """Print what was lost."""
        ...

    def flush(self) -> None:
        """Flush what was printed so far."""
        ...

    def notices(self, notices: Iterable[str]) -> None:
        """Print what destructive actions did."""
        ...

    def finish(self, end: Mapping[str, Any] | None) -> None:
        """Print what comes at the end: aggregations, and in some formats how the run ended (`Ending.value`)."""
        ...


_INLINED: Final = Delivery(Way.DISPATCH, "its probes are inlined copies")


class Tracer:
    """One traced run."""

    def __init__(
        self,
        surroundings: Surroundings,
        options: Options,
        clock: ClockKind,
        warn: Callable[[str], None],
        *,
        objects: TypedValues | None = None,
        records_time: bool = False,
        records_tasks: bool = False,
        records_hits: bool = False,
    ) -> None:
        """Nothing is compiled yet. Options that programs set must already be set. `warn` is called at once with
        warnings that cannot wait for the output. `objects` gives the typed values that Python's actions see."""
        self._objects = objects
        self._host = surroundings.host
        self._providers = surroundings.providers
        self._output: Output | None = None  # None until BEGIN fires
        self._arm, self._fold, self._admit = surroundings.arm, surroundings.fold, surroundings.admit
        self._replays = None if surroundings.timestamp is not None else surroundings.replays
        self._dtrace = surroundings.dtrace
        self.memory: Memory = surroundings.memory
        self.stacks: Stacks = surroundings.stacks
        self.user_stacks: UserStacks = surroundings.user_stacks
        self.symbols: Symbols = surroundings.symbols
        self.user_symbols: UserSymbols = surroundings.user_symbols
        self.locate, self.locate_beside = surroundings.locate, surroundings.locate_beside
        self.profile: GuestProfile = surroundings.profile
        self.target: Callable[[Firing], int] = surroundings.target
        self.arch: ArchFacts = surroundings.host.arch
        self.now: Callable[[], int] = surroundings.timestamp or surroundings.host.now
        self.wall: Callable[[], int] = time.time_ns if clock is ClockKind.HOST else self._virtual_wall
        self.probe: Callable[[int], Probe | None] = surroundings.providers.probe
        self.arguments = surroundings.providers.arguments
        self.records_time = records_time
        self.tasks = TasksSeen(self.profile, self.now) if records_tasks else None
        self.hits = HitsSeen(self.now(), self.now, self.tasks) if records_hits else None
        is_each_noted = self.tasks is not None or self.hits is not None
        self._deliveries = ClauseDeliveries(options, self._replays, is_each_noted=is_each_noted)
        self._became: list[Delivery] = []  # of each clause, for -x explain
        self._on_snapshot: list[Callable[[int, Sequence[Contents]], None]] = []
        self._interventions = Permitted(
            self.arch, self.probe, surroundings.intervene, is_permitted=options.is_on("destructive")
        )
        self.options = options
        self.option: Callable[[str], int] = options.number
        self.clauses: list[Clause] = []
        self.exit_status: int | None = None
        self._warned: set[str] = set()  # warnings about variables that are not known
        self._is_in_error = False  # whether ERROR's clauses are running: their own faults do not fire ERROR again
        self._repeated = RepeatedErrors(self.clauses)
        self._warn, self._errors_in_error = warn, 0  # faults of ERROR's own clauses
        self._destructive = DestructiveActions(
            self._host, self.probe, self.symbols, surroundings.stop, surroundings.debug
        )
        self._snapshots = ProgramSnapshots(surroundings.snapshots)
        self.snapshot: Callable[[bytes], None] = self._snapshots.write
        size = options.number("bufsize") & -WORD if options.is_set("bufsize") else None  # whole words, as the kernel's
        self.buffers = Buffers(size, options.text("bufpolicy"), self._full)
        self.speculations = Speculations(options.number("nspec"), options.number("specsize"), self.buffers)
        size = options.number("aggsize") if options.is_set("aggsize") else None
        self.store = AggregationStore(size, options.number("strsize"))
        self.totals = Totals(options)
        surroundings.scratch.bound(options.number("scratchsize"))
        self.state = State(self, self.buffers, self.speculations, self.store, surroundings.scratch)
        self._alike = AlikeHits(self.store, has_records=surroundings.timestamp is not None)
        # Clauses that replay recorded hits share everything with the others but `is_tracing`. A clause with exit()
        # stops `state` at once; the hits that were recorded before it are replayed then, and only after them this
        # stops.
        self._later = copy.copy(self.state)
        self.listening = Listening(self.state, self._later, surroundings.fold)
        self._prompt: tuple[type, ...] = ()  # actions after which the consumer runs at once
        self._enablings = Enablings([], Combining(None, None, None, None))
        self._schedule = Schedule(options)
        self._lost = Losses(
            self.buffers, self.store, self.totals, self.speculations, self.state.variables, surroundings.take_drops
        )

    def _virtual_wall(self) -> int:
        return _VIRTUAL_EPOCH + self.now()

    # -- before the run -----------------------------------------------------------------------------------------------

    def enable(
        self, programs: Sequence[Program], matching: Matching, actions: Sequence[PythonAction] = ()
    ) -> list[int]:
        """Compile all clauses and enable their probes, and those of Python's actions, which run after the clauses of
        the same probe. Returns how many enablings each program and each action has.

        Raises:
            KinstError: destructive actions without -w, or buffers that are impossible.
        """
        check_allowed(programs, self.options)
        self._snapshots.check(programs)
        self.listening.know(name for program in programs for name in program.destructive)
        enabled: list[Enabled] = []
        counts = []
        self._prompt = prompt_actions([clause for program in programs for clause in program.clauses])
        for program in programs:
            before = len(enabled)
            enabled += [self._enabled(clause, matching) for clause in program.clauses]
            counts.append(sum(len(one.probes) for one in enabled[before:]))
        called = [self._called(action, matching) for action in actions]
        counts += [len(one.probes) for one in called]
        if self.state.variables.has_threads:  # known only now: compiling a clause makes its variables
            self.profile.begin(self._forget)
        counted = None if self.hits is None else self.hits.count
        clauses = [*enabled, *called]
        has_replays = any(one.clause.delivery.way is Way.REPLAY for one in clauses)
        pairs = ((clause, one.probes) for clause, one in zip(self.clauses, enabled, strict=True))
        combining = Combining(
            *(self._beginning(), self._act, counted, self._replays if has_replays else None),
            takes_together=not called and takes_together(pairs, self._providers),
        )
        self._enablings = Enablings(clauses, combining)
        # dtrace_state_go() checks the buffers after the ECBs are made, and before any probe can fire.
        self._fit_buffers([clause for clause, one in zip(self.clauses, enabled, strict=True) if END in one.probes])
        self._enablings.enable(self._providers)
        self._providers.on_create(self._enable_new)
        return counts

    def _enabled(self, clause: Clause, matching: Matching) -> Enabled:
        """Compile the next clause. Its number is its index in `clauses`, to which it is added last."""
        _, probes = matching.probes(clause.description)
        delivery = self._deliveries.of(clause)
        self._admit(clause, probes, delivery)
        run = compile_clause(clause, len(self.clauses), self.state, self)
        wrapped = matching.wrapped(clause.description, run)
        self._interventions.of_clause(clause, probes, is_inlined=wrapped is not run)
        # In an inlined copy the wrapper reads arguments by DWARF and tests conditional exits: no recorder can do that.
        action = self._action(clause, wrapped, delivery if wrapped is run else _INLINED)
        if wrapped is run:
            action = replace(action, alike=self._alike.of(clause, len(self.clauses), self.state, self))
        self._became.append(action.delivery)
        self.buffers.weigh(len(self.clauses), printed_values(clause.actions, self.options.number("strsize")))
        self.clauses.append(clause)
        return Enabled(action, probes, matching.pattern(clause.description))

    def _action(self, clause: Clause, run: Action, delivery: Delivery) -> ClauseAction:
        """What a hit does for the next clause, in each of the ways in which it may be delivered."""
        number = len(self.clauses)
        match delivery.way:
            case Way.DISPATCH:
                is_prompt = any(isinstance(action, self._prompt) for action in clause.actions)
                return ClauseAction(run, delivery, is_prompt)
            case Way.REPLAY:
                assert self._replays is not None, "without them, the clause is dispatched"
                replay = compile_replay(clause, number, self._later, self, self._replays.time_base)
                return ClauseAction(run, delivery, reads=reads_of_replayed(clause), replay=replay)
            case _:
                return ClauseAction(run, delivery, reads=reads_of(clause), count=self._counter(clause, number))

    def _forget(self, thread: int) -> None:
        """Free the variables of a thread that has ended."""
        if self._replays is not None:
            self._replays.settle()  # its recorded hits still assign them, and its key may be reused by the next thread
        self.state.variables.forget(thread)

    def _beginning(self) -> Callable[[Firing], None] | None:
        """What runs before the clauses of each firing; None: nothing."""
        begin, parts = self.state.begin, list[Callable[[Firing], None]]()
        if self.state.remembers_firings:
            parts.append(lambda _firing: begin())
        if self.tasks is not None:
            parts.append(self.tasks.note)
        if self.hits is not None:
            parts.append(self.hits.note)
        return all_of(parts) if parts else None

    def explained(self) -> list[str]:
        """How the hits of each clause may be delivered: a line each."""
        pairs = zip(self.clauses, self._became, strict=True)
        return [f"{clause.description}: {delivery_text(delivery)}" for clause, delivery in pairs]

    def _counter(self, clause: Clause, number: int) -> Count:
        """What several equal hits of a clause do at once."""
        count = compile_counting(clause, number, self.state, self, TRACER_THREAD)

        def while_tracing(enabling: Enabling, cpu: int, hits: int, regs: MutableSequence[int]) -> None:
            if self.listening.counts:
                count(enabling, cpu, hits, regs)

        return while_tracing

    def _called(self, action: PythonAction, matching: Matching) -> Enabled:
        description = action.description
        matching.match(description)  # raises DError, with the reason, if it matches nothing
        _, probes = matching.probes(description)
        run = enclosed(Hit(self, self._objects), action.call, lambda: self.state.is_tracing)
        wrapped = matching.wrapped(description, run)
        self._interventions.of_action(action.interventions, description, probes, is_inlined=wrapped is not run)
        return Enabled(ClauseAction(wrapped), probes, matching.pattern(description))

    def _fit_buffers(self, ending: Sequence[Clause]) -> None:
        """Check the buffers as dtrace_state_go() does. `ending` are END's clauses: with bufpolicy=fill they must find
        space when a full buffer has ended the run.

        Raises:
            KinstError: the buffers are too large or too small.
        """
        options, buffers = self.options, self.buffers
        sizes = [options.number(name) for name in ("bufsize", "aggsize", "specsize", "dynvarsize")]
        if options.text("bufresize") == "manual" and max(sizes) > _LARGEST:
            raise KinstError("could not enable tracing: Cannot allocate memory")
        # Only if a clause aggregates does the kernel enlarge a principal buffer that is smaller than what a clause
        # needs (dts_needed); otherwise such a clause drops every record.
        if any(isinstance(action, Aggregate) for clause in self.clauses for action in clause.actions):
            buffers.grow(max(clause.record_size for clause in self.clauses))
        if buffers.size < WORD:
            raise KinstError("could not enable tracing: Cannot allocate memory")
        if options.text("bufpolicy") == "fill":
            buffers.hold_back(sum(clause.record_size + WORD for clause in ending if clause.record_size))
            if buffers.held_back > buffers.size:
                raise KinstError("could not enable tracing: END enablings exceed size of principal buffer")

    def _enable_new(self, identifiers: Identifiers) -> None:
        """Enable probes that a provider created by itself, if the program describes them."""
        is_any = False
        for identifier in identifiers.tolist():
            probe = self._providers.probe(identifier)
            is_any |= probe is not None and self._enablings.enable_new(probe, self._providers)
        if is_any:
            self._arm()

    # -- Environment --------------------------------------------------------------------------------------------------

    def exit(self, status: int) -> None:
        """exit(status): tracing is over except for END."""
        self.listening.end()
        if self.hits is not None:
            self.hits.stop()
        self.exit_status = status
        self._host.finish(End.EXIT)

    def uses_profile(self, name: str) -> None:
        """See `Environment`."""
        why = self.profile.why_not(name)
        if why and why not in self._warned:
            self._warned.add(why)
            self._warn(why)

    @property
    def enabled(self) -> list[int]:
        """The identifiers of the probes that are enabled, ascending."""
        return self._enablings.identifiers

    def epid(self, clause: int, probe: int) -> int:
        """See `Environment`."""
        return self._enablings.epid(clause, probe)

    def fault(self, firing: Firing, clause: int, action: int, fault: Fault) -> None:
        """See `Environment`."""
        probe = firing.enabling.probe
        if self._is_in_error:  # a fault in ERROR's clause is counted (DTRACEDROP_DBLERROR) and not reported
            self._errors_in_error += 1
            return
        if self._repeated.noted(probe, clause, action, fault) and not self.options.is_on("noerror"):
            self._warn(self._repeated.line(self.probe(probe), clause, action, fault))
        epid = self.epid(clause, probe)
        self.buffers.append_error(ErrorRecord(firing.cpu, probe, epid, action, fault))
        # ERROR's arg1 to arg5 (DTrace Guide, "dtrace Provider"). arg3 is the DIF offset: compiled clauses have none.
        arguments = (0, epid, action, -1, int(fault.kind), fault.value)
        own = blank_firing(firing.frame, firing.cpu, firing.thread, site=firing.site)
        self._is_in_error = True
        try:
            self._dtrace.fire(ERROR, own, lambda index: arguments[index] if index < len(arguments) else 0)
        finally:
            self._is_in_error = False

    def destructive(self, firing: Firing, kind: str, argument: int) -> None:
        """See `Environment`."""
        self._destructive.perform(firing, kind, argument)

    def console(self, data: bytes) -> None:
        """Add what the guest printed to the buffers, in order with the records."""
        self.buffers.append_console(data)
        if self._schedule.is_much_printed(len(data)) and self._output is not None and self.due is not None:
            self._switch(self._output, self._host.now())

    def live_console(self, data: bytes) -> None:
        """As `console`, on a terminal at which the user types: an echo must not wait for the next switchrate."""
        self._schedule.echo(self._host.now())
        self.console(data)

    def on_snapshot(self, look: Callable[[int, Sequence[Contents]], None]) -> None:
        """Call `look` with the time (ns) and what was added since the last snapshot, at each one."""
        self._on_snapshot.append(look)

    # -- the run ------------------------------------------------------------------------------------------------------

    def begin(self, output: Output) -> None:
        """Fire BEGIN. From now on, what is due is drained into `output`."""
        self._output = output
        self._schedule.begin(self._host.now())
        self._dtrace.fire(BEGIN, self._host.firing(0, TRACER_THREAD))

    def finish(self, output: Output, ending: Ending) -> None:
        """Fire END, and print what is left."""
        # dtrace notices exit() when it next checks the status and fires END then: the time that END sees is a multiple
        # of statusrate after the start. It matters only to a program that sets the option.
        if self.exit_status is not None:
            self._host.spend(self._schedule.until_status(self._host.now()))
        self.state.go_on()
        self.buffers.end()
        self._dtrace.fire(END, self._host.firing(0, TRACER_THREAD))
        self.state.stop()
        self._drain(output, is_last=True)
        output.finish(ending.value())
        output.flush()

    @property
    def due(self) -> int | None:
        """When something is to be consumed next, in ns; None after exit()."""
        return self._schedule.next if self.state.is_tracing else None

    def after_turn(self, output: Output) -> None:
        """Between two turns of a CPU, consume what is due. After exit() nothing is due until END has fired: actions
        that are still in the buffers, such as printa(), must see what END's clauses add."""
        now, due = self._host.now(), self.due
        if due is None or now < due:
            return
        if now >= self._schedule.snapshot:
            self._snapshot(now, is_read=bool(self._on_snapshot))
        if now >= self._schedule.drain:
            self._switch(output, now)

    def _switch(self, output: Output, now: int) -> None:
        self._schedule.drained(now)
        self._consume_due(output, now)
        if self.buffers.is_full:
            self._host.finish(End.EXIT)

    def _consume_due(self, output: Output, now: int) -> None:
        """Consume everything, except that bufpolicy fill and ring keep records until tracing ends."""
        if self.options.text("bufpolicy") == "switch":
            self._consume(output, now)
            return
        output.consume(self.buffers.take_console())
        self._print_notices(output)
        output.flush()

    def read(self, output: Output) -> None:
        """Consume what there is so far, whether it is due or not."""
        now = self._host.now()
        self._snapshot(now)
        self._consume_due(output, now)

    def _full(self) -> None:
        """A buffer without a size asks for a drain."""
        if self._output is not None:
            self._drain(self._output)

    def _act(self) -> None:
        """Consume at once after a clause that prints or changes aggregations: it means their content now, and not at
        the next drain. After exit(), and in END, the last drain does it, when all of END's clauses have run."""
        if self.state.is_tracing and not self.buffers.is_ending and self.options.text("bufpolicy") == "switch":
            self._full()

    def _drain(self, output: Output, *, is_last: bool = False) -> None:
        """Consume the buffers. The actions in them see the aggregations as of now, even if aggrate is longer."""
        now = self._host.now()
        self._snapshot(now)
        self._consume(output, now, is_last=is_last)

    def _snapshot(self, now: int, *, is_read: bool = True) -> None:
        """Move what the CPUs aggregated until `now` (ns) into the totals that the output reads. What the image itself
        counts can wait in its counters until somebody reads them."""
        self._schedule.taken(now)
        if is_read:
            self._fold()
        added = self.store.take()
        self.totals.absorb(added)
        if self.hits is not None:
            self.hits.spread_counted()
        for look in self._on_snapshot:
            look(now, added)

    def _consume(self, output: Output, now: int, *, is_last: bool = False) -> None:
        if self._replays is not None:
            self._replays.settle()  # replayed clauses may lose dynamic variables, which are reported below
        self._schedule.note_rates()
        output.consume(self.buffers.take())  # which may perform setopt()
        self._schedule.keep_rates()
        if self._schedule.is_status_due(now) or is_last:
            output.drops(self._lost.take(self._errors_in_error))
        self._print_notices(output)
        if not is_last:
            output.flush()

    def _print_notices(self, output: Output) -> None:
        output.notices(self._destructive.take_notices())

"""A machine -> a snapshot of it in memory, and back: for going back, and for calls that each begin with the same state.

A snapshot is of the guest: memory, CPUs, devices, time. What a tracer knows (records, aggregations, variables, which
probes are enabled) goes on as it is. The machine may continue after `take` and be restored any number of times. It does
the same then, to the last byte, as long as its clock counts instructions and nobody types anything else.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kinst.runtime.machine.clock import NANOSECONDS_PER_INSTRUCTION
from kinst.runtime.machine.configuration import ClockKind
from kinst.runtime.machine.memory import Base
from kinst.runtime.machine.snapshots.devices import graph_of, restore, state_of
from kinst.runtime.machine.snapshots.ram import base_of, parts_of
from kinst.runtime.machine.snapshots.state import CpuState, MachineState
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.machine.cpu import VirtualCpu
    from kinst.runtime.machine.snapshots.object_graph import ObjectGraph
    from kinst.runtime.machine.system import System


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A machine at one moment. `pages`: those of RAM that differ from the base, by number."""

    state: MachineState
    base: Base
    pages: Mapping[int, bytes]

    @property
    def time(self) -> int:
        """The machine's time, in ns."""
        return self.state.time


class Snapshots:
    """Takes snapshots of one machine, which has begun to run. The first copies all memory, others what has changed."""

    def __init__(self, system: "System") -> None:
        """Nothing is copied yet. Raises MachineError: a device has no snapshots."""
        self._system = system
        self._graph: ObjectGraph = graph_of(system)

    def take(self, site: int | None = None) -> Snapshot:
        """The machine as it is now: between two turns; or, if a probe fires at `site`, before its instruction.

        Raises:
            MachineError: something cannot be kept at the moment.
        """
        state = take_state(self._system, self._graph, site)
        memory = self._system.memory
        if memory.base is None:
            base = base_of(parts_of(memory))
            memory.keep(base)
            return Snapshot(state, base, {})
        return Snapshot(state, memory.base, memory.base.changed())

    def restore(self, snapshot: Snapshot) -> None:
        """Between two runs, return to a snapshot of this machine."""
        check_memory(self._system)
        touched = snapshot.base.touched()
        snapshot.base.restore(snapshot.pages)
        restore_state(self._system, self._graph, snapshot.state)
        if not self._system.memory.code_pages.isdisjoint(touched):
            self._system.memory.code_changed()


def take_state(system: "System", graph: "ObjectGraph", site: int | None) -> MachineState:
    """All but memory; see `Snapshots.take`."""
    if system.engine.one.is_next:
        raise MachineError("the CPU executes one instruction for a watchpoint: take the snapshot an instruction later")
    check_memory(system)
    # A machine that continues from here has an empty TLB. Without this it could set accessed bits in the guest's tables
    # that this one does not set, since it has the translations.
    system.space.forget()
    cpu, turn = system.position
    return MachineState(
        time=_time(system, site),
        current=cpu.number,
        turn=turn,
        cpus=tuple(_cpu_state(system, cpu, site) for cpu in system.cpus),
        places=state_of(graph),
        tables=system.space.started,
        exit_code=system.exit_code,
    )


def cpu_problems(state: MachineState, system: "System", new: Sequence[bytes]) -> Iterator[tuple[int, str]]:
    """The CPUs with a state that no guest can have brought about, and what that is. `new`: as the board starts them."""
    for number, (cpu, content) in enumerate(zip(state.cpus, new, strict=True)):
        problem = system.engine.states.problem(cpu.content, content)
        if problem is not None:
            yield number, problem


def check_memory(system: "System") -> None:
    """Raise MachineError if the guest has RAM that the board does not say: another machine has none there."""
    for one in system.found_memory.found[:1]:
        raise MachineError(
            f"the guest uses {one.start:#x} as memory, which no board names, and that has no snapshots: add a [memory] "
            "there to a board file (--machine)"
        )


def _time(system: "System", site: int | None) -> int:
    """The time before the instruction at `site`: its breakpoint was counted as an instruction, and taken for it."""
    is_counted = site is not None and system.clock_kind is ClockKind.ICOUNT
    return system.clock.now() - (NANOSECONDS_PER_INSTRUCTION if is_counted else 0)


def _cpu_state(system: "System", cpu: "VirtualCpu", site: int | None) -> CpuState:
    states, name = system.engine.states, system.arch.registers[system.arch.pc]
    if cpu is system.current:
        context = states.save()
        pc = system.trap.original(system.engine.pc()) if site is None else site
    else:
        context, pc = cpu.context, system.trap.original(cpu.registers.get(name))
    registers = states.registers_of(context)
    before = registers.get(name)
    registers.set(name, pc)
    try:
        return CpuState(states.content(context), cpu.lines, cpu.is_on, cpu.is_waiting, cpu.was_started)
    finally:
        if cpu is system.current:
            states.forget(context)
        else:
            registers.set(name, before)


def restore_state(system: "System", graph: "ObjectGraph", state: MachineState) -> None:
    """Between two runs, give a machine what `take_state` gave, of this one or of another that is made alike. Its memory
    is restored already. Raises MachineError: it is made otherwise."""
    restore(graph, state.places)
    states = system.engine.states
    for cpu, saved in zip(system.cpus, state.cpus, strict=True):
        states.put(cpu.context, saved.content)
        power = saved.is_on, saved.is_waiting, saved.was_started
        cpu.restore(states.registers_of(cpu.context), saved.lines, power)
    system.clock.set(state.time)
    system.continue_at((system.cpus[state.current], state.turn), state.exit_code)
    system.space.continue_from(state.tables)

"""The running machine: CPUs take turns in the engine, devices and the clock act, and events are delivered.

Implements `kinst.runtime.machine.machine.Machine`. It is one loop: choose a CPU, deliver its interrupt, run it until
its turn ends, a deadline comes or an event stops it, and handle that.
"""

import time
from collections.abc import Callable
from typing import Final, assert_never

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.reports import Stop
from kinst.runtime.hits.counted import CountedSites
from kinst.runtime.machine.address_space import AddressSpace
from kinst.runtime.machine.assumed_registers import AssumedRegisters
from kinst.runtime.machine.board import BoardFactory
from kinst.runtime.machine.bus import Bus, PortBus, Window
from kinst.runtime.machine.clock import LONGEST_SLEEP, new_clock
from kinst.runtime.machine.configuration import Configuration, End
from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.device import Device, Timed
from kinst.runtime.machine.events.delivery import EventDelivery
from kinst.runtime.machine.events.instruction_hooks import code_watch, hook_instructions
from kinst.runtime.machine.events.progress import Progress
from kinst.runtime.machine.exception_model import Event, Source
from kinst.runtime.machine.hooks import NO_HOOKS, Interlude, InterruptWatcher, MachineHooks
from kinst.runtime.machine.host_alarm import host_alarm
from kinst.runtime.machine.loading.placed_files import PlacedFiles
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.machine.physical.frames import (
    OPEN_BUS,
    OPEN_BUS_CODE,
    OPEN_BUS_SIZE,
    PAGE,
    UNMODELLED,
    UNMODELLED_PAGES,
)
from kinst.runtime.machine.physical.unmodelled import Unmodelled
from kinst.runtime.machine.serial_line import SerialLine
from kinst.runtime.machine.timed import TimedDevices
from kinst.runtime.machine.unclaimed import unclaimed_around
from kinst.runtime.machine.watching.accesses import DeviceAccesses
from kinst.runtime.machine.watching.found_memory import FoundMemory
from kinst.runtime.paging.registry import new_walker
from kinst.runtime.paging.walker import Access, PageFault
from kinst.runtime.trap.trap import Port, TrapPath
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import GuestError, MachineError, NothingLeftError, UsageError
from kinst.targets.machines.machine import MachineFacts

_SLICE: Final = 5_000_000  # ns of a run if nothing else limits it
_TURN: Final = 1_000_000  # ns of a CPU's turn if there are several CPUs
_LONGEST: Final = 15  # bytes of an instruction

Turn = tuple[int, bool]  # when a CPU's turn ends (ns), and whether its interrupt is pending and masked
Position = tuple[VirtualCpu, Turn | None]


class System:
    """A machine made from its facts and its board; boards and models use it as `machine.Machine`."""

    def __init__(
        self, facts: MachineFacts, board: BoardFactory, configuration: Configuration, *, counts_hits: bool = True
    ) -> None:
        """Switch on an empty machine. `counts_hits`: the engine may handle hits without Python.

        Raises:
            UsageError, MachineError: the configuration does not fit it.
        """
        if not 1 <= configuration.cpus <= facts.maximum_cpus:
            raise UsageError(f"{facts.name}: has 1 to {facts.maximum_cpus} CPUs, not {configuration.cpus}")
        self.facts = facts
        self.arch = arch_by_name(facts.arch)
        self.engine = QilingMachine(self.arch, lambda: self.finish(End.STOPPED))
        self.command_line = configuration.command_line
        self.initrd, self.kaslr_seed = configuration.initrd, configuration.kaslr_seed
        self.device_tree = configuration.device_tree
        self.files, self.disks = PlacedFiles(configuration.files, self.arch), configuration.disks
        self.rng_seed, self.has_virtio_console = configuration.rng_seed, configuration.has_virtio_console
        self.ram_size = facts.ram_size if configuration.memory is None else configuration.memory
        self.memory = PhysicalMemory(self.engine)
        self.memory.add_ram(facts.ram_base, self.ram_size)
        for address, size in facts.other_memory:
            self.memory.add_ram(address, size)
        for alias in facts.aliases:
            self.memory.add_alias(alias.address, alias.size, alias.target)
        self.unmodelled = Unmodelled(facts, self.engine.pc, self.yield_cpu)
        known = self.unmodelled if self.unmodelled.is_used else None
        self.assumed = AssumedRegisters()
        self._bus, self.ports, self.open_bus = Bus(self._written, known), PortBus(self._written), Bus()
        self.space = AddressSpace(
            self.engine, self.memory, self._bus, new_walker(self.arch), self._nothing_there, code_watch(self), known
        )
        if known is not None:
            self.engine.map_window(UNMODELLED, UNMODELLED_PAGES * PAGE, Window(self._bus, UNMODELLED))
        self.accesses = DeviceAccesses((self._bus, self.open_bus), self.ports, self.space, self.unmodelled.real)
        self.clock_kind = configuration.clock
        self.clock = new_clock(configuration, self.engine.stop, self.engine.count_instructions)
        self._turn_ends = self.exit_code = 0
        self.timed, self._observers = TimedDevices(), TimedDevices()
        self._timed_by_identity: dict[int, Timed] = {}  # devices are not hashable
        self.is_running = self._has_yielded = self.has_run = False
        self._is_delayed: bool | None = None  # whether the CPU's interrupt is pending and masked; None: between turns
        self._continues: Position | None = None  # what the next turn begins with
        self._end: End | None = None
        self._wall_limit: int | None = None
        self._hooks = NO_HOOKS  # of the present run
        self._originals: list[Callable[[int, bytes], bytes]] = []
        self.found_memory = FoundMemory(self, lambda at: unclaimed_around(at, facts, self.memory))
        self._interludes: list[Interlude] = [] if known is None else [self.found_memory]
        self._interrupt_watchers: list[InterruptWatcher] = []
        self.serial_line = SerialLine()
        self.kept: dict[str, object] = {}  # what has state() and restore(state) besides devices, for snapshots
        self.cpus = [self._make_cpu(number) for number in range(configuration.cpus)]
        self.current = self.cpus[0]
        self.current.load_into(self.engine.live)
        self.current.power_on()
        # In this order: a board uses CPUs, memory and clock, the trap path functions of `events`.
        self.board = board(self)
        self.exceptions = self.board.exceptions
        self.progress = Progress(self.engine.live.get, self.arch.registers, self.arch.stack_pointer)
        self.events = EventDelivery(self, self.progress)
        self.trap = self._make_trap_path(counts_hits=counts_hits)
        self.engine.map_window(OPEN_BUS, OPEN_BUS_SIZE, Window(self.open_bus, OPEN_BUS))
        self.memory.add_ram(OPEN_BUS_CODE, PAGE)
        self.memory.write(OPEN_BUS_CODE, b"\xff" * PAGE)  # reads of an open bus give ones: so do fetches
        hook_instructions(self)
        if self.exceptions.interrupt_mask is not None:
            self.engine.watch_interrupt_mask(*self.exceptions.interrupt_mask)

    def _nothing_there(self, address: int, access: Access) -> PageFault | None:
        return self.exceptions.nothing_there(self.current, address, access)

    # -- construction -------------------------------------------------------------------------------------------------

    def _make_cpu(self, number: int) -> VirtualCpu:
        context = self.engine.states.save()
        return VirtualCpu(number, self, context, self.engine.states.registers_of(context))

    def _make_trap_path(self, *, counts_hits: bool) -> TrapPath:
        frame = TrapFrame(self.engine.frame.regs, self.space.load, self.space.store, self._set_vector)
        port = Port(
            frame=frame,
            read=self.engine.frame.read,
            writer=self.engine.frame.writer,
            fail=self.engine.fail,
            unclaimed=self.events.unclaimed,
            take_back=None if self.engine.counter is None else self.engine.counter.take_back,
            fault=self.events.page_fault,
        )
        return TrapPath(self.arch, port, lambda trap: self._site_counter(trap, counts_hits=counts_hits))

    def _site_counter(self, trap: TrapPath, *, counts_hits: bool) -> CountedSites | None:
        """Connect the engine's breakpoints with the trap path. Returns what handles hits in its place; None where the
        engine cannot."""
        counters = self.engine.on_interrupt(trap.handler(), trap.failed, self.clock.word)
        if counters is None or not counts_hits:
            return None
        return CountedSites(counters, self.arch, lambda: trap.trampolines)

    def _set_vector(self, number: int, value: int) -> None:
        self.engine.live.set(f"q{number}", value)

    # -- what boards and devices use ----------------------------------------------------------------------------------

    def attach(self, device: Device, address: int) -> None:
        """Put a device's window at a physical address."""
        self._bus.attach(device, address)
        first, last = address // PAGE, (address + device.size - 1) // PAGE
        # The engine maps a page once. Its window asks the bus, which may have several devices there.
        fresh = [page for page in range(first, last + 1) if page not in self.space.device_pages]
        if fresh:
            start, size = fresh[0] * PAGE, (fresh[-1] - fresh[0] + 1) * PAGE
            self.engine.map_window(start, size, Window(self._bus, start))
            self.space.device_pages.update(fresh)

    def is_device(self, address: int) -> bool:
        """Whether a device answers at a physical address."""
        return self._bus.answers(address, 1)

    def attach_ports(self, device: Device, port: int, *, is_whole: bool = False) -> None:
        """Put a device's window at an I/O port; with `is_whole` for accesses to all of its ports at once."""
        if not self.ports.is_used:
            self.engine.on_ports(self.ports)
        (self.ports.attach_whole if is_whole else self.ports.attach)(device, port)

    def attach_timed(self, timed: Timed) -> None:
        """Call `timed.advance` at its deadlines, at which turns end."""
        self.timed.attach(timed)
        self._timed_by_identity[id(timed)] = timed

    def attach_observer(self, timed: Timed) -> None:
        """Call `timed.advance` at its deadlines, which the guest must not notice: turns continue after them."""
        self._observers.attach(timed)

    def attach_interlude(self, interlude: Interlude) -> None:
        """Call `interlude` before and after each run of the engine; what was attached last begins first."""
        self._interludes.insert(0, interlude)

    def attach_interrupt_watcher(self, watcher: InterruptWatcher) -> None:
        """Notify `watcher` of interrupts."""
        self._interrupt_watchers.append(watcher)

    def attach_original(self, original: Callable[[int, bytes], bytes]) -> None:
        """Let `original` restore what armed sites replace, in bytes of the guest's code at an address."""
        self._originals.append(original)

    def pristine(self, address: int, content: bytes) -> bytes:
        """The guest's own code at an address: `content` with what armed sites replace restored."""
        for original in self._originals:
            content = original(address, content)
        return content

    def _written(self, device: Device) -> None:
        if (timed := self._timed_by_identity.get(id(device))) is not None:
            self.notice_deadline(timed)

    def notice_deadlines(self) -> None:
        """See `notice_deadline`, of all timers."""
        self.timed.each(self.notice_deadline)

    def notice_deadline(self, timed: Timed) -> None:
        """Shorten the CPU's turn if the guest has set a timer that is due before its end."""
        if (deadline := timed.deadline()) is not None and deadline < self._turn_ends:
            self.yield_cpu()

    def console_output(self, data: bytes) -> None:
        """Pass on output of the guest's console."""
        self.progress.went_on()
        self._hooks.console(data)

    def flush_tlb(self) -> None:
        """Drop all translations; only the running CPU has any."""
        self.engine.flush_tlb()

    def power_off(self, code: int = 0, end: End = End.POWER_OFF) -> None:
        """End the run with an exit code: the guest switched the machine off, or reset it."""
        self.exit_code = code
        self.finish(end)

    def finish(self, end: End) -> None:
        """End the run at the next opportunity."""
        if self._end is None:
            self._end = end
        self.yield_cpu()

    def yield_cpu(self) -> None:
        """End the CPU's turn."""
        self._has_yielded = True
        if self.is_running:
            self.clock.interrupt()

    interrupt_lines_changed = yield_cpu  # CPUs check their interrupt lines soon: a device drove one

    # -- the loop -----------------------------------------------------------------------------------------------------

    def run(self, timeout: int | None = None, wall_timeout: int | None = None, hooks: MachineHooks = NO_HOOKS) -> End:
        """Run until the machine ends; `timeout` in nanoseconds of the machine's time, `wall_timeout` of the host's.

        Raises:
            MachineError: the guest stopped for good, or did something that the machine does not support.
        """
        self.has_run, self._hooks = True, hooks
        self.events.begin(hooks.event)
        limit = None if timeout is None else self.clock.now() + timeout
        self._wall_limit = None if wall_timeout is None else time.monotonic_ns() + wall_timeout
        try:
            with host_alarm(self._wall_left(), self.engine.stop):
                while self._end is None:
                    if limit is not None and self.clock.now() >= limit:
                        return End.TIMEOUT
                    if self._wall_left() == 0:
                        return End.WALL_TIMEOUT
                    self._turn(limit)
            return self._end
        except GuestError:
            if self._end is None:  # else something ended the run before, in the same turn
                raise
            return self._end
        finally:
            self._end = None  # here, since a signal may end a run that is about to begin
            self.clock.rest()

    @property
    def is_over(self) -> bool:
        """Whether something ends the run, which a debugger may hold up."""
        return self._end is not None or self._wall_left() == 0

    def _turn(self, limit: int | None) -> None:
        (cpu, turn), self._continues = self.position, None
        self._load(cpu)
        if turn is not None:
            self._show_lines(cpu)
            self._turn_ends, self._is_delayed = turn
            self._run_turn(cpu, self._advance(self._observers), is_delayed=turn[1])
            return
        self.serial_line.look()
        deadline, observed = self._advance(self.timed), self._advance(self._observers)
        if self._end is not None:  # a watchdog's, or an exit() of a clock's clause
            return
        following = self._next_cpu()
        if following is None:
            self.serial_line.wait()
            following = self._next_cpu()
        if following is None:
            self._idle(deadline, observed, limit)
            return
        self._load(cpu := following)
        is_delayed = self._take_interrupt(cpu)
        now, length = self.clock.now(), _SLICE if len(self.cpus) == 1 else _TURN
        # At least 1 ns: a device whose deadline has passed again must not keep all CPUs from running.
        self._turn_ends = min([now + length, *(max(now + 1, one) for one in (deadline, limit) if one is not None)])
        self._run_turn(cpu, observed, is_delayed=is_delayed)

    def _run_turn(self, cpu: VirtualCpu, observed: int | None, *, is_delayed: bool) -> None:
        is_cut, self._has_yielded, self._is_delayed = True, False, is_delayed
        try:
            while is_cut and not self._has_yielded:  # an observer may end the run
                stop = self._run_engine(cpu, observed, is_delayed=is_delayed)
                is_cut = self._is_cut(cpu, stop, observed, is_delayed=is_delayed)
                observed = self._advance(self._observers) if is_cut else None
        finally:
            self._is_delayed = None
        self._hooks.after_turn()

    @property
    def position(self) -> Position:
        """Whose turn it is, or was, and that turn if it is under way."""
        if self._continues is not None:
            return self._continues
        return self.current, None if self._is_delayed is None else (self._turn_ends, self._is_delayed)

    def continue_at(self, position: Position, exit_code: int) -> None:
        """Between two runs: let the next run begin as `position` was in another. The state of all CPUs was restored."""
        self._continues, self.exit_code = position, exit_code
        self.current = cpu = position[0]
        self.engine.states.restore(cpu.context)
        cpu.load_into(self.engine.live)
        self.trap.run_as(cpu.number, cpu.fired)
        self.engine.count_for(cpu.number)

    def _is_cut(self, cpu: VirtualCpu, stop: Stop, observed: int | None, *, is_delayed: bool) -> bool:
        """Whether a run was ended only by interludes or observers: the turn continues then, since its end is visible to
        the guest."""
        is_over = stop is not Stop.REQUESTED or self._turn_ends <= self.clock.now() or self._has_yielded
        if is_over or (is_delayed and self.exceptions.pending(cpu) is not None):
            self._is_delayed = None  # an interlude that takes a snapshot is between two turns
        has_interlude = sum(one.ended() for one in self._interludes) > 0  # each one is asked
        is_cut = has_interlude or (observed is not None and observed <= self.clock.now())
        is_cut = is_cut and stop is Stop.REQUESTED and self._turn_ends > self.clock.now()
        return is_cut and not self._has_yielded and not (is_delayed and self.exceptions.pending(cpu) is not None)

    def _run_engine(self, cpu: VirtualCpu, observed: int | None, *, is_delayed: bool) -> Stop:
        for interlude in self._interludes:
            interlude.begin()
        if self.memory.took_changes():
            self.engine.forget_all_code()
        if is_delayed:
            self.engine.stop_when_unmasked()
        until = self._turn_ends if observed is None else min(self._turn_ends, observed)
        if self.engine.one.is_next:
            self.clock.begin_one()
        else:
            self.clock.begin(max(1, until - self.clock.now()))
        self.is_running = True
        try:
            stop = self.engine.run()
        finally:
            self.is_running = False
            self.clock.end()
        self._handle(cpu, stop)
        return stop

    def _handle(self, cpu: VirtualCpu, stop: Stop) -> None:
        match stop:
            case Stop.HALTED:
                self.events.event(Event(Source.HALT, 0))
            case Stop.UNDEFINED:
                if not self.trap.claim(self.engine.pc()):
                    self.events.event(Event(Source.INVALID, 0))
            case Stop.FAULT if not self.space.took_guarded_store():
                self.engine.blocks.leave(pc := self.engine.pc())
                self.engine.set_pc(self.trap.original(pc))
                self.events.page_fault(self.space.exact_fault(*self.engine.fault))
            case Stop.FAULT:
                self.engine.blocks.leave(self.engine.pc(), has_begun=False)
            case Stop.REQUESTED:
                pass
            case Stop.FAILED:
                raise GuestError(f"CPU {cpu.number} at {self.engine.pc():#x}: {self.engine.error}")
            case _:
                assert_never(stop)

    def _advance(self, timed: TimedDevices) -> int | None:
        """Call `advance` of those that are due. Returns the next deadline (ns), or None."""
        current = self.current
        earliest = timed.advance(self.clock.now())
        self._load(current)  # a timer's probe may have loaded another CPU
        return earliest

    def show(self, number: int) -> None:
        """Between two turns, fill the trap frame with a CPU's registers; its virtual memory is the current one then."""
        self._load(self.cpus[number])
        self.engine.frame.read()

    def host_word(self, address: int) -> int | None:
        """The host's address of a word at a virtual address of the running CPU; None if it is not in the board's
        RAM."""
        physical = self.space.observe(address)
        return None if physical is None else self.memory.host_word(physical)

    def instruction(self, address: int) -> bytes:
        """The guest's own code at a virtual address, as long as the longest instruction or up to the page's end; empty
        if the running CPU cannot execute there."""
        for size in (_LONGEST, -address & PAGE - 1):
            try:
                return self.current.fetch(address, size)
            except (PageFault, MachineError):
                continue
        return b""

    def _next_cpu(self) -> VirtualCpu | None:
        """The next CPU that has something to do, in turn; None if there is none."""
        if self.engine.one.is_next:  # the next instruction is executed alone, with translations of this CPU
            return self.current
        start = self.current.number
        for step in range(1, len(self.cpus) + 1):
            cpu = self.cpus[(start + step) % len(self.cpus)]
            if not cpu.is_on:
                continue
            if cpu.is_waiting and cpu.lines:
                self._load(cpu)  # its registers decide whether it wakes
                self._show_lines(cpu)
                if self.exceptions.wakes(cpu):
                    cpu.wake()
            if not cpu.is_waiting:
                return cpu
        return None

    def _idle(self, *deadlines: int | None) -> None:
        descriptors = self.serial_line.descriptors()
        sleep = self.clock.now() + LONGEST_SLEEP if descriptors else None
        bounds = [bound for bound in (*deadlines, sleep) if bound is not None]
        if not bounds:
            raise NothingLeftError("every CPU waits for an interrupt, and no device will ever raise one")
        left, until = self._wall_left(), min(bounds)
        self.clock.wait(until if left is None else min(until, self.clock.now() + left), descriptors)

    def _wall_left(self) -> int | None:
        """The nanoseconds of the host's time that the run has left; None if it has no limit."""
        return None if self._wall_limit is None else max(0, self._wall_limit - time.monotonic_ns())

    def _load(self, cpu: VirtualCpu) -> None:
        """Load this CPU's state into the engine."""
        if cpu is (before := self.current):
            return
        states, regime = self.engine.states, self.space.regime()
        states.save_to(before.context)
        before.leave(states.registers_of(before.context))
        states.restore(cpu.context)
        cpu.load_into(self.engine.live)
        if not regime or regime != self.space.regime():  # else both use the TLB: most of a switch's cost
            self.engine.flush_tlb()
        self.current = cpu
        self.trap.run_as(cpu.number, cpu.fired)
        self.engine.count_for(cpu.number)

    # -- interrupts and events ----------------------------------------------------------------------------------------

    def _show_lines(self, cpu: VirtualCpu) -> None:
        if cpu.took_changes():
            self.exceptions.lines_changed(cpu)
            for watcher in self._interrupt_watchers:
                watcher.may_come(cpu)

    def _take_interrupt(self, cpu: VirtualCpu) -> bool:
        """Enter the handler of a pending interrupt. Returns True if there is one that cannot be taken yet.

        The CPU is not FIRED here: a run ends in a trampoline only after an iteration of amd64's repeated string
        instructions, by the instruction clock.
        """
        self._show_lines(cpu)
        if not cpu.lines or self.exceptions.interrupt_mask is None:
            return False
        number = self.exceptions.pending(cpu)
        if number is not None:
            self.engine.set_pc(pc := self.trap.original(self.engine.pc()))
            sp = cpu.registers.get(self.arch.registers[self.arch.stack_pointer])
            self.exceptions.interrupt(cpu, number)
            self.progress.went_on()
            for watcher in self._interrupt_watchers:
                watcher.delivered(pc, sp)
        return number is None

"""A CPU and what memory it uses, copied into an engine of their own: what would it do if a register gave something
else?

The guest notices nothing: no device is asked, and what is stored stays here. Time passes faster where the CPU looks at
nothing else, so that a delay takes no longer than a few instructions.
"""

import ctypes
import mmap
from dataclasses import replace
from typing import Final

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.reports import Stop
from kinst.runtime.machine.clock import InstructionClock
from kinst.runtime.machine.exception_model import SystemRegister
from kinst.runtime.machine.learning.arch.machine import Counters
from kinst.runtime.machine.learning.arch.registry import scratch_machine
from kinst.runtime.machine.learning.device_values import DeviceValues
from kinst.runtime.machine.physical.frames import OPEN_BUS, PAGE
from kinst.runtime.machine.physical.unmodelled import Register
from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import Access
from kinst.targets.machines.machine import Space
from kinst.targets.machines.registers import Rule
from kinst.targets.values import dataclass

_FRAMES: Final = 1 << 32  # where its pages of memory are
_FRAME_COUNT: Final = 2048
_WINDOW: Final = 1 << 33  # and those of devices and registers
_WINDOW_COUNT: Final = 1024
_ALL: Final = 7  # permissions
_SHORTEST: Final = 100  # ns that a look at the time takes
_FASTER: Final = 8  # each look at the time lets an eighth of what has passed pass again
_SLEEP: Final = 1_000_000  # ns of an instruction that waits for an interrupt
_WORD: Final = 4
_OTHERS: Final = 500  # accesses of others, after which nobody waits for the register


@dataclass(frozen=True, slots=True)
class Visit:
    """A read of the register: the PC, the stack pointer, and what was given."""

    pc: int
    sp: int
    given: int


class Scratch:
    """The copy. `take` makes it of the running CPU; `begin` returns to that."""

    def __init__(self, system: System, values: DeviceValues) -> None:
        """`values` has what devices gave."""
        self._system, self._values = system, values
        self._machine = scratch_machine(system.arch)
        self.engine = engine = QilingMachine(system.arch)
        self._counter = engine.count_instructions()
        self._clock = InstructionClock(self._counter)
        self._memory = mmap.mmap(-1, _FRAME_COUNT * PAGE)
        engine.map_memory(_FRAMES, self._memory)
        engine.map_window(_WINDOW, _WINDOW_COUNT * PAGE, self)
        engine.on_tlb_fill(self._fill)
        self._exception: int | None = None
        engine.on_interrupt(self._on_exception, engine.fail, self._clock.word)
        self._counters = Counters(self._tick, system.facts.timebase)
        self._machine.attach(engine, self._counters, lambda register: self._offsets.get(register, 0))
        self._frames: dict[int, bytes] = {}  # number of a frame -> its page's content
        self._places: dict[tuple[int, int], int] = {}  # physical and virtual page -> number of a frame
        self._windows: list[int] = []  # the physical page of each page of the window
        self._now = self._base = 0  # when the copy was made, in ns and in ticks
        self._context: ctypes.c_void_p | None = None
        self._offsets: dict[SystemRegister, int] = {}
        self._registers: dict[int, Register] = {}  # copies, by address
        self._watched = 0
        self._visit: Visit | None = None
        self.reads = 0  # of the register
        self._runs = self._asked = 0
        self._looked = 0  # when the register was read last
        self._shown = 0
        self._stack = system.arch.registers[system.arch.stack_pointer]
        console = system.facts.devices.get("console")
        self._console = range(0) if console is None else range(console.address, console.address + console.size)

    # -- the copy -----------------------------------------------------------------------------------------------------

    def take(self, cpu: int) -> None:
        """Copy a CPU, between two of its turns."""
        system = self._system
        system.show(cpu)
        if self._context is not None:
            self.engine.states.free(self._context)
        context = system.engine.states.save()
        self.engine.states.restore(context)
        system.engine.states.free(context)
        self.engine.set_pc(system.trap.original(system.engine.pc()))
        self._context = self.engine.states.save()
        self._frames.clear()
        self._places.clear()
        self._windows.clear()
        self.engine.flush_tlb()
        self.engine.forget_all_code()
        self._now = system.clock.now()
        self._base = self._now * self._counters.frequency // 1_000_000_000
        self._offsets = {one: self._offset(one) for one in self._machine.counters}

    def _offset(self, register: SystemRegister) -> int:
        """What a counter of the guest's is ahead of the machine's time."""
        read = self._system.exceptions.read_register(self._system.current, register)
        ahead = 0 if read is None else read - self._base
        # Both were read one after the other, so that a counter without an offset is a little ahead.
        return 0 if 0 <= ahead < self._counters.frequency else ahead

    def begin(self, register: Register, rule: Rule) -> None:
        """Return to the copied state, in which a register has a rule. It is read anew: counts begin with the next."""
        assert self._context is not None
        self.engine.states.restore(self._context)
        for number, content in self._frames.items():
            self._memory[number * PAGE : (number + 1) * PAGE] = content
        self._registers = {register.address: replace(register, rule=rule)}
        self._watched = register.address
        self._visit, self._exception, self._shown = None, None, 0
        self._clock.restart()
        self._clock.skip(self._now)
        self._looked = self._now

    # -- running ------------------------------------------------------------------------------------------------------

    @property
    def executed(self) -> int:
        """Instructions so far."""
        return self._counter.executed

    @property
    def work(self) -> int:
        """What was done since it was made, in units of some 20 microseconds: runs of the engine, accesses that Python
        answers, and thousands of instructions."""
        return self._runs + self._asked + self._counter.executed // 1000

    @property
    def shown(self) -> int:
        """Bytes that were written to the console since `begin`."""
        return self._shown

    def next_visit(self, limit: int) -> Visit | None:
        """Run until the register has been read; None: not within `limit` instructions, or the CPU cannot go on, or it
        asks for others instead."""
        self._visit = None
        end, most = self.executed + limit, self._asked + _OTHERS
        while self._visit is None and self.executed < end and self._asked < most:
            if not self.run(end - self.executed):
                return None
        return self._visit

    def run(self, instructions: int) -> bool:
        """Run up to so many instructions, or to a read of the register; False: the CPU cannot go on."""
        self._exception = None
        self._runs += 1
        self._counter.grant(instructions)
        match self.engine.run():
            case Stop.HALTED:
                self._clock.skip(self._clock.now() + _SLEEP)
            case Stop.REQUESTED:
                if self._exception is not None:
                    return self._step_over(self._exception)
            case _:
                return False
        return True

    def _on_exception(self, _engine: int, number: int, _data: int) -> None:
        self._exception = number
        self._counter.grant(0)

    def _step_over(self, number: int) -> bool:
        pc = self.engine.pc() - self.engine.interrupt_bias
        after = self._machine.step_over(self.engine, self._counters, number, pc, self.word(pc))
        if after is not None:
            self.engine.set_pc(after)
        return after is not None

    def word(self, address: int) -> int:
        """The guest's four bytes at a virtual address; 0 if there are none."""
        physical = self._system.space.observe(address)
        if physical is None or not self._system.memory.has(physical, _WORD):
            return 0
        return int.from_bytes(self._system.pristine(address, self._system.memory.read(physical, _WORD)), "little")

    def registers(self) -> tuple[int, ...]:
        """The general registers, in the order of the trap frame."""
        self.engine.frame.read()
        return tuple(self.engine.frame.regs)

    @property
    def stack(self) -> int:
        """The stack pointer."""
        return self.engine.live.get(self._stack)

    @property
    def link(self) -> int | None:
        """The return address of a function that has called nobody; None: it is in no register."""
        return None if self._machine.link is None else self.engine.live.get(self._machine.link)

    @property
    def result(self) -> int:
        """What a function that has just returned gives."""
        return self.engine.live.get(self._machine.result)

    # -- time ---------------------------------------------------------------------------------------------------------

    def _tick(self) -> int:
        """The counter that the guest reads as time. Each look lets more of it pass, the longer it looks at nothing
        else."""
        now = self._clock.now()
        self._clock.skip(now + max(_SHORTEST, (now - self._looked) // _FASTER))
        return self._base + (self._clock.now() - self._now) * self._counters.frequency // 1_000_000_000

    # -- memory -------------------------------------------------------------------------------------------------------

    def _fill(self, address: int, _access: Access) -> tuple[int, int] | None:
        """A TLB entry: a copy of a page of RAM, or a page of the window."""
        virtual = address & -PAGE
        physical = self._system.space.observe(virtual)
        if physical is None:
            return None
        page = self._system.unmodelled.real(physical) & -PAGE
        if self._system.memory.has(page, PAGE) and page < OPEN_BUS:
            return self._frame(page, virtual)
        if page not in self._windows:
            if len(self._windows) == _WINDOW_COUNT:
                return None
            self._windows.append(page)
        return _WINDOW + self._windows.index(page) * PAGE, _ALL

    def _frame(self, page: int, virtual: int) -> tuple[int, int] | None:
        number = self._places.get((page, virtual))
        if number is None:
            # What two addresses share must stay one; a page of code shows the guest's own bytes at each of its own.
            number = next((one for (other, _), one in self._places.items() if other == page), len(self._frames))
            if number == _FRAME_COUNT:
                return None
            self._places[page, virtual] = number
            if number not in self._frames:
                content = self._system.pristine(virtual, self._system.memory.read(page, PAGE))
                self._frames[number] = content
                self._memory[number * PAGE : (number + 1) * PAGE] = content
        return _FRAMES + number * PAGE, _ALL

    def read(self, offset: int, size: int) -> int:
        """What a device or a register gives; see `Window`."""
        self._ask()
        physical = self._windows[offset // PAGE] + offset % PAGE
        if self._is_device(physical):
            key = (Space.MEMORY, physical, size)
            if self._values.is_time(key):
                self._tick()
            return self._values.value(key, self._clock.now())
        return sum(self._read(physical + at, min(size, _WORD)) << 8 * at for at in range(0, size, _WORD))

    def _ask(self) -> None:
        self._asked += 1
        if not self._asked % _OTHERS:
            self._counter.grant(0)  # who polls another register comes back to `next_visit`

    def _read(self, address: int, size: int) -> int:
        register = self._register(address)
        given = register.take(address, size)
        if register.address == self._watched:
            self.reads += 1
            self._visit = Visit(self.engine.pc(), self.stack, register.given)
            self._looked = self._clock.now()
            self._counter.grant(0)
        return given

    def write(self, offset: int, size: int, value: int) -> None:
        """A store to a device, which does nothing, or to a register."""
        self._ask()
        physical = self._windows[offset // PAGE] + offset % PAGE
        if self._is_device(physical):
            self._shown += physical in self._console
            return
        for at in range(0, size, _WORD):
            self._register(physical + at).put(physical + at, min(size, _WORD), value >> 8 * at)

    def _is_device(self, physical: int) -> bool:
        return self._system.is_device(physical)

    def _register(self, address: int) -> Register:
        """A copy of a register, made when it is first touched."""
        known = self._registers.get(address & -_WORD)
        if known is None or address >= known.address + known.size:
            found = self._system.unmodelled.at(address)
            known = self._registers.setdefault(found.address, replace(found))
        return known


class Allowance:
    """How much may be tried: counted, so that what is found does not depend on the host."""

    def __init__(self, scratch: Scratch, work: int) -> None:
        """From now on; see `Scratch.work`."""
        self._scratch = scratch
        self._end = scratch.work + work

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self._scratch.work >= self._end

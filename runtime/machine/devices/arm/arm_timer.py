"""arm64 generic timer: CNT* system registers of each CPU -> the machine's time, and timer interrupts.

DDI 0487 chapter D11 and the register descriptions in D19.12. Every CPU has a physical, a virtual, (EL2) a hypervisor
and (EL3) a secure timer over one counter. Nothing ticks: a timer's condition is computed from the clock when it is
needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from kinst.runtime.machine.device import Clock, Line
from kinst.runtime.machine.exception_model import SystemRegister

if TYPE_CHECKING:
    from kinst.runtime.machine.machine import Cpu

FREQUENCY: Final = 62_500_000  # Hz, as in CNTFRQ_EL0 of QEMU and Unicorn: a tick is 16 ns
_SECOND: Final = 1_000_000_000  # ns
_WORD: Final = (1 << 64) - 1


class Timer(IntEnum):
    """The timers of a CPU. The values are the private interrupts that QEMU's virt board wires them to."""

    PHYSICAL = 0
    VIRTUAL = 1
    HYPERVISOR = 2
    SECURE = 3


INTERRUPTS: Final[Mapping[Timer, int]] = {
    Timer.PHYSICAL: 30,
    Timer.VIRTUAL: 27,
    Timer.HYPERVISOR: 26,
    Timer.SECURE: 29,
}

ENABLE, IMASK, ISTATUS = 1, 2, 4  # CNT*_CTL

COUNTER = SystemRegister(3, 3, 14, 0, 1)  # CNTPCT_EL0
VIRTUAL_COUNTER = SystemRegister(3, 3, 14, 0, 2)  # CNTVCT_EL0
VIRTUAL_OFFSET = SystemRegister(3, 4, 14, 0, 3)  # CNTVOFF_EL2
COUNTER_FREQUENCY = SystemRegister(3, 3, 14, 0, 0)  # CNTFRQ_EL0


class _Field(IntEnum):
    """The three registers of a timer, by their op2. TVAL and CVAL are two views of one compare value."""

    TVAL = 0
    CTL = 1
    CVAL = 2


_FIELDS: Final[Mapping[SystemRegister, tuple[Timer, _Field]]] = {
    SystemRegister(3, op1, 14, crm, field): (timer, field)
    for timer, op1, crm in (
        *((Timer.PHYSICAL, 3, 2), (Timer.VIRTUAL, 3, 3)),
        *((Timer.HYPERVISOR, 4, 2), (Timer.SECURE, 7, 2)),
    )
    for field in _Field
}
TIMER_REGISTERS: Final = frozenset({COUNTER, VIRTUAL_COUNTER, VIRTUAL_OFFSET, COUNTER_FREQUENCY, *_FIELDS})

# CNTKCTL_EL1: which counters and timers EL0 may use.
_EL0_COUNTER: Final[Mapping[SystemRegister, int]] = {
    COUNTER: 1 << 0,
    VIRTUAL_COUNTER: 1 << 1,
    COUNTER_FREQUENCY: 3,
}
_EL0_TIMER: Final[Mapping[Timer, int]] = {
    Timer.VIRTUAL: 1 << 8,
    Timer.PHYSICAL: 1 << 9,
    Timer.HYPERVISOR: 0,
    Timer.SECURE: 0,
}
_LOWEST_LEVELS: Final[Mapping[int, int]] = {3: 1, 4: 2, 7: 3}  # by op1; of secure EL1 SCR_EL3.ST decides
_SECURE_TIMER: Final = 1 << 11  # SCR_EL3.ST
_NON_SECURE: Final = 1


@dataclass(slots=True)
class _State:
    """One timer of one CPU. Its interrupt is asserted while it is enabled, not masked, and past `compare`."""

    line: Line
    control: int = 0
    compare: int = 0
    level: bool = False


class GenericTimer:
    """The timers of all CPUs. `lines` gives, for each CPU, the interrupt inputs of the three timers; `frequency` is the
    counter's, in Hz."""

    def __init__(self, clock: Clock, lines: Sequence[Mapping[Timer, Line]], frequency: int = FREQUENCY) -> None:
        self._clock, self._frequency = clock, frequency
        self._offsets = [0] * len(lines)  # CNTVOFF_EL2 of each CPU
        self._timers = [{timer: _State(line) for timer, line in inputs.items()} for inputs in lines]

    def read(self, cpu: "Cpu", register: SystemRegister) -> int | None:
        """MRS. None if EL0 may not read the register: then Unicorn raises the exception."""
        if not self._is_allowed(cpu, register):
            return None
        if register == COUNTER:
            return self._count()
        if register not in _FIELDS:
            return self._other(cpu, register)
        timer, field = _FIELDS[register]
        state = self._timers[cpu.number][timer]
        match field:
            case _Field.CVAL:
                return state.compare
            case _Field.TVAL:
                return state.compare - self._counter_of(cpu.number, timer) & 0xFFFFFFFF
            case _Field.CTL:
                return state.control | (ISTATUS if self._is_reached(cpu.number, timer) else 0)

    def _other(self, cpu: "Cpu", register: SystemRegister) -> int:
        offset = self._offsets[cpu.number]
        if register == COUNTER_FREQUENCY:
            return self._frequency
        return offset if register == VIRTUAL_OFFSET else self._count() - offset & _WORD

    def write(self, cpu: "Cpu", register: SystemRegister, value: int) -> bool:
        """MSR. False if EL0 may not write the register, or if it is read-only."""
        if register in _EL0_COUNTER or not self._is_allowed(cpu, register):
            return False
        if register == VIRTUAL_OFFSET:
            self._offsets[cpu.number] = value
        else:
            timer, field = _FIELDS[register]
            state = self._timers[cpu.number][timer]
            match field:
                case _Field.CVAL:
                    state.compare = value
                case _Field.TVAL:
                    # TVAL is a signed offset from the counter (CompareValue = counter + SignExtend(TVAL)).
                    signed = (value & 0xFFFFFFFF) - (value << 1 & 1 << 32)
                    state.compare = self._counter_of(cpu.number, timer) + signed & _WORD
                case _Field.CTL:
                    state.control = value & (ENABLE | IMASK)
        self._drive(cpu.number)
        return True

    def deadline(self) -> int | None:
        """When the next timer that could interrupt reaches its compare value, in ns; None if there is none."""
        due = [
            -(-(state.compare + (self._offsets[number] if timer is Timer.VIRTUAL else 0)) * _SECOND // self._frequency)
            for number, timers in enumerate(self._timers)
            for timer, state in timers.items()
            if state.control & (ENABLE | IMASK) == ENABLE and not state.level
        ]
        return min(due, default=None)

    def advance(self) -> None:
        """Raise the lines of the timers that are due."""
        for number in range(len(self._timers)):
            self._drive(number)

    def _drive(self, number: int) -> None:
        for timer, state in self._timers[number].items():
            level = state.control & (ENABLE | IMASK) == ENABLE and self._is_reached(number, timer)
            if level != state.level:
                state.level = level
                state.line(level)

    def _is_reached(self, number: int, timer: Timer) -> bool:
        """ISTATUS: whether an enabled timer's condition holds, masked or not."""
        state = self._timers[number][timer]
        return bool(state.control & ENABLE) and self._counter_of(number, timer) >= state.compare

    def _count(self) -> int:
        return self._clock.now() * self._frequency // _SECOND

    def _counter_of(self, number: int, timer: Timer) -> int:
        count = self._count()
        return count - self._offsets[number] & _WORD if timer is Timer.VIRTUAL else count

    def _is_allowed(self, cpu: "Cpu", register: SystemRegister) -> bool:
        """Whether the CPU may access the register: EL0 needs CNTKCTL_EL1's permission, EL1 cannot reach EL2's
        registers, and the secure timer is EL3's unless SCR_EL3 gives it to secure EL1."""
        level = cpu.registers.get("pstate") >> 2 & 3
        if level == 0:
            allowed = _EL0_COUNTER.get(register)
            if allowed is None:
                allowed = _EL0_TIMER[_FIELDS[register][0]] if register in _FIELDS else 0
            return bool(cpu.registers.get("cntkctl_el1") & allowed)
        if register.op1 == 7 and level == 1:
            return cpu.registers.get("scr_el3") & (_SECURE_TIMER | _NON_SECURE) == _SECURE_TIMER
        return level >= _LOWEST_LEVELS[register.op1]

"""The local APIC of each CPU: registers at 0xfee00000 -> vectors by priority, interrupts between CPUs, and a timer.

Intel SDM volume 3, chapter 11. One device serves all CPUs: the window is banked by the CPU that accesses it.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from enum import IntEnum
from typing import Final

from kinst.runtime.machine.device import Clock, Line
from kinst.targets.values import dataclass

BASE: Final = 0xFEE0_0000
BUS_FREQUENCY: Final = 1_000_000_000  # Hz of the timer before its divider, as in QEMU: one tick per nanosecond
_RAISED: Final = True


class Register(IntEnum):
    """Offsets of the registers (SDM table 11-1)."""

    ID = 0x20
    VERSION = 0x30
    TPR = 0x80
    PPR = 0xA0
    EOI = 0xB0
    LDR = 0xD0
    DFR = 0xE0
    SVR = 0xF0
    ISR = 0x100
    TMR = 0x180
    IRR = 0x200
    ESR = 0x280
    ICR_LOW = 0x300
    ICR_HIGH = 0x310
    LVT_TIMER = 0x320
    LVT_LINT0 = 0x350
    LVT_ERROR = 0x370
    INITIAL_COUNT = 0x380
    CURRENT_COUNT = 0x390
    DIVIDE = 0x3E0


class Mode(IntEnum):
    """What a message does (SDM 11.6.1)."""

    FIXED = 0
    LOWEST = 1  # of the destination's APICs, to the one of the lowest priority
    NMI = 4
    INIT = 5
    START_UP = 6


# The interrupt command register (SDM figure 11-12):
#
#   63       56 55   20 19  18 17 16  15    14   13  12   11  10      8 7      0
#   destination    0    shorthand  0  level assert 0 status logical mode  vector
_SELF, _ALL, _OTHERS = 1, 2, 3
_MASKED: Final = 1 << 16
_PERIODIC: Final = 1 << 17
_ENABLED: Final = 1 << 8  # a bit of SVR
_EXTERNAL: Final = 7  # delivery mode of a LINT pin: the vector comes from the PIC
_VERSION: Final = 0x14 | 5 << 16  # an integrated APIC with six LVT entries
_LVT: Final = frozenset({0x320, 0x330, 0x340, 0x350, 0x360, 0x370})


@dataclass(frozen=True, slots=True)
class Message:
    """An interrupt on its way to the local APICs of a destination."""

    mode: int
    vector: int
    destination: int
    is_logical: bool
    is_level: bool = False  # from a level-triggered line: the I/O APIC is notified of its end


@dataclass(frozen=True, slots=True)
class Wiring:
    """What an APIC can do to its CPU: its own interrupts, those of the PIC that it passes on, NMI, the reset by INIT,
    and the start by the vector of a start-up IPI."""

    interrupt: Line
    external: Line
    nmi: Line
    init: Callable[[], None]
    start_up: Callable[[int], None]


@dataclass(slots=True)
class _Apic:
    """The APIC of one CPU. `requested`, `in_service` and `by_level` have one bit per vector."""

    number: int
    wiring: Wiring
    requested: int = 0
    in_service: int = 0
    by_level: int = 0
    lint0: bool = False
    registers: dict[int, int] = field(default_factory=dict)
    timer_start: int = 0

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset the registers (SDM 11.4.7.1); the logical destination and all vectors are lost."""
        self.requested = self.in_service = self.by_level = 0
        self.registers = dict.fromkeys(_LVT, _MASKED) | {Register.SVR: 0xFF, Register.DFR: 0xFFFF_FFFF}
        if self.number == 0:
            self.registers[Register.LVT_LINT0] = _EXTERNAL << 8  # as a BIOS leaves it: the PIC reaches the boot CPU
        self.update()

    @property
    def enabled(self) -> bool:
        return bool(self.get(Register.SVR) & _ENABLED)

    def get(self, register: int) -> int:
        return self.registers.get(register, 0)

    def priority(self) -> int:
        """PPR, the processor priority (SDM 11.8.3.1)."""
        task, service = self.get(Register.TPR), max(self.in_service.bit_length() - 1, 0)
        return task if task >> 4 >= service >> 4 else service & 0xF0

    def pending(self) -> int | None:
        vector = self.requested.bit_length() - 1
        return vector if self.enabled and vector >= 0 and vector >> 4 > self.priority() >> 4 else None

    @property
    def takes_external(self) -> bool:
        """Whether the PIC's interrupts reach the CPU: directly while the APIC is off, else through LINT0 (SDM
        11.5.1)."""
        entry = self.get(Register.LVT_LINT0)
        return not self.enabled or (not entry & _MASKED and entry >> 8 & 7 == _EXTERNAL)

    def update(self) -> None:
        self.wiring.interrupt(self.pending() is not None)
        self.wiring.external(self.lint0 and self.takes_external)

    def request(self, vector: int, *, is_level: bool = False) -> bool:
        """Accept a vector; False if it is lost. Vectors below 16 are illegal (SDM 11.5.2)."""
        if not self.enabled or vector < 16:
            return False
        bit = 1 << vector
        self.requested |= bit
        self.by_level = self.by_level | bit if is_level else self.by_level & ~bit
        self.update()
        return True

    def acknowledge(self) -> int:
        vector = self.pending()
        if vector is None:  # a spurious interrupt: TPR was raised after INTR (SDM 11.9)
            return self.get(Register.SVR) & 0xFF
        self.requested &= ~(1 << vector)
        self.in_service |= 1 << vector
        self.update()
        return vector

    def end_of_interrupt(self) -> int | None:
        """End the one in service with the highest vector. Returns it if it came from a level."""
        if not self.in_service:
            return None
        vector = self.in_service.bit_length() - 1
        self.in_service &= ~(1 << vector)
        self.update()
        return vector if self.by_level >> vector & 1 else None

    def is_destination(self, destination: int, *, logical: bool) -> bool:
        """Whether a message is for this APIC, by its number or by a bit of its logical address, flat or cluster (SDM
        11.6.2)."""
        if not logical:
            return destination in (0xFF, self.number)
        address = self.get(Register.LDR) >> 24
        if self.get(Register.DFR) >> 28 == 0:
            return destination >> 4 in (15, address >> 4) and bool(destination & address & 15)
        return bool(destination & address)

    def divider(self) -> int:
        """The timer's divider, from bits 0, 1 and 3 of the divide configuration (SDM figure 11-10); 0b111 means 1."""
        code = self.get(Register.DIVIDE)
        return 1 << ((code & 3 | code >> 1 & 4) + 1 & 7)

    def tick(self) -> int:
        """The nanoseconds of one count."""
        return self.divider() * 1_000_000_000 // BUS_FREQUENCY

    def deadline(self) -> int | None:
        count = self.get(Register.INITIAL_COUNT)
        return self.timer_start + count * self.tick() if count else None

    def current_count(self, now: int) -> int:
        count = self.get(Register.INITIAL_COUNT)
        elapsed = (now - self.timer_start) // self.tick()
        if self.get(Register.LVT_TIMER) & _PERIODIC and count:
            return count - elapsed % count
        return max(count - elapsed, 0)

    def advance(self, now: int) -> None:
        due = self.deadline()
        if due is None or due > now:
            return
        entry = self.get(Register.LVT_TIMER)
        if entry & _PERIODIC:  # periods that were missed are one interrupt: IRR has one bit for the vector
            period = self.get(Register.INITIAL_COUNT) * self.tick()
            self.timer_start += (now - self.timer_start) // period * period
        else:
            self.registers[Register.INITIAL_COUNT] = 0
        if not entry & _MASKED:
            self.request(entry & 0xFF)


class LocalApics:
    """The APICs of all CPUs: a device that is banked by `current`, a `Timed` one, and the interrupt acknowledge of
    CPUs."""

    size = 0x1000

    def __init__(
        self,
        clock: Clock,
        wirings: Sequence[Wiring],
        current: Callable[[], int],
        ended: Callable[[int], None],
    ) -> None:
        """`current` gives the number of the CPU that accesses its APIC; `ended` is called with the vector of each
        level-triggered interrupt that a CPU has ended."""
        self._clock = clock
        self._apics = [_Apic(number, wiring) for number, wiring in enumerate(wirings)]
        self._current = current
        self._ended = ended

    def external(self, number: int) -> Line:
        """Pin LINT0 of a CPU's APIC, which the PIC drives."""
        apic = self._apics[number]

        def drive(level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
            apic.lint0 = level
            apic.update()

        return drive

    def takes_external(self, number: int) -> bool:
        """Whether the PIC requests an interrupt that reaches this CPU."""
        apic = self._apics[number]
        return apic.lint0 and apic.takes_external

    def pending(self, number: int) -> int | None:
        """The vector that CPU `number` would take now; None if there is none."""
        return self._apics[number].pending()

    def acknowledge(self, number: int) -> int:
        """Let the CPU take its pending vector, which is in service from now on."""
        return self._apics[number].acknowledge()

    def read(self, offset: int, size: int) -> int:
        """A register; they are 16 bytes apart. Narrow and unaligned reads give some of its bytes."""
        return self._read(self._apics[self._current()], offset & ~15) >> (offset & 3) * 8

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register; only 32-bit writes are defined (SDM 11.4.1)."""
        apic = self._apics[self._current()]
        register = offset & ~15
        if register == Register.EOI:
            self._end_of_interrupt(apic)
        elif register == Register.ICR_LOW:
            apic.registers[register] = value & ~(1 << 12)
            self._send(apic, value)
        elif register == Register.INITIAL_COUNT:
            apic.registers[register] = value
            apic.timer_start = self._clock.now()
        elif register == Register.DIVIDE:
            self._set_divider(apic, value)
        elif register == Register.ESR:
            apic.registers[register] = 0
        elif register in _WRITABLE:
            apic.registers[register] = value & _WRITABLE[register]
            apic.update()

    def deadline(self) -> int | None:
        """When the first timer expires, in ns; None if none runs."""
        return min((due for apic in self._apics if (due := apic.deadline()) is not None), default=None)

    def advance(self) -> None:
        """Request the vectors of the timers that are due."""
        now = self._clock.now()
        for apic in self._apics:
            apic.advance(now)

    def _read(self, apic: _Apic, register: int) -> int:
        if register == Register.ID:
            return apic.number << 24
        if register == Register.VERSION:
            return _VERSION
        if register == Register.PPR:
            return apic.priority()
        if register == Register.CURRENT_COUNT:
            return apic.current_count(self._clock.now())
        banks = (Register.ISR, apic.in_service), (Register.TMR, apic.by_level), (Register.IRR, apic.requested)
        for bank, vectors in banks:
            if bank <= register < bank + 0x80:
                return vectors >> (register - bank) // 16 * 32 & 0xFFFF_FFFF
        return apic.get(register)

    def _set_divider(self, apic: _Apic, value: int) -> None:
        """Write the divide configuration. A running timer keeps its count."""
        now = self._clock.now()
        count = apic.current_count(now)
        apic.registers[Register.DIVIDE] = value & 0xB
        elapsed = apic.get(Register.INITIAL_COUNT) - count
        apic.timer_start = now - elapsed * apic.tick()

    def _end_of_interrupt(self, apic: _Apic) -> None:
        vector = apic.end_of_interrupt()
        if vector is not None:
            self._ended(vector)

    def send(self, message: Message) -> bool:
        """Deliver a message; True if an APIC accepts it."""
        destination, is_logical = message.destination, message.is_logical
        return self._deliver(
            [apic for apic in self._apics if apic.is_destination(destination, logical=is_logical)], message
        )

    def _send(self, sender: _Apic, command: int) -> None:
        """Send the message of a command that was written to ICR."""
        mode, shorthand = command >> 8 & 7, command >> 18 & 3
        if mode == Mode.INIT and command >> 15 & 1 and not command >> 14 & 1:
            return  # the de-assert that old start-up sequences send has no effect today
        destination = sender.get(Register.ICR_HIGH) >> 24
        message = Message(mode, command & 0xFF, destination, bool(command >> 11 & 1))
        if shorthand:
            self._deliver(self._targets(sender, shorthand), message)
        else:
            self.send(message)

    def _targets(self, sender: _Apic, shorthand: int) -> list[_Apic]:
        if shorthand == _SELF:
            return [sender]
        return [apic for apic in self._apics if shorthand == _ALL or apic is not sender]

    def _deliver(self, targets: list[_Apic], message: Message) -> bool:
        if message.mode == Mode.LOWEST:
            targets = sorted((apic for apic in targets if apic.enabled), key=_Apic.priority)[:1]
        accepted = [self._reach(apic, message) for apic in targets]
        return any(accepted)

    def _reach(self, apic: _Apic, message: Message) -> bool:
        match message.mode:
            case Mode.FIXED | Mode.LOWEST:
                return apic.request(message.vector, is_level=message.is_level)
            case Mode.NMI:
                apic.wiring.nmi(_RAISED)  # an edge: the CPU lowers it when it takes the NMI
            case Mode.INIT:
                apic.reset()
                apic.wiring.init()
            case Mode.START_UP:
                apic.wiring.start_up(message.vector)
        return True


_LVT_BITS: Final = 0x1_F7FF
_WRITABLE: Final = dict.fromkeys(_LVT, _LVT_BITS) | {
    Register.LVT_TIMER: 0x3_00FF,
    Register.TPR: 0xFF,
    Register.LDR: 0xFF00_0000,
    Register.DFR: 0xFFFF_FFFF,
    Register.SVR: 0x3FF,
    Register.ICR_HIGH: 0xFF00_0000,
}

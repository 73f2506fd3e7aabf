"""GICv2 interrupt controller (IHI 0048B) without security extensions: interrupt lines -> IRQ and FIQ of each CPU.

One `Gic` has the state; `Distributor` and `CpuInterface` are its two windows. Whether an interrupt reaches a CPU is
computed when something changes, for the few interrupts that are pending.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.arm.gic_banks import IDLE, PRIVATE, SOFTWARE, SPURIOUS, Bank, Banks, CurrentCpu

OTHER_GROUP: Final = 1022  # GICC_IAR: the highest pending interrupt is in group 1, and GICC_CTLR.AckCtl is clear

ENABLE_GROUP0, ENABLE_GROUP1, ACKNOWLEDGE_BOTH, FIQ_ENABLE, COMMON_POINT = 1, 2, 4, 8, 16
EOI_MODE: Final = 1 << 9  # GICC_EOIR only drops the priority; GICC_DIR deactivates


@dataclass(slots=True)
class Interface:
    """A CPU's interface: its registers, and the stack of its active interrupts."""

    irq: Line
    fiq: Line
    control: int = 0
    mask: int = 0  # GICC_PMR
    binary_point: list[int] = field(default_factory=lambda: [0, 1])
    preempted: list[tuple[int, int]] = field(default_factory=list)  # (interrupt, the running priority before it)
    running: int = IDLE


class Gic(Banks):
    """The controller's state. `outputs`: for each CPU its IRQ and FIQ inputs. `interrupts`: their number, a multiple of
    32."""

    def __init__(self, outputs: Sequence[tuple[Line, Line]], interrupts: int, current: CurrentCpu) -> None:
        self.control = 0
        super().__init__([Bank(0, PRIVATE, enabled=0xFFFF, edge=0xFFFF) for _ in outputs], interrupts, current)
        self.interfaces = [Interface(irq, fiq) for irq, fiq in outputs]

    def send(self, targets: int, interrupt: int) -> None:
        """Send an SGI from the current CPU: it becomes pending on the CPUs of the mask `targets`."""
        for number, bank in enumerate(self.private):
            if targets >> number & 1:
                bank.sources[interrupt] |= 1 << self.current()
                bank.change("latched", 0, 1 << interrupt)
        self.update()

    def is_for(self, cpu: int, index: int) -> bool:
        """See `Banks`. With one CPU GICD_ITARGETSR is RAZ/WI, and all interrupts go to it (IHI 0048B 4.3.12)."""
        return bool(self.shared.targets[index] >> cpu & 1) or len(self.private) == 1

    def enabled_groups(self, bank: Bank) -> int:
        """See `Banks`."""
        group0 = ~bank.group1 if self.control & ENABLE_GROUP0 else 0
        return group0 | (bank.group1 if self.control & ENABLE_GROUP1 else 0)

    def is_group1(self, cpu: int, interrupt: int) -> bool:
        """Whether an interrupt is in group 1."""
        bank = self.private[cpu] if interrupt < PRIVATE else self.shared
        return bool(bank.group1 >> interrupt - bank.first & 1)

    def update(self) -> None:
        """Drive every CPU's IRQ and FIQ."""
        for cpu, interface in enumerate(self.interfaces):
            interrupt, priority = self.best(cpu)
            is_signalled = interrupt != SPURIOUS and self._is_signalled(interface, cpu, interrupt, priority)
            is_fiq = is_signalled and bool(interface.control & FIQ_ENABLE) and not self.is_group1(cpu, interrupt)
            interface.irq(is_signalled and not is_fiq)
            interface.fiq(is_fiq)

    def _is_signalled(self, interface: Interface, cpu: int, interrupt: int, priority: int) -> bool:
        """Whether it is enabled for its group, not masked by GICC_PMR, and able to preempt what runs (IHI 0048B
        3.3)."""
        group = self.is_group1(cpu, interrupt)
        if not interface.control & (ENABLE_GROUP1 if group else ENABLE_GROUP0) or priority >= interface.mask:
            return False
        point = interface.binary_point[group and not interface.control & COMMON_POINT]
        # A binary point of n separates n + 1 bits of subpriority (n with group 1's own register), which do not preempt.
        subpriority = point if group and not interface.control & COMMON_POINT else point + 1
        return priority >> subpriority < interface.running >> subpriority

    def acknowledge(self, group: int | None) -> int:
        """Take the interrupt and make it active: GICC_IAR (group 0; with AckCtl None, for both) and GICC_AIAR (group
        1)."""
        cpu = self.current()
        interface = self.interfaces[cpu]
        interrupt, priority = self.best(cpu)
        if interrupt == SPURIOUS or not self._is_signalled(interface, cpu, interrupt, priority):
            return SPURIOUS
        is_group1 = self.is_group1(cpu, interrupt)
        if group is not None and is_group1 != bool(group):
            return OTHER_GROUP if is_group1 else SPURIOUS
        bank = self.bank(interrupt)
        bit = 1 << interrupt - bank.first
        source = 0
        # An SGI is pending once for each CPU that sent it; GICC_IAR says which in bits 12:10 (4.4.4).
        if interrupt < SOFTWARE:
            source = (bank.sources[interrupt] & -bank.sources[interrupt]).bit_length() - 1
            bank.sources[interrupt] &= ~(1 << max(source, 0))
        if interrupt >= SOFTWARE or not bank.sources[interrupt]:
            bank.change("latched", bit, 0)
        bank.change("active", 0, bit)
        interface.preempted.append((interrupt, interface.running))
        interface.running = priority
        self.update()
        return interrupt | max(source, 0) << 10

    def end(self, interrupt: int) -> None:
        """GICC_EOIR: drop the running priority, and deactivate unless GICC_CTLR says that GICC_DIR will."""
        interface = self.interfaces[self.current()]
        for place in range(len(interface.preempted) - 1, -1, -1):
            if interface.preempted[place][0] == interrupt:
                _, before = interface.preempted.pop(place)
                if place == len(interface.preempted):
                    interface.running = before
                else:  # ended out of order: the one above it returns to the priority before this one
                    interface.preempted[place] = (interface.preempted[place][0], before)
                break
        if not interface.control & EOI_MODE:
            self.deactivate(interrupt)
        self.update()

    def deactivate(self, interrupt: int) -> None:
        """Make it inactive, so that it can be signalled again."""
        if interrupt < self.interrupts:
            bank = self.bank(interrupt)
            bank.change("active", 1 << interrupt - bank.first, 0)
            self.update()


# The distributor's registers with one bit per interrupt: offset -> the bank's word.
_SET: Final = {0x080: "group1", 0x100: "enabled", 0x200: "latched", 0x300: "active"}
_CLEAR: Final = {0x180: "enabled", 0x280: "latched", 0x380: "active"}
_PRIORITY, _TARGETS, _CONFIGURATION, _SOFTWARE, _CLEAR_SGI, _SET_SGI = 0x400, 0x800, 0xC00, 0xF00, 0xF10, 0xF20
_IDENTIFICATION: Final = bytes((0x04, 0, 0, 0, 0x90, 0xB4, 0x2B, 0x00, 0x0D, 0xF0, 0x05, 0xB1))  # at 0xfd0, a word each


@dataclass(slots=True)
class Distributor:
    """GICD_*: which interrupts are enabled, pending and active, and where they go (IHI 0048B chapter 4.3)."""

    gic: Gic
    size: int = 0x1000

    def read(self, offset: int, size: int) -> int:
        """A register, composed of bytes, since most may be accessed in any width."""
        return sum(self._byte(offset + index) << 8 * index for index in range(size))

    def _byte(self, offset: int) -> int:
        gic = self.gic
        if offset < 0x080:
            return self._fixed(offset & ~3) >> (offset & 3) * 8 & 0xFF
        if offset < _PRIORITY:
            return self._bits(offset)
        interrupt = offset & 0x3FF
        if offset < _TARGETS:
            return (
                gic.bank(interrupt).priority[interrupt & 31 if interrupt < 32 else interrupt - 32]
                if self._has(interrupt)
                else 0
            )
        if offset < _CONFIGURATION:
            return self._target(interrupt)
        if offset < _SOFTWARE:
            return self._configuration(offset - _CONFIGURATION)
        if _CLEAR_SGI <= offset < _SET_SGI + 16:
            return gic.private[gic.current()].sources[offset & 15]
        if offset >= 0xFD0:
            return _IDENTIFICATION[(offset - 0xFD0) >> 2] if offset & 3 == 0 else 0
        return 0

    def _has(self, interrupt: int) -> bool:
        return interrupt < self.gic.interrupts

    def _fixed(self, register: int) -> int:
        if register == 0:
            return self.gic.control
        if register == 4:  # GICD_TYPER: number of interrupts and CPUs
            return self.gic.interrupts // 32 - 1 | (len(self.gic.private) - 1) << 5
        return 0x43B if register == 8 else 0  # GICD_IIDR: Arm

    def _bits(self, offset: int) -> int:
        first = (offset & 0x7F) * 8
        if not self._has(first):
            return 0
        bank = self.gic.bank(first)
        block = offset & ~0x7F
        name = _SET.get(block) or _CLEAR[block]
        word: int = bank.pending if name == "latched" else getattr(bank, name)
        return word >> first - bank.first & 0xFF

    def _target(self, interrupt: int) -> int:
        """GICD_ITARGETSR. For a private interrupt it is the CPU that reads it; with only one CPU it is always 0."""
        if len(self.gic.private) == 1 or not self._has(interrupt):
            return 0
        return 1 << self.gic.current() if interrupt < PRIVATE else self.gic.shared.targets[interrupt - PRIVATE]

    def _configuration(self, offset: int) -> int:
        """GICD_ICFGR: two bits per interrupt, of which the upper one is set if it is edge-triggered."""
        first = offset * 4
        if not self._has(first):
            return 0
        bank = self.gic.bank(first)
        return sum((bank.edge >> first - bank.first + index & 1) << 2 * index + 1 for index in range(4))

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register. GICD_SGIR and GICD_CTLR are words; all others may be written by the byte."""
        if offset == 0:
            self.gic.control = value & (ENABLE_GROUP0 | ENABLE_GROUP1)
        elif offset == _SOFTWARE:
            self._send(value)
        else:
            for index in range(size):
                self._write_byte(offset + index, value >> 8 * index & 0xFF)
        self.gic.update()

    def _write_byte(self, offset: int, value: int) -> None:
        interrupt = offset & 0x3FF
        if 0x080 <= offset < _PRIORITY:
            self._write_bits(offset, value)
        elif _PRIORITY <= offset < _TARGETS and self._has(interrupt):
            bank = self.gic.bank(interrupt)
            bank.priority[interrupt - bank.first] = value
        elif _TARGETS + PRIVATE <= offset < _CONFIGURATION and self._has(interrupt):
            self.gic.shared.targets[interrupt - PRIVATE] = value & (1 << len(self.gic.private)) - 1
        elif _CONFIGURATION + SOFTWARE // 4 <= offset < _SOFTWARE:
            self._write_configuration((offset - _CONFIGURATION) * 4, value)
        elif _CLEAR_SGI <= offset < _SET_SGI + 16:
            self._write_sources(offset, value)

    def _write_bits(self, offset: int, value: int) -> None:
        first = (offset & 0x7F) * 8
        if not self._has(first):
            return
        bank, block = self.gic.bank(first), offset & ~0x7F
        bits = value << first - bank.first
        if bank.first == 0 and (_SET.get(block) or _CLEAR.get(block)) in ("enabled", "latched"):
            bits &= ~0xFFFF  # SGIs are always enabled, and only their sources make them pending
        if block == 0x080:
            bank.change("group1", 0xFF << first - bank.first, bits)
        elif block in _SET:
            setattr(bank, _SET[block], getattr(bank, _SET[block]) | bits)
        else:
            setattr(bank, _CLEAR[block], getattr(bank, _CLEAR[block]) & ~bits)

    def _write_configuration(self, first: int, value: int) -> None:
        if not self._has(first):
            return
        bank = self.gic.bank(first)
        for index in range(4):
            bit = 1 << first - bank.first + index
            bank.change("edge", bit, bit if value >> 2 * index + 1 & 1 else 0)

    def _write_sources(self, offset: int, value: int) -> None:
        interrupt = offset & 15
        bank = self.gic.private[self.gic.current()]
        bank.sources[interrupt] = (
            bank.sources[interrupt] | value if offset >= _SET_SGI else bank.sources[interrupt] & ~value
        )
        bit = 1 << interrupt
        bank.change("latched", bit, bit if bank.sources[interrupt] else 0)

    def _send(self, value: int) -> None:
        """GICD_SGIR. Bits 25:24 select the targets: the mask in bits 23:16 (0), all other CPUs (1) or the CPU itself
        (2)."""
        everyone, own = (1 << len(self.gic.private)) - 1, 1 << self.gic.current()
        targets = (value >> 16 & 0xFF, everyone & ~own, own, 0)[value >> 24 & 3]
        self.gic.send(targets, value & 15)


@dataclass(slots=True)
class CpuInterface:
    """GICC_*: how a CPU takes and ends interrupts (IHI 0048B chapter 4.4). The window shows the current CPU's."""

    gic: Gic
    size: int = 0x2000

    def read(self, offset: int, size: int) -> int:
        """A register of the current CPU. Reading GICC_IAR takes the interrupt."""
        gic = self.gic
        interface = gic.interfaces[gic.current()]
        match offset:
            case 0x0C:
                return gic.acknowledge(None if interface.control & ACKNOWLEDGE_BOTH else 0)
            case 0x18 | 0x28:
                return gic.best(gic.current())[0]
            case 0x20:
                return gic.acknowledge(1)
        registers = {
            0x00: interface.control,
            0x04: interface.mask,
            0x08: interface.binary_point[0],
            0x14: min(interface.running, 0xFF),
            0x1C: interface.binary_point[1],
            0xFC: 0x0002043B,  # GICC_IIDR: architecture version 2, Arm
        }
        return registers.get(offset, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register of the current CPU. Writing GICC_EOIR ends an interrupt."""
        gic = self.gic
        interface = gic.interfaces[gic.current()]
        match offset:
            case 0x00:
                interface.control = value & 0x21F
            case 0x04:
                interface.mask = value & 0xFF
            case 0x08:
                interface.binary_point[0] = value & 7
            case 0x1C:
                interface.binary_point[1] = max(value & 7, 1)
            case 0x10 | 0x24:
                gic.end(value & 0x3FF)
            case 0x1000:
                gic.deactivate(value & 0x3FF)
        gic.update()

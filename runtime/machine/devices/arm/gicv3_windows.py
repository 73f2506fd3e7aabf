"""The windows of a GICv3 in memory: GICD_*, for the shared interrupts, and GICR_*, two pages of 64 KiB for each CPU
with its private ones (IHI 0069H chapters 12.9 to 12.11).

A non-secure access sees group 1 only: the bits of others are 0, and priorities are seen in the lower half.
"""

from dataclasses import dataclass
from typing import Final

from kinst.runtime.machine.devices.arm.gic_banks import PRIVATE, Bank
from kinst.runtime.machine.devices.arm.gicv3 import DISABLE_SECURITY, PRIORITIES, Gicv3

FRAME: Final = 0x1_0000
_ROUTING_ON: Final = 0x30  # GICD_CTLR.ARE_S and ARE_NS
_SINGLE_STATE: Final = 0x10 | DISABLE_SECURITY
_IMPLEMENTER: Final = 0x43B  # Arm
_IDENTIFICATION: Final = bytes((0x44, 0, 0, 0, 0x92, 0xB4, 0x3B, 0, 0x0D, 0xF0, 0x05, 0xB1))  # at 0xffd0, a word each
_IDENTIFIED: Final = 0xFFD0

# Registers with one bit per interrupt: offset -> the bank's word.
_SET: Final = {0x080: "group1", 0x100: "enabled", 0x200: "latched", 0x300: "active"}
_CLEAR: Final = {0x180: "enabled", 0x280: "latched", 0x380: "active"}
_MODIFIERS, _PRIORITY, _CONFIGURATION, _ROUTES = 0xD00, 0x400, 0xC00, 0x6000
_STATUS_END: Final = 0x400
_ASLEEP: Final = 6  # GICR_WAKER: ProcessorSleep and ChildrenAsleep


@dataclass(slots=True)
class Bits:
    """The registers that a bank's interrupts have in either window, from `first` of them on."""

    gic: Gicv3
    bank: Bank

    def read(self, offset: int, size: int) -> int:
        """A register, composed of bytes: priorities may be accessed in any width."""
        return sum(self._byte(offset + index) << 8 * index for index in range(size))

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register. Bits of interrupts that the access does not see stay as they are."""
        for index in range(size):
            self._write_byte(offset + index, value >> 8 * index & 0xFF)

    @property
    def _seen(self) -> int:
        return -1 if self.gic.sees_all else self.bank.group1

    def _shift(self, offset: int, each: int) -> int:
        """The index in the bank of the first interrupt of a byte, which has `each` interrupts; negative or too large:
        it is not here."""
        return offset * each - self.bank.first

    def _is_here(self, index: int) -> bool:
        return 0 <= index < self.bank.count

    def _byte(self, offset: int) -> int:
        if 0x080 <= offset < _STATUS_END:
            return self._status(offset)
        if _PRIORITY <= offset < 0x800:
            index = self._shift(offset - _PRIORITY, 1)
            return self._priority(index) if self._is_here(index) else 0
        if _CONFIGURATION <= offset < _MODIFIERS:
            index = self._shift(offset - _CONFIGURATION, 4)
            edges = self.bank.edge & self._seen
            return sum((edges >> index + n & 1) << 2 * n + 1 for n in range(4)) if self._is_here(index) else 0
        if _MODIFIERS <= offset < _MODIFIERS + 0x80:
            index = self._shift(offset - _MODIFIERS, 8)
            is_shown = self._is_here(index) and self.gic.has_states and self.gic.sees_all
            return self.bank.modifier >> index & 0xFF if is_shown else 0
        return 0

    def _status(self, offset: int) -> int:
        index, block = self._shift(offset & 0x7F, 8), offset & ~0x7F
        if not self._is_here(index) or (block == 0x080 and not self.gic.sees_all):
            return 0
        name = _SET.get(block) or _CLEAR[block]
        word: int = self.bank.pending if name == "latched" else getattr(self.bank, name)
        return (word & self._seen) >> index & 0xFF

    def _priority(self, index: int) -> int:
        """A non-secure access sees the priorities from 0x80 on as all there are (4.8.6)."""
        value = self.bank.priority[index]
        if self.gic.sees_all:
            return value
        return value << 1 & 0xFF if self.bank.group1 >> index & 1 else 0

    def _write_byte(self, offset: int, value: int) -> None:
        if 0x080 <= offset < _STATUS_END:
            self._write_status(offset, value)
        elif _PRIORITY <= offset < 0x800:
            index = self._shift(offset - _PRIORITY, 1)
            if self._is_here(index) and (self.gic.sees_all or self.bank.group1 >> index & 1):
                self.bank.priority[index] = (value if self.gic.sees_all else value >> 1 | 0x80) & PRIORITIES
        elif _CONFIGURATION <= offset < _MODIFIERS:
            self._configure(self._shift(offset - _CONFIGURATION, 4), value)
        elif _MODIFIERS <= offset < _MODIFIERS + 0x80 and self.gic.has_states and self.gic.sees_all:
            index = self._shift(offset - _MODIFIERS, 8)
            if self._is_here(index):
                self.bank.change("modifier", 0xFF << index, value << index)

    def _write_status(self, offset: int, value: int) -> None:
        index, block, bank = self._shift(offset & 0x7F, 8), offset & ~0x7F, self.bank
        if not self._is_here(index):
            return
        bits = value << index & self._seen
        if block == 0x080:
            if self.gic.sees_all:
                bank.change("group1", 0xFF << index, bits)
        elif block in _SET:
            bank.change(_SET[block], 0, bits)
        else:
            bank.change(_CLEAR[block], bits, 0)

    def _configure(self, index: int, value: int) -> None:
        if not self._is_here(index):
            return
        bank, seen = self.bank, self._seen
        for n in range(4):
            bit = 1 << index + n & seen
            if bank.first or index + n >= 16:  # SGIs are always edge-triggered
                bank.change("edge", bit, bit if value >> 2 * n + 1 & 1 else 0)


@dataclass(slots=True)
class Distributor:
    """GICD_*: which shared interrupts are enabled, pending and active, and where they go."""

    gic: Gicv3
    size: int = FRAME

    def read(self, offset: int, size: int) -> int:
        """A register."""
        if offset < 0x080:
            return self._fixed(offset & ~3) >> (offset & 3) * 8 & (1 << 8 * size) - 1
        if offset >= _IDENTIFIED:
            return _identification(offset)
        if offset >= _ROUTES:
            return self._route(offset) & (1 << 8 * size) - 1
        return Bits(self.gic, self.gic.shared).read(offset, size)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register."""
        gic = self.gic
        if offset == 0:
            gic.enable(value)
        elif _ROUTES <= offset < _IDENTIFIED:
            self._write_route(offset, value)
        elif offset >= 0x080:
            Bits(gic, gic.shared).write(offset, size, value)
        gic.update()

    def _fixed(self, register: int) -> int:
        gic = self.gic
        match register:
            case 0:
                if not gic.has_states:
                    return gic.control | _SINGLE_STATE
                # A non-secure access sees its own group's bit, twice, and its own ARE.
                return gic.control | _ROUTING_ON if gic.sees_all else gic.control & 2 | 0x10
            case 4:  # GICD_TYPER: interrupts, two states, 16 bits of numbers, no routing to just anybody
                return gic.interrupts // 32 - 1 | gic.has_states << 10 | 0xF << 19 | 1 << 24 | 1 << 25
            case 8:
                return _IMPLEMENTER
        return 0

    def _route(self, offset: int) -> int:
        index = (offset - _ROUTES >> 3) - PRIVATE
        if not self._is_routed(index):
            return 0
        return self.gic.routes[index] >> (offset & 4) * 8

    def _write_route(self, offset: int, value: int) -> None:
        index = (offset - _ROUTES >> 3) - PRIVATE
        if self._is_routed(index) and not offset & 4:
            self.gic.routes[index] = value & 0x00FF_FFFF

    def _is_routed(self, index: int) -> bool:
        is_here = 0 <= index < len(self.gic.routes)
        return is_here and (self.gic.sees_all or bool(self.gic.shared.group1 >> index & 1))


@dataclass(slots=True)
class Redistributors:
    """GICR_* of all CPUs, one after the other."""

    gic: Gicv3
    size: int

    def read(self, offset: int, size: int) -> int:
        """A register."""
        cpu, offset = divmod(offset, 2 * FRAME)
        if cpu >= len(self.gic.private):
            return 0
        if offset >= FRAME:
            return Bits(self.gic, self.gic.private[cpu]).read(offset - FRAME, size)
        if offset >= _IDENTIFIED:
            return _identification(offset)
        return self._fixed(cpu, offset & ~3) >> (offset & 3) * 8 & (1 << 8 * size) - 1

    def _fixed(self, cpu: int, register: int) -> int:
        is_last = cpu == len(self.gic.private) - 1
        kind = cpu << 32 | cpu << 8 | is_last << 4  # GICR_TYPER: the CPU's affinity, its number, no LPIs
        is_asleep = self.gic.asleep[cpu] and self.gic.sees_all
        registers = {4: _IMPLEMENTER, 8: kind, 0xC: kind >> 32, 0x14: _ASLEEP if is_asleep else 0}
        return registers.get(register, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register."""
        cpu, offset = divmod(offset, 2 * FRAME)
        if cpu >= len(self.gic.private):
            return
        if offset >= FRAME:
            Bits(self.gic, self.gic.private[cpu]).write(offset - FRAME, size, value)
        elif offset == 0x14 and self.gic.sees_all:
            self.gic.asleep[cpu] = bool(value & 2)
        self.gic.update()


def _identification(offset: int) -> int:
    return _IDENTIFICATION[offset - _IDENTIFIED >> 2] if offset & 3 == 0 and offset < 0x1_0000 else 0

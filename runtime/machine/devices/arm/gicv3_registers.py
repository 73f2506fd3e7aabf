"""The system registers of a GICv3: ICC_*, by which a CPU takes and ends interrupts (IHI 0069H chapter 12.2).

Unicorn's CPU lacks them, so that each access is an exception that `Arm64Exceptions` answers here. ICH_*, with which a
hypervisor gives interrupts to its guests, read as written: no guest ever gets one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kinst.runtime.machine.devices.arm.gic_banks import IDLE, SPURIOUS
from kinst.runtime.machine.devices.arm.gicv3 import Gicv3, Group, Interface
from kinst.runtime.machine.exception_model import SystemRegister

if TYPE_CHECKING:
    from kinst.runtime.machine.machine import Cpu

_Key = tuple[int, int, int, int]  # op1, CRn, CRm, op2; op0 is 3
_PMR: Final = (0, 4, 6, 0)
_GROUP0: Final = {0: "iar", 1: "eoir", 2: "hppir", 3: "bpr"}  # of CRm 8, by op2
_GROUP1: Final = {**_GROUP0, 4: "ctlr", 5: "sre", 6: "igrpen0", 7: "igrpen1"}  # of CRm 12
_OF_EL2: Final = 4
_OF_EL3: Final = 6
_LOWEST_LEVELS: Final = {0: 1, _OF_EL2: 2, _OF_EL3: 3}
_SECURE_ONE, _NON_SECURE_ONE = 1020, 1021  # what EL3 reads for a pending interrupt of group 1
_NON_SECURE, _FIQ_TO_EL3 = 1, 4  # SCR_EL3.NS, FIQ
_COMMON_POINT, _END_ONLY_DROPS = 1, 2  # ICC_CTLR_EL1: CBPR, EOImode
_FIXED_CONTROL: Final = 4 << 8 | 1 << 11 | 1 << 15  # five bits of priority, numbers of 24 bits, affinity 3
_SYSTEM_REGISTERS: Final = 7  # ICC_SRE: SRE, DFB, DIB; there is no other interface
_ENABLE_LOWER: Final = 8
_VIRTUAL_TYPE: Final = 4 << 29 | 4 << 26 | 3  # ICH_VTR_EL2: five bits of priority, four list registers
# ICC_SRE_EL2 and ICH_VTR_EL2 do not change.
_OF_HYPERVISORS: Final = {
    (_OF_EL2, 12, 9, 5): _SYSTEM_REGISTERS | _ENABLE_LOWER,
    (_OF_EL2, 12, 11, 1): _VIRTUAL_TYPE,
}
_SPLIT_AT_EL3: Final = 4  # ICC_CTLR_EL3: EOImode_EL3


@dataclass(slots=True)
class CpuRegisters:
    """The registers of all CPUs; a `RegisterBank`."""

    gic: Gicv3
    _virtual: dict[tuple[int, _Key], int] = field(default_factory=dict)

    def read(self, cpu: "Cpu", register: SystemRegister) -> int | None:
        """See `RegisterBank`. Reading ICC_IAR takes an interrupt."""
        key = register.op1, register.crn, register.crm, register.op2
        if not self._is_here(cpu, register):
            return None
        if register.op1 == _OF_EL2:
            return _OF_HYPERVISORS.get(key) or self._virtual.get((cpu.number, key), 0)
        return self._read_of_el1(cpu, key) if register.op1 == 0 else self._read_of_el3(cpu, key)

    def write(self, cpu: "Cpu", register: SystemRegister, value: int) -> bool:
        """See `RegisterBank`."""
        key = register.op1, register.crn, register.crm, register.op2
        if not self._is_here(cpu, register):
            return False
        if register.op1 == _OF_EL2:
            self._virtual[cpu.number, key] = value
            return True
        write = self._writes(cpu, key)
        if write is None:
            return False
        write(value)
        self.gic.update()
        return True

    def _is_here(self, cpu: "Cpu", register: SystemRegister) -> bool:
        """Whether it is one of these, and the CPU's level may access it."""
        key = register.op1, register.crn, register.crm, register.op2
        is_one = register.op0 == 3 and (key == _PMR or (register.crn == 12 and 8 <= register.crm <= 15))
        lowest = _LOWEST_LEVELS.get(register.op1)
        return is_one and lowest is not None and _level(cpu) >= lowest

    # -- states and groups --------------------------------------------------------------------------------------------

    def _state(self, cpu: "Cpu") -> int:
        """Which of a pair of registers the CPU sees: 1 is the non-secure one, if there are two states. At EL3 SCR_EL3
        says so as well."""
        return int(self.gic.has_states and bool(cpu.registers.get("scr_el3") & _NON_SECURE))

    def _own(self, cpu: "Cpu") -> Group:
        """Group 1 of that state."""
        return Group.ONE if self._state(cpu) or not self.gic.has_states else Group.ONE_SECURE

    def _is_restricted(self, cpu: "Cpu") -> bool:
        """Whether the CPU's state has group 1 only: a non-secure one, if FIQs are EL3's."""
        return not self.gic.sees_all and bool(cpu.registers.get("scr_el3") & _FIQ_TO_EL3)

    def _shown(self, cpu: "Cpu", priority: int) -> int:
        """A priority as the CPU's state sees it: one that is restricted sees the lower half (4.8.6)."""
        if not self._is_restricted(cpu):
            return priority
        return priority << 1 & 0xFF if priority & 0x80 else 0

    def _taken_by(self, cpu: "Cpu", group: Group) -> tuple[Group, ...]:
        """The groups that a group's registers take and end: at EL3 those of group 1 always serve the secure one."""
        is_both = group is Group.ONE and self.gic.has_states and _level(cpu) == 3
        return (group, Group.ONE_SECURE) if is_both else (group,)

    def _highest(self, cpu: "Cpu", group: Group) -> tuple[int, int]:
        """What ICC_HPPIR of a group reads, and the priority of that interrupt."""
        found = self.gic.best(cpu.number)
        if found[0] == SPURIOUS:
            return found
        actual = self.gic.group_of(cpu.number, found[0])
        if not self.gic.interfaces[cpu.number].is_enabled[actual]:
            return SPURIOUS, 0
        if actual in self._taken_by(cpu, group):
            return found
        if group is Group.ZERO and _level(cpu) == 3 and self.gic.has_states:
            return (_SECURE_ONE if actual is Group.ONE_SECURE else _NON_SECURE_ONE), 0
        return SPURIOUS, 0

    def _take(self, cpu: "Cpu", group: Group) -> int:
        if self.gic.signalled(cpu.number) is None:
            return SPURIOUS
        interrupt, priority = self._highest(cpu, group)
        if interrupt < self.gic.interrupts and interrupt < _SECURE_ONE:
            self.gic.acknowledge(interrupt, priority)
        return interrupt

    # -- reading ------------------------------------------------------------------------------------------------------

    def _read_of_el1(self, cpu: "Cpu", key: _Key) -> int | None:
        interface = self.gic.interfaces[cpu.number]
        match key[1:]:
            case (4, 6, 0):
                return self._shown(cpu, interface.mask)
            case (12, 8, op2) if op2 in _GROUP0:
                return self._read_group0(cpu, _GROUP0[op2], interface)
            case (12, 12, op2) if op2 in _GROUP1:
                return self._read_group1(cpu, _GROUP1[op2], interface)
            case (12, (8 | 9) as crm, op2):
                return self._active(cpu, crm, op2)
            case (12, 11, 3):
                return 0xFF if interface.running == IDLE else self._shown(cpu, interface.running)
        return None

    def _read_of_el3(self, cpu: "Cpu", key: _Key) -> int | None:
        interface = self.gic.interfaces[cpu.number]
        secure, other = interface.control
        own = secure & 1 | (other & 1) << 1 | (secure & 2) << 2 | (other & 2) << 3 | interface.control3
        enabled = interface.is_enabled[Group.ONE] | interface.is_enabled[Group.ONE_SECURE] << 1
        values = {
            (12, 12, 4): _FIXED_CONTROL | own,
            (12, 12, 5): _SYSTEM_REGISTERS | _ENABLE_LOWER,
            (12, 12, 7): enabled,
        }
        return values.get(key[1:])

    def _read_group0(self, cpu: "Cpu", name: str, interface: Interface) -> int | None:
        if self._is_restricted(cpu):
            return None
        match name:
            case "iar":
                return self._take(cpu, Group.ZERO)
            case "hppir":
                return self._highest(cpu, Group.ZERO)[0]
            case "bpr":
                return interface.binary_point0
        return 0

    def _read_group1(self, cpu: "Cpu", name: str, interface: Interface) -> int | None:
        own, state = self._own(cpu), self._state(cpu)
        match name:
            case "iar":
                return self._take(cpu, own)
            case "hppir":
                return self._highest(cpu, own)[0]
            case "bpr":
                is_common = interface.control[state] & _COMMON_POINT
                return interface.binary_point0 if is_common else interface.binary_point1[state]
            case "ctlr":
                return _FIXED_CONTROL | interface.control[state]
            case "sre":
                return _SYSTEM_REGISTERS
            case "igrpen0":
                return None if self._is_restricted(cpu) else int(interface.is_enabled[Group.ZERO])
            case "igrpen1":
                return int(interface.is_enabled[own])
        return 0

    def _active(self, cpu: "Cpu", crm: int, op2: int) -> int | None:
        """ICC_AP0R<n> and ICC_AP1R<n>: the priorities of what is active, a bit each; five bits of them fit into the
        first of four registers."""
        if op2 < 4 and crm == 8:
            return None
        interface = self.gic.interfaces[cpu.number]
        priorities = [before for _, before in interface.preempted[1:]] + [interface.running]
        groups = {Group.ZERO} if crm == 8 else {self._own(cpu)}
        bits = 0
        for (group, _), priority in zip(interface.preempted, priorities, strict=False):
            bits |= 1 << (priority >> 3) if group in groups else 0
        return bits if op2 & 3 == 0 else 0

    # -- writing ------------------------------------------------------------------------------------------------------

    def _writes(self, cpu: "Cpu", key: _Key) -> Callable[[int], None] | None:
        interface = self.gic.interfaces[cpu.number]
        match key:
            case (0, 4, 6, 0):
                return lambda value: self._write_mask(cpu, value)
            case (0, 12, 8, op2) if op2 in _GROUP0:
                return None if self._is_restricted(cpu) else self._write_group0(cpu, _GROUP0[op2])
            case (0, 12, 12, op2) if op2 in _GROUP1:
                return self._write_group1(cpu, _GROUP1[op2])
            case (0, 12, (8 | 9) as crm, _):
                return lambda value: self._write_active(cpu, crm, value)
            case (0, 12, 11, 1):
                return lambda value: self._deactivate(cpu, value & 0xFF_FFFF, is_split=True)
            case (0, 12, 11, (5 | 6 | 7) as op2):
                return lambda value: self._send(cpu, value, op2)
        return self._write_of_el3(interface, key)

    def _write_of_el3(self, interface: Interface, key: _Key) -> Callable[[int], None] | None:
        def control(value: int) -> None:
            interface.control_at_el3(value & _SPLIT_AT_EL3)
            for state in range(2):
                ends = _END_ONLY_DROPS if value >> (3 + state) & 1 else 0  # EOImode_EL1S, EOImode_EL1NS
                interface.control[state] = value >> state & 1 | ends

        def enable(value: int) -> None:
            interface.is_enabled[Group.ONE], interface.is_enabled[Group.ONE_SECURE] = bool(value & 1), bool(value & 2)

        others: Mapping[_Key, Callable[[int], None]] = {
            (_OF_EL3, 12, 12, 4): control,
            (_OF_EL3, 12, 12, 5): lambda _value: None,
            (_OF_EL3, 12, 12, 7): enable,
        }
        return others.get(key)

    def _write_mask(self, cpu: "Cpu", value: int) -> None:
        interface = self.gic.interfaces[cpu.number]
        if not self._is_restricted(cpu):
            interface.mask_from(value)
        elif interface.mask & 0x80:  # else it is the secure state's, and stays
            interface.mask_from(value >> 1 & 0x7F | 0x80)

    def _write_group0(self, cpu: "Cpu", name: str) -> Callable[[int], None] | None:
        point = self.gic.interfaces[cpu.number].divide_group0
        return {"eoir": self._end(cpu, Group.ZERO), "bpr": point}.get(name)

    def _write_group1(self, cpu: "Cpu", name: str) -> Callable[[int], None] | None:
        interface, state, own = self.gic.interfaces[cpu.number], self._state(cpu), self._own(cpu)

        def set_point(value: int) -> None:
            interface.binary_point1[state] = max(value & 7, 2 + state)

        def set_control(value: int) -> None:
            kept = _COMMON_POINT if self.gic.has_states else 0  # ICC_CTLR_EL3 has it then
            interface.control[state] = interface.control[state] & kept | value & (3 & ~kept)

        def enable(group: Group, value: int) -> None:
            interface.is_enabled[group] = bool(value & 1)

        writes: Mapping[str, Callable[[int], None]] = {
            "eoir": self._end(cpu, own),
            "bpr": set_point,
            "ctlr": set_control,
            "sre": lambda _value: None,
            "igrpen1": lambda value: enable(own, value),
        }
        if name == "igrpen0" and not self._is_restricted(cpu):
            return lambda value: enable(Group.ZERO, value)
        return writes.get(name)

    def _end(self, cpu: "Cpu", group: Group) -> Callable[[int], None]:
        def end(value: int) -> None:
            if value & 0xFF_FFFF >= _SECURE_ONE:
                return
            if any(map(self.gic.drop, self._taken_by(cpu, group))):
                self._deactivate(cpu, value & 0xFF_FFFF, is_split=False)

        return end

    def _deactivate(self, cpu: "Cpu", interrupt: int, *, is_split: bool) -> None:
        """By ICC_DIR if ending an interrupt is split in two steps, else by ICC_EOIR; of interrupts that are seen."""
        interface = self.gic.interfaces[cpu.number]
        if _level(cpu) == 3 and self.gic.has_states:
            mode = bool(interface.control3 & _SPLIT_AT_EL3)
        else:
            mode = bool(interface.control[self._state(cpu)] & _END_ONLY_DROPS)
        is_seen = interrupt < self.gic.interrupts and (
            self.gic.sees_all or self.gic.group_of(cpu.number, interrupt) is Group.ONE
        )
        if mode == is_split and is_seen:
            self.gic.deactivate(interrupt)

    def _write_active(self, cpu: "Cpu", crm: int, value: int) -> None:
        """Firmware and kernels clear them at their start: nothing is active any more."""
        if value == 0:
            self.gic.interfaces[cpu.number].forget(Group.ZERO if crm == 8 else self._own(cpu))

    def _send(self, cpu: "Cpu", value: int, op2: int) -> None:
        """ICC_SGI1R, ICC_ASGI1R (group 1 of the other state) and ICC_SGI0R.

         55 48 47 44 41 40 39 32 27 24 23 16 15           0
        +-----+-----+--+--+-----+-----+-----+---------------+
        |Aff3 | RS  |  |IRM|Aff2|INTID|Aff1 |  target list  |
        +-----+-----+--+--+-----+-----+-----+---------------+
        """
        own = Group.ONE_SECURE if self.gic.has_states and self.gic.sees_all else Group.ONE  # EL3 is secure, always
        other = Group.ONE if own is Group.ONE_SECURE else Group.ONE_SECURE
        groups = {5: _reached(own), 6: _reached(other), 7: (Group.ZERO,)}[op2]
        if value >> 40 & 1:
            self.gic.send(value >> 24 & 15, lambda number: number != cpu.number, groups)
            return
        clusters = (value >> 16 & 0xFF, value >> 32 & 0xFF, value >> 48 & 0xFF)
        first = 16 * (value >> 44 & 15)
        self.gic.send(
            value >> 24 & 15,
            lambda number: clusters == (0, 0, 0) and 0 <= number - first < 16 and bool(value >> number - first & 1),
            groups,
        )


def _level(cpu: "Cpu") -> int:
    return cpu.registers.get("pstate") >> 2 & 3


def _reached(group: Group) -> tuple[Group, ...]:
    """The groups that an SGI for a group is sent to: the secure state's reaches its FIQs as well (12.1.10)."""
    return (group, Group.ZERO) if group is Group.ONE_SECURE else (group,)

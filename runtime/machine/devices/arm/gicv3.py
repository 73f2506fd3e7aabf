"""GICv3 interrupt controller (IHI 0069H): interrupt lines -> IRQ and FIQ of each CPU, with or without a secure state.

One `Gicv3` has the state; the distributor, the redistributors and the system registers of the CPUs are its windows
(`gicv3_windows.py`, `gicv3_registers.py`). Affinity routing is always on, and there are no LPIs, as without an ITS.
Priorities have five bits. Interrupts are numbered as in `gic_banks.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.arm.gic_banks import IDLE, PRIVATE, SPURIOUS, Bank, Banks, CurrentCpu

PRIORITIES: Final = 0xF8
EVERYBODY: Final = 1 << 31  # GICD_IROUTER.Interrupt_Routing_Mode, which this controller lacks
DISABLE_SECURITY: Final = 1 << 6  # GICD_CTLR.DS


class Group(IntEnum):
    """The groups of interrupts. The values are their bits in GICD_CTLR, as EL3 and as a single state see them."""

    ZERO = 0
    ONE = 1  # non-secure, if there are two states
    ONE_SECURE = 2


@dataclass(slots=True)
class Interface:
    """A CPU's interface: its registers, and the stack of its active interrupts. Lists of two are for the secure and the
    non-secure state."""

    lines: Sequence[Line]  # by `Group`
    mask: int = 0  # ICC_PMR_EL1, as EL3 sees it
    is_enabled: list[bool] = field(default_factory=lambda: [False] * len(Group))  # by `Group`
    binary_point0: int = 0
    binary_point1: list[int] = field(default_factory=lambda: [0, 0])
    control: list[int] = field(default_factory=lambda: [0, 0])  # ICC_CTLR_EL1: CBPR and EOImode
    control3: int = 0  # ICC_CTLR_EL3's own bits
    preempted: list[tuple[int, int]] = field(default_factory=list)  # (group, the running priority before it)
    running: int = IDLE

    def mask_from(self, priority: int) -> None:
        """Show the CPU interrupts of higher priorities only (ICC_PMR_EL1)."""
        self.mask = priority & PRIORITIES

    def divide_group0(self, point: int) -> None:
        """Set ICC_BPR0_EL1; 2 is the smallest with five bits of priority."""
        self.binary_point0 = max(point & 7, 2)

    def control_at_el3(self, bits: int) -> None:
        """Set ICC_CTLR_EL3's own bits."""
        self.control3 = bits

    def forget(self, group: "Group") -> None:
        """Nothing of a group is active any more."""
        self.preempted = [one for one in self.preempted if one[0] != group]
        if not self.preempted:
            self.running = IDLE


class Gicv3(Banks):
    """The controller's state.

    `lines`: for each CPU, its inputs for interrupts of group 0, of group 1 and, if there are two states, of secure
    group 1. `interrupts`: their number, a multiple of 32. `current`: the CPU that makes an access; `is_secure`: whether
    it is in the secure state; None: there is one state only.
    """

    def __init__(
        self,
        lines: Sequence[Sequence[Line]],
        interrupts: int,
        current: CurrentCpu,
        is_secure: Callable[[], bool] | None = None,
    ) -> None:
        """Nothing is enabled, and everything is in group 0."""
        super().__init__([Bank(0, PRIVATE, edge=0xFFFF) for _ in lines], interrupts, current)
        self._is_secure = is_secure
        self.control = 0 if is_secure else DISABLE_SECURITY
        self.routes = [0] * (interrupts - PRIVATE)  # GICD_IROUTER
        self.asleep = [True] * len(lines)  # GICR_WAKER
        self.interfaces = [Interface(one) for one in lines]

    @property
    def has_states(self) -> bool:
        """Whether there are two security states now."""
        return not self.control & DISABLE_SECURITY

    @property
    def sees_all(self) -> bool:
        """Whether the present access sees all interrupts: it is secure, or there is one state."""
        return not self.has_states or self._is_secure is None or self._is_secure()

    def enable(self, value: int) -> None:
        """Write GICD_CTLR. DS can be set, and not cleared again."""
        if not self.has_states:
            self.control = value & 3 | DISABLE_SECURITY
        elif self.sees_all:
            self.control = value & (7 | DISABLE_SECURITY)
        else:
            self.control = self.control & ~2 | value & 2

    def groups(self, bank: Bank) -> tuple[int, int, int]:
        """The interrupts of a bank as bits, by `Group`."""
        modifier = bank.modifier if self.has_states else 0
        ones = bank.group1
        return ~ones & ~modifier, ones, ~ones & modifier

    def group_of(self, cpu: int, interrupt: int) -> Group:
        """The group of an interrupt."""
        bank = self.private[cpu] if interrupt < PRIVATE else self.shared
        return Group(next(n for n, bits in enumerate(self.groups(bank)) if bits >> interrupt - bank.first & 1))

    def send(self, interrupt: int, targets: Callable[[int], bool], groups: Sequence[Group]) -> None:
        """Make an SGI pending on CPUs, by number, on which it is in one of the groups."""
        for number, bank in enumerate(self.private):
            if targets(number) and self.group_of(number, interrupt) in groups:
                bank.change("latched", 0, 1 << interrupt)
        self.update()

    def is_for(self, cpu: int, index: int) -> bool:
        """See `Banks`."""
        return self.routes[index] == cpu

    def enabled_groups(self, bank: Bank) -> int:
        """See `Banks`."""
        return sum(bits & (1 << bank.count) - 1 for n, bits in enumerate(self.groups(bank)) if self.control >> n & 1)

    def update(self) -> None:
        """Drive every CPU's lines."""
        for cpu, interface in enumerate(self.interfaces):
            signalled = self.signalled(cpu)
            group = None if signalled is None else self.group_of(cpu, signalled[0])
            for number, line in enumerate(interface.lines):
                line(group == number)

    def signalled(self, cpu: int) -> tuple[int, int] | None:
        """The interrupt that a CPU is shown, and its priority: its group is enabled at the CPU, ICC_PMR_EL1 does not
        mask it, and it preempts what runs (IHI 0069H 4.8)."""
        interrupt, priority = self.best(cpu)
        if interrupt == SPURIOUS or self.asleep[cpu]:
            return None
        interface, group = self.interfaces[cpu], self.group_of(cpu, interrupt)
        if not interface.is_enabled[group] or priority >= interface.mask:
            return None
        point = self._subpriority(interface, group)
        return (interrupt, priority) if priority >> point < interface.running >> point else None

    def _subpriority(self, interface: Interface, group: Group) -> int:
        """The bits of a priority that do not preempt."""
        state = int(group is Group.ONE and self.has_states)
        if group is Group.ZERO or interface.control[state] & 1:
            return interface.binary_point0 + 1
        return interface.binary_point1[state] + (1 - state)

    def acknowledge(self, interrupt: int, priority: int) -> None:
        """Take an interrupt that is signalled: it becomes active, and the CPU runs at its priority."""
        cpu = self.current()
        interface, bank = self.interfaces[cpu], self.bank(interrupt)
        bit = 1 << interrupt - bank.first
        bank.change("latched", bit, 0)
        bank.change("active", 0, bit)
        interface.preempted.append((self.group_of(cpu, interrupt), interface.running))
        interface.running = priority
        self.update()

    def drop(self, group: Group) -> bool:
        """Drop the running priority, if an interrupt of the group has it; else False."""
        interface = self.interfaces[self.current()]
        if not interface.preempted or interface.preempted[-1][0] != group:
            return False
        _, interface.running = interface.preempted.pop()
        self.update()
        return True

    def deactivate(self, interrupt: int) -> None:
        """Make it inactive, so that it can be signalled again."""
        if interrupt < self.interrupts:
            bank = self.bank(interrupt)
            bank.change("active", 1 << interrupt - bank.first, 0)
            self.update()

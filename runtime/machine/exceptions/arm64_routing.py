"""Which exception level takes an exception or an interrupt of an arm64 CPU (DDI 0487 D1.3.5, D1.3.6).

A board has the levels up to its highest one. Without EL3 in it, firmware of the machine's own is above the guest, and
everything is non-secure.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kinst.runtime.machine.machine import Cpu

LINE_IRQ, LINE_FIQ = 0, 1  # interrupt inputs of a CPU
# A GICv3 with two security states asserts these in place of IRQ for group 1: which of them is an IRQ, and which is a
# FIQ, depends on the CPU's state (IHI 0069H 4.6.2).
LINE_GROUP1_SECURE, LINE_GROUP1 = 2, 3
_IRQ, _FIQ = 1 << LINE_IRQ, 1 << LINE_FIQ
_GROUPS: Final = 1 << LINE_GROUP1_SECURE | 1 << LINE_GROUP1

HCR_FMO, HCR_IMO, HCR_TGE = 1 << 3, 1 << 4, 1 << 27
SCR_NS, SCR_IRQ, SCR_FIQ, SCR_EA = 1 << 0, 1 << 1, 1 << 2, 1 << 3


def level_of(cpu: "Cpu") -> int:
    """The CPU's exception level."""
    return cpu.registers.get("pstate") >> 2 & 3


def is_secure(cpu: "Cpu") -> bool:
    """Whether a CPU that has EL3 is in the secure state, as it always is at EL3."""
    return level_of(cpu) == 3 or not cpu.registers.get("scr_el3") & SCR_NS


def synchronous_level(cpu: "Cpu", highest: int, minimum: int = 1) -> int:
    """The level that a synchronous exception goes to, which is `minimum` or above."""
    target = max(level_of(cpu), minimum)
    is_general = target == 1 and highest >= 2 and bool(cpu.registers.get("hcr_el2") & HCR_TGE)
    return 2 if is_general and not (highest == 3 and is_secure(cpu)) else target


def abort_level(cpu: "Cpu", highest: int) -> int:
    """The lowest level that an external abort may go to."""
    return 3 if highest == 3 and cpu.registers.get("scr_el3") & SCR_EA else 1


def interrupt_level(cpu: "Cpu", highest: int, line: int) -> int:
    """The level that an interrupt goes to: EL3 or EL2 if their registers route it there, else EL1. At a higher level
    than that it is not taken (D1.3.6.1)."""
    if highest == 3:
        control = cpu.registers.get("scr_el3")
        if control & (SCR_FIQ if line == LINE_FIQ else SCR_IRQ):
            return 3
        if not control & SCR_NS:
            return 1
    if highest < 2:
        return 1
    routed = HCR_TGE | (HCR_FMO if line == LINE_FIQ else HCR_IMO)
    return 2 if cpu.registers.get("hcr_el2") & routed else 1


def asserted(cpu: "Cpu") -> int:
    """IRQ and FIQ as the CPU sees them now. Group 1 of the other security state, and at EL3 all of it, is a FIQ."""
    lines = cpu.lines
    if not lines & _GROUPS:
        return lines
    if level_of(cpu) == 3:
        return lines & (_IRQ | _FIQ) | _FIQ
    own = 1 << (LINE_GROUP1_SECURE if is_secure(cpu) else LINE_GROUP1)
    return lines & (_IRQ | _FIQ) | (_IRQ if lines & own else 0) | (_FIQ if lines & _GROUPS & ~own else 0)

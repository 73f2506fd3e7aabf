"""The state of an arm64 CPU after reset, at the exception level in which a board starts it."""

from typing import Final

from kinst.runtime.machine.exceptions.arm64 import MPIDR
from kinst.runtime.machine.machine import Cpu

# Registers of exception levels that Unicorn's CPU has and the board's CPU does not. Unless they say that EL1 is
# non-secure AArch64, turning the MMU on leads to endless prefetch aborts.
_SCR_EL3: Final = 0x5B1  # NS, HCE, SMD, RW
_HCR_EL2: Final = 0x8000_0000  # RW
_VPIDR_EL2, _VMPIDR_EL2 = "s3_4_c0_c0_0", "s3_4_c0_c0_5"  # the values of MIDR_EL1 and MPIDR_EL1 at EL1
_CORTEX_A57: Final = 0x411F_D070
_SCTLR_RESET: Final = 0x00C5_0838
_MASKED: Final = 0x3C1  # PSTATE: DAIF, the level's own stack; the level in bits 3:2


_FROM_EL3: Final = 3


def reset(cpu: Cpu, entry: int, argument: int, level: int, midr: int | None = None) -> None:
    """Put a CPU into the state after reset, about to run at the physical address `entry` with x0 = `argument`. `midr`
    says which CPU it is."""
    registers = cpu.registers
    registers.set("pc", entry)
    registers.set("x0", argument)
    registers.set("pstate", _MASKED | level << 2)
    registers.set("sctlr_el1", _SCTLR_RESET)
    registers.set(_VPIDR_EL2, _CORTEX_A57 if midr is None else midr)
    registers.set(_VMPIDR_EL2, MPIDR | cpu.number)
    registers.set("hcr_el2", _HCR_EL2 if level == 1 else 0)
    if level == _FROM_EL3:  # the secure state, and what is at lower levels is EL3's to say
        registers.set("scr_el3", 0)
        registers.set("sctlr_el3", _SCTLR_RESET)
    else:
        registers.set("scr_el3", _SCR_EL3)

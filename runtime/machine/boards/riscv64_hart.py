"""The state of a riscv64 hart as firmware hands it over to what it starts."""

from typing import Final

from kinst.runtime.machine.exceptions.riscv64 import MSIP, SEIP, SSIP, STIP, SUPERVISOR, machine_mode
from kinst.runtime.machine.machine import Cpu

# How OpenSBI leaves a hart (sbi_hart.c), which is what kernels are tested with. It delegates misaligned jumps,
# breakpoints, system calls and page faults, and S mode's three interrupts. Other exceptions it gives to S mode itself.
# All counters may be read in S mode, and cycle, time and instret in U mode: a vDSO reads the time. Other harts reach it
# by MSIP.
_CONTROL_REGISTERS: Final = {
    "medeleg": 1 << 0 | 1 << 3 | 1 << 8 | 1 << 12 | 1 << 13 | 1 << 15,
    "mideleg": 1 << SSIP | 1 << STIP | 1 << SEIP,
    "mcounteren": (1 << 64) - 1,
    "scounteren": 7,
    "mstatus": 1 << 63 | 3 << 13 | 1 << 7,  # SD, FS (floating point): dirty; MPIE
    "mie": 1 << MSIP,
    "sie": 0,
    "satp": 0,
    "sscratch": 0,
    "sepc": 0,
    "scause": 0,
    "stval": 0,
}


def reset(cpu: Cpu, entry: int, argument: int) -> None:
    """Put a hart into the state in which firmware hands it over (SBI 9.1): S mode, translation and interrupts off."""
    registers = cpu.registers
    with machine_mode(registers):
        for name, value in _CONTROL_REGISTERS.items():
            registers.set(name, value)
        registers.set("stvec", entry)
    registers.set("priv", SUPERVISOR)
    registers.set("a0", cpu.number)
    registers.set("a1", argument)
    registers.set("pc", entry)

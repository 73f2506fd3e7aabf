"""System registers that Unicorn's CPU lacks and that a board's CPU has -> the accesses, which Unicorn reports as
undefined instructions.

They are those of the interrupt controller, if it has system registers, and the implementation-defined ones: which bits
these have is in a CPU's own manual, and what they switch (prefetchers, workarounds) does not exist here.
"""

from typing import TYPE_CHECKING, Final, Protocol

from kinst.runtime.machine.assumed_registers import AssumedRegisters
from kinst.runtime.machine.exception_model import SystemRegister
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.machine.machine import Cpu

_MOVES: Final = 0x354  # bits 31:22 of msr (register) and mrs
_ZERO: Final = 31
_IMPLEMENTATION_DEFINED: Final = (11, 15)  # CRn (DDI 0487 D22.3.1: S3_<op1>_C11_*, S3_<op1>_C15_*)


class RegisterBank(Protocol):
    """System registers that belong to a device and not to Unicorn: the generic timer's, a GICv3's."""

    def read(self, cpu: "Cpu", register: SystemRegister) -> int | None:
        """The value; None if the CPU's level may not read it, or there is no such register."""
        ...

    def write(self, cpu: "Cpu", register: SystemRegister, value: int) -> bool:
        """Write the value; False if the CPU's level may not write it, or there is no such register."""
        ...


@dataclass(frozen=True, slots=True)
class ImplementationDefined:
    """Registers that read as written, each CPU's its own; a `RegisterBank`."""

    assumed: AssumedRegisters

    def read(self, cpu: "Cpu", register: SystemRegister) -> int | None:
        """See `RegisterBank`."""
        return self.assumed.read(cpu.number, _name(register), cpu.registers.get("pc")) if _is_one(register) else None

    def write(self, cpu: "Cpu", register: SystemRegister, value: int) -> bool:
        """See `RegisterBank`."""
        if not _is_one(register):
            return False
        self.assumed.write(cpu.number, _name(register), cpu.registers.get("pc"), value)
        return True


def _is_one(register: SystemRegister) -> bool:
    return register.op0 == 3 and register.crn in _IMPLEMENTATION_DEFINED


def _name(register: SystemRegister) -> str:
    """The generic name, for registers without another one (DDI 0487 C5.1.2)."""
    return f"s{register.op0}_{register.op1}_c{register.crn}_c{register.crm}_{register.op2}"


def register_of(word: int) -> SystemRegister | None:
    """The register that an instruction moves to or from a general one; None if it is none that does.

     31                 22 21 20 19 18 16 15   12 11    8 7   5 4    0
    +---------------------+--+-----+-----+-------+-------+-----+------+
    | 1 1 0 1 0 1 0 1 0 0 | L| op0 | op1 |  CRn  |  CRm  | op2 |  Rt  |
    +---------------------+--+-----+-----+-------+-------+-----+------+
    """
    if word >> 22 != _MOVES or not word >> 20 & 1:
        return None
    return SystemRegister(word >> 19 & 3, word >> 16 & 7, word >> 12 & 15, word >> 8 & 15, word >> 5 & 7)


def access_in(bank: RegisterBank, cpu: "Cpu", register: SystemRegister, word: int) -> bool:
    """Execute the instruction with a bank's register, except for the PC; False if that has no such register."""
    general, registers = word & 31, cpu.registers
    if word >> 21 & 1:  # mrs
        value = bank.read(cpu, register)
        if value is not None and general != _ZERO:
            registers.set(f"x{general}", value)
        return value is not None
    return bank.write(cpu, register, 0 if general == _ZERO else registers.get(f"x{general}"))

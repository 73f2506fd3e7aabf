"""Model-specific registers that Unicorn gives wrong values -> events where the guest reads them, and the right values.

Unicorn 2.1 has no hook for RDMSR, and IA32_APIC_BASE is always 0: no CPU is the one that booted, so that Linux 6.12
takes itself for a crash kernel and starts no other. But Unicorn has kept QEMU's SVM. A CPU in its guest mode exits
before RDMSR is executed if the permission map has a bit for the register (AMD64 Architecture Programmer's Manual
volume 2, 15.11), which UC_HOOK_INTR reports.

Before that hook Unicorn sets RIP to after the last `int n` or int3, if the last exception was one, such as a probe's.
RIP is still right when the map is read, so the part of the map with that bit is a device.
"""

from typing import Final

from kinst.runtime.machine.exceptions.amd64_segments import MODE_GUEST
from kinst.runtime.machine.machine import Cpu, Machine

INTERCEPTED: Final = 0x17C  # UC_HOOK_INTR's number: QEMU's EXCP_VMEXIT, and the code of the manual's appendix C
_APIC_BASE: Final = 0x1B
# Of the map (15.11), two bits a register, the first for reads: the bytes up to the register's, so that switches of
# tasks, which write others, do not come to the device.
_BYTE, _BIT = divmod(2 * _APIC_BASE, 8)
_SIZE: Final = _BYTE + 1
_PAGE: Final = 0x1000
_MEMORY: Final = 1 << 42  # physical, where guests have nothing: the rest of the map, and the control block
_MAP: Final = _MEMORY - _SIZE
_BLOCK: Final = _MEMORY + 2 * _PAGE
_MAP_POINTER: Final = 0x48  # in the control block: appendix B
_MODEL_SPECIFIC: Final = 1 << 28  # of the intercepts

# IA32_APIC_BASE (Intel SDM figure 11-5): 35:12 base, 11 enabled, 8 this is the boot CPU. It cannot be changed here.
_LOCAL_APICS: Final = 0xFEE0_0000
_ENABLED, _BOOT_CPU = 1 << 11, 1 << 8


class ModelSpecificRegisters:
    """The model-specific registers of all CPUs; as a `Device`, the first bytes of the map."""

    size = _SIZE

    def __init__(self, machine: Machine) -> None:
        """Unicorn answers reads until `intercept`."""
        self._machine = machine
        self._at = 0  # the PC of the instruction for which the map was read last

    def intercept(self) -> None:
        """Have reads exit, so that `answer` is called."""
        machine = self._machine
        machine.attach(self, _MAP)
        machine.memory.add_ram(_MEMORY, 3 * _PAGE)
        machine.memory.store(_BLOCK + _MAP_POINTER, 8, _MAP)
        for cpu in machine.cpus:
            cpu.registers.set("svm.block", _BLOCK)
            cpu.registers.set("svm.intercepts", _MODEL_SPECIFIC)
            cpu.registers.set("hflags", cpu.registers.get("hflags") | MODE_GUEST)

    def read(self, offset: int, size: int) -> int:
        """A byte of the map, at RDMSR or WRMSR."""
        self._at = self._machine.current.registers.get("rip")
        return 1 << _BIT if offset == _BYTE else 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Do nothing: nothing writes there."""

    def answer(self, cpu: Cpu) -> None:
        """Execute RDMSR of IA32_APIC_BASE: its value in EDX:EAX, and RIP at the next instruction."""
        registers = cpu.registers
        registers.set("rax", _LOCAL_APICS | _ENABLED | (_BOOT_CPU if cpu.number == 0 else 0))
        registers.set("rdx", 0)
        registers.set("rip", self._at + 2)

"""Model-specific registers that Unicorn answers wrongly -> events where the guest reads them, and their values.

Unicorn 2.1 has no hook for RDMSR, and IA32_APIC_BASE is always 0: no CPU is the one that booted, so that Linux 6.12
takes itself for a crash kernel and starts no other. But Unicorn has kept QEMU's SVM. A CPU in its guest mode leaves
RDMSR before it is executed if a bit for the register is set (AMD64 Architecture Programmer's Manual volume 2, 15.11),
and UC_HOOK_INTR tells it.
"""

from typing import Final

from kinst.runtime.machine.exceptions.amd64_segments import MODE_GUEST
from kinst.runtime.machine.machine import Cpu, Memory
from kinst.runtime.paging.walker import Registers

INTERCEPTED: Final = 0x17C  # UC_HOOK_INTR's number: QEMU's EXCP_VMEXIT, and the code of the manual's appendix C
_APIC_BASE: Final = 0x1B
_BLOCK: Final = 1 << 42  # physical, where guests have nothing: the control block, and behind it a map of registers
_PAGE: Final = 0x1000
_MAP: Final = _BLOCK + _PAGE
_MAP_POINTER: Final = 0x48  # in the control block: appendix B
_MODEL_SPECIFIC: Final = 1 << 28  # of the intercepts

# IA32_APIC_BASE (Intel SDM figure 11-5): 35:12 base, 11 enabled, 8 this is the boot CPU. It cannot be changed here.
_LOCAL_APICS: Final = 0xFEE0_0000
_ENABLED, _BOOT_CPU = 1 << 11, 1 << 8


def place_map(memory: Memory) -> None:
    """Put what guest mode needs into memory of its own. The map has two bits a register; the first is for reads."""
    memory.add_ram(_BLOCK, 3 * _PAGE)
    memory.store(_BLOCK + _MAP_POINTER, 8, _MAP)
    byte, bit = divmod(2 * _APIC_BASE, 8)
    memory.store(_MAP + byte, 1, 1 << bit)


def intercept(registers: Registers) -> None:
    """Let a CPU's reads come to `read`."""
    registers.set("svm.block", _BLOCK)
    registers.set("svm.intercepts", _MODEL_SPECIFIC)
    registers.set("hflags", registers.get("hflags") | MODE_GUEST)


def read(cpu: Cpu) -> None:
    """RDMSR of IA32_APIC_BASE: its value in EDX:EAX, and on to the next instruction."""
    registers = cpu.registers
    registers.set("rax", _LOCAL_APICS | _ENABLED | (_BOOT_CPU if cpu.number == 0 else 0))
    registers.set("rdx", 0)
    registers.set("rip", registers.get("rip") + 2)

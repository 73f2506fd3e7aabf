"""CPUID where Unicorn's answer is not the machine's: a leaf and a CPU's number -> the registers that the guest gets."""

from typing import Final

from kinst.runtime.machine.machine import Cpu

# The answers of Unicorn 2.1's own CPU (QEMU's Haswell without what Unicorn cannot do).
_RDRAND: Final = 1 << 30
_FIRST: Final = {"rax": 0x306C4, "rcx": 0xC6D8_2203, "rdx": 0x078B_FBFD}


def identify(cpu: Cpu, processors: int) -> bool:
    """CPUID leaf 1 with this CPU's APIC number in EBX 31:24 and without RDRAND, which Unicorn answers with the
    host's random numbers: no two runs would be the same. The other leaves are Unicorn's, without RDSEED."""
    registers = cpu.registers
    if registers.get("rax") & 0xFFFF_FFFF != 1:
        return False
    several = processors > 1
    os_xsave = (registers.get("cr4") >> 18 & 1) << 27
    registers.set("rax", _FIRST["rax"])
    registers.set("rbx", cpu.number << 24 | several * processors << 16 | 0x800)
    registers.set("rcx", _FIRST["rcx"] & ~_RDRAND | os_xsave)
    registers.set("rdx", _FIRST["rdx"] | several << 28)  # HTT: EBX 23:16 counts
    return True

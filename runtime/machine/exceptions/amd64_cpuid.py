"""CPUID where Unicorn's answer is not the machine's: a leaf and a CPU's number -> the registers that the guest gets.

Intel SDM volume 2, CPUID. The CPUs of a machine are cores of one package, of one thread each.
"""

from typing import Final

from kinst.runtime.machine.machine import Cpu

_Answer = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX
_NAMES: Final = ("rax", "rbx", "rcx", "rdx")
_WORD: Final = 0xFFFF_FFFF

# The answers of Unicorn 2.1's own CPU (QEMU's Haswell without what Unicorn cannot do).
_RDRAND: Final = 1 << 30
_FIRST: Final[_Answer] = (0x306C4, 0x800, 0xC6D8_2203 & ~_RDRAND, 0x078B_FBFD)
_CACHES: Final[tuple[_Answer, ...]] = (
    (0x121, 0x01C0_003F, 0x3F, 1),
    (0x122, 0x01C0_003F, 0x3F, 1),
    (0x143, 0x03C0_003F, 0xFFF, 1),
)

_SEVERAL: Final = 1 << 28  # HTT, in EDX: the package has several logical processors, and EBX 23:16 counts them
_NOTHING, _THREADS, _CORES = 0, 1, 2  # levels of leaf 0xb, in ECX 15:8


def identify(cpu: Cpu, processors: int) -> bool:
    """Answer CPUID with this CPU's number among `processors`. False: the answer is Unicorn's, which has one CPU and
    no RDSEED."""
    registers = cpu.registers
    leaf, part = registers.get("rax") & _WORD, registers.get("rcx") & _WORD
    if leaf == 1:
        answer = _features(cpu, processors)
    elif processors == 1:
        return False
    elif leaf == 4 and part < len(_CACHES):
        answer = _cache(part, processors)
    elif leaf == 0xB:
        answer = _level(part, cpu.number, processors)
    else:
        return False
    for name, value in zip(_NAMES, answer, strict=True):
        registers.set(name, value)
    return True


def _features(cpu: Cpu, processors: int) -> _Answer:
    """Leaf 1, with the APIC's number in EBX 31:24, and without RDRAND, for which Unicorn gives the host's
    random numbers: no two runs would be the same."""
    eax, ebx, ecx, edx = _FIRST
    if processors > 1:
        ebx, edx = ebx | processors << 16, edx | _SEVERAL
    os_xsave = (cpu.registers.get("cr4") >> 18 & 1) << 27
    return eax, cpu.number << 24 | ebx, ecx | os_xsave, edx


def _cache(part: int, processors: int) -> _Answer:
    """Leaf 4, with the largest number of a core in the package in EAX 31:26. No cache is shared."""
    eax, ebx, ecx, edx = _CACHES[part]
    return eax | (1 << _bits(processors)) - 1 << 26, ebx, ecx, edx


def _level(part: int, number: int, processors: int) -> _Answer:
    """Leaf 0xb: how far to shift the APIC's number for that of the next level, and how many are in this one."""
    shift, count, level = {0: (0, 1, _THREADS), 1: (_bits(processors), processors, _CORES)}.get(part, (0, 0, _NOTHING))
    return shift, count, level << 8 | part & 0xFF, number


def _bits(processors: int) -> int:
    return (processors - 1).bit_length()

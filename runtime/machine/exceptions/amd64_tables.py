"""Descriptors that a program's own instructions read: whether a fault of user mode is by such an access.

The CPU reads the descriptor tables and the TSS as the supervisor, whatever the privilege of the instruction for which
it reads them (Intel SDM volume 3, 4.6.1: implicit supervisor-mode accesses). Unicorn asks for the translation of an
address without saying which kind of access it is, so user mode faults there; the instruction decides.
"""

from typing import Final

from kinst.runtime.paging.walker import Registers

_PAGE: Final = 1 << 12
_PREFIXES: Final = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3, *range(0x40, 0x50)))
# mov and pop to a segment register, les and lds, far call, jmp, ret and iret; in and out, for the permission map.
_ONE_BYTE: Final = frozenset(
    (0x8E, 0x07, 0x17, 0x1F, 0xC4, 0xC5, 0x9A, 0xEA, 0xCA, 0xCB, 0xCF, *range(0x6C, 0x70), *range(0xE4, 0xE8))
) | frozenset(range(0xEC, 0xF0))
# lar, lsl, pop fs and gs, lss, lfs and lgs
_TWO_BYTES: Final = frozenset((0x02, 0x03, 0xA1, 0xA9, 0xB2, 0xB4, 0xB5))
_FAR: Final = frozenset((3, 5))  # 0xff: call and jmp through memory
_VERIFY: Final = frozenset((4, 5))  # 0x0f 0x00: verr and verw


def reads_descriptors(code: bytes) -> bool:
    """Whether an instruction, of which `code` has the first bytes, may read a table. In 64-bit code some of these are
    other instructions or undefined, and do not access such addresses."""
    start = next((at for at, byte in enumerate(code) if byte not in _PREFIXES), len(code))
    opcode = code[start : start + 3].ljust(3, b"\0")
    if opcode[0] == 0x0F:
        return opcode[1] in _TWO_BYTES or (opcode[1] == 0 and opcode[2] >> 3 & 7 in _VERIFY)
    return opcode[0] in _ONE_BYTE or (opcode[0] == 0xFF and opcode[1] >> 3 & 7 in _FAR)


def is_in_tables(registers: Registers, address: int) -> bool:
    """Whether the page of an address holds a part of the GDT, the LDT or the TSS."""
    for name in ("gdtr", "ldtr", "tr"):
        base = registers.get(f"{name}.base")
        if base and base & -_PAGE <= address <= base + registers.get(f"{name}.limit"):
            return True
    return False

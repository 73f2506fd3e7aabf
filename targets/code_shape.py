"""What code looks like on each machine where no symbol says so: padding between functions and how functions begin.

A pattern is a mask and a value of an instruction's first eight bytes, little-endian, so that it can take in the next
instruction too. They are data: a fourth machine adds a record.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Pattern:
    """Matches where ``head & mask == value``."""

    mask: int
    value: int


@dataclass(frozen=True, slots=True)
class CodeShape:
    """Of one machine. `fill` are bytes of which linkers and assemblers make long runs."""

    fill: tuple[int, ...]
    padding: tuple[Pattern, ...]
    prologues: tuple[Pattern, ...]


def _bytes(text: str) -> Pattern:
    """The bytes of an instruction in the order of memory, two digits each; ".." is any byte."""
    words = text.split()
    mask = sum(0 if word == ".." else 0xFF << 8 * index for index, word in enumerate(words))
    value = sum(0 if word == ".." else int(word, 16) << 8 * index for index, word in enumerate(words))
    return Pattern(mask, value)


_AMD64 = CodeShape(
    fill=(0xCC, 0x00, 0x90),
    padding=(
        _bytes("cc"),
        _bytes("90"),
        _bytes("66 90"),
        _bytes("00 00"),
        _bytes("0f 1f"),
        _bytes("66 0f 1f"),
        # gas -mtune: nopw %cs:0(%rax,%rax) behind one to six 66s.
        *(_bytes("66 " * count + "2e 0f 1f") for count in range(1, 6)),
        _bytes("66 66 66 66 66 66 2e 0f"),
    ),
    prologues=(
        _bytes("f3 0f 1e fa"),  # endbr64
        _bytes("55 48 89 e5"),  # push %rbp; mov %rsp,%rbp
        _bytes("55 48 8b ec"),  # the same in its other encoding
        _bytes("41 57"),  # push %r15 ... %r12
        _bytes("41 56"),
        _bytes("41 55"),
        _bytes("41 54"),
        _bytes("55"),  # push %rbp
        _bytes("53"),  # push %rbx
        _bytes("48 83 ec"),  # sub $n,%rsp
        _bytes("48 81 ec"),
    ),
)
_ARM64 = CodeShape(
    fill=(0x00,),
    padding=(
        Pattern(0xFFFFFFFF, 0xD503201F),  # nop
        Pattern(0xFFFFFFFF, 0x00000000),  # udf #0
        # What -mharden-sls puts behind ret and br, never executed: dsb nsh or sy, isb; or sb.
        Pattern(0xFFFFFFFF, 0xD503379F),
        Pattern(0xFFFFFFFF, 0xD5033F9F),
        Pattern(0xFFFFFFFF, 0xD5033FDF),
        Pattern(0xFFFFFFFF, 0xD50330FF),
    ),
    prologues=(
        Pattern(0xFFFFFFBF, 0xD503233F),  # paciasp, pacibsp
        Pattern(0xFFFFFF7F, 0xD503245F),  # bti c, bti jc
        Pattern(0xFFC003E0, 0xA98003E0),  # stp xA, xB, [sp, #-n]!
        Pattern(0xFFE00FFF, 0xF8000FFE),  # str x30, [sp, #-n]!
        Pattern(0xFF8003FF, 0xD10003FF),  # sub sp, sp, #n
    ),
)
_RISCV64 = CodeShape(
    fill=(0x00,),
    padding=(
        Pattern(0xFFFF, 0x0001),  # c.nop
        Pattern(0xFFFFFFFF, 0x00000013),  # nop
        Pattern(0xFFFF, 0x0000),  # defined to be illegal
    ),
    prologues=(
        Pattern(0xFF83, 0x1101),  # c.addi sp, -n
        Pattern(0xFF83, 0x7101),  # c.addi16sp -n
        Pattern(0x800FFFFF, 0x80010113),  # addi sp, sp, -n
    ),
)
CODE_SHAPES: Final[Mapping[str, CodeShape]] = {"amd64": _AMD64, "arm64": _ARM64, "riscv64": _RISCV64}


def matches(heads: NDArray[np.uint64], patterns: tuple[Pattern, ...]) -> NDArray[np.bool_]:
    """Which of the instructions, given by their first eight bytes, match any pattern."""
    found = np.zeros(len(heads), np.bool_)
    for pattern in patterns:
        found |= (heads & np.uint64(pattern.mask)) == np.uint64(pattern.value)
    return found

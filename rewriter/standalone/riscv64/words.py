"""riscv64: a distance -> the word that holds it (unprivileged manual, "RV32I").

 31                  12 11 7 6     0
| imm20|10:1|11|19:12 | rd | 1101111 |     jal: within 1 MiB
"""

from typing import Final

from kinst.rewriter.arch.patterns import distance
from kinst.rewriter.arch.riscv64 import IMM_J

JAL: Final = 0x6F


def jump(at: int, target: int) -> bytes | None:
    """j; None if it does not reach."""
    bits = IMM_J.placed(distance(at, target))
    return None if bits is None else (JAL | bits).to_bytes(4, "little")

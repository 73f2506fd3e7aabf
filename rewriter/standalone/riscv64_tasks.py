"""riscv64: what is done before a site's instruction -> code. Only atomic instructions touch what CPUs share."""

from collections.abc import Sequence
from typing import Final

from kinst.rewriter.patching.riscv64 import encode
from kinst.rewriter.standalone.riscv64_words import address_of
from kinst.rewriter.standalone.scratch import Scratch, scratch
from kinst.rewriter.standalone.template import Assembly, assembled
from kinst.rewriter.standalone.trampoline import Count, Covered
from kinst.targets.arch.riscv64 import GENERAL, RISCV64

_WORD: Final = 8
_ALIGNMENT: Final = 16  # of the stack pointer
# What may be saved and given back: not what interrupts' handlers find the CPU, its globals and frames by.
_USABLE: Final = tuple(
    map(
        GENERAL.index, (*(f"t{n}" for n in range(7)), *(f"a{n}" for n in range(7, -1, -1)), *GENERAL[18:28], "s1", "ra")
    )
)
_COUNT: Final = """
    la {cell}, cell
    li {one}, 1
    amoadd.d zero, {one}, ({cell})
"""


def count(one: Covered, task: Count, at: int) -> bytes:
    """One more in the cell."""
    chosen = scratch(one, 2, _USABLE)
    cell, number = _names(chosen)
    return assembled(_ASSEMBLY, _kept(chosen, _COUNT.format(cell=cell, one=number)), at, {"cell": task.cell})


def _names(chosen: Scratch) -> Sequence[str]:
    return [GENERAL[number] for number in chosen.registers]


def _frame(chosen: Scratch) -> int:
    """Bytes of the stack that it takes."""
    return -(-len(chosen.saved) * _WORD // _ALIGNMENT) * _ALIGNMENT


def _kept(chosen: Scratch, text: str) -> str:
    """The text between saving registers on the stack and giving them back."""
    if not chosen.saved:
        return text
    places = [f"{GENERAL[number]}, {row * _WORD}(sp)" for row, number in enumerate(chosen.saved)]
    return "\n".join(
        [
            f"addi sp, sp, -{_frame(chosen)}",
            *(f"sd {place}" for place in places),
            text,
            *(f"ld {place}" for place in places),
            f"addi sp, sp, {_frame(chosen)}",
        ]
    )


def _encoded(lines: str) -> bytes:
    return b"".join(encode(line, 0) for line in lines.splitlines())


_ASSEMBLY: Final = Assembly(_encoded, address_of, RISCV64.operand_registers)

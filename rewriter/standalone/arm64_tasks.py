"""arm64: what is done before a site's instruction -> code. All CPUs have these instructions, some none of LSE.

No flag is touched. The guest may wait (wfe) until a word that it looked at with a load-exclusive changes: a counter's
own makes it look elsewhere, so its next wfe comes back at once (sevl), as it would after an interrupt.
"""

from collections.abc import Sequence
from typing import Final

from kinst.rewriter.assemble import assemble
from kinst.rewriter.standalone.arm64_words import address_of
from kinst.rewriter.standalone.scratch import Scratch, scratch
from kinst.rewriter.standalone.template import Assembly, assembled
from kinst.rewriter.standalone.trampoline import Count, Covered
from kinst.targets.arch.arm64 import ARM64

_WORD: Final = 8
_ALIGNMENT: Final = 16  # of the stack pointer, which hardware checks
# Not the platform's x18, and not the frame pointer.
_USABLE: Final = (*range(9, 16), 8, 16, 17, *range(7, -1, -1), *range(19, 29), 30)
_COUNT: Final = """
    la {cell}, cell
again:
    ldxr {number}, [{cell}]
    add {number}, {number}, #1
    stxr {failed}, {number}, [{cell}]
    cbnz {failed}, again
    sevl
"""


def count(one: Covered, task: Count, at: int) -> bytes:
    """One more in the cell."""
    chosen = scratch(one, 3, _USABLE)
    cell, number, failed = _names(chosen)
    text = _COUNT.format(cell=cell, number=number, failed=failed.replace("x", "w"))
    return assembled(_ASSEMBLY, _kept(chosen, text), at, {"cell": task.cell})


def load(one: Covered, what: str, base: int | None, at: int) -> bytes:
    """``ldr x0``, say, of what is at the instruction's target, by way of a register; None: by any that is free."""
    chosen = Scratch((base,), ()) if base is not None else scratch(one, 1, _USABLE)
    (name,) = _names(chosen)
    return assembled(_ASSEMBLY, _kept(chosen, f"la {name}, literal\n{what}, [{name}]"), at, {"literal": one.target})


def _names(chosen: Scratch) -> Sequence[str]:
    return [f"x{number}" for number in chosen.registers]


def _frame(chosen: Scratch) -> int:
    """Bytes of the stack that it takes."""
    return -(-len(chosen.saved) * _WORD // _ALIGNMENT) * _ALIGNMENT


def _kept(chosen: Scratch, text: str) -> str:
    """The text between saving registers on the stack and giving them back."""
    if not chosen.saved:
        return text
    saved = [f"x{number}" for number in chosen.saved]
    pairs = [(", ".join(saved[row : row + 2]), row * _WORD) for row in range(0, len(saved), 2)]
    moves = [f"{'p' if ',' in names else 'r'} {names}, [sp, #{offset}]" for names, offset in pairs]
    return "\n".join(
        [
            f"sub sp, sp, #{_frame(chosen)}",
            *(f"st{move}" for move in moves),
            text,
            *(f"ld{move}" for move in moves),
            f"add sp, sp, #{_frame(chosen)}",
        ]
    )


def _encoded(lines: str) -> bytes:
    return assemble(ARM64, lines)


_ASSEMBLY: Final = Assembly(_encoded, address_of, ARM64.operand_registers)

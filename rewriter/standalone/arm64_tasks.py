"""arm64: what is done before a site's instruction -> code. All CPUs have these instructions, some none of LSE.

No flag is touched. The guest may wait (wfe) until a word that it looked at with a load-exclusive changes: a counter's
own makes it look elsewhere, so its next wfe comes back at once (sevl), as it would after an interrupt.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final, assert_never

from kinst.rewriter.assemble import assemble
from kinst.rewriter.standalone.arm64_words import address_of, number
from kinst.rewriter.standalone.recording import Word, registers_of, shape_of, stores, values_of
from kinst.rewriter.standalone.scratch import Scratch, scratch
from kinst.rewriter.standalone.template import SHAPES, Assembly, assembled
from kinst.rewriter.standalone.trampoline import (
    Clock,
    Constant,
    Count,
    Covered,
    ImmovableError,
    Record,
    Register,
)
from kinst.targets.arch.arm64 import ARM64, PC, PSTATE, SP
from kinst.targets.standalone import WORD

# Not the platform's x18, and not the frame pointer.
_USABLE: Final = (*range(9, 16), 8, 16, 17, *range(7, -1, -1), *range(19, 29), 30)
_SAVABLE: Final = sum(1 << number for number in _USABLE)
_COUNT: Final = """
    la {cell}, cell
again:
    ldxr {number}, [{cell}]
    add {number}, {number}, #1
    stxr {failed}, {number}, [{cell}]
    cbnz {failed}, again
    sevl
"""
# The place of record n is n modulo the capacity: its lowest bits.
_RECORD: Final = """
    la {ring}, ring
again:
    ldxr {ticket}, [{ring}]
    add {place}, {ticket}, #1
    stxr {failed}, {place}, [{ring}]
    cbnz {failed}, again
    sevl
    {index}
    mov {spare}, #{stride}
    la {ring}, first
    madd {place}, {place}, {spare}, {ring}
    {words}
    add {ticket}, {ticket}, #1
    dmb ish
    str {ticket}, [{place}]
"""


def count(one: Covered, task: Count, at: int) -> bytes:
    """One more in the cell."""
    return assembled(_ASSEMBLY, _counting(one.dead & _SAVABLE, has_stack=one.has_stack), at, {"cell": task.cell})


@lru_cache(SHAPES)
def _counting(dead: int, *, has_stack: bool) -> str:
    chosen = scratch(3, _USABLE, dead, has_stack=has_stack)
    cell, number, failed = _names(chosen)
    return _kept(chosen, _COUNT.format(cell=cell, number=number, failed=failed.replace("x", "w")))


def record(one: Covered, task: Record, at: int) -> bytes:
    """A record of the ring. The ticket is stored last: who reads it finds the rest."""
    text = _recording(shape_of(task), one.dead & _SAVABLE, has_stack=one.has_stack)
    return assembled(_ASSEMBLY, text, at, values_of(one, task))


@lru_cache(SHAPES)
def _recording(task: Record, dead: int, *, has_stack: bool) -> str:
    chosen = scratch(4, _USABLE, dead, registers_of(task), has_stack=has_stack)
    ring, ticket, place, spare = _names(chosen)
    text = _RECORD.format(
        ring=ring,
        ticket=ticket,
        place=place,
        spare=spare,
        failed=spare.replace("x", "w"),
        index=f"and {place}, {ticket}, #{task.mask}" if task.mask else f"mov {place}, xzr",
        stride=task.stride,
        words=stores(task, partial(_load, chosen, spare), f"str {{register}}, [{place}, #{{offset}}]"),
    )
    return _kept(chosen, text)


def _load(chosen: Scratch, spare: str, word: Word, name: str) -> tuple[str, str]:
    """The register that a word is in, and the line that loads it."""
    match word:
        case Clock():
            return spare, f"mrs {spare}, cntvct_el0"
        case Constant():
            return spare, f"number {spare}, {name}"
        case Register(number) if number == PC:
            return spare, f"la {spare}, pc"
        case Register(number) if number == SP:
            return spare, f"add {spare}, sp, #{chosen.frame}"
        case Register(number) if number in chosen.saved:
            return spare, f"ldr {spare}, [sp, #{chosen.place(number)}]"
        case Register(number) if number == PSTATE:
            raise ImmovableError("pstate cannot be recorded by a trampoline")
        case Register(number):
            return f"x{number}", ""
        case other:
            assert_never(other)


def load(one: Covered, what: str, base: int | None, at: int) -> bytes:
    """``ldr x0``, say, of what is at the instruction's target, by way of a register; None: by any that is free."""
    free = scratch(1, _USABLE, one.dead, has_stack=one.has_stack) if base is None else Scratch((base,), ())
    (name,) = _names(free)
    return assembled(_ASSEMBLY, _kept(free, f"la {name}, literal\n{what}, [{name}]"), at, {"literal": one.target})


def _names(chosen: Scratch) -> Sequence[str]:
    return [f"x{number}" for number in chosen.registers]


def _kept(chosen: Scratch, text: str) -> str:
    """The text between saving registers on the stack and giving them back."""
    if not chosen.saved:
        return text
    saved = [f"x{number}" for number in chosen.saved]
    pairs = [(", ".join(saved[row : row + 2]), row * WORD) for row in range(0, len(saved), 2)]
    moves = [f"{'p' if ',' in names else 'r'} {names}, [sp, #{offset}]" for names, offset in pairs]
    return "\n".join(
        [
            f"sub sp, sp, #{chosen.frame}",
            *(f"st{move}" for move in moves),
            text,
            *(f"ld{move}" for move in moves),
            f"add sp, sp, #{chosen.frame}",
        ]
    )


def _encoded(lines: str) -> bytes:
    return assemble(ARM64, lines)


_ASSEMBLY: Final = Assembly(_encoded, address_of, number, ARM64.operand_registers)

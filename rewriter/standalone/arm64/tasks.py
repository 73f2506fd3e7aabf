"""arm64: what is done before a site's instruction -> code. All CPUs have these instructions, some none of LSE.

No flag is touched. The guest may wait (wfe) until a word that it looked at with a load-exclusive changes: a counter's
own makes it look elsewhere, so its next wfe comes back at once (sevl), as it would after an interrupt.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, assert_never

from kinst.rewriter.assemble import assemble
from kinst.rewriter.standalone.arm64 import reads
from kinst.rewriter.standalone.arm64.holes import address_hole, number_hole
from kinst.rewriter.standalone.code import scratch
from kinst.rewriter.standalone.code.parts import HERE, TARGET, Parts
from kinst.rewriter.standalone.code.recording import Plain, registers_of, stores
from kinst.rewriter.standalone.code.scratch import Scratch
from kinst.rewriter.standalone.code.template import Assembly, assembled
from kinst.rewriter.standalone.code.trampoline import (
    Clock,
    Constant,
    Count,
    Cpu,
    ImmovableError,
    Masks,
    Record,
    Register,
    Shape,
    Task,
    Varying,
)
from kinst.targets.arch.arm64 import ARM64, PC, PSTATE, SP
from kinst.targets.standalone import WORD

# Not the platform's x18, and not the frame pointer.
_USABLE: Final = (*range(9, 16), 8, 16, 17, *range(7, -1, -1), *range(19, 29), 30)
_TO_COUNT, _TO_RECORD = 3, 4  # registers that they take
_COUNT: Final = """
    la {cell}, cell
again:
    ldxr {number}, [{cell}]
    add {number}, {number}, #1
    stxr {failed}, {number}, [{cell}]
    cbnz {failed}, again
    sevl
"""
_CLOCK, _NUMBER = "cntvct_el0", "mpidr_el1"  # of the CPU
# The place of record n is n modulo the capacity: its lowest bits. Whoever finds the highest bit of its first word set,
# since somebody still writes there, takes the place that nobody reads.
_RECORD: Final = """
    la {ring}, ring
again:
    ldxr {ticket}, [{ring}]
    add {place}, {ticket}, #1
    stxr {failed}, {place}, [{ring}]
    cbnz {failed}, again
    {index}
    mov {spare}, #{stride}
    la {ring}, first
    madd {place}, {place}, {spare}, {ring}
claim:
    ldxr {spare}, [{place}]
    tbnz {spare}, #63, taken
    orr {spare}, {spare}, #0x8000000000000000
    stxr {lost}, {spare}, [{place}]
    cbnz {lost}, claim
    b claimed
taken:
    {index_again}
    mov {ring}, #{capacity}
    sub {spare}, {ring}, {spare}
    mov {ring}, #{stride}
    madd {place}, {spare}, {ring}, {place}
claimed:
    {reads}
    {words}
    add {ticket}, {ticket}, #1
    dmb ish
    str {ticket}, [{place}]
    sevl
"""


def needed(task: Task, dead: Masks) -> Masks:
    """The registers that it takes."""
    if isinstance(task, Count):
        return scratch.needed(_TO_COUNT, _USABLE, dead)
    return scratch.needed(_TO_RECORD, _USABLE, dead, registers_of(task))


def done(task: Task, dead: int, *, has_stack: bool) -> Parts:
    """The task."""
    match task:
        case Count():
            return assembled(_ASSEMBLY, _counting(dead, has_stack=has_stack))
        case Record():
            return assembled(_ASSEMBLY, _recording(task, dead, has_stack=has_stack))


def _counting(dead: int, *, has_stack: bool) -> str:
    """One more in the cell."""
    chosen = scratch.scratch(_TO_COUNT, _USABLE, dead, has_stack=has_stack)
    cell, number, failed = _names(chosen)
    return _kept(chosen, _COUNT.format(cell=cell, number=number, failed=failed.replace("x", "w")))


def _recording(task: Record, dead: int, *, has_stack: bool) -> str:
    """A record of the ring. The ticket is stored last: who reads it finds the rest."""
    if PSTATE in registers_of(task):
        raise ImmovableError("pstate cannot be recorded by a trampoline")
    chosen = scratch.scratch(_TO_RECORD, _USABLE, dead, registers_of(task), has_stack=has_stack)
    ring, ticket, place, spare = _names(chosen)
    free = reads.Free(ring, spare, ticket, place, chosen.frame)
    text = _RECORD.format(
        ring=ring,
        ticket=ticket,
        place=place,
        spare=spare,
        failed=spare.replace("x", "w"),
        lost=ring.replace("x", "w"),
        index=_index(place, ticket, task.mask),
        index_again=_index(spare, ticket, task.mask),
        capacity=task.mask + 1,
        stride=task.stride,
        reads=reads.of_memory(task, free, has_stack=has_stack),
        words=stores(task, partial(_load, chosen, spare), f"str {{register}}, [{place}, #{{offset}}]"),
    )
    return _kept(chosen, text)


def _index(register: str, ticket: str, mask: int) -> str:
    return f"and {register}, {ticket}, #{mask}" if mask else f"mov {register}, xzr"


def _load(chosen: Scratch, spare: str, word: Plain) -> tuple[str, str]:
    """The register that a word is in, and the line that loads it."""
    match word:
        case Clock() | Cpu():
            return spare, f"mrs {spare}, {_CLOCK if isinstance(word, Clock) else _NUMBER}"
        case Varying(name):
            return spare, f"number {spare}, {name}"
        case Constant(value):
            return spare, _number_in(spare, value)
        case Register(number) if number == PC:
            return spare, f"la {spare}, {HERE}"
        case Register(number) if number == SP:
            return spare, f"add {spare}, sp, #{chosen.frame}"
        case Register(number) if number in chosen.saved:
            return spare, f"ldr {spare}, [sp, #{chosen.place(number)}]"
        case Register(number):
            return f"x{number}", ""
        case other:
            assert_never(other)


def _number_in(register: str, value: int) -> str:
    """movz, and movk of what else is not zero: 16 bits at a time (C6.2.226, C6.2.227)."""
    parts = [(half * 16, value >> half * 16 & 0xFFFF) for half in range(4)]
    more = [f"movk {register}, #{part}, lsl #{shift}" for shift, part in parts[1:] if part]
    return "\n".join([f"movz {register}, #{parts[0][1]}", *more])


def load(shape: Shape, what: str, base: int | None) -> Parts:
    """``ldr x0``, say, of what is at the instruction's target, by way of a register; None: by any that is free."""
    free = scratch.scratch(1, _USABLE, shape.dead, has_stack=shape.has_stack) if base is None else Scratch((base,), ())
    (name,) = _names(free)
    return assembled(_ASSEMBLY, _kept(free, f"la {name}, {TARGET}\n{what}, [{name}]"))


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


_ASSEMBLY: Final = Assembly(_encoded, address_hole, number_hole, ARM64.operand_registers)

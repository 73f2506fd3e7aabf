"""riscv64: what is done before a site's instruction -> code. Only atomic instructions touch what CPUs share."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, assert_never

from kinst.rewriter.arch.patterns import distance
from kinst.rewriter.patching.riscv64 import encode
from kinst.rewriter.standalone.code import scratch
from kinst.rewriter.standalone.code.parts import HERE, Parts
from kinst.rewriter.standalone.code.recording import Plain, registers_of, stores
from kinst.rewriter.standalone.code.scratch import Scratch
from kinst.rewriter.standalone.code.template import Assembly, assembled
from kinst.rewriter.standalone.code.trampoline import (
    Clock,
    Constant,
    Count,
    Cpu,
    Masks,
    Record,
    Register,
    Task,
    Varying,
)
from kinst.rewriter.standalone.riscv64 import reads
from kinst.rewriter.standalone.riscv64.holes import address_hole, number_hole
from kinst.rewriter.standalone.riscv64.short import shortened
from kinst.targets.arch.riscv64 import GENERAL, PC, RISCV64, SP

# What may be saved and given back: not what interrupts' handlers find the CPU, its globals and frames by.
_USABLE: Final = tuple(
    map(
        GENERAL.index, (*(f"t{n}" for n in range(7)), *(f"a{n}" for n in range(7, -1, -1)), *GENERAL[18:28], "s1", "ra")
    )
)
_TO_COUNT, _TO_RECORD = 2, 3  # registers that they take
_COUNT: Final = """
    la {cell}, cell
    li {one}, 1
    amoadd.d zero, {one}, ({cell})
"""
_CLOCK, _NUMBER = "time", "mhartid"  # of the CPU
# The place of record n is n modulo the capacity: its lowest bits. Whoever finds the highest bit of its first word set,
# since somebody still writes there, takes the place that nobody reads.
_RECORD: Final = """
    la {ring}, ring
    li {place}, 1
    amoadd.d {ticket}, {place}, ({ring})
    {index}
    li {ring}, {stride}
    mul {place}, {place}, {ring}
    la {ring}, first
    add {place}, {place}, {ring}
    li {ring}, 1
    slli {ring}, {ring}, 63
    amoor.d {ring}, {ring}, ({place})
    {taken}
    {reads}
    {words}
    addi {ticket}, {ticket}, 1
    fence
    sd {ticket}, 0({place})
"""


def needed(task: Task, dead: Masks) -> Masks:
    """The registers that it takes."""
    if isinstance(task, Count):
        return scratch.needed(_TO_COUNT, _USABLE, dead)
    return scratch.needed(_TO_RECORD, _USABLE, dead, registers_of(task))


def done(task: Task, dead: int, *, has_stack: bool, is_compact: bool) -> Parts:
    """The task, with instructions of 2 bytes or without."""
    assembly = _SHORT if is_compact else _PLAIN
    match task:
        case Count():
            return assembled(assembly, _counting(dead, has_stack=has_stack))
        case Record():
            return assembled(assembly, _recording(task, dead, assembly, has_stack=has_stack))


def _counting(dead: int, *, has_stack: bool) -> str:
    """One more in the cell."""
    chosen = scratch.scratch(_TO_COUNT, _USABLE, dead, has_stack=has_stack)
    cell, number = _names(chosen)
    return _kept(chosen, _COUNT.format(cell=cell, one=number))


def _recording(task: Record, dead: int, assembly: Assembly, *, has_stack: bool) -> str:
    """A record of the ring. The ticket is stored last: who reads it finds the rest."""
    chosen = scratch.scratch(_TO_RECORD, _USABLE, dead, registers_of(task), has_stack=has_stack)
    ring, ticket, place = _names(chosen)
    free = reads.Free(ring, ticket, place, chosen.frame, lambda lines: len(assembly.encode(lines)))
    text = _RECORD.format(
        ring=ring,
        ticket=ticket,
        place=place,
        index=_index(place, ticket, task.mask),
        stride=task.stride,
        taken="\n".join(free.over(f"bge {ring}, zero", *_elsewhere(task, free))),
        reads=reads.of_memory(task, free, has_stack=has_stack),
        words=stores(task, partial(_load, chosen, ring), f"sd {{register}}, {{offset}}({place})"),
    )
    return _kept(chosen, text)


def _elsewhere(task: Record, free: reads.Free) -> list[str]:
    """From the place of a ticket to the one that nobody reads. No other needs the ticket."""
    base, ticket, place = free.base, free.ticket, free.place
    return [
        *_index(base, ticket, task.mask).splitlines(),
        f"li {ticket}, {task.mask + 1}",
        f"sub {base}, {ticket}, {base}",
        f"li {ticket}, {task.stride}",
        f"mul {base}, {base}, {ticket}",
        f"add {place}, {place}, {base}",
    ]


def _index(place: str, ticket: str, mask: int) -> str:
    """The bits of the mask, which are the lowest."""
    unused = 64 - mask.bit_length()
    return f"slli {place}, {ticket}, {unused}\nsrli {place}, {place}, {unused}" if mask else f"li {place}, 0"


def _load(chosen: Scratch, spare: str, word: Plain) -> tuple[str, str]:
    """The register that a word is in, and the line that loads it."""
    match word:
        case Clock() | Cpu():
            return spare, f"csrr {spare}, {_CLOCK if isinstance(word, Clock) else _NUMBER}"
        case Varying(name):
            return spare, f"number {spare}, {name}"
        case Constant(value):
            return spare, "\n".join(_number_in(spare, distance(0, value)))
        case Register(number) if number == PC:
            return spare, f"la {spare}, {HERE}"
        case Register(number) if number == SP:
            return spare, f"addi {spare}, sp, {chosen.frame}"
        case Register(number) if number in chosen.saved:
            return spare, f"ld {spare}, {chosen.place(number)}(sp)"
        case Register(number):
            return GENERAL[number], ""
        case other:
            assert_never(other)


def _number_in(register: str, value: int) -> list[str]:
    """li, or of more than 32 bits the upper ones, a shift, and the lower ones, 12 at a time."""
    if -(1 << 31) <= value < 1 << 31:
        return [f"li {register}, {value}"]
    low = (value & 0xFFF) - ((value & 0x800) << 1)
    upper = [*_number_in(register, value - low >> 12), f"slli {register}, {register}, 12"]
    return [*upper, f"addi {register}, {register}, {low}"] if low else upper


def _names(chosen: Scratch) -> Sequence[str]:
    return [GENERAL[number] for number in chosen.registers]


def _kept(chosen: Scratch, text: str) -> str:
    """The text between saving registers on the stack and giving them back."""
    if not chosen.saved:
        return text
    places = [f"{GENERAL[number]}, {chosen.place(number)}(sp)" for number in chosen.saved]
    return "\n".join(
        [
            f"addi sp, sp, -{chosen.frame}",
            *(f"sd {place}" for place in places),
            text,
            *(f"ld {place}" for place in places),
            f"addi sp, sp, {chosen.frame}",
        ]
    )


def _encoded(lines: str) -> bytes:
    return b"".join(encode(line, 0) for line in lines.splitlines())


def _encoded_short(lines: str) -> bytes:
    return b"".join(shortened(encode(line, 0)) for line in lines.splitlines())


_PLAIN: Final = Assembly(_encoded, address_hole, number_hole, RISCV64.operand_registers)
_SHORT: Final = replace(_PLAIN, encode=_encoded_short)

"""What is to be done at a site of amd64 -> code that does it, and leaves no trace in the guest.

    count    lock incq cell(%rip)
    record   a ticket by lock xadd, its place in the ring, the words, and last the ticket, which says that the rest is
    there

Other CPUs and interrupt handlers see only the two locked instructions, and stores to a place that belongs to this
record alone. Stores are not reordered with other stores (SDM volume 3, "Memory Ordering"): a reader that
sees the ticket sees the words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kinst.rewriter.liveness.effects import effector
from kinst.rewriter.standalone.amd64.kept import Kept, kept
from kinst.rewriter.standalone.amd64.pieces import template
from kinst.rewriter.standalone.code.parts import Parts
from kinst.rewriter.standalone.code.trampoline import (
    Clock,
    Constant,
    Count,
    ImmovableError,
    Masks,
    Record,
    Register,
    Task,
    Varying,
    Word,
)
from kinst.targets.arch.amd64 import AMD64, GENERAL, RAX, RBP, RDX, REGISTERS, RIP, RSP
from kinst.targets.standalone import WORD

_FLAGS: Final = sum(effector(AMD64).flags.values())
_COUNTED: Final = _FLAGS & ~effector(AMD64).flags["cf"]  # inc leaves CF alone
_REGISTERS: Final = (1 << len(GENERAL)) - 1
# Not rsp and rbp: by these two an interrupt handler, too, finds the stack.
_FREE: Final = tuple(number for number in range(len(GENERAL)) if number not in (RSP, RBP))
_NARROW: Final = (*(f"e{name[1:]}" for name in GENERAL[:8]), *(f"{name}d" for name in GENERAL[8:]))
_NARROWEST: Final = 0xFFFF_FFFF


def needed(task: Task, dead: Masks) -> Masks:
    """What a task's code depends on: whether all flags that it changes are dead; and the dead registers, of a count
    only if the flags are live, since they are what it saves."""
    flags = np.uint32(_COUNTED if isinstance(task, Count) else _FLAGS)
    registers, is_free = dead & np.uint32(_REGISTERS), dead & flags == flags
    if isinstance(task, Count):
        return np.where(is_free, flags, registers)
    return registers | np.where(is_free, flags, np.uint32(0))


def task_code(task: Task, dead: int, *, has_stack: bool, is_compact: bool) -> Parts:
    """See `CodeGenerator.task`."""
    del is_compact
    registers = dead & _REGISTERS
    match task:
        case Count():
            has_flags = dead & _COUNTED != _COUNTED
            around = _Free(registers, has_flags, has_stack).kept()
            return template((*around.before, "lock incq @cell(%rip)", *around.after))
        case Record(_, _, words):
            return _recorded(task, _Free(registers & ~_read(words), dead & _FLAGS != _FLAGS, has_stack))


@dataclass(frozen=True, slots=True)
class _Free:
    """What a task may use: registers, as bits; whether flags are live; whether there is a stack."""

    registers: int
    has_flags: bool
    has_stack: bool

    def kept(self, *clobbered: int) -> Kept:
        return kept(clobbered, self.registers, has_stack=self.has_stack, has_flags=self.has_flags)


def _read(words: Sequence[Word]) -> int:
    """The registers that are recorded."""
    read = {word.number for word in words if isinstance(word, Register)}
    for number in read:
        if number > RIP:
            raise ImmovableError(f"{REGISTERS[number]} cannot be recorded by a trampoline")
    return sum(1 << number for number in read)


def _recorded(record: Record, free: _Free) -> Parts:
    """A record. rdtsc overwrites rax and rdx: meanwhile the ticket waits in the record, where the site's number will
    be."""
    words = record.words
    has_clock = Clock() in words
    fixed = (RAX, RDX) if has_clock else (RAX,) if free.has_flags else ()
    # Where flags are live rax is saved anyway. Then come dead registers, and last those that are recorded.
    rest = sorted(set(_FREE) - {*fixed}, key=lambda one: (not free.registers >> one & 1, Register(one) in words))
    work = (*fixed, *rest)[:3]
    ticket, other, place = (GENERAL[number] for number in work)
    around = free.kept(*work)
    return template(
        (
            *around.before,
            f"movl $0x1, %{_NARROW[work[0]]}",
            f"lock xaddq %{ticket}, @ring(%rip)",
            f"movl %{_NARROW[work[0]]}, %{_NARROW[work[2]]}",
            f"andl ${record.mask:#x}, %{_NARROW[work[2]]}",
            f"imulq ${record.stride:#x}, %{place}, %{place}",
            f"leaq @first(%rip), %{other}",
            f"addq %{other}, %{place}",
            *([f"movq %{ticket}, {WORD:#x}(%{place})"] if has_clock else []),
            *_stores(words, around, other, place),
            *([f"movq {WORD:#x}(%{place}), %{ticket}"] if has_clock else []),
            f"movq $@site, {WORD:#x}(%{place})",
            f"incq %{ticket}",
            f"movq %{ticket}, (%{place})",
            *around.after,
        )
    )


def _stores(words: Sequence[Word], around: Kept, other: str, place: str) -> Iterator[str]:
    """Store each word, through the register `other` if need be."""
    for row, word in enumerate(words):
        low, high = f"{WORD * (2 + row):#x}(%{place})", f"{WORD * (2 + row) + 4:#x}(%{place})"
        match word:
            case Clock():
                yield from ("rdtsc", f"movl %eax, {low}", f"movl %edx, {high}")
            case Constant(value):
                yield from (f"movl ${value & _NARROWEST:#x}, {low}", f"movl ${value >> 32 & _NARROWEST:#x}, {high}")
            case Varying(name):
                yield f"movq $@{name}, {low}"
            case Register(number):
                load, source = _source(number, around, other)
                yield from (*load, f"movq %{source}, {low}")


def _source(number: int, around: Kept, other: str) -> tuple[list[str], str]:
    """The lines that fetch a register's value from before the site's instruction, and the register that holds it
    then."""
    if number == RIP:
        return [f"leaq @here(%rip), %{other}"], other
    if number == RSP and around.depth:
        return [f"leaq {around.depth:#x}(%rsp), %{other}"], other
    operand = around.places.get(number, f"%{GENERAL[number]}")
    return ([], operand[1:]) if operand.startswith("%") else ([f"movq {operand}, %{other}"], other)

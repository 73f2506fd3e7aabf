"""What is to be done at a site of amd64 -> the code that does it, and leaves no trace in the guest.

    count    lock incq cell(%rip)
    record   a ticket by lock xadd, its place in the ring, the words, and the ticket, which says that the rest is there

All that other CPUs, and handlers of interrupts that come meanwhile, can see are these two instructions with a lock, and
stores to a place that is this record's alone. The processor stores in order: the ticket is seen last.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kinst.rewriter.liveness.effects import effector
from kinst.rewriter.standalone.amd64_kept import Kept, kept
from kinst.rewriter.standalone.amd64_pieces import Piece, Template, template
from kinst.rewriter.standalone.trampoline import Clock, Constant, Count, Covered, ImmovableError, Record, Register
from kinst.targets.arch.amd64 import AMD64, GENERAL, RAX, RBP, RDX, REGISTERS, RIP, RSP
from kinst.targets.standalone import RING_HEAD, WORD

_FLAGS: Final = sum(effector(AMD64).flags.values())
_COUNTED: Final = _FLAGS & ~effector(AMD64).flags["cf"]  # inc leaves CF
_REGISTERS: Final = (1 << len(GENERAL)) - 1
# A stack is found by those two, by an interrupt's handler, too.
_FREE: Final = tuple(number for number in range(len(GENERAL)) if number not in (RSP, RBP))
_NARROW: Final = (*(f"e{name[1:]}" for name in GENERAL[:8]), *(f"{name}d" for name in GENERAL[8:]))
_SHAPES: Final = 1 << 12  # a kernel has hundreds


def done(one: Covered) -> Piece:
    """The instruction's task.

    Raises:
        ImmovableError: there is nothing to work with, or a word that cannot be had.
    """
    match one.task:
        case None:
            return Piece(b"")
        case Count(cell):
            has_flags = one.dead & _COUNTED != _COUNTED
            free = _Free(one.dead & _REGISTERS if has_flags else 0, has_flags, one.has_stack)
            return _count(free).piece(cell=cell)
        case Record() as record:
            return _recorded(one, record)


@dataclass(frozen=True, slots=True)
class _Free:
    """What a task may use: registers, as bits; whether flags live; whether there is a stack."""

    registers: int
    has_flags: bool
    has_stack: bool

    def kept(self, *clobbered: int) -> Kept:
        return kept(clobbered, self.registers, has_stack=self.has_stack, has_flags=self.has_flags)


@lru_cache(_SHAPES)
def _count(free: _Free) -> Template:
    around = free.kept()
    return template((*around.before, "lock incq @cell(%rip)", *around.behind))


def _recorded(one: Covered, record: Record) -> Piece:
    read = [word.number for word in record.words if isinstance(word, Register)]
    for number in read:
        if number > RIP:
            raise ImmovableError(f"{REGISTERS[number]} cannot be recorded by a trampoline")
    dead = one.dead & _REGISTERS & ~sum(1 << number for number in set(read))
    free = _Free(dead, one.dead & _FLAGS != _FLAGS, one.has_stack)
    words = tuple(Constant(0) if isinstance(word, Constant) else word for word in record.words)
    constants = {number: word.value for number, word in enumerate(record.words) if isinstance(word, Constant)}
    return _record(free, words, record.mask, record.stride).piece(
        head=record.ring,
        first=record.ring + RING_HEAD,
        site=record.site,
        here=one.address,
        **{f"low{number}": value for number, value in constants.items()},
        **{f"high{number}": value >> 32 for number, value in constants.items()},
    )


@lru_cache(_SHAPES)
def _record(free: _Free, words: tuple[Clock | Register | Constant, ...], mask: int, stride: int) -> Template:
    """A record. rdtsc needs rax and rdx: then the ticket waits where the site's row will be."""
    has_clock = Clock() in words
    fixed = (RAX, RDX) if has_clock else (RAX,) if free.has_flags else ()
    rest = sorted(set(_FREE) - {*fixed}, key=lambda one: (not free.registers >> one & 1, Register(one) in words))
    work = (*fixed, *rest)[:3]
    ticket, other, place = (GENERAL[number] for number in work)
    around = free.kept(*work)
    return template(
        (
            *around.before,
            f"movl $0x1, %{_NARROW[work[0]]}",
            f"lock xaddq %{ticket}, @head(%rip)",
            f"movl %{_NARROW[work[0]]}, %{_NARROW[work[2]]}",
            f"andl ${mask:#x}, %{_NARROW[work[2]]}",
            f"imulq ${stride:#x}, %{place}, %{place}",
            f"leaq @first(%rip), %{other}",
            f"addq %{other}, %{place}",
            *([f"movq %{ticket}, {WORD:#x}(%{place})"] if has_clock else []),
            *_stores(words, around, other, place),
            *([f"movq {WORD:#x}(%{place}), %{ticket}"] if has_clock else []),
            f"movq $@site, {WORD:#x}(%{place})",
            f"incq %{ticket}",
            f"movq %{ticket}, (%{place})",
            *around.behind,
        )
    )


def _stores(words: tuple[Clock | Register | Constant, ...], around: Kept, other: str, place: str) -> Iterator[str]:
    """Each word to its place, by way of the register `other` if need be."""
    for row, word in enumerate(words):
        low, high = f"{WORD * (2 + row):#x}(%{place})", f"{WORD * (2 + row) + 4:#x}(%{place})"
        match word:
            case Clock():
                yield from ("rdtsc", f"movl %eax, {low}", f"movl %edx, {high}")
            case Constant():
                yield from (f"movl $@low{row}, {low}", f"movl $@high{row}, {high}")
            case Register(number):
                load, source = _source(number, around, other)
                yield from (*load, f"movq %{source}, {low}")


def _source(number: int, around: Kept, other: str) -> tuple[list[str], str]:
    """Lines, and the register in which they leave what a register held before the site's instruction."""
    if number == RIP:
        return [f"leaq @here(%rip), %{other}"], other
    if number == RSP and around.depth:
        return [f"leaq {around.depth:#x}(%rsp), %{other}"], other
    operand = around.places.get(number, f"%{GENERAL[number]}")
    return ([], operand[1:]) if operand.startswith("%") else ([f"movq {operand}, %{other}"], other)

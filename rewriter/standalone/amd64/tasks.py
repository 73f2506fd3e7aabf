"""What is to be done at a site of amd64 -> code that does it, and leaves no trace in the guest.

    count    lock incq cell(%rip)
    record   a ticket by lock xadd, its place in the ring, which lock bts takes, the words, and last the ticket, which
             says that the rest is there

Other CPUs and interrupt handlers see only the three locked instructions, and stores to a place that belongs to this
record alone: a writer that comes to the place a turn of the ring later finds the bit set, and takes the place that is
never read. Stores are not reordered with other stores (SDM volume 3, "Memory Ordering"): a reader that sees the ticket
sees the words.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from kinst.rewriter.liveness.effects import effector
from kinst.rewriter.standalone.amd64.kept import Kept, kept
from kinst.rewriter.standalone.amd64.pieces import narrow, template
from kinst.rewriter.standalone.amd64.reads import Free, current_of, number_of_cpu, of_stack, of_task
from kinst.rewriter.standalone.code.parts import Parts, joined, size_of
from kinst.rewriter.standalone.code.trampoline import (
    Clock,
    Constant,
    Count,
    Cpu,
    ImmovableError,
    Masks,
    OfTask,
    Record,
    Register,
    Stack,
    Task,
    Varying,
    Word,
    placed,
)
from kinst.targets.arch.amd64 import AMD64, GENERAL, RAX, RBP, RBX, RCX, RDX, REGISTERS, RIP, RSP
from kinst.targets.standalone import WORD
from kinst.targets.values import dataclass

_FLAGS: Final = sum(effector(AMD64).flags.values())
_COUNTED: Final = _FLAGS & ~effector(AMD64).flags["cf"]  # inc leaves CF alone
_REGISTERS: Final = (1 << len(GENERAL)) - 1
# Not rsp and rbp: by these two an interrupt handler, too, finds the stack.
_FREE: Final = tuple(number for number in range(len(GENERAL)) if number not in (RSP, RBP))
_NARROWEST: Final = 0xFFFF_FFFF
_NOT_NEGATIVE: Final = 0x79  # jns
_BRANCH: Final = 2  # bytes of a short one


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
        case Record(words=words):
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
    """A record. rdtsc overwrites rax and rdx, cpuid also rbx and rcx: meanwhile the ticket waits in the record, where
    the site's number will be."""
    words = record.words
    first, more = _fixed(words, has_flags=free.has_flags)
    # Where flags are live rax is saved anyway. Then come dead registers, and last those that are recorded.
    rest = [one for one in _FREE if one not in (*first, *more)]
    rest.sort(key=lambda one: (not free.registers >> one & 1, Register(one) in words))
    work = (*first, *rest)[:3]
    around = free.kept(*work, *more)
    ticket, other, place = (GENERAL[number] for number in work)
    waits = any(not isinstance(word, Register | Constant | Varying) for word in words)
    return joined(
        template(
            (
                *around.before,
                f"movl $0x1, %{narrow(work[0])}",
                f"lock xaddq %{ticket}, @ring(%rip)",
            )
        ),
        _wait(ticket, other) if record.waits else (),
        template(
            (
                f"movl %{narrow(work[0])}, %{narrow(work[2])}",
                f"andl ${record.mask:#x}, %{narrow(work[2])}",
                f"imulq ${record.stride:#x}, %{place}, %{place}",
                f"leaq @first(%rip), %{other}",
                f"addq %{other}, %{place}",
                f"leaq {record.discard:#x}(%{other}), %{other}",
                f"lock btsq $0x3f, (%{place})",
                f"cmovcq %{other}, %{place}",
                *([f"movq %{ticket}, {WORD:#x}(%{place})"] if waits else []),
            )
        ),
        _stores(words, around, Free(work[0], work[1], work[2], around.depth), has_stack=free.has_stack),
        template(
            (
                *([f"movq {WORD:#x}(%{place}), %{ticket}"] if waits else []),
                f"movq $@site, {WORD:#x}(%{place})",
                f"incq %{ticket}",
                f"movq %{ticket}, (%{place})",
                *around.after,
            )
        ),
    )


def _wait(ticket: str, other: str) -> Parts:
    """Until there is room, or patience is gone: `kinst.targets.standalone`. Without pause, for which QEMU would leave
    its translated code."""
    look = template((f"movq @room(%rip), %{other}", f"addq %{ticket}, %{other}"))
    again = template(("decq @patience(%rip)",))
    give_up = template(("andq $0x0, @room(%rip)",))
    here = size_of(look) + _BRANCH + size_of(again) + _BRANCH
    back = bytes((_NOT_NEGATIVE, -here & 0xFF))
    rest = joined(again, (back,), give_up)
    return joined(look, (bytes((_NOT_NEGATIVE, size_of(rest))),), rest)


def _fixed(words: Sequence[Word], *, has_flags: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The registers that must hold the ticket and serve as the other one, as far as they are not free to choose; and
    those that are clobbered besides."""
    if Cpu() in words:
        return (RAX, RDX), (RBX, RCX)
    return ((RAX, RDX) if Clock() in words else (RAX,) if has_flags else ()), ()


def _stores(words: Sequence[Word], around: Kept, free: Free, *, has_stack: bool) -> Parts:
    """Store all words. Those of the stack come last, since they need the task."""
    every = [*placed(words)]
    plain = template(line for at, word in every for line in _lines(at, word, around, free))
    cpu = [number_of_cpu(at, free.place) for at, word in every if isinstance(word, Cpu)]
    stacks = [(at, word) for at, word in every if isinstance(word, Stack)]
    members = [(at, word) for at, word in every if isinstance(word, OfTask)]
    asked = [current_of(word) for _, word in members]
    asked += [word.task.of for _, word in stacks if word.task is not None]
    task = of_task(members, asked[0], free) if asked else ()
    return joined(plain, *cpu, task, *(of_stack(at, word, free, has_stack=has_stack) for at, word in stacks))


def _lines(at: int, word: Word, around: Kept, free: Free) -> Iterator[str]:
    """Store a word that is not read from memory, through a register if need be."""
    place, other = GENERAL[free.place], GENERAL[free.other]
    low, high = f"{at:#x}(%{place})", f"{at + 4:#x}(%{place})"
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
        case _:
            pass


def _source(number: int, around: Kept, other: str) -> tuple[list[str], str]:
    """The lines that fetch a register's value from before the site's instruction, and the register that holds it
    then."""
    if number == RIP:
        return [f"leaq @here(%rip), %{other}"], other
    if number == RSP and around.depth:
        return [f"leaq {around.depth:#x}(%rsp), %{other}"], other
    operand = around.places.get(number, f"%{GENERAL[number]}")
    return ([], operand[1:]) if operand.startswith("%") else ([f"movq {operand}, %{other}"], other)

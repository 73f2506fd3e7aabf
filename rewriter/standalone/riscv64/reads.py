"""riscv64: what a record has of memory -> code: words of Linux's current task, and of the stack.

In the kernel tp holds the current task's address. In the first instructions after an entry from user mode it is still
that mode's thread pointer, and before the kernel has set it, anything: only an address of the kernel's half, with the
highest bit set, is read.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kinst.rewriter.standalone.code.recording import stack_words, task_words
from kinst.rewriter.standalone.code.trampoline import Behind, Current, Member, OfTask, Record, Stack
from kinst.targets.standalone import WORD
from kinst.targets.values import dataclass

_OUTSIDE_PAGE: Final = 64 - 12  # bits
_BRANCH: Final = 4  # bytes: no branch has a short form here
_LARGEST: Final = 1 << 11  # beyond what an instruction holds


@dataclass(frozen=True, slots=True)
class Free:
    """Names of registers: a scratch register, and those of the ticket and the place. `frame`: by how many bytes the
    stack pointer is lower than the guest's. `size` gives the bytes of lines of assembly."""

    base: str
    ticket: str
    place: str
    frame: int
    size: Callable[[str], int]

    def over(self, condition: str, *lines: str) -> list[str]:
        """Lines that are skipped if a condition holds."""
        return [f"{condition}, {_BRANCH + self.size(chr(10).join(lines))}", *lines]


def of_memory(task: Record, free: Free, *, has_stack: bool) -> str:
    """Text that stores the words of memory."""
    words, stacks = task_words(task), stack_words(task)
    lines = _of_task(words, free) if words else []
    for at, stack in stacks:
        lines += _of_stack(at, stack, free) if has_stack else [f"sd zero, {at}({free.place})"]
    return "\n".join(lines)


def _of_task(words: Sequence[tuple[int, OfTask]], free: Free) -> list[str]:
    zeros = [f"sd zero, {at}({free.place})" for at, _ in words]
    members = [line for at, word in words for line in _member(at, word, free)]
    return [*free.over("bltz tp", *zeros, *free.over("jal zero", *members)[:1]), *members]


def _member(at: int, word: OfTask, free: Free) -> Iterator[str]:
    if isinstance(word, Current):
        yield f"sd tp, {at}({free.place})"
        return
    if isinstance(word, Behind):
        yield from _behind(word, free)
    else:
        yield from _loaded(word, free)
    yield f"sd {free.base}, {at}({free.place})"


def _behind(word: Behind, free: Free) -> list[str]:
    """The ticket waits in the record, where the site's number will be."""
    return [
        *_loaded(word.of, free),
        f"sd {free.ticket}, {WORD}({free.place})",
        f"li {free.ticket}, {word.offset}",
        f"add {free.base}, {free.base}, {free.ticket}",
        f"ld {free.ticket}, {WORD}({free.place})",
        f"ld {free.base}, 0({free.base})",
    ]


def _loaded(member: Member, free: Free) -> list[str]:
    if member.offset < _LARGEST:
        return [f"ld {free.base}, {member.offset}(tp)"]
    return [f"li {free.base}, {member.offset}", f"add {free.base}, {free.base}, tp", f"ld {free.base}, 0({free.base})"]


def _of_stack(at: int, stack: Stack, free: Free) -> list[str]:
    """The ticket waits in the record, where the site's number will be. The words are copied from the last one down,
    through `base`: the registers of the ticket and the place point to the source and the destination meanwhile."""
    base, ticket, place = free.base, free.ticket, free.place
    copy = [
        f"slli {base}, {base}, 3",
        f"add {ticket}, sp, {base}",
        f"add {place}, {place}, {base}",
    ]
    again = [
        f"ld {base}, {free.frame - WORD}({ticket})",
        f"sd {base}, {at}({place})",
        f"addi {ticket}, {ticket}, -{WORD}",
        f"addi {place}, {place}, -{WORD}",
    ]
    back = f"bne {ticket}, sp, {(-free.size(chr(10).join(again))) % (1 << 64)}"
    return [
        f"sd {ticket}, {WORD}({place})",
        *_measured(stack, free),
        f"srli {base}, {base}, 3",
        f"li {ticket}, {stack.count}",
        *free.over(f"bgeu {ticket}, {base}", f"addi {base}, {ticket}, 0"),
        f"sd {base}, {at}({place})",
        *free.over(f"beq {base}, zero", *copy, *again, back),
        f"ld {ticket}, {WORD}({place})",
    ]


def _measured(stack: Stack, free: Free) -> list[str]:
    """How far it is to the end of the page, or of the task's stack, in bytes, in `base`."""
    base, ticket = free.base, free.ticket
    page = [
        f"addi {base}, sp, {free.frame}",
        f"sub {base}, zero, {base}",
        f"slli {base}, {base}, {_OUTSIDE_PAGE}",
        f"srli {base}, {base}, {_OUTSIDE_PAGE}",
    ]
    if stack.task is None:
        return page
    task = [
        *_loaded(stack.task, free),
        f"li {ticket}, {stack.size}",
        f"add {base}, {base}, {ticket}",
        f"sub {base}, {base}, sp",
        f"addi {base}, {base}, -{free.frame}",
        *free.over(f"bltu {base}, {ticket}", *page)[:1],
    ]
    return [*free.over("bge tp, zero", *task), *page]

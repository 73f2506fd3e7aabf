"""arm64: what a record has of memory -> code, with no flag touched: words of Linux's current task, and of the stack.

In the kernel sp_el0 holds the current task's address. In the first instructions after an entry from user mode it is
still that mode's stack pointer, and before the kernel has set it, anything: only an address of the kernel's half, with
the highest bit set, is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from kinst.rewriter.standalone.code.recording import stack_words, task_words
from kinst.rewriter.standalone.code.trampoline import Behind, Current, OfTask, Record, Stack
from kinst.targets.standalone import WORD
from kinst.targets.values import dataclass

_PAGE: Final = 0x1000
_FIND: Final = """
    mrs {base}, sp_el0
    tbnz {base}, #63, is_task
    mov {base}, xzr
    {zeros}
    b no_task
is_task:
    {members}
no_task:
"""
_TO_END_OF_TASK: Final = """
    cbz {base}, to_page_{at}
    ldr {base}, [{base}, #{offset}]
    mov {other}, #{size}
    add {base}, {base}, {other}
    add {other}, sp, #{frame}
    sub {base}, {base}, {other}
    lsr {other}, {base}, #{shift}
    cbz {other}, measured_{at}
"""
# The copy needs a third register: meanwhile the ticket waits in the record, where the site's number will be.
_COPY: Final = """
to_page_{at}:
    add {other}, sp, #{frame}
    neg {other}, {other}
    and {base}, {other}, #{within}
measured_{at}:
    lsr {base}, {base}, #3
    mov {other}, #{most}
    sub {other}, {base}, {other}
    tbnz {other}, #63, few_{at}
    mov {base}, #{most}
few_{at}:
    str {base}, [{place}, #{at}]
    cbz {base}, copied_{at}
    str {ticket}, [{place}, #{waiting}]
    add {other}, sp, #{frame}
    sub {other}, {other}, #{word}
    add {place}, {place}, #{at}
next_{at}:
    ldr {ticket}, [{other}, {base}, lsl #3]
    str {ticket}, [{place}, {base}, lsl #3]
    sub {base}, {base}, #1
    cbnz {base}, next_{at}
    sub {place}, {place}, #{at}
    ldr {ticket}, [{place}, #{waiting}]
copied_{at}:
"""


@dataclass(frozen=True, slots=True)
class Free:
    """Names of registers: two scratch registers, and those of the ticket and the place. `frame`: by how many bytes the
    stack pointer is lower than the guest's."""

    base: str
    other: str
    ticket: str
    place: str
    frame: int


def of_memory(task: Record, free: Free, *, has_stack: bool) -> str:
    """Text that stores the words of memory."""
    words, stacks = task_words(task), stack_words(task)
    is_asked = bool(words) or (has_stack and any(stack.task for _, stack in stacks))
    parts = [_of_task(words, free)] if is_asked else []
    for at, stack in stacks:
        parts.append(_of_stack(at, stack, free) if has_stack else f"str xzr, [{free.place}, #{at}]")
    return "\n".join(parts)


def _of_task(words: Sequence[tuple[int, OfTask]], free: Free) -> str:
    """Leaves the current task, or 0, in `base`."""
    zeros = (f"str xzr, [{free.place}, #{at}]" for at, _ in words)
    members = (line for at, word in words for line in _member(at, word, free))
    return _FIND.format(base=free.base, zeros="\n".join(zeros), members="\n".join(members))


def _member(at: int, word: OfTask, free: Free) -> Iterator[str]:
    if isinstance(word, Current):
        yield f"str {free.base}, [{free.place}, #{at}]"
        return
    member = word.of if isinstance(word, Behind) else word
    yield f"ldr {free.other}, [{free.base}, #{member.offset}]"
    if isinstance(word, Behind):
        far, near = word.offset & -_PAGE, word.offset % _PAGE  # an instruction holds 12 bits of it
        yield f"add {free.other}, {free.other}, #{far}"
        yield f"ldr {free.other}, [{free.other}, #{near}]"
    yield f"str {free.other}, [{free.place}, #{at}]"


def _of_stack(at: int, stack: Stack, free: Free) -> str:
    text, names = _COPY, asdict(free) | {"at": at, "most": stack.count}
    if stack.task is not None:
        text = _TO_END_OF_TASK + text
        names |= {"offset": stack.task.offset, "size": stack.size, "shift": stack.size.bit_length() - 1}
    return text.format(**names, within=_PAGE - 1, waiting=WORD, word=WORD)

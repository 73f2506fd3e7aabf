"""What a record has besides registers -> code: the CPU's number, words of Linux's current task and of the stack.

The CPU whose per-CPU data is read is in a segment's limit, which Linux keeps for the vDSO (GDT_ENTRY_CPUNODE): lsl sets
ZF and gives the limit, whose lowest 12 bits are the CPU, once there is such a segment, and by then this data is mapped.
Not by gs: in the first instructions after an entry from user mode, before swapgs, its base is still the user's.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kinst.rewriter.standalone.amd64.pieces import narrow, template
from kinst.rewriter.standalone.code.parts import Parts, joined, size_of
from kinst.rewriter.standalone.code.trampoline import Behind, Current, Member, OfTask, Stack
from kinst.targets.arch.amd64 import GENERAL
from kinst.targets.standalone import WORD
from kinst.targets.values import dataclass

_CPU_NODE: Final = 0x7B  # the selector, for user mode
_CPUS: Final = 0xFFF
_PAGE: Final = 0x1000
_LEAF: Final = 1  # of cpuid: EBX has the APIC ID in its highest byte
# Conditions of jumps, by the lowest four bits of their codes.
_EQUAL, _DIFFERENT, _ABOVE = 4, 5, 7
_NEAR: Final = 0x80


@dataclass(frozen=True, slots=True)
class Free:
    """Two scratch registers, the register that holds the record's address, and by how many bytes the stack pointer is
    lower than the guest's."""

    base: int
    other: int
    place: int
    depth: int

    def filled(self, *lines: str) -> Parts:
        """Parts of lines, with ``{base}``, ``{other}``, ``{place}``, and ``{base_32}`` and ``{other_32}``."""
        names = {"base": GENERAL[self.base], "other": GENERAL[self.other], "place": GENERAL[self.place]}
        names |= {"base_32": narrow(self.base), "other_32": narrow(self.other)}
        return template(line.format_map({name: f"%{register}" for name, register in names.items()}) for line in lines)


def number_of_cpu(at: int, place: int) -> Parts:
    """rax, rbx, rcx and rdx are free."""
    store = f"movq %rbx, {at:#x}(%{GENERAL[place]})"
    return template((f"movl ${_LEAF:#x}, %eax", "cpuid", "shrl $24, %ebx", store))


def current_of(word: OfTask) -> Current:
    """The task that a word is about."""
    match word:
        case Behind(of=member):
            return member.of
        case Member(of=current):
            return current
        case current:
            return current


def of_task(words: Sequence[tuple[int, OfTask]], current: Current, free: Free) -> Parts:
    """Load the address of the current task into `base`, and store words of the task; zeros if there is none."""
    ask = free.filled(f"movl ${_CPU_NODE:#x}, {{other_32}}", "lsll {other_32}, {base_32}")
    variable = (
        ("leaq @current(%rip), {other}", "addq {other}, {base}") if current.is_linked else ("addq $@current, {base}",)
    )
    found = free.filled(
        f"andl ${_CPUS:#x}, {{base_32}}",
        "leaq @per_cpu(%rip), {other}",
        "movq ({other},{base},8), {base}",
        *variable,
        "movq ({base}), {base}",
        *_members(words),
    )
    nothing = free.filled("xorl {base_32}, {base_32}", *(f"movq {{base}}, {at:#x}({{place}})" for at, _ in words))
    found = joined(found, _over(nothing))
    return joined(ask, _over(found, _DIFFERENT), found, nothing)


def _members(words: Sequence[tuple[int, OfTask]]) -> Iterator[str]:
    for at, word in words:
        if isinstance(word, Current):
            yield f"movq {{base}}, {at:#x}({{place}})"
            continue
        member = word.of if isinstance(word, Behind) else word
        yield f"movq {member.offset:#x}({{base}}), {{other}}"
        if isinstance(word, Behind):
            yield f"movq {word.offset:#x}({{other}}), {{other}}"
        yield f"movq {{other}}, {at:#x}({{place}})"


def of_stack(at: int, stack: Stack, free: Free, *, has_stack: bool) -> Parts:
    """The stack's words. If they are up to the end of the task's, `base` has the task, or 0."""
    if not has_stack:
        return free.filled(f"movq $0, {at:#x}({{place}})")
    page = free.filled(f"leaq {free.depth:#x}(%rsp), {{other}}", "negq {other}", f"andl ${_PAGE - 1:#x}, {{other_32}}")
    most = free.filled(
        f"shrq ${WORD.bit_length() - 1}, {{other}}",
        f"movl ${stack.count:#x}, {{base_32}}",
        "cmpq {base}, {other}",
        "cmovaq {base}, {other}",
        f"movq {{other}}, {at:#x}({{place}})",
        "testq {other}, {other}",
    )
    copy = free.filled(
        f"movq {free.depth - WORD:#x}(%rsp,{{other}},8), {{base}}",
        f"movq {{base}}, {at:#x}({{place}},{{other}},8)",
        "decq {other}",
    )
    again = bytes((0x70 | _DIFFERENT, -(size_of(copy) + 2) & 0xFF))
    copy = joined(copy, (again,))
    return joined(page, _to_end_of_task(stack, free), most, _over(copy, _EQUAL), copy)


def _to_end_of_task(stack: Stack, free: Free) -> Parts:
    """How far it is there, in bytes, if the stack is the task's; else what `other` has."""
    if stack.task is None:
        return ()
    take = free.filled("movq {base}, {other}")
    measure = free.filled(
        f"movq {stack.task.offset:#x}({{base}}), {{base}}",
        f"addq ${stack.size:#x}, {{base}}",
        "subq %rsp, {base}",
        f"subq ${free.depth:#x}, {{base}}",
        f"cmpq ${stack.size:#x}, {{base}}",
    )
    inside = joined(measure, _over(take, _ABOVE), take)
    return joined(free.filled("testq {base}, {base}"), _over(inside, _EQUAL), inside)


def _over(parts: Parts, condition: int | None = None) -> Parts:
    """A jump over some parts: if the condition holds, or in any case."""
    size = size_of(parts)
    if size < _NEAR:
        return (bytes((0xEB if condition is None else 0x70 | condition, size)),)
    code = b"\xe9" if condition is None else bytes((0x0F, 0x80 | condition))
    return (code + size.to_bytes(4, "little"),)

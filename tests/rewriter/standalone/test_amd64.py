"""Instructions of amd64 in Unicorn, where they are and in trampolines that count: nothing else differs."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from kinst.rewriter.arch.registry import dissector
from kinst.rewriter.assemble import assemble
from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.liveness.effects import effector
from kinst.rewriter.standalone.code.trampoline import ImmovableError
from kinst.targets.arch.amd64 import AMD64, RCX
from kinst.targets.instruction import Flow, Instructions, Verdict
from kinst.targets.standalone import WORD
from tests.gated import draws
from tests.rewriter.standalone.amd64_guest import Guest, drawn
from tests.rewriter.standalone.amd64_runs import APART, EVERYTHING, GENERATOR, HELD, Moved, moved_by
from tests.rewriter.standalone.single import Count, Covered, jump_to, trampoline_of
from tests.vectors.amd64 import ADDRESS, VECTORS

# Not those of which no two runs are the same, nor popf: it may set the trap flag, which the jump back feels.
UNSTEADY = ("popf", "rdtsc", "rdpmc", "hlt")
STEADY = [one for one in VECTORS if one.verdict != Verdict.REFUSE and not one.text.startswith(UNSTEADY)]
STRAIGHT = [one.code for one in STEADY if one.flow in (Flow.NEXT, Flow.BRANCH)]
# Why some cannot be moved, and what is in their text.
IMMOVABLE = {
    "its operand is relative to EIP": r"\(%eip\)",
    "it calls where its own stack pointer leads": r"\*%rsp",
    "its operand is out of reach of the trampoline": r"0x(f{8})?[78]\w{7}\b",
}
NO_SPACE = "there is no dead register to work with, and no stack to save one on"


def instructions(code: bytes) -> Instructions:
    return dissector(AMD64).dissect(np.frombuffer(code, np.uint8), ADDRESS, np.array([[0, len(code)]]))


def truly_dead(code: bytes, found: Instructions, behind: int) -> list[int]:
    """What is dead before each instruction, if `behind` is wherever control leaves them."""
    padded = np.frombuffer(code + bytes(32), np.uint8)
    effects = effector(AMD64).effects(padded, (found.address - np.uint64(ADDRESS)).view(np.int64), found.size)
    dead, masks = behind, list[int]()
    for row in reversed(range(len(found))):
        if found.flow[row] != Flow.NEXT:
            is_loop = ADDRESS <= found.target[row] < ADDRESS + len(code)
            dead &= 0 if is_loop else behind
        dead = (dead | int(effects.writes[row])) & ~int(effects.reads[row]) & ~HELD
        masks.append(dead)
    return masks[::-1]


def counted(code: bytes, behind: int, *, has_stack: bool = True) -> list[Covered]:
    """The instructions of some code, each with a cell of its own."""
    found = instructions(code)
    offsets = (found.address - np.uint64(ADDRESS)).view(np.int64)
    padded = np.frombuffer(code + bytes(32), np.uint8)
    effects = effector(AMD64).effects(padded, offsets, found.size)
    has_stack &= not GENERATOR.stack_roles(padded, offsets, found.size, effects)[0].any()
    masks = truly_dead(code, found, behind)
    group = []
    for row, (at, size) in enumerate(zip(offsets.tolist(), found.size.tolist(), strict=True)):
        target, kind, flow = int(found.target[row]), int(found.kind[row]), Flow(found.flow[row])
        task = Count(ADDRESS + 2 * APART + WORD * row)
        group.append(Covered(ADDRESS + at, code[at : at + size], target, kind, flow, masks[row], has_stack, task))
    return group


def outcome(code: bytes, behind: int, choose: random.Random, *, has_stack: bool = True) -> tuple[str, str]:
    """What differs, and why there is no trampoline: one of them is empty."""
    group = counted(code, behind, has_stack=has_stack)
    try:
        return Moved(group, moved_by(choose)).differences(choose, lambda address: behind), ""
    except ImmovableError as error:
        has_space = group[0].has_stack or str(error) != NO_SPACE
        return "", str(error) if has_space else ""


# Where there is no stack, which takes registers that are dead instead, the gate looks at half as many.
@pytest.mark.parametrize(
    ("has_stack", "step"),
    [(True, 4), (False, 8), *(pytest.param(which, 1, marks=pytest.mark.long) for which in (True, False))],
)
def test_every_kind_of_instruction(*, has_stack: bool, step: int) -> None:
    choose, wrong, refused = random.Random(1), dict[str, str](), dict[str, str]()
    for vector in STEADY[::step]:
        behind = (choose.getrandbits(22) if has_stack else EVERYTHING) & EVERYTHING & ~HELD
        difference, refusal = outcome(vector.code, behind, choose, has_stack=has_stack)
        wrong |= {vector.text: difference} if difference else {}
        refused |= {vector.text: refusal} if refusal else {}
    assert wrong == {}
    assert [text for text, why in refused.items() if not re.search(IMMOVABLE[why], text)] == []
    assert {*refused.values()} == IMMOVABLE.keys() if step == 1 else refused


@pytest.mark.parametrize("number", draws(60, 400))
def test_several_instructions(number: int) -> None:
    choose, wrong = random.Random(2), {}
    for _ in range(number):
        code = b"".join([*choose.choices(STRAIGHT, k=choose.randrange(4)), choose.choice(STEADY).code])
        behind = choose.choice((0, choose.getrandbits(22))) & EVERYTHING & ~HELD
        if difference := outcome(code, behind, choose)[0]:
            wrong[code.hex()] = difference
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("jrcxz . + 3; movl $1, %eax", "a branch in it leads into an instruction that moves"),
        ("call *%rbx; nop", "a call in it comes back to where it was"),
        ("int3", "no trampoline can hold it: breakpoint"),
    ],
)
def test_what_cannot_be_moved(text: str, refusal: str) -> None:
    with pytest.raises(ImmovableError, match=refusal):
        trampoline_of(GENERATOR, counted(assemble(AMD64, text, ADDRESS), 0), ADDRESS + APART)


def test_a_loop_counts_each_turn() -> None:
    """A branch to what moves leads to where it is now, its task included."""
    group = counted(assemble(AMD64, "a: decq %rcx; jne a; loop b; b: nop", ADDRESS), 0)
    trampoline = trampoline_of(GENERATOR, group, ADDRESS + APART)
    guest, state = Guest({ADDRESS + APART: trampoline}), drawn(random.Random(1), ADDRESS + APART)
    before = [guest.word(one.task.cell) for one in group if isinstance(one.task, Count)]
    inside = range(ADDRESS + APART, ADDRESS + APART + len(trampoline))
    done = guest.run(replace(state, values={**state.values, RCX: 5}), inside, 1000)
    after = [guest.word(one.task.cell) for one in group if isinstance(one.task, Count)]
    assert [end - start for start, end in zip(before, after, strict=True)] == [5, 5, 1, 1]
    assert done.pc == group[-1].address + 1


def test_all_counters_are_changed_at_once() -> None:
    """Others may add to a counter, and to the head of a ring, between any two instructions, but not within one."""
    choose = random.Random(3)
    for _ in range(50):
        behind = choose.getrandbits(22) & EVERYTHING & ~HELD
        trampoline = trampoline_of(GENERATOR, counted(b"\x90", behind), ADDRESS + APART)
        lines = [line.text for line in disassemble(AMD64, trampoline, ADDRESS + APART)]
        assert sum("(%rip)" in text for text in lines) == sum(text.startswith("lock incq") for text in lines) == 1


@pytest.mark.parametrize(
    ("address", "size", "target", "code"),
    [
        (0x1000, 5, 0x1005, "e900000000"),
        (0x1000, 8, 0x0F00, "e9fbfeffffcccccc"),
        (0xFFFF_FFFF_8000_0000, 6, 0, "e9fbffff7fcc"),
        (0x1000, 2, 0x1081, "eb7f"),
        (0x1000, 4, 0x0F82, "eb80cccc"),
    ],
)
def test_jumps(address: int, size: int, target: int, code: str) -> None:
    assert jump_to(GENERATOR, address, size, target).hex() == code


@pytest.mark.parametrize(
    ("size", "target", "refusal"),
    [(1, 0x1002, "too short"), (2, 0x1082, "out of reach"), (5, 0x8000_1005, "out of reach")],
)
def test_jumps_that_cannot_be(size: int, target: int, refusal: str) -> None:
    with pytest.raises(ImmovableError, match=refusal):
        jump_to(GENERATOR, 0x1000, size, target)


KEEPING = (
    *("push %rax", "pop %rbx", "pop %r12", "pushf", "call *%rax", "ret", "leave", "enter $16, $0", "mov %rsp, %rbp"),
    *("mov %rbp, %rsp", "add $8, %rsp", "sub %rax, %rsp", "and $-64, %rsp", "lea -128(%rsp), %rsp", "mov (%rsp), %rax"),
    *("lea -40(%rbp), %rsp", "lea 8(%rsp, %rcx, 8), %rsp", "mov %rsp, (%rdi)", "cmp %rax, %rsp", "xchg %rax, %r12"),
    *("xchg %rcx, (%rsp)", "mov %rax, %r12", "movq $1, (%rsp)", "pushq (%rsp)", "popq (%rsp)"),
)
SWITCHING = (
    *("mov %rax, %rsp", "mov 8(%rdi), %rsp", "mov %gs:16, %rsp", "mov 8(%rbp), %rsp", "mov $0x1000, %esp", "pop %rsp"),
    *("movabs $0x123456789, %rsp", "xchg %rax, %rsp", "xchg %rsp, (%rdi)", "lea 64(%rax), %rsp", "lea 8(%rip), %rsp"),
    *("lea (%rbp, %rax), %rsp", "lea 8(%r13), %rsp", "cmovne %rax, %rsp", "xor %esp, %esp", "or %rax, %rsp"),
    *("iretq", "sysretl", "swapgs", "sysexit", ".byte 0x8f, 0xc4", "lss (%rdi), %rsp", "adc $0, %rsp"),
)


def test_which_instructions_switch_the_stack() -> None:
    for texts, expected in ((KEEPING, False), (SWITCHING, True)):
        code = [assemble(AMD64, text) for text in texts]
        sizes = np.array([len(one) for one in code], np.uint8)
        padded = np.frombuffer(b"".join(code) + bytes(32), np.uint8)
        offsets = np.cumsum(sizes, dtype=np.int64) - sizes
        found, _ = GENERATOR.stack_roles(padded, offsets, sizes, effector(AMD64).effects(padded, offsets, sizes))
        assert [text for text, switches in zip(texts, found.tolist(), strict=True) if switches != expected] == []

"""What trampolines of arm64 and riscv64 read of memory, in Unicorn: Linux's current task, and what is surely there of a
stack."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import unicorn.arm64_const as a64

from kinst.rewriter.standalone.code.trampoline import Behind, Cpu, Current, Member, Register, Stack, Word, width
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.standalone import RING_HEAD, WORD
from tests.rewriter.standalone import test_arm64, test_riscv64
from tests.rewriter.standalone.displaced import Machine, covered, drawn_state
from tests.rewriter.standalone.single import Record, trampoline_of
from tests.runtime.trap.arch import risc_unicorn
from tests.runtime.trap.arch.risc_unicorn import Memory, State
from tests.runtime.trap.arch.unicorn_engines import PAGE

NEAR = test_arm64.NEAR
TASK, SIZE, OFFSET = 0xFFFF_FFC0_1234_0000, 0x4000, 0x20
EVERYTHING = (1 << 32) - 1
MACHINES = {"arm64": (test_arm64.MACHINE, "1f2003d5"), "riscv64": (test_riscv64.MACHINE, "13000000")}
COMPACT = "0100"  # c.nop


@dataclass(frozen=True)
class Read:
    """One record, and the memory that it is of."""

    words: Sequence[int]
    memory: Memory
    regs: Sequence[int]

    def word(self, address: int) -> int:
        return self.memory.load(address, WORD)


def read(
    machine: Machine,
    nop: str,
    words: Sequence[Word],
    *,
    dead: int = 0,
    sp: int = 1 << 30,
    task: int = TASK,
    stack: int = 0,
    has_stack: bool = True,
) -> Read:
    """Execute a trampoline. Its task's stack begins at `stack`."""
    stride = WORD * (2 + sum(map(width, words)))
    record, dead = Record(NEAR.cells, 0, stride, 7, tuple(words)), dead & ~machine.effector.held
    group = covered(machine, bytes.fromhex(nop), NEAR, dead, [record], has_stack=has_stack)
    assert group is not None
    made = trampoline_of(machine.generator, group, NEAR.trampoline)
    content = {NEAR.trampoline: made, NEAR.cells: bytes(RING_HEAD + 2 * stride)}
    content |= {TASK + OFFSET: stack.to_bytes(WORD, "little")}
    facts = machine.dissector.facts
    state = _state(machine, facts, sp, task)
    model = machine.model
    if facts.name == "arm64":
        model = replace(model, switches=(*model.switches, (a64.UC_ARM64_REG_SP_EL0, task)))
    cpu = risc_unicorn.Cpu(model, content)
    inside = range(NEAR.trampoline, NEAR.trampoline + len(made))
    end, _ = cpu.run_within(state, NEAR.trampoline, inside, facts.stack_pointer, most=5000)
    assert (end.fault, end.state.regs[facts.pc]) == ("", NEAR.site + len(bytes.fromhex(nop)))
    differ = [row for row, one in enumerate(state.regs) if one != end.state.regs[row] and row != facts.pc]
    assert [row for row in differ if not dead >> row & 1] == []
    memory = Memory([], [], content, {page: bytearray(found) for page, found in end.pages.items()})
    start = NEAR.cells + RING_HEAD
    assert memory.load(start, WORD) == 1
    found = [memory.load(start + at, WORD) for at in range(2 * WORD, stride, WORD)]
    return Read(found, memory, state.regs)


def _state(machine: Machine, facts: ArchFacts, sp: int, task: int) -> State:
    state = drawn_state(machine, random.Random(sp))
    regs = [*state.regs]
    regs[facts.stack_pointer] = sp
    if facts.name == "riscv64":
        regs[facts.registers.index("tp")] = task
    return replace(state, regs=tuple(regs))


@pytest.fixture(params=["arm64", "riscv64", "riscv64, compact"])
def of(request: pytest.FixtureRequest) -> tuple[Machine, str]:
    """A machine, and an instruction of it that does nothing."""
    machine, nop = MACHINES[request.param.partition(",")[0]]
    return machine, COMPACT if "," in request.param else nop


@pytest.mark.parametrize("dead", [0, EVERYTHING], ids=["nothing dead", "all dead"])
def test_words_of_the_current_task(of: tuple[Machine, str], dead: int) -> None:
    words = (Current(), Register(5), Member(Current(), 0x7A8), Member(Current(), 0x1230), Register(6))
    found = read(*of, words, dead=dead)
    assert [*found.words] == [TASK, found.regs[5], found.word(TASK + 0x7A8), found.word(TASK + 0x1230), found.regs[6]]


@pytest.mark.parametrize("task", [0, 0x7FFF_FFFF_F000], ids=["nothing yet", "user mode's"])
def test_before_there_are_tasks_all_words_of_them_are_0(of: tuple[Machine, str], task: int) -> None:
    words = (Current(), Member(Current(), 8), Register(5), Stack(4, Member(Current(), OFFSET), SIZE))
    found = read(*of, words, task=task, sp=0x7000_0FF0)
    assert [*found.words[:4]] == [0, 0, found.regs[5], 2]


@pytest.mark.parametrize("dead", [0, EVERYTHING], ids=["nothing dead", "all dead"])
@pytest.mark.parametrize("offset", [0, 8, 0x7F8, 0x800, 0x3F58, 0xFFF8])
def test_words_behind_a_pointer_of_the_task(of: tuple[Machine, str], dead: int, offset: int) -> None:
    base, word = 0xFFFF_FFC8_0000_8000, Behind(Member(Current(), OFFSET), offset)
    found = read(*of, (word, Register(5), Current()), dead=dead, stack=base)
    assert [*found.words] == [found.word(base + offset), found.regs[5], TASK]
    assert read(*of, (word, Register(5)), dead=dead, task=0).words[0] == 0


def test_the_number_of_the_cpu(of: tuple[Machine, str]) -> None:
    first = read(*of, (Cpu(),)).words[0]
    assert first & 0xFF_00FF_FFFF == 0


@pytest.mark.parametrize("dead", [0, EVERYTHING], ids=["nothing dead", "all dead"])
@pytest.mark.parametrize(("sp", "expected"), [(0x6000, 0), (0x6010, 16), (0x6000 - 16, 2), (0x5F90, 14), (0x5F80, 16)])
def test_the_stack_is_read_up_to_the_end_of_its_page(
    of: tuple[Machine, str], dead: int, sp: int, expected: int
) -> None:
    sp += 1 << 36
    found = read(*of, (Register(5), Stack(16), Register(6)), dead=dead, sp=sp)
    assert (found.words[0], found.words[1], found.words[-1]) == (found.regs[5], expected, found.regs[6])
    assert [*found.words[2 : 2 + expected]] == [found.word(sp + WORD * row) for row in range(expected)]
    assert not any(found.words[2 + expected : -1])


@pytest.mark.parametrize(
    ("below", "expected"), [(0, 0), (16, 2), (0x1000, 512), (0x1010, 512), (SIZE - 16, 512), (SIZE + 16, 2), (-16, 510)]
)
def test_the_stack_of_the_task_is_read_up_to_its_end(of: tuple[Machine, str], below: int, expected: int) -> None:
    """`below`: how far its pointer is below the end of the task's stack."""
    base = 0xFFFF_FFC8_0000_8000
    sp = base + SIZE - below
    found = read(*of, (Stack(512, Member(Current(), OFFSET), SIZE),), sp=sp, stack=base)
    assert found.words[0] == expected
    assert [*found.words[1 : 1 + expected]] == [found.word(sp + WORD * row) for row in range(expected)]
    assert PAGE * 2 < SIZE


def test_where_no_stack_is_known_nothing_is_read_of_it(of: tuple[Machine, str]) -> None:
    assert [*read(*of, (Stack(2),), dead=EVERYTHING, has_stack=False).words] == [0, 0, 0]

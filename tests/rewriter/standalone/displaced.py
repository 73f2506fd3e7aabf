"""Groups of instructions in place, and displaced by a jump to their trampoline: the same for whoever looks."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kinst.rewriter.arch.dissector import Dissector
from kinst.rewriter.liveness.effects import Effector
from kinst.rewriter.standalone.code.trampoline import CodeGenerator, Constant, ImmovableError, Register
from kinst.targets.instruction import Flow, Instructions, Verdict
from kinst.targets.standalone import RING_HEAD
from tests.rewriter.standalone.single import Count, Covered, Record, jump_to, trampoline_of
from tests.runtime.trap.arch.risc_unicorn import Cpu, Model, Outcome, State, page_content
from tests.runtime.trap.arch.unicorn_engines import PAGE

FALLS = (Flow.NEXT, Flow.BRANCH)
Dead = Callable[[int], int]
_SPECIAL = (0, 1, 5, 0x7FFFFFFF, 0x80000000, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_WORD = 8
_PUSHED = 128  # bytes below the stack pointer that a task may write to
_MOST = 200
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Machine:
    """What the tests need of one."""

    model: Model
    dissector: Dissector
    effector: Effector
    generator: CodeGenerator
    vector_bits: int


@dataclass(frozen=True)
class Place:
    """Link addresses, and how far all of it is moved before it runs."""

    site: int
    trampoline: int
    cells: int
    moved: int

    @property
    def run(self) -> "Place":
        """Where it runs."""
        return Place(self.site + self.moved, self.trampoline + self.moved, self.cells + self.moved, 0)


def covered(
    machine: Machine, code: bytes, place: Place, dead: int, tasks: Iterable[Count | Record | None], *, has_stack: bool
) -> tuple[Covered, ...] | None:
    """A group at the site; None: some of it cannot be displaced.

    Args:
        machine: its machine.
        code: the instructions.
        place: where they are.
        dead: registers and flags that are dead wherever control goes from there.
        tasks: one for each instruction, and maybe more.
        has_stack: as in `Covered`, unless some of it loads the stack pointer.
    """
    content = np.frombuffer(code + bytes(32), np.uint8)
    found = machine.dissector.dissect(content[: len(code)], place.site, np.array([[0, len(code)]], np.int64))
    falls = np.isin(found.flow, FALLS)
    if not np.isin(found.verdict, (Verdict.COPY, Verdict.EMULATE)).all() or not falls[:-1].all():
        return None
    offsets = (found.address - np.uint64(place.site)).astype(np.int64)
    effects = machine.effector.effects(content, offsets, found.size)
    has_stack = has_stack and not machine.generator.stack_roles(content, offsets, found.size, effects)[0].any()
    rows = range(len(found))
    every = [_one(code, found, row, place, task, has_stack=has_stack) for row, task in zip(rows, tasks, strict=False)]
    behind = dead
    for row in reversed(rows):
        every[row] = replace(every[row], dead_after=behind & ~machine.effector.held)
        behind &= dead if found.flow[row] == Flow.BRANCH else _MASK
        behind = (behind | int(effects.writes[row])) & ~int(effects.reads[row]) & ~machine.effector.held
        every[row] = replace(every[row], dead=behind)
    return tuple(every)


def _one(
    code: bytes, found: Instructions, row: int, place: Place, task: Count | Record | None, *, has_stack: bool
) -> Covered:
    start = int(found.address[row])
    return Covered(
        address=start,
        code=code[start - place.site :][: int(found.size[row])],
        target=int(found.target[row]),
        kind=int(found.kind[row]),
        flow=Flow(int(found.flow[row])),
        dead=0,
        has_stack=has_stack,
        task=task,
    )


def counters(place: Place) -> Iterator[Count]:
    """A cell for each instruction."""
    return (Count(place.cells + row * _WORD) for row in itertools.count())


def check_counts(machine: Machine, group: Sequence[Covered], place: Place, state: State, dead: Dead) -> bool:
    """It does what it did, and the cells tell how often each instruction ran. False: in place it faults."""
    own = range(place.run.cells, place.run.cells + len(group) * _WORD)
    both = check(machine, group, place, state, dead, own)
    if both is None:
        return False
    displaced, path = both
    before = page_content(own.start // PAGE, {})
    after = displaced.pages.get(own.start // PAGE, before)
    assert [_cell(after, cell) - _cell(before, cell) for cell in own[::_WORD]] == [
        path.count(one.address) for one in group
    ]
    return True


def check(
    machine: Machine, group: Sequence[Covered], place: Place, state: State, dead: Dead, own: range
) -> tuple[Outcome, list[int]] | None:
    """Run it in place and displaced: registers that live, memory, and where control goes are the same. What comes of
    it, and the link addresses of the instructions that ran in place; None: in place it faults.

    Args:
        machine: its machine.
        group: what is displaced.
        place: where.
        state: at the start.
        dead: link address where control goes -> registers that may differ there.
        own: memory that tasks write to.

    Raises:
        ImmovableError: it cannot be displaced.
    """
    code, at, facts = b"".join(one.code for one in group), place.run, machine.dissector.facts
    made = trampoline_of(machine.generator, group, place.trampoline)
    start, patched = at.site, code
    try:
        longest, _ = facts.jump.far or (facts.jump.size, 0)
        jump = jump_to(machine.generator, place.site, min(len(code), longest), place.trampoline, group[0].dead)
        patched = jump + code[len(jump) :]
    except ImmovableError:
        start = at.trampoline
    within = range(at.site, at.site + len(code))
    cpu = Cpu(machine.model, {at.site: code})
    expected, path = cpu.run_within(state, at.site, within, facts.stack_pointer, most=_MOST)
    if expected.fault or len(path) == _MOST:
        return None
    places = (*within, *range(at.trampoline, at.trampoline + len(made)))
    cpu = Cpu(machine.model, {at.site: patched, at.trampoline: made})
    displaced, way = cpu.run_within(state, start, places, facts.stack_pointer, most=_MOST)
    assert displaced.fault == "", f"{displaced.fault} at {way[-1][0]:#x}"
    end = expected.state.regs[facts.pc] - place.moved
    _same_registers(machine, expected.state, displaced.state, dead(end))
    _same_memory(expected, displaced, (own, *{range(stack - _PUSHED, stack) for _, stack in path}))
    return displaced, [address - place.moved for address, _ in path]


def _cell(page: bytes, address: int) -> int:
    return int.from_bytes(page[address % PAGE :][:_WORD], "little")


def _same_registers(machine: Machine, expected: State, displaced: State, dead: int) -> None:
    names = machine.dissector.facts.registers
    differ = [
        f"{names[number]}: {two:#x}, not {one:#x}"
        for number, (one, two) in enumerate(zip(expected.regs, displaced.regs, strict=True))
        if one != two and not (dead & ~machine.effector.held) >> number & 1
    ]
    assert not differ, "; ".join(differ)
    assert displaced.vectors == expected.vectors


def _same_memory(expected: Outcome, displaced: Outcome, own: Sequence[range]) -> None:
    """Pages are the same but for code, which is there from the start, and what a trampoline has for itself."""
    for page in expected.pages.keys() | displaced.pages.keys():
        first, second = (one.pages.get(page) or page_content(page, {}) for one in (expected, displaced))
        differ = {page * PAGE + at for at in range(PAGE) if first[at] != second[at]} if first != second else set()
        assert {address for address in differ if not any(address in one for one in own)} == set()


def drawn_place(choose: random.Random, unit: int) -> Place:
    """A site, a trampoline near or far from it, and cells, of which all are moved or none; addresses of instructions
    are multiples of `unit`."""
    site = 0x8000_0000 + choose.randrange(0, 1 << 20, unit)
    away = choose.choice((1, -1)) * choose.randrange(0x1000, choose.choice((0x2000, 1 << 20, 1 << 24, 1 << 28)), unit)
    cells = 0x8800_0000 + choose.randrange(0, 0x800, _WORD)
    return Place(site, site + away, cells, choose.choice((0, 1 << 30, -(1 << 25))))


def drawn_state(machine: Machine, choose: random.Random) -> State:
    """Registers: addresses, and numbers that comparisons tell apart; an aligned stack pointer; flags."""
    facts = machine.dissector.facts
    regs: list[int] = []
    for number, name in enumerate(facts.registers):
        wide, narrow = choose.getrandbits(44) << 4, choose.choice(_SPECIAL)
        own = {"zero": 0, "pstate": choose.getrandbits(4) << 28 | 0x3C5}
        regs.append(own.get(name, wide if number == facts.stack_pointer else choose.choice((wide, narrow))))
    return State(tuple(regs), tuple(choose.getrandbits(machine.vector_bits) for _ in range(32)))


def outcome(machine: Machine, code: bytes, place: Place, dead: int, choose: random.Random, *, has_stack: bool) -> str:
    """ "same" or "faults", as `check_counts` says of a group; or why it cannot be displaced."""
    group = covered(machine, code, place, dead, counters(place), has_stack=has_stack)
    if group is None:
        return "refused"
    try:
        is_same = check_counts(machine, group, place, drawn_state(machine, choose), lambda _: dead)
    except ImmovableError as error:
        return str(error)
    return "same" if is_same else "faults"


def check_records(machine: Machine, nop: bytes, choose: random.Random) -> None:
    """Two instructions that do nothing and are recorded, in a ring of some size: registers, the site, numbers."""
    place, facts = drawn_place(choose, len(nop)), machine.dissector.facts
    place = replace(place, cells=place.cells & -PAGE, trampoline=place.site + 0x8000)
    capacity = 1 << choose.randrange(0, 4)
    every: list[Register | Constant] = [Register(number) for number in range(facts.pc + 1)]
    some = [*every, *(Constant(choose.getrandbits(choose.choice((8, 20, 33, 64)))) for _ in range(8))]
    words = choose.choice((every, choose.sample(some, choose.randrange(8))))
    stride = _WORD * (2 + len(words))
    site = choose.getrandbits(20)
    tasks = [Record(place.cells, capacity - 1, stride, site + row, tuple(words)) for row in range(2)]
    dead = choose.getrandbits(32) & ~machine.effector.held
    group, state = covered(machine, nop * 2, place, dead, tasks, has_stack=True), drawn_state(machine, choose)
    assert group is not None
    last = RING_HEAD + capacity * stride  # of the place that nobody reads
    own = range(place.run.cells, place.run.cells + last + stride)
    both = check(machine, group, place, state, lambda _: dead, own)
    assert both is not None
    before, after = (
        pages.get(own.start // PAGE) or page_content(own.start // PAGE, {}) for pages in ({}, both[0].pages)
    )
    expected = bytearray(before)
    head = _cell(before, own.start)
    _put(expected, own.start, [head + 2])
    for row, one in enumerate(group):
        start = own.start + RING_HEAD + (head + row) % capacity * stride
        regs = (*state.regs[: facts.pc], one.address + place.moved)
        values = [word.value if isinstance(word, Constant) else regs[word.number] for word in words]
        if not _cell(bytes(expected), start) >> 63:  # memory holds noise: of half the places somebody is not done
            _put(expected, start, [head + row + 1, site + row, *values])
    assert after[:last].hex(" ", _WORD) == expected[:last].hex(" ", _WORD)


def _put(page: bytearray, address: int, words: Sequence[int]) -> None:
    for row, word in enumerate(words):
        start = (address + row * _WORD) % PAGE
        page[start : start + _WORD] = (word & _MASK).to_bytes(_WORD, "little")

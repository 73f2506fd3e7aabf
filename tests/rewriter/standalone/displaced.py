"""Groups of instructions in place, and displaced by a jump to their trampoline: the same for whoever looks."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kinst.rewriter.arch.dissector import Dissector
from kinst.rewriter.liveness.effects import Effector
from kinst.rewriter.standalone.trampoline import Count, Covered, ImmovableError, Maker
from kinst.targets.instruction import Flow, Instructions, Verdict
from tests.runtime.trap.arch.risc_unicorn import PAGE, Cpu, Model, Outcome, State, page_content

FALLS = (Flow.NEXT, Flow.BRANCH)
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
    maker: Maker
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


def covered(machine: Machine, code: bytes, place: Place, dead: int, *, has_stack: bool) -> tuple[Covered, ...] | None:
    """A group at the site, of which each instruction is counted; None: some of it cannot be displaced.

    Args:
        machine: its machine.
        code: the instructions.
        place: where they are.
        dead: registers and flags that are dead wherever control goes from there.
        has_stack: as in `Covered`, unless some of it loads the stack pointer.
    """
    content = np.frombuffer(code + bytes(32), np.uint8)
    found = machine.dissector.dissect(content[: len(code)], place.site, np.array([[0, len(code)]], np.int64))
    falls = np.isin(found.flow, FALLS)
    if not np.isin(found.verdict, (Verdict.COPY, Verdict.EMULATE)).all() or not falls[:-1].all():
        return None
    offsets = (found.address - np.uint64(place.site)).astype(np.int64)
    has_stack = has_stack and not machine.maker.switches_stack(content, offsets, found.size).any()
    effects = machine.effector.effects(content, offsets, found.size)
    group: list[Covered] = []
    for row in range(len(found) - 1, -1, -1):
        behind = dead if row == len(found) - 1 else group[0].dead
        behind &= dead if found.flow[row] == Flow.BRANCH else _MASK
        before = (behind | int(effects.writes[row])) & ~int(effects.reads[row]) & ~machine.effector.held
        group.insert(0, _one(code, found, row, place, before, has_stack=has_stack))
    return tuple(group)


def _one(code: bytes, found: Instructions, row: int, place: Place, dead: int, *, has_stack: bool) -> Covered:
    start = int(found.address[row])
    return Covered(
        address=start,
        code=code[start - place.site :][: int(found.size[row])],
        target=int(found.target[row]),
        kind=int(found.kind[row]),
        flow=Flow(int(found.flow[row])),
        dead=dead,
        has_stack=has_stack,
        task=Count(place.cells + row * _WORD),
    )


def check(machine: Machine, group: Sequence[Covered], place: Place, state: State, dead: int) -> bool:
    """Run it in place and displaced: registers that live, memory, and where control goes are the same, and the cells
    tell how often each instruction ran. False: in place it faults.

    Raises:
        ImmovableError: it cannot be displaced.
    """
    code, at, facts = b"".join(one.code for one in group), place.run, machine.dissector.facts
    made = machine.maker.trampoline(group, place.trampoline)
    start, patched = at.site, code
    try:
        jump = machine.maker.jump(place.site, min(len(code), facts.jump.size), place.trampoline)
        patched = jump + code[len(jump) :]
    except ImmovableError:
        start = at.trampoline
    within = range(at.site, at.site + len(code))
    cpu = Cpu(machine.model, {at.site: code})
    expected, path = cpu.run_within(state, at.site, within, facts.stack_pointer, most=_MOST)
    if expected.fault or len(path) == _MOST:
        return False
    places = (*within, *range(at.trampoline, at.trampoline + len(made)))
    cpu = Cpu(machine.model, {at.site: patched, at.trampoline: made})
    displaced, way = cpu.run_within(state, start, places, facts.stack_pointer, most=_MOST)
    assert displaced.fault == "", f"{displaced.fault} at {way[-1][0]:#x}"
    _same_registers(machine, expected.state, displaced.state, dead)
    cells = range(at.cells, at.cells + len(group) * _WORD)
    _same_memory(expected, displaced, (cells, *{range(stack - _PUSHED, stack) for _, stack in path}))
    after = displaced.pages.get(at.cells // PAGE, page_content(at.cells // PAGE, {}))
    counted = [_cell(after, cell) - _cell(page_content(at.cells // PAGE, {}), cell) for cell in cells[::_WORD]]
    ran = [address - place.moved for address, _ in path]
    assert counted == [ran.count(one.address) for one in group]
    return True


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
    """ "same" or "faults", as `check` says of a group; or why it cannot be displaced."""
    group = covered(machine, code, place, dead, has_stack=has_stack)
    if group is None:
        return "refused"
    try:
        is_same = check(machine, group, place, drawn_state(machine, choose), dead)
    except ImmovableError as error:
        return str(error)
    return "same" if is_same else "faults"

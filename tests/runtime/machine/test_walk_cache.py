"""TLB misses of machines whose tables and control registers change at random: each is answered as a walk answers it,
and most of them without one."""

import ctypes
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, cast

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.paging.registry import new_walker
from kinst.runtime.paging.walker import Access, PageFault, Permission
from kinst.targets.image import Image
from kinst.targets.machines.registry import machine_facts
from tests.runtime.machine.riscv_words import (
    A0,
    A1,
    RA,
    S0,
    S2,
    SFENCE_VMA,
    T0,
    T1,
    WFI,
    ZERO,
    addi,
    code,
    jalr,
    la,
    li,
    store,
)  # fmt: skip

STEPS: Final = 3000
TABLES: Final = 0x10_0000  # from the start of RAM: two roots, then tables of 4 KiB
PAGES: Final = 0x20_0000
POWER_OFF: Final = (*li(T0, 0x10_0000), *li(T1, 0x5555), store(T1, T0, size=2), WFI)
BOARDS: Final = ("pc-amd64", "virt-arm64", "virt-riscv64")


@dataclass(frozen=True)
class Mmu:
    """How a machine's tables are made: bits of a table's entry, of a page's, and of those the ones that change; what an
    address is shifted by in an entry; registers that are set once; those that let others be
    written; and values that those take in turn."""

    table: int
    page: int
    changing: int
    shift: int
    fixed: Mapping[str, int]
    supervisor: Mapping[str, int]
    changed: Sequence[tuple[str, tuple[int, ...]]]
    root: Callable[[int], tuple[str, int]]
    levels: int


MMUS: Final = {
    "pc-amd64": Mmu(
        7, 0x67, 0x8000_0000_0000_0067, 0,
        {"cr4": 0x20, "msr:0xc0000080": 0xD00, "cr0": 0x8000_0011},
        {},
        (("cr0", (0x8000_0011, 0x8001_0011)), ("cr4", (0x20, 0x30_0020)), ("rflags", (2, 0x4_0002))),
        lambda table: ("cr3", table), 4,
    ),
    "virt-arm64": Mmu(
        3, 0x743, 0x0060_0000_0000_0443 | 0xC0, 0,
        {"tcr_el1": 0x5_B510_3510 | 25 << 16 | 25, "sctlr_el1": 0x30D0_0801},
        {},
        (("sctlr_el1", (0x30D0_0801, 0x30D8_0801)),),
        lambda table: ("ttbr0_el1", table), 3,
    ),
    "virt-riscv64": Mmu(
        1, 0xCF, 0xDF, 2,
        {"priv": 3, "mstatus": 0},
        {"priv": 1},
        (("priv", (1,)), ("sstatus", (0, 1 << 18, 1 << 19)), ("priv", (1, 1, 0))),
        lambda table: ("satp", 8 << 60 | table >> 12), 3,
    ),
}  # fmt: skip


class Guest:
    """A machine with two address spaces of eight pages each in the lowest two mebibytes."""

    def __init__(self, board: str, draw: random.Random) -> None:
        facts = machine_facts(board)
        self.system = System(facts, board_of(board), Configuration(clock=ClockKind.ICOUNT))
        self.mmu, self.draw, self.base = MMUS[board], draw, facts.ram_base
        self.memory, self.registers = self.system.memory, self.system.engine.live
        self.walker = new_walker(self.system.arch)
        self.roots: list[int] = []
        self.leaves: list[int] = []  # addresses of the entries of pages
        next_table = self.base + TABLES
        for _ in range(2):
            tables = [next_table + 4096 * level for level in range(self.mmu.levels)]
            next_table = tables[-1] + 4096
            for table, below in pairwise(tables):
                self.memory.store(table, 8, self.entry(below, self.mmu.table))
            self.roots.append(tables[0])
            self.leaves += (tables[-1] + 8 * page for page in range(8))
        for leaf in self.leaves:
            self.map(leaf)
        for name, value in self.mmu.fixed.items():
            self.registers.set(name, value)
        self.switch()

    def entry(self, physical: int, bits: int) -> int:
        return physical >> self.mmu.shift | bits

    def map(self, leaf: int) -> None:
        physical = self.base + PAGES + 4096 * self.draw.randrange(4)
        bits = self.mmu.page ^ (self.draw.getrandbits(64) & self.draw.getrandbits(64) & self.mmu.changing)
        self.memory.store(leaf, 8, self.entry(physical, bits))

    def switch(self) -> None:
        for name, value in self.mmu.supervisor.items():
            self.registers.set(name, value)
        self.registers.set(*self.mmu.root(self.draw.choice(self.roots)))

    def change(self) -> None:
        """As the guest does: a table's entry, the address space, or a control register."""
        kind = self.draw.randrange(60)
        if kind == 0:
            self.map(self.draw.choice(self.leaves))
        elif kind == 1:
            self.switch()
        elif kind == 2:
            for name, values in self.mmu.changed:
                self.registers.set(name, self.draw.choice(values))
        self.system.flush_tlb()

    def walked(self, address: int, access: Access) -> int | None:
        """What the walker finds; None for a fault."""
        load, store = (lambda at: self.memory.load(at, 8)), (lambda at, value: self.memory.store(at, 8, value))
        try:
            found = self.walker.translate(self.registers, load, store, address, access)
        except PageFault:
            return None
        assert found.permissions & (Permission.READ, Permission.WRITE, Permission.EXECUTE)[access]
        return found.physical


@pytest.mark.parametrize("board", BOARDS)
def test_misses_are_answered_as_a_walk_answers_them(board: str) -> None:
    draw = random.Random(board)
    guest = Guest(board, draw)
    asked = found = 0
    fill = guest.system.engine._tlb_fill

    def counted(address: int, access: Access) -> tuple[int, int] | None:
        nonlocal asked
        asked += 1
        return fill(address, access)

    guest.system.engine.on_tlb_fill(counted)
    for _ in range(STEPS):
        guest.change()
        address, access = 4096 * draw.randrange(8) + 8 * draw.randrange(512), draw.choice([*Access])
        answer = guest.system.space._to_access[access](address)
        assert answer == guest.walked(address, access), (hex(address), access)
        found += answer is not None
    assert found > STEPS / 8
    assert asked - (STEPS - found) < found / 2


@pytest.mark.parametrize("board", BOARDS)
def test_misses_are_answered_so_while_and_after_pages_are_held(board: str) -> None:
    """No page of those that are looked at is held."""
    draw = random.Random(board)
    guest = Guest(board, draw)
    held, is_held = guest.system.space.held, False
    for _ in range(STEPS):
        guest.change()
        if not draw.randrange(8):
            is_held = not is_held
            held.hold((lambda _address: False) if is_held else None)
        address, access = 4096 * draw.randrange(8) + 8 * draw.randrange(512), draw.choice([*Access])
        answer = guest.system.space._to_access[access](address)
        assert answer == guest.walked(address, access), (hex(address), access, is_held)


def test_a_page_that_becomes_code_is_not_granted_for_writing_as_before() -> None:
    """Otherwise the last store, which comes by another address, would change the code unnoticed."""
    facts = machine_facts("virt-riscv64")
    system = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
    where, other = facts.ram_base + 0x10_0000, facts.ram_base + 0x1000_0000
    system.space.alias([(other, where, 4096)])
    system.memory.write(where, code(0, jalr(ZERO, RA)))
    words = [*la(S0, where), *la(S2, other)]
    for value in (7, 8, 9):
        instruction = int.from_bytes(code(addi(A0, ZERO, value)), "little")
        words += [*li(T0, instruction), store(T0, S2, size=2), jalr(RA, S0), addi(A1 + value - 7, A0, 0)]
        words += [SFENCE_VMA] if value == 7 else []
    system.memory.write(facts.ram_base, code(*words, *POWER_OFF))
    system.board.start(Loaded(cast("Image", None), 0, facts.ram_base, ()))
    system.engine.live.set("priv", 1)
    assert system.run(10**9) is End.POWER_OFF
    assert [system.engine.live.get(name) for name in ("a1", "a2", "a3")] == [7, 8, 9]


@dataclass
class Watcher:
    """Shows another page in place of one; remembers the fetches and stores that it is told of."""

    number: int
    shown: int
    told: list[str] = field(default_factory=list)
    is_open: ctypes.c_uint64 = field(default_factory=lambda: ctypes.c_uint64(0))
    word: ctypes.c_uint64 = field(default_factory=lambda: ctypes.c_uint64(1))

    @property
    def pages(self) -> frozenset[int]:
        return frozenset({self.number})

    def frame(self, number: int, _address: int) -> int:
        assert number == self.number
        self.told.append("fetch")
        self.word.value = 0
        return self.shown

    def read(self, number: int) -> None:
        assert number == self.number

    def written(self, number: int) -> None:
        assert number == self.number
        self.told.append("store")
        self.word.value = 1

    def asks(self, number: int) -> int:
        assert number == self.number
        return ctypes.addressof(self.word)

    def opened(self, number: int) -> int:
        assert number == self.number
        return ctypes.addressof(self.is_open)

    def real(self, physical: int) -> int:
        return physical


def test_the_watcher_of_a_page_is_asked_again_when_the_page_was_written() -> None:
    facts = machine_facts("virt-riscv64")
    system = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
    where, shown = facts.ram_base + 0x10_0000, facts.ram_base + 0x20_0000
    watcher = Watcher(where >> 12, shown >> 12)
    system.memory.write(where, code(addi(A0, ZERO, 1), jalr(ZERO, RA)))
    system.memory.write(shown, code(addi(A0, A0, 2), jalr(ZERO, RA)))
    call, again = jalr(RA, S0), SFENCE_VMA
    words = [*la(S0, where), call, again, call, again, call, again, store(ZERO, S0, 16), again, call, again, call]
    system.memory.write(facts.ram_base, code(*words, *POWER_OFF))
    system.board.start(Loaded(cast("Image", None), 0, facts.ram_base, ()))
    system.space.watch(watcher)
    system.engine.live.set("priv", 1)
    system.engine.live.set("a0", 0)
    assert system.run(10**9) is End.POWER_OFF
    assert system.engine.live.get("a0") == 5 * 2
    assert watcher.told == ["fetch", "store", "fetch"]


def test_trampolines_are_found_again_without_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = machine_facts("virt-riscv64")
    system = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
    where, asked = 0x6000_0000, list[int]()
    system.space.overlay(where, code(addi(A0, A0, 1), jalr(ZERO, RA)))
    is_for_trampoline = system.space._is_for_trampoline

    def ask(access: Access) -> bool:
        asked.append(access)
        return is_for_trampoline(access)

    monkeypatch.setattr(system.space, "_is_for_trampoline", ask)
    words = [*li(S0, where), *[jalr(RA, S0), SFENCE_VMA] * 4]
    system.memory.write(facts.ram_base, code(*words, *POWER_OFF))
    system.board.start(Loaded(cast("Image", None), 0, facts.ram_base, ()))
    system.engine.live.set("priv", 1)
    system.engine.live.set("a0", 0)
    assert system.run(10**9) is End.POWER_OFF
    assert (system.engine.live.get("a0"), len(asked)) == (4, 1)


def test_code_is_changed_by_an_address_that_cannot_be_executed() -> None:
    """As kernels do with theirs: 1 GiB from 0x80000000 is mapped once more at 0xC0000000, without X. Unicorn itself
    notices the first store to such a page."""
    facts = machine_facts("virt-riscv64")
    system = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
    where, root = facts.ram_base + 0x10_0000, facts.ram_base + 0x20_0000
    for index, entry in ((0, 0xC7), (2, facts.ram_base >> 2 | 0xCF), (3, facts.ram_base >> 2 | 0xC7)):
        system.memory.store(root + 8 * index, 8, entry)
    system.memory.write(where, code(addi(A0, ZERO, 1), jalr(ZERO, RA)))
    words = [*la(S0, where), *la(S2, where + (1 << 30)), jalr(RA, S0), addi(A1, A0, 0)]
    instruction = int.from_bytes(code(addi(A0, ZERO, 2)), "little")
    words += [store(A0, S2, 16), *li(T0, instruction), store(T0, S2, size=2), jalr(RA, S0)]
    system.memory.write(facts.ram_base, code(*words, *POWER_OFF))
    system.board.start(Loaded(cast("Image", None), 0, facts.ram_base, ()))
    system.engine.live.set("priv", 1)
    system.engine.live.set("satp", 8 << 60 | root >> 12)
    assert system.run(10**9) is End.POWER_OFF
    assert [system.engine.live.get(name) for name in ("a1", "a0")] == [1, 2]

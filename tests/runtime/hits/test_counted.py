"""Which sites the engine counts, where it lets the CPU go on, and what the actions are called with: no emulator, but a
table that remembers its rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.runtime.hits.actions import NOTHING as NOTHING_AT_ALL
from kinst.runtime.hits.actions import Batched, Reads, counting, delivery_of
from kinst.runtime.hits.counted import CountedSites
from kinst.runtime.hits.replayed import RecordedFiring
from kinst.runtime.hits.thread_ranges import ThreadRange, ThreadRanges
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.delivery import DISPATCHED, Delivery, Way
from kinst.runtime.trap.trap import Enabling, Firing, Site
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.riscv64 import RISCV64

ARCH = RISCV64
END = 4  # where in a trampoline the second breakpoint is
SLOT = 0x9000
BIAS = 1  # of addresses in records
SLOTS = range(SLOT, SLOT + 0x100)


@dataclass
class Rows:
    """Records that are to be taken: address, CPU, and values of `registers`; and the time and the thread of each."""

    registers: tuple[int, ...] = ()
    rows: list[tuple[int, ...]] = field(default_factory=list)
    moments: list[tuple[int, int]] = field(default_factory=list)
    bias: int = BIAS
    has_time: bool = False
    known: list[tuple[int, int, int]] = field(default_factory=list)
    identified: tuple[int, str | None] | None = None

    def want(self, registers: Iterable[int]) -> None:
        assert not self.rows
        self.registers = tuple(sorted({*self.registers, *registers}))

    @property
    def threads(self) -> "Rows":
        return self

    @property
    def width(self) -> int:
        return 4 + len(self.registers)

    def put(self, low: int, high: int, key: int, identity: int = 0, words: Sequence[tuple[int, int]] = ()) -> None:
        assert (identity, words) == (0, [])
        self.known.append((low, high, key))

    def clear(self) -> None:
        self.known.clear()

    def want_time(self) -> None:
        self.has_time = True

    def identify(self, stack_pointer: int, identity: str | None) -> None:
        self.identified = stack_pointer, identity
        self.want([stack_pointer])

    def is_empty(self) -> bool:
        return not self.rows

    def take(self) -> NDArray[np.uint64]:
        return np.array(self.take_words(), np.uint64).reshape(-1, self.width)

    def take_words(self) -> list[int]:
        taken, self.rows, moments, self.moments = self.rows, [], self.moments, []
        heads = [*moments, *[(0, 0)] * len(taken)]
        rows = [(row[0] + BIAS, row[1], *head, *row[2:]) for row, head in zip(taken, heads, strict=False)]
        return [word for row in rows for word in row]


@dataclass
class Table:
    """Rows by address: where the CPU goes on, the cell, -1 if it is recorded or what it is dispatched to, and whether
    there is a credit; and hits that are to be taken."""

    rows: dict[int, tuple[int, object, bool]] = field(default_factory=dict)
    hits: list[tuple[int, int, int]] = field(default_factory=list)
    given_back: list[int] = field(default_factory=list)
    last: int = 0
    records: "Rows" = field(default_factory=lambda: Rows())

    def on_full(self, call: Callable[[], None]) -> None:
        """There is always room."""

    def record(self, address: int, following: int, *, has_credit: bool, is_keyed: bool = False) -> None:
        self.rows[address] = following, -2 if is_keyed else -1, has_credit

    def set(self, address: int, following: int, cell: int, *, has_credit: bool) -> None:
        self.rows[address] = following, cell, has_credit

    def dispatch(self, address: int, following: int, hit: Callable[[], None], *, has_credit: bool) -> None:
        self.rows[address] = following, hit, has_credit

    def drop(self, address: int) -> None:
        self.rows.pop(address, None)

    def cell(self) -> int:
        self.last += 1
        return self.last

    def give_back(self, cells: list[int]) -> None:
        self.given_back += cells

    def take(self) -> list[tuple[int, int, int]]:
        taken, self.hits = self.hits, []
        return taken

    def hit(self, address: int, hits: int, cpu: int = 0) -> None:
        cell = self.rows[address][1]
        assert isinstance(cell, int)
        self.hits.append((cpu, cell, hits))


@dataclass
class Counting:
    """An action, and what it is called with."""

    hits: list[tuple[int, int, int]] = field(default_factory=list)

    def enabling(self, probe: int = 7) -> Enabling:
        def count(enabling: Enabling, cpu: int, hits: int, _regs: object) -> None:
            self.hits.append((enabling.probe, cpu, hits))

        action = counting(lambda _firing: None, count)
        return Enabling(probe, action, lambda _firing, _index: 0, 0)


def nothing(_firing: Firing) -> None:
    """An action that looks at each hit."""


def fire() -> None:
    """What the trap path does at a hit if the engine lets the CPU go on."""


def hit() -> None:
    """What it does if the instruction is emulated."""


def add(counted: CountedSites, site: Site, at: int) -> None:
    counted.add(site, at, fire, hit)


LOOKING = Enabling(8, nothing, lambda _firing, _index: 0, 0)
NOTHING = Emulation(lambda _frame: None, ())


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def counted(table: Table) -> CountedSites:
    return CountedSites(table, ARCH, lambda: SLOTS)


def site(*enablings: Enabling, address: int = 0x1000) -> Site:
    """With the delivery that all of them allow."""
    asked = [delivery_of(one.action) for one in enablings]
    return Site(address, 4, SLOT, None, enablings, delivery=max(asked, key=lambda one: one.way, default=DISPATCHED))


def test_a_copied_instruction_is_counted_on_the_way_to_its_trampoline(table: Table, counted: CountedSites) -> None:
    action = Counting()
    add(counted, site(action.enabling()), 0x1000)
    assert table.rows == {0x1000: (SLOT, 1, True), SLOT + END: (0x1004, 0, False)}
    assert counted.user(SLOT) == (0x1000, 0x1004)

    table.hit(0x1000, 5, cpu=1)
    counted.fold()
    counted.fold()
    assert action.hits == [(7, 1, 5)]


def test_a_trampoline_that_jumps_back_needs_no_second_breakpoint(table: Table) -> None:
    add(CountedSites(table, AMD64, lambda: SLOTS), site(Counting().enabling()), 0x1000)

    assert table.rows == {0x1000: (SLOT, 1, True)}


def test_a_trampoline_that_can_jump_back_does_until_it_is_shared(table: Table, counted: CountedSites) -> None:
    ends = list[tuple[int, ...]]()

    def jump(trampoline: int, target: int) -> bool:
        ends.append((trampoline, target))
        return True

    counted.end_with(jump, lambda trampoline: ends.append((trampoline,)))
    add(counted, site(Counting().enabling()), 0x1000)
    assert (table.rows, ends) == ({0x1000: (SLOT, 1, True)}, [(SLOT, 0x1004)])
    assert counted.user(SLOT) == (0x1000, 0x1004)

    add(counted, site(Counting().enabling()), 0x5000)
    assert (table.rows, ends[1:]) == ({}, [(SLOT,)])


def test_whoever_looks_at_a_hit_has_it_dispatched_and_the_cpu_goes_on_by_itself(
    table: Table, counted: CountedSites
) -> None:
    for enablings in ((), (LOOKING,), (Counting().enabling(), LOOKING)):
        add(counted, site(*enablings), 0x1000)
        assert table.rows == {0x1000: (SLOT, fire, True), SLOT + END: (0x1004, 0, False)}
        assert counted.user(SLOT) == (0x1000, 0x1004)

    counted.remove(0x1000)
    assert table.rows == {SLOT + END: (0x1004, 0, False)}  # a CPU may be in it


def test_what_does_not_fire_at_each_hit_is_left_to_the_trap_path(table: Table, counted: CountedSites) -> None:
    leaving = replace(LOOKING, leaving=(0x1000, 0x2000))
    add(counted, site(LOOKING), 0x1000)
    add(counted, site(leaving), 0x1000)
    assert (table.rows, counted.user(SLOT)) == ({}, None)

    add(counted, replace(site(leaving), emulation=NOTHING, out_of_line=lambda _address: SLOT), 0x1000)
    assert (table.rows, counted.user(SLOT)) == ({0x1000: (0, hit, False)}, None)


def test_a_jump_to_address_0_is_computed_since_0_says_so(table: Table, counted: CountedSites) -> None:
    add(counted, replace(site(LOOKING), emulation=NOTHING, out_of_line=lambda _address: 0), 0x1000)

    assert table.rows == {0x1000: (0, hit, False)}


def test_what_is_emulated_goes_out_of_line_or_is_dispatched(table: Table, counted: CountedSites) -> None:
    emulated = replace(site(Counting().enabling()), emulation=NOTHING)
    add(counted, emulated, 0x1000)
    assert table.rows == {0x1000: (0, hit, False)}
    dispatched = replace(emulated, enablings=(LOOKING,), delivery=DISPATCHED, out_of_line=lambda _address: SLOT)
    add(counted, dispatched, 0x1000)
    assert table.rows == {0x1000: (SLOT, fire, True), SLOT + END: (0x1004, 0, False)}
    table.rows.clear()

    add(counted, replace(emulated, out_of_line=lambda address: address + 4), 0x1000)
    assert table.rows == {0x1000: (0x1004, 1, False)}
    add(counted, replace(emulated, out_of_line=lambda address: address - 0x40), 0x1000)  # a jump
    assert table.rows == {0x1000: (0xFC0, 2, False)}

    add(counted, replace(emulated, out_of_line=lambda _address: SLOT), 0x1000)
    assert table.rows == {0x1000: (SLOT, 3, True), SLOT + END: (0x1004, 0, False)}


def test_a_trampoline_of_two_addresses_is_left_to_those_who_know_which(table: Table, counted: CountedSites) -> None:
    action = Counting()
    add(counted, site(action.enabling()), 0x1000)
    table.hit(0x1000, 3)
    add(counted, site(action.enabling()), 0x5000)  # a copy of the code
    assert table.rows == {}
    assert counted.user(SLOT) is None

    add(counted, site(action.enabling()), 0x1000)
    assert table.rows == {}
    counted.fold()
    assert action.hits == [(7, 0, 3)]  # nothing is lost


def test_what_python_emulates_leaves_its_trampoline_to_the_last_one(table: Table, counted: CountedSites) -> None:
    emulated = replace(site(Counting().enabling()), emulation=NOTHING, out_of_line=lambda _address: SLOT)
    add(counted, emulated, 0x1000)
    add(counted, emulated, 0x5000)

    assert table.rows == {0x5000: (SLOT, 2, True), SLOT + END: (0x5004, 0, False)}
    assert counted.user(SLOT) == (0x5000, 0x5004)


def test_a_call_in_a_trampoline_that_jumps_back_serves_the_last_address(table: Table) -> None:
    counted = CountedSites(table, AMD64, lambda: SLOTS)
    call = replace(site(Counting().enabling()), emulation=NOTHING, out_of_line=lambda _address: SLOT)
    add(counted, call, 0x1000)
    assert table.rows == {0x1000: (SLOT, 1, True)}
    add(counted, call, 0x5000)

    assert table.rows == {0x5000: (SLOT, 2, True)}
    assert counted.user(SLOT) == (0x5000, 0x5004)


def test_a_site_that_the_trap_path_handles_from_now_on_has_its_trampoline(table: Table, counted: CountedSites) -> None:
    add(counted, site(Counting().enabling()), 0x1000)
    counted.remove(0x1000)
    assert table.rows == {SLOT + END: (0x1004, 0, False)}  # a CPU may be in it

    add(counted, site(replace(LOOKING, leaving=(0x1000, 0x2000))), 0x1000)
    assert (table.rows, counted.user(SLOT)) == ({}, None)


def test_cells_are_used_again_when_their_hits_were_taken(table: Table, counted: CountedSites) -> None:
    action = Counting()
    add(counted, site(action.enabling()), 0x1000)
    table.hit(0x1000, 2)
    counted.remove(0x1000)
    assert table.given_back == []

    counted.fold()
    assert (action.hits, table.given_back) == ([(7, 0, 2)], [1])


A0, A1, PC = ARCH.arguments[0], ARCH.arguments[1], ARCH.pc


@dataclass
class Seen:
    """An action that looks at arguments, and what it is called with."""

    calls: list[tuple[int, int, int, list[int]]] = field(default_factory=list)

    def enabling(self, *arguments: int, probe: int = 7) -> Enabling:
        """It looks at these; arg0 and arg1 are registers, arg2 is none."""
        looked_at = [A0, A1][: len(arguments)]

        def count(enabling: Enabling, cpu: int, hits: int, regs: Sequence[int]) -> None:
            self.calls.append((enabling.probe, cpu, hits, [regs[index] for index in (*looked_at, PC)]))

        def registers(index: int) -> Sequence[int] | None:
            return ARCH.arguments[index : index + 1] if index < 2 else None

        action = counting(lambda _firing: None, count, Reads(frozenset(arguments)))
        return Enabling(probe, action, lambda _firing, index: index, 0, registers=registers)


def test_what_looks_at_registers_is_recorded_and_called_once_for_what_is_alike(
    table: Table, counted: CountedSites
) -> None:
    one, both = Seen(), Seen()
    add(counted, site(one.enabling(0), both.enabling(0, 1, probe=8)), 0x1000)
    add(counted, replace(site(one.enabling(0)), trampoline=SLOT + 8), 0x2000)
    assert table.rows[0x1000] == (SLOT, -1, True)
    assert table.records.registers == (A0, A1)

    hits = [(0x1000, 0, 5, 1), (0x2000, 0, 5, 1), (0x1000, 0, 5, 2), (0x2000, 0, 5, 2), (0x1000, 1, 5, 1)]
    table.records.rows = [*hits, *hits[:2]]
    counted.fold()
    counted.fold()
    assert both.calls == [(8, 0, 2, [5, 1, 0x1000]), (8, 0, 1, [5, 2, 0x1000]), (8, 1, 1, [5, 1, 0x1000])]
    # At the second address nobody looks at the second register.
    assert one.calls == [(7, 0, 2, [5, 0x1000]), (7, 0, 3, [5, 0x2000]), (7, 0, 1, [5, 0x1000]), (7, 1, 1, [5, 0x1000])]


def test_what_was_recorded_is_run_before_the_site_changes(table: Table, counted: CountedSites) -> None:
    seen = Seen()
    add(counted, site(seen.enabling(0)), 0x1000)
    table.records.rows = [(0x1000, 0, 3)]
    add(counted, site(LOOKING), 0x1000)
    assert (seen.calls, table.rows[0x1000]) == ([(7, 0, 1, [3, 0x1000])], (SLOT, fire, True))

    add(counted, site(seen.enabling(0)), 0x1000)
    table.records.rows = [(0x1000, 0, 4)]
    add(counted, replace(site(seen.enabling(0, 1)), trampoline=SLOT + 8), 0x2000)  # records become wider
    assert seen.calls[1:] == [(7, 0, 1, [4, 0x1000])]


@dataclass
class Later:
    """An action that is replayed, and what it is called with."""

    calls: list[tuple[int, ...]] = field(default_factory=list)

    def enabling(self, reads: Reads, probe: int = 7) -> Enabling:
        def replay(firing: RecordedFiring) -> None:
            number, regs = firing.enabling.probe, firing.frame.regs
            self.calls.append((number, firing.cpu, firing.time, firing.key, regs[PC], regs[A0]))

        registers: Callable[[int], Sequence[int]] = lambda index: ARCH.arguments[index : index + 1]  # noqa: E731
        return Enabling(
            probe,
            Batched(nothing, Delivery(Way.REPLAY), reads, replay),
            lambda _firing, _index: 0,
            0,
            registers=registers,
        )


def test_what_is_replayed_is_replayed_in_order_and_what_is_alike_when_somebody_asks(
    table: Table, counted: CountedSites
) -> None:
    seen, later = Seen(), Later()
    add(counted, site(seen.enabling(0)), 0x1000)
    reads = Reads(frozenset({0}), frozenset({PC}), has_time=True)
    both = site(later.enabling(reads), later.enabling(NOTHING_AT_ALL, probe=8))
    add(counted, replace(both, trampoline=SLOT + 8), 0x2000)
    assert table.rows[0x2000] == (SLOT + 8, -1, True)
    assert table.records.has_time

    table.records.rows = [(0x2000, 1, 3), (0x1000, 0, 5), (0x2000, 0, 4), (0x1000, 0, 5)]
    table.records.moments = [(100, 0), (200, 0), (300, 0), (400, 0)]
    counted.recorded.settle()
    first, second = (1, 100, 0, 0x2000, 3), (0, 300, 0, 0x2000, 4)
    assert later.calls == [(7, *first), (8, *first), (7, *second), (8, *second)]
    assert seen.calls == []

    counted.fold()
    assert seen.calls == [(7, 0, 2, [5, 0x1000])]
    counted.remove(0x2000)
    assert 0x2000 not in table.rows


def test_where_one_is_replayed_those_that_count_are_called_for_each(table: Table, counted: CountedSites) -> None:
    seen, later = Seen(), Later()
    add(counted, site(later.enabling(NOTHING_AT_ALL), seen.enabling(0, probe=8)), 0x1000)
    table.records.rows = [(0x1000, 0, 5), (0x1000, 0, 5)]
    counted.recorded.settle()

    assert [(*one[:3], one[3][0]) for one in seen.calls] == [(8, 0, 1, 5)] * 2
    assert [one[0] for one in later.calls] == [7, 7]


def test_a_thread_is_known_after_a_hit_of_it_was_dispatched(table: Table, counted: CountedSites) -> None:
    later, places = Later(), {0x500: 0x70500}
    found = [
        ThreadRange(0x1000, 0x2000, -9),
        ThreadRange(0x3000, 0x4000, 0xFFFF_8000_0000_0000),
        ThreadRange(0x5000, 0x6000, -9, 0, ((0x600, 1),)),  # a word that is nowhere
    ]
    counted.recorded.know(ThreadRanges(lambda _firing: found.pop(0) if found else None), places.get)
    add(counted, site(later.enabling(Reads(has_thread=True))), 0x1000)
    assert table.rows[0x1000] == (SLOT, -2, True)
    assert table.records.identified == (ARCH.stack_pointer, None)

    firing = RecordedFiring([0] * len(ARCH.registers))
    for address in (0x2000, 0x1000, 0x1000, 0x1000, 0x1000):  # the first is another site
        firing.site = address
        counted.recorded.learn(firing)
    assert table.records.known == [(0x1000, 0x2000, 0), (0x3000, 0x4000, 1)]

    table.records.rows, table.records.moments = [(0x1000, 0, 0)] * 3, [(1, 1), (2, 0), (3, 1)]
    counted.fold()
    assert [one[3] for one in later.calls] == [0xFFFF_8000_0000_0000, -9, 0xFFFF_8000_0000_0000]
    counted.forget_threads()
    assert table.records.known == []

"""Where virtual addresses lead: trampolines, the guest's own memory beneath them, code that changes."""

from collections.abc import Iterator
from typing import cast

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import Access, PageFault
from kinst.targets.errors import MachineError
from kinst.targets.image import Image
from kinst.targets.machines.registry import machine_facts
from tests.runtime.machine.riscv_words import (
    A0,
    A1,
    A2,
    RA,
    S0,
    S1,
    T0,
    T1,
    WFI,
    ZERO,
    addi,
    code,
    jalr,
    la,
    li,
    load,
    store,
)

CODE = 0x8000_0000
HOLE = 0x4000_0000  # neither RAM nor a device
POWER_OFF = (*li(T0, 0x10_0000), *li(T1, 0x5555), store(T1, T0, size=2), WFI)


@pytest.fixture
def system() -> Iterator[System]:
    facts = machine_facts("virt-riscv64")
    made = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
    made.board.start(Loaded(cast("Image", None), 0, CODE, ()))
    yield made


def run(system: System, *words: int) -> None:
    system.memory.write(CODE, code(*words, *POWER_OFF))
    assert system.run(10**9) is End.POWER_OFF


@pytest.mark.parametrize("where", [0x8010_0000, HOLE])
def test_trampolines_are_executed_where_the_guest_has_memory_and_where_it_has_none(system: System, where: int) -> None:
    system.space.overlay(where, code(addi(A0, ZERO, 7), jalr(ZERO, RA)))
    run(system, *la(S0, where), jalr(RA, S0))
    assert system.engine.live.get("a0") == 7


def test_loads_and_stores_at_the_trampolines_reach_the_guests_own_memory(system: System) -> None:
    where = 0x8010_0000
    system.space.overlay(where, code(addi(A0, ZERO, 7), jalr(ZERO, RA)))
    system.memory.store(where, 8, 0x1122)
    run(
        system, *la(S0, where), load(A1, S0), jalr(RA, S0), load(A2, S0), addi(S1, ZERO, 5), store(S1, S0), jalr(RA, S0)
    )  # fmt: skip
    registers = system.engine.live
    assert [registers.get(name) for name in ("a0", "a1", "a2")] == [7, 0x1122, 0x1122]
    assert system.memory.load(where, 8) == 5


def test_aliases_map_link_addresses_without_the_guests_tables(system: System) -> None:
    high = 0xFFFF_FFFF_8000_0000
    system.memory.store(0x8010_0010, 8, 99)
    system.space.alias([(high, 0x8010_0000, 0x1000)])
    assert system.space.load(high + 0x10, 8) == 99
    system.space.store(high + 0xFFC, 4, 5)
    assert system.memory.load(0x8010_0FFC, 4) == 5
    with pytest.raises(PageFault):
        system.space.load(high + 0x1000, 8)


def test_accesses_across_pages_are_whole_or_fault_before_they_write(system: System) -> None:
    end = CODE + system.ram_size
    system.space.store(CODE + 0x1FFD, 8, 0x1122_3344_5566_7788)
    assert system.space.load(CODE + 0x1FFD, 8) == 0x1122_3344_5566_7788
    assert system.space.fetch(CODE + 0x1FFD, 8)[::-1].hex() == "1122334455667788"
    with pytest.raises(PageFault) as caught:
        system.space.store(end - 4, 8, (1 << 64) - 1)
    assert (caught.value.address, caught.value.access) == (end, Access.WRITE)
    assert system.memory.load(end - 4, 4) == 0


def test_memory_written_from_outside_is_executed_as_written(system: System) -> None:
    where = CODE + 0x10_0000
    system.memory.write(where, code(addi(A0, ZERO, 1), jalr(ZERO, RA)))
    run(system, *la(S0, where), jalr(RA, S0))
    assert system.engine.live.get("a0") == 1
    system.memory.write(where, code(addi(A0, ZERO, 2), jalr(ZERO, RA)))
    system.engine.live.set("pc", CODE)
    assert system.run(10**9) is End.POWER_OFF
    assert system.engine.live.get("a0") == 2


def test_ram_must_be_aligned_and_may_not_overlap(system: System) -> None:
    with pytest.raises(MachineError, match="multiples"):
        system.memory.add_ram(0x1234, 0x1000)
    with pytest.raises(MachineError, match="overlaps RAM at 0x80000000"):
        system.memory.add_ram(0x8000_0000 + system.ram_size - 0x1000, 0x2000)
    with pytest.raises(MachineError, match="no RAM at 0x1000"):
        system.memory.read(0x1000, 4)


def test_the_trap_path_reaches_devices_as_the_guest_does(system: System) -> None:
    """A stack may lie in a device's window: an emulated push is a store there."""
    printed, serial = bytearray(), 0x1000_0000
    system.memory.write(CODE, code(jalr(ZERO, ZERO)))

    def after_turn() -> None:
        system.space.store(serial, 1, ord("x"))
        system.finish(End.STOPPED)

    assert system.run(10**9, hooks=MachineHooks(printed.extend, after_turn)) is End.STOPPED
    assert printed == b"x"
    assert system.space.load(serial + 5, 1) & 0x20  # ready to send
    with pytest.raises(PageFault):
        system.space.store(HOLE, 8, 1)


def test_on_a_pc_the_bus_floats_for_the_trap_path_too() -> None:
    facts = machine_facts("pc-amd64")
    pc = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
    pc.space.store(HOLE, 8, 1)
    pc.space.store(HOLE, 16, 1)
    assert (pc.space.load(HOLE, 8), pc.space.load(HOLE, 16)) == ((1 << 64) - 1, (1 << 128) - 1)


class Guard:
    """Keeps what it is told of: PCs and addresses. It owns what is stored to by the first instructions."""

    def __init__(self, own: int = 0) -> None:
        self.told: list[tuple[int, int]] = []
        self._end = CODE + own

    def is_own(self, pc: int, page: int) -> bool:
        assert page == GUARDED >> 12
        return pc < self._end

    def stored(self, pc: int, address: int) -> None:
        self.told.append((pc, address))


GUARDED = CODE + 0x2000


def test_the_first_store_to_a_guarded_page_is_told_exactly(system: System) -> None:
    guard, to = Guard(), la(S0, GUARDED)
    system.space.guard([GUARDED >> 12], guard)
    run(system, *to, load(T0, S0, 8), addi(T1, ZERO, 7), store(T1, S0, 16), store(T1, S0, 24))
    assert guard.told == [(CODE + 4 * (len(to) + 2), GUARDED + 16)]
    assert [system.memory.load(GUARDED + at, 8) for at in (8, 16, 24)] == [0, 7, 7]


def test_a_store_by_the_owners_code_is_not_told(system: System) -> None:
    guard = Guard(own=0x1000)
    system.space.guard([GUARDED >> 12], guard)
    run(system, *la(S0, GUARDED), store(S0, S0, 16))
    assert (guard.told, system.memory.load(GUARDED + 16, 8)) == ([], GUARDED)


def test_an_exceptions_frame_is_told_like_a_store(system: System) -> None:
    guard = Guard()
    system.space.guard([GUARDED >> 12], guard)
    system.space.store(GUARDED + 8, 8, 1)
    system.space.store(GUARDED + 16, 8, 2)
    assert [address for _, address in guard.told] == [GUARDED + 8]
    assert system.memory.load(GUARDED + 8, 8) == 1

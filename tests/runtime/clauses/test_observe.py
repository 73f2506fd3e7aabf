"""A clause that reads the guest's memory through its page tables leaves no trace there."""

from collections.abc import Iterator
from typing import cast

import pytest

from kinst.runtime.clauses.guest.guest_memory import GuestMemory
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.image import Image
from kinst.targets.machines.registry import machine_facts
from tests.runtime.machine.riscv_words import T0, T1, WFI, code, li, store

RAM = 0x8000_0000
ROOT, TABLE, PAGES, DATA = RAM + 0x10_0000, RAM + 0x10_1000, RAM + 0x10_2000, RAM + 0x10_3000
VIRTUAL = 0x4000_0000  # Sv39: entry 1 of the root
V, R, W, X, U, A, D = (1 << bit for bit in (0, 1, 2, 3, 4, 6, 7))
SUPERVISOR, SUM = 1, 1 << 18
POWER_OFF = (*li(T0, 0x10_0000), *li(T1, 0x5555), store(T1, T0, size=2), WFI)
HELLO = b"hello\0" + bytes(2)


class Guest:
    """A supervisor with four pages at VIRTUAL: one accessed before, one not, a user's, and a device's."""

    def __init__(self) -> None:
        facts = machine_facts("virt-riscv64")
        self.system = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
        self.system.board.start(Loaded(cast("Image", None), 0, RAM, ()))
        memory, space = self.system.memory, self.system.space
        memory.store(ROOT + 8, 8, TABLE >> 2 | V)
        memory.store(ROOT + 16, 8, RAM >> 2 | V | R | W | X | A | D)
        memory.store(ROOT + 24, 8, 0x2000_0000_0000 >> 2 | V)  # a table where there is no RAM
        memory.store(TABLE, 8, PAGES >> 2 | V)
        flags = (V | R | W | A | D, V | R | W, V | R | W | U, V | R | W | A | D)
        for page, flag in enumerate(flags):
            memory.store(PAGES + 8 * page, 8, (DATA + page * 4096 if page < 3 else 0x1000_0000) >> 2 | flag)
            if page < 3:
                memory.write(DATA + page * 4096, HELLO)
        registers = self.system.current.registers
        registers.set("satp", 8 << 60 | ROOT >> 12)
        registers.set("priv", SUPERVISOR)
        self.memory = GuestMemory(Scratch(4096), space.observe, space.observe_write, memory)

    @property
    def entries(self) -> list[int]:
        return [self.system.memory.load(PAGES + 8 * page, 8) for page in range(4)]


@pytest.fixture
def guest() -> Iterator[Guest]:
    yield Guest()


@pytest.mark.parametrize("page", [0, 1, 2])
def test_pages_are_read_also_a_users_and_no_bit_is_set(guest: Guest, page: int) -> None:
    before = guest.entries
    for _ in range(2):
        assert guest.memory.string(VIRTUAL + 4096 * page, 100) == b"hello"
        assert guest.memory.load(VIRTUAL + 4096 * page + 4, 1) == ord("o")
    assert guest.entries == before


def test_the_guests_own_access_still_sets_its_bit_or_faults(guest: Guest) -> None:
    for page in (1, 2):
        guest.memory.load(VIRTUAL + 4096 * page, 8)
    assert not guest.entries[1] & A
    guest.system.space.load(VIRTUAL + 4096, 8)
    assert guest.entries[1] & A
    with pytest.raises(PageFault):  # a supervisor may not read a user's page, whatever the tracer did
        guest.system.space.load(VIRTUAL + 8192, 8)
    assert not guest.entries[2] & A


NOWHERE = (VIRTUAL + 4 * 4096, VIRTUAL + 3 * 4096, 0x6000_0000 + VIRTUAL, 0, 1 << 50, (1 << 64) - 8)


@pytest.mark.parametrize("address", NOWHERE)
def test_where_there_is_no_ram_is_a_bad_address(guest: Guest, address: int) -> None:
    with pytest.raises(Fault) as caught:
        guest.memory.load(address, 8)
    assert (caught.value.kind, caught.value.value) == (FaultKind.BADADDR, address)
    assert guest.system.space.fault is None


def test_the_run_goes_on_after_bad_addresses(guest: Guest) -> None:
    guest.system.memory.write(RAM, code(*POWER_OFF))
    guest.system.current.registers.set("priv", 3)
    for address in NOWHERE:
        assert guest.memory.string(RAM + 8, 1) is not None
        with pytest.raises(Fault):
            guest.memory.load((1 << 45) + address, 8)
    assert guest.system.run(10**9) is End.POWER_OFF


def test_what_a_clause_writes_is_the_guests_own_write(guest: Guest) -> None:
    guest.memory.write_guest(VIRTUAL + 4096 + 4094, b"xy")
    assert guest.entries[1] & (A | D) == A | D
    assert guest.memory.read(VIRTUAL + 4096 + 4094, 2) == b"xy"
    with pytest.raises(Fault):
        guest.memory.write_guest(VIRTUAL + 4096 + 4094, b"across")  # the next page is a user's
    assert guest.memory.read(VIRTUAL + 4096 + 4094, 2) == b"xy"

"""The guest's memory as clauses read it: a made-up machine here, real ones in test_observe."""

import pytest

from kinst.runtime.clauses.guest.guest_memory import GuestMemory, no_guest
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.trap.faults import Fault, FaultKind
from tests.runtime.clauses.compile.running import Ram

# Virtual pages 0, 1 and 3 of the guest are RAM, not adjacent and not in order; page 2 is nothing, page 4 a device.
PAGES = {0x10: 0x2000, 0x11: 0x1000, 0x13: 0x2000, 0x14: 0x9000}
BASE = 0x10000
TOP = (1 << 64) - 4096


class Machine:
    def __init__(self) -> None:
        self.ram = Ram()
        self.touched: list[int] = []
        self.memory = GuestMemory(Scratch(64), self.translate, self.translate, self.ram)

    def translate(self, address: int) -> int | None:
        self.touched.append(address)
        page = PAGES.get(address >> 12)
        return None if page is None else page | address & 0xFFF


def fault(function: object, *arguments: object) -> int:
    with pytest.raises(Fault) as caught:
        function(*arguments)  # type: ignore[operator]
    assert caught.value.kind is FaultKind.BADADDR
    return caught.value.value


def test_words_and_bytes_cross_pages() -> None:
    machine = Machine()
    machine.ram.data[4096 + 4090 : 8192] = b"abcdef"
    machine.ram.data[:6] = b"ghi\0jk"
    assert machine.memory.read(BASE + 4090, 12) == b"abcdefghi\0jk"
    assert machine.memory.load(BASE + 4090, 8) == int.from_bytes(b"abcdefgh", "little")
    assert machine.memory.load(BASE + 4092, 4) == int.from_bytes(b"cdef", "little")
    assert machine.memory.string(BASE + 4090, 100) == b"abcdefghi"
    assert machine.memory.string(BASE + 4090, 8) == b"abcdefgh"
    assert machine.memory.read(BASE, 0) == b""


def test_a_fault_names_the_first_address_that_is_not_there() -> None:
    machine = Machine()
    machine.ram.data[4000:4096] = b"x" * 96
    assert fault(machine.memory.load, 0x10, 8) == 0x10
    assert fault(machine.memory.load, BASE + 0x1FFC, 8) == BASE + 0x2000
    assert fault(machine.memory.read, BASE + 0x1000, 8192) == BASE + 0x2000
    assert fault(machine.memory.string, BASE + 0x1FF0, 100) == BASE + 0x2000
    assert fault(machine.memory.load, (1 << 64) - 4, 8) == (1 << 64) - 4


def test_a_string_touches_only_the_pages_it_lies_in() -> None:
    machine = Machine()
    machine.ram.data[4090:4096] = b"short\0"
    assert machine.memory.string(BASE + 0x1000 + 4090, 100) == b"short"
    assert {address >> 12 for address in machine.touched} == {0x11}


def test_devices_are_not_read() -> None:
    memory = Machine().memory
    assert fault(memory.load, 0x14000, 4) == 0x14000
    assert fault(memory.read, 0x14008, 4) == 0x14008
    assert fault(memory.write_guest, 0x14008, b"x") == 0x14008


def test_clauses_store_into_scratch_memory_only() -> None:
    machine = Machine()
    address = machine.memory.scratch.allocate(8)
    machine.memory.store(address, 2, 0x4142)
    machine.memory.write(address + 2, b"C")
    assert machine.memory.load(address, 2) == 0x4142
    assert machine.memory.read(address, 4) == b"BAC\0"
    assert machine.memory.string(address, 8) == b"BAC"
    assert fault(machine.memory.store, BASE, 2, 5) == BASE
    assert fault(machine.memory.write, BASE, b"x") == BASE
    assert not machine.touched
    assert fault(machine.memory.load, address + 8, 1) == address + 8


def test_copyout_writes_all_or_nothing() -> None:
    machine = Machine()
    machine.memory.write_guest(BASE + 4094, b"abcd")
    assert machine.memory.read(BASE + 4094, 4) == b"abcd"
    assert fault(machine.memory.write_guest, BASE + 0x1FFE, b"wxyz") == BASE + 0x2000
    assert machine.memory.read(BASE + 0x1FFE, 2) == b"\0\0"


def test_without_a_machine_there_is_only_scratch_memory() -> None:
    memory = no_guest(Scratch(64))
    assert memory.load(memory.scratch.allocate(8), 8) == 0
    assert fault(memory.load, BASE, 8) == BASE
    assert fault(memory.string, 0, 8) == 0
    assert fault(memory.write_guest, BASE, b"x") == BASE
    assert fault(memory.read, TOP, 8) == TOP

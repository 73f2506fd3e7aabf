"""Pages that are added to tables drawn at random: our machines' own walkers, which know nothing of them, read these."""

import random
import struct
from dataclasses import dataclass, field

import pytest

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.arm64 import REGIME as ARM64
from kinst.runtime.live.room.regime import Regime, Root
from kinst.runtime.live.room.riscv64 import REGIME as RISCV64
from kinst.runtime.live.room.tables import Tables
from kinst.runtime.paging.arm64 import Arm64Walker
from kinst.runtime.paging.riscv64 import Riscv64Walker
from kinst.runtime.paging.walker import Access, PageFault, Permission, Walker
from kinst.runtime.readout.memory import Space

RAM = 0x4000_0000
SIZE = 64 << 20
ROOT = RAM + (1 << 20)  # aligned to any table
R, W, X = Permission.READ, Permission.WRITE, Permission.EXECUTE
CPSR, SATP, TTBR1 = 33, 5, 7  # numbers: gdb's, and of the registers in the loads below
CSRW, MSR, MSR_EL2 = 0x1800_1073 | SATP << 15, 0xD518_2020 | TTBR1, 0xD51C_2000 | TTBR1


@dataclass
class Cpu:
    """What a debugger shows of a CPU, and what a walker reads of it."""

    registers: dict[int, int] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)

    def register(self, number: int) -> int:
        return self.registers[number]

    def named_register(self, name: str) -> int:
        return self.named[name]

    def get(self, name: str) -> int:
        return self.named[name]

    def set(self, name: str, value: int) -> None:
        raise AssertionError(f"a walk does not write {name}")


@dataclass(frozen=True)
class Machine:
    """A mode of an MMU: its CPU, the load of the root, the lowest address of the kernel's, and what maps code in it."""

    name: str
    regime: Regime
    walker: Walker
    cpu: Cpu
    load: int
    base: int
    code: int  # of a page


def arm64(name: str, bits: int, granule: int, field_of: int, level: int = 1) -> Machine:
    control = (64 - bits) << 16 | (64 - bits) | field_of << 30 | {1: 2, 2: 0, 3: 1}[field_of] << 14 | 5 << 32
    named = {"tcr_el1": control, "sctlr_el1": 1, "ttbr0_el1": 0, "ttbr1_el1": ROOT, "pstate": 5}
    named[f"tcr_el{level}"] = named["tcr_el1"]
    cpu = Cpu({TTBR1: ROOT | 0x12 << 48 | 1, CPSR: level << 2 | 1}, named)
    code = 1 << 54 | 1 << 10 | 3 << 8 | 4 << 2 | 3  # UXN, AF, inner shareable, writable
    return Machine(name, ARM64, Arm64Walker(), cpu, MSR, (1 << 64) - (1 << bits), code)


def hypervisor(name: str, bits: int, granule: int, field_of: int) -> Machine:
    """Arm's EL2 has one range of addresses, from 0 on."""
    control = (64 - bits) | field_of << 14 | 5 << 16
    named = {"tcr_el2": control, "sctlr_el2": 1, "ttbr0_el2": ROOT, "pstate": 9}
    cpu = Cpu({TTBR1: ROOT, CPSR: 9}, named)
    code = 1 << 10 | 3 << 8 | 1 << 6 | 4 << 2 | 3  # AF, inner shareable, AP[1], writable; not XN
    return Machine(name, ARM64, Arm64Walker(), cpu, MSR_EL2, 0, code)


def riscv64(name: str, mode: int, levels: int) -> Machine:
    satp = mode << 60 | ROOT >> 12
    cpu = Cpu({SATP: satp}, {"satp": satp, "priv": 1, "sstatus": 0})
    return Machine(name, RISCV64, Riscv64Walker(), cpu, CSRW, (1 << 64) - (1 << 11 + 9 * levels), 0x2B)


MACHINES = [
    arm64("4k-48", 48, 12, 2),
    arm64("4k-39", 39, 12, 2),
    arm64("16k-47", 47, 14, 1),
    arm64("16k-48", 48, 14, 1),
    arm64("64k-42", 42, 16, 3),
    arm64("64k-48", 48, 16, 3),
    riscv64("sv39", 8, 3),
    riscv64("sv48", 9, 4),
    riscv64("sv57", 10, 5),
    hypervisor("el2-48", 48, 12, 0),
    hypervisor("el2-42", 42, 16, 1),
]


@pytest.fixture
def ram() -> SharedRam:
    found = SharedRam(SIZE)
    found.place(
        f'FlatView #0\n AS "memory", root: system\n  {RAM:016x}-{RAM + SIZE - 1:016x} (prio 0, ram): kinst-ram\n'
    )
    return found


class Reader:
    """A walk by our own machine's MMU."""

    def __init__(self, machine: Machine, ram: SharedRam) -> None:
        self._machine, self._ram = machine, ram

    def __call__(self, address: int, access: Access) -> tuple[int, Permission] | None:
        """None: a fault."""
        machine = self._machine
        try:
            found = machine.walker.translate(machine.cpu, self._load, self._store, address, access)
        except PageFault:
            return None
        return found.physical, found.permissions

    def _load(self, place: int) -> int:
        (entry,) = struct.unpack("<Q", self._ram.read(Space.PHYSICAL, place, 8))
        return int(entry)

    def _store(self, place: int, entry: int) -> None:
        raise AssertionError(f"{entry:#x} at {place:#x}: accessed and dirty are set already")


class Pages:
    """Pages for tables, in order."""

    def __init__(self) -> None:
        self.next = ROOT + (1 << 20)

    def __call__(self, size: int) -> int:
        start = self.next + -self.next % size
        self.next = start + size
        assert self.next <= RAM + SIZE
        return start


def kernel_root(machine: Machine) -> Root:
    root = machine.regime.root(machine.load, machine.cpu)
    assert root is not None
    assert root.has_kernel
    return root


@pytest.mark.parametrize("machine", MACHINES, ids=lambda one: one.name)
def test_pages_are_where_they_are_said_to_be_and_nothing_else_is(machine: Machine, ram: SharedRam) -> None:
    drawn = random.Random(machine.name)
    for _ in range(4):
        ram.write(ROOT, bytes(SIZE // 2))
        root = kernel_root(machine)
        assert root.address == ROOT
        tables = Tables(root.form, root.address, ram, Pages())
        page, read = tables.page_size, Reader(machine, ram)
        # The kernel's text, anywhere in its half, and around it what is not mapped.
        span = ((1 << 64) if machine.base else tables.span) - machine.base
        text = machine.base + drawn.randrange(span // 4 // page, span // page - 8) * page
        physical = RAM + drawn.randrange(8, 512) * 0x1_0000
        tables.add(machine.code, text, physical, page, is_code=True)
        assert tables.leaf(text + 8) == (int(root.form.pages(machine.code, physical, 1, is_code=True)[0]), physical + 8)
        data, code = (drawn.randrange(1, 40) * page for _ in range(2))
        start = text - drawn.randrange(1, 5000) * page - data - code
        tables.add(machine.code, start, physical, data, is_code=False)
        tables.add(machine.code, start + data, physical + data, code, is_code=True)
        for at in range(start, start + data + code, page):
            inside, is_data = drawn.randrange(page // 8) * 8, at < start + data
            where = physical + (at - start) + inside
            allowed = {Access.READ: True, Access.WRITE: is_data, Access.FETCH: not is_data}
            for access, may in allowed.items():
                found = read(at + inside, access)
                assert (found is not None and found[0]) == (where if may else False)
            assert tables.leaf(at + inside) is not None
        for outside in (start - page, start + data + code, text - page, text + page):
            if not start <= outside < start + data + code:
                assert read(outside, Access.READ) is None
                assert tables.leaf(outside) is None
        assert [*tables.code_at(physical + data)] == [(start + data) % tables.span]


@pytest.mark.parametrize("machine", [MACHINES[0], MACHINES[7]], ids=lambda one: one.name)
def test_a_block_that_maps_the_text_gives_pages_their_attributes(machine: Machine, ram: SharedRam) -> None:
    root = kernel_root(machine)
    tables, text = Tables(root.form, ROOT, ram, Pages()), (1 << 64) - (1 << 30)
    tables.add(machine.code, text, RAM, tables.page_size, is_code=True)
    # The table of the last level becomes a block of 2 MiB.
    table = place = ROOT
    for shift in root.form.shifts[:-1]:
        place = table + 8 * (text >> shift & 0x1FF)
        (entry,) = struct.unpack("<Q", ram.read(Space.PHYSICAL, place, 8))
        table = root.form.target(entry)
    is_arm = machine.regime is ARM64
    block = (machine.code & ~2 | 1 << 52 | RAM) if is_arm else (machine.code | 1 << 63 | RAM >> 2)
    ram.write(place, struct.pack("<Q", block & ~(1 << 63)))
    leaf = tables.leaf(text + 0x12_3456)
    assert leaf == (block & ~(1 << 63), RAM + 0x12_3456)
    tables.add(block, text - 0x20_0000, RAM + 0x20_0000, 0x1000, is_code=False)
    assert Reader(machine, ram)(text - 0x20_0000 + 8, Access.WRITE) == (RAM + 0x20_0008, R | W)
    assert Reader(machine, ram)(text - 0x1F_F000, Access.READ) is None


@pytest.mark.parametrize("level", [1, 2])
def test_arm64_has_low_addresses_by_another_root_of_the_level_it_is_at(level: int) -> None:
    machine = arm64("4k-48", 48, 12, 2, level)
    low = machine.regime.root(MSR & ~0x20, machine.cpu)
    assert low is not None
    assert (low.address, low.has_kernel, low.has_identity) == (ROOT, False, True)
    assert machine.regime.root(MSR | 0x1F, machine.cpu) is None  # xzr


def test_riscv64_without_translation_has_no_root() -> None:
    assert RISCV64.root(CSRW & ~(0x1F << 15), Cpu()) is None  # csrw satp, zero
    assert RISCV64.root(CSRW, Cpu({SATP: 0})) is None

"""The machine code that counts breakpoints, executed by Unicorn for each host on this process's own memory: which it
counts, where the CPU goes on, and what it leaves to Python."""

import ctypes
import random

import pytest
import unicorn
from unicorn import arm64_const, x86_const

from kinst.runtime.engine.breakpoint_code import HOST_CODE
from kinst.runtime.engine.breakpoint_counters import BreakpointCounters

CODE, STACK, PYTHON, READ, WRITE, BACK = 0x10000, 0x2F000, 0x40000, 0x40100, 0x40200, 0x50000
UC, PC, NUMBER, BIAS = 0x1234, 77, 3, 1
_A64 = arm64_const.UC_ARM64_REG_X0
HOSTS = {
    "x86_64": (
        unicorn.UC_ARCH_X86,
        unicorn.UC_MODE_64,
        tuple(getattr(x86_const, f"UC_X86_REG_{name}") for name in ("RDI", "RSI", "RDX")),
        x86_const.UC_X86_REG_RSP,
        b"\xc3",
    ),
    "aarch64": (
        unicorn.UC_ARCH_ARM64,
        unicorn.UC_MODE_ARM,
        tuple(range(_A64, _A64 + 3)),
        arm64_const.UC_ARM64_REG_SP,
        bytes.fromhex("c0035fd6"),
    ),
}


class Host:
    """The machine code of a host, and a CPU of the guest that has a PC only."""

    def __init__(self, name: str) -> None:
        arch, mode, self.arguments, self.stack, returns = HOSTS[name]
        self.is_a64 = arch == unicorn.UC_ARCH_ARM64
        self.credit = ctypes.c_uint64()
        at = ctypes.addressof(self.credit)
        self.counters = BreakpointCounters(READ, WRITE, PC, (NUMBER, BIAS), at)
        self.counters._state[0] = PYTHON
        self.pc = 0
        self.passed: list[int] = []  # numbers that Python is called with
        self.cpu = cpu = unicorn.Uc(arch, mode)
        self.mapped: set[int] = set()
        for place, size in ((at, 8), (ctypes.addressof(self.counters._state), 88)):
            self.map(place, size)
        cpu.mem_map(CODE, 0x50000)
        cpu.mem_write(CODE, HOST_CODE[name])
        for function in (PYTHON, READ, WRITE):
            cpu.mem_write(function, returns)
        cpu.hook_add(unicorn.UC_HOOK_CODE, self.called, begin=PYTHON, end=WRITE)

    def map(self, address: int, size: int) -> None:
        for page in range(address >> 12, (address + size + 4095) >> 12):
            if page not in self.mapped:
                self.mapped.add(page)
                self.cpu.mem_map_ptr(page << 12, 4096, unicorn.UC_PROT_ALL, ctypes.c_void_p(page << 12))

    def called(self, _uc: object, address: int, _size: int, _data: object) -> None:
        values = [self.cpu.reg_read(register) for register in self.arguments]
        assert values[0] == UC
        if address == PYTHON:
            self.passed.append(values[1] & 0xFFFF_FFFF)
            return
        assert values[1] & 0xFFFF_FFFF == PC
        place = ctypes.c_uint64.from_address(values[2])
        if address == READ:
            place.value = self.pc
        else:
            self.pc = place.value
        for register in self.arguments:
            self.cpu.reg_write(register, 0xDEAD)  # as any function may

    def event(self, pc: int, number: int = NUMBER) -> int | None:
        """An event of the guest's CPU: where it goes on; None if Python is called."""
        state = self.counters._state
        self.map(state[7], (state[8] + 1) * 32)
        self.map(state[9], 8192)
        before, self.pc = len(self.passed), pc + BIAS
        for register, value in zip(self.arguments, (UC, number, ctypes.addressof(state)), strict=True):
            self.cpu.reg_write(register, value)
        self.cpu.reg_write(self.stack, STACK)
        self.cpu.mem_write(STACK, BACK.to_bytes(8, "little"))
        if self.is_a64:
            self.cpu.reg_write(arm64_const.UC_ARM64_REG_LR, BACK)
        self.cpu.emu_start(CODE, BACK)
        assert self.cpu.reg_read(self.stack) == STACK + (0 if self.is_a64 else 8)
        if len(self.passed) == before:
            return self.pc
        assert self.passed[before:] == [number]
        assert self.pc == pc + BIAS
        return None


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Host:
    return Host(request.param)


def test_a_breakpoint_is_counted_and_the_cpu_goes_on(host: Host) -> None:
    counters = host.counters
    first, second = counters.cell(), counters.cell()
    counters.set(0x8000_0000, 0x9000, first, has_credit=True)
    counters.set(0xFFFF_8000_0000_1004, 0xFFFF_8000_0000_1008, second, has_credit=False)

    assert [host.event(0x8000_0000) for _ in range(3)] == [0x9000] * 3
    assert host.event(0xFFFF_8000_0000_1004) == 0xFFFF_8000_0000_1008
    assert host.credit.value == 3
    assert counters.take() == [(0, first, 3), (0, second, 1)]
    assert counters.take() == []


def test_the_cpu_that_is_where_it_goes_on_is_left_alone(host: Host) -> None:
    cell = host.counters.cell()
    host.counters.set(0x7000, 0x7000 + BIAS, cell, has_credit=False)

    assert host.event(0x7000) == 0x7000 + BIAS
    assert host.counters.take() == [(0, cell, 1)]


def test_everything_else_is_passed_on(host: Host) -> None:
    host.counters.set(0x7000, 0x9000, host.counters.cell(), has_credit=True)

    assert host.event(0x7000, NUMBER + 1) is None
    assert host.event(0x7004) is None
    host.counters.drop(0x7000)
    assert host.event(0x7000) is None
    assert host.counters.take() == []


def test_each_cpu_has_its_own_cells(host: Host) -> None:
    counters = host.counters
    cell = counters.cell()
    counters.set(0x7000, 0x9000, cell, has_credit=False)
    counters.use(2)
    host.event(0x7000)
    host.event(0x7000)
    counters.use(0)
    host.event(0x7000)

    assert counters.take() == [(0, cell, 1), (2, cell, 2)]


def test_what_no_one_wants_to_know_is_in_no_cell(host: Host) -> None:
    host.counters.set(0x7000, 0x9000, 0, has_credit=False)

    assert host.event(0x7000) == 0x9000
    assert host.counters.take() == []


def test_many_breakpoints_that_come_and_go(host: Host) -> None:
    draw = random.Random(1)
    counters, wanted, cells = host.counters, dict[int, int](), dict[int, int]()
    for _ in range(6_000):
        address = draw.randrange(0x1000, 0x9000, 4)
        if draw.random() < 0.4:
            counters.drop(address)
            wanted.pop(address, None)
        else:
            cells[address] = cells.get(address) or counters.cell()
            wanted[address] = draw.getrandbits(48)
            counters.set(address, wanted[address], cells[address], has_credit=False)
    host.map(counters._cells[0].ctypes.data, counters._cells[0].nbytes)
    some = draw.sample(range(0x1000, 0x9000, 4), 400)

    assert {one: host.event(one) for one in some} == {one: wanted.get(one) for one in some}
    assert counters.take() == [(0, cell, 1) for cell in sorted(cells[one] for one in some if one in wanted)]

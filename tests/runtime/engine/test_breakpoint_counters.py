"""The machine code that counts breakpoints, executed by Unicorn for each host on this process's own memory: which it
counts, where the CPU goes on, and what it leaves to Python."""

import ctypes
import random
from collections.abc import Callable
from itertools import product

import pytest
import unicorn
from unicorn import arm64_const, x86_const

from kinst.runtime.engine import hit_records
from kinst.runtime.engine.breakpoint_counters import BreakpointCounters
from kinst.runtime.engine.cpu_places import CpuPlaces
from kinst.runtime.engine.hit_records import ClockWord, HitRecords
from kinst.runtime.engine.host import fields
from kinst.runtime.engine.host.breakpoints import BREAKPOINTS, BreakpointRow, Record
from kinst.runtime.hits.recorded import HEAD
from tests.runtime.engine.host_memory import host_code, map_pages

CODE, STACK, PYTHON, FULL, DISPATCH, BATCH, BACK = 0x10000, 0x2F000, 0x40000, 0x40080, 0x400C0, 0x40180, 0x50000
TIME = 0x40200
UC, PC, NUMBER, BIAS = 0x1234, 77, 3, 1
REGISTERS = (40, 41, 42, PC, 43)  # Unicorn's numbers in the trap frame
IP = 3
IDENTITY = 50  # Unicorn's number of a register that is not in the trap frame
_A64 = arm64_const.UC_ARM64_REG_X0
HOSTS = {
    "x86_64": (
        unicorn.UC_ARCH_X86,
        unicorn.UC_MODE_64,
        tuple(getattr(x86_const, f"UC_X86_REG_{name}") for name in ("RDI", "RSI", "RDX", "RCX")),
        x86_const.UC_X86_REG_RSP,
        b"\xc3",
    ),
    "aarch64": (
        unicorn.UC_ARCH_ARM64,
        unicorn.UC_MODE_ARM,
        tuple(range(_A64, _A64 + 4)),
        arm64_const.UC_ARM64_REG_SP,
        bytes.fromhex("c0035fd6"),
    ),
}
SCRATCH = {  # what a function may use besides
    "x86_64": tuple(getattr(x86_const, f"UC_X86_REG_{name}") for name in ("RAX", "R8", "R9", "R10", "R11")),
    "aarch64": tuple(range(_A64 + 4, _A64 + 18)),
}


class Host:
    """The machine code of a host, and a CPU of the guest that has a PC only."""

    def __init__(self, name: str, *, knows_general: bool = False) -> None:
        """`knows_general`: the registers before the PC are copied."""
        arch, mode, self.arguments, self.stack, returns = HOSTS[name]
        self.is_a64 = arch == unicorn.UC_ARCH_ARM64
        self.scratch = SCRATCH[name]
        self.credit = ctypes.c_uint64()
        at = ctypes.addressof(self.credit)
        self.live_pc = ctypes.c_uint64()
        self.cpu = cpu = unicorn.Uc(arch, mode)
        self.mapped: set[int] = set()
        self.frame = (ctypes.c_uint64 * len(REGISTERS))()
        frame = ctypes.addressof(self.frame)
        self.general = (ctypes.c_uint64 * IP)()
        self.copies = knows_general
        general = ctypes.addressof(self.general) if knows_general else 0
        self.time = ctypes.c_uint64(1000)
        pc = ctypes.addressof(self.live_pc)
        self.raised = (ctypes.c_uint32 * 2)(1, 1)  # the word, and what is behind it
        raised = ctypes.addressof(self.raised)
        places = CpuPlaces(pc, BATCH, REGISTERS, frame, general, IP, lambda _name: IDENTITY, raised)
        time = ClockWord(ctypes.addressof(self.time), 10)
        self.counters = BreakpointCounters(places, (NUMBER, BIAS), at, time)
        self.counters.callback(*map(ctypes.c_void_p, (PYTHON, FULL, DISPATCH)))
        for array in (self.frame, self.general, self.counters._numbers, self.counters._places):
            self.map(ctypes.addressof(array), ctypes.sizeof(array))
        self.passed: list[int] = []  # numbers that Python is called with
        self.full = 0  # how often it is called because there is no room
        self.read = 0  # registers, by the emulator's interface
        self.dispatched: dict[int, Callable[[], None]] = {}  # by address of what the callback is called with
        self.registers = {40: 0x4000, 41: 0x4100, 42: 0x4200, 43: 0x4300, IDENTITY: 0x5000}
        threads = self.counters.records.threads
        for place, size in (
            (at, 8),
            (ctypes.addressof(self.live_pc), 8),
            (ctypes.addressof(self.counters._state), ctypes.sizeof(self.counters._state)),
            (ctypes.addressof(self.time), 8),
            (raised, 8),
            (ctypes.addressof(self.counters._nowhere), 8),
            (threads._rows.ctypes.data, threads._rows.nbytes),
            (ctypes.addressof(threads._any), 8),
        ):
            self.map(place, size)
        cpu.mem_map(CODE, 0x50000)
        cpu.mem_write(CODE, host_code(BREAKPOINTS, name))
        for function in (PYTHON, FULL, DISPATCH, BATCH, TIME):
            cpu.mem_write(function, returns)
        cpu.hook_add(unicorn.UC_HOOK_CODE, self.called, begin=PYTHON, end=TIME)

    def map(self, address: int, size: int) -> None:
        map_pages(self.cpu, self.mapped, [(address, size)])

    def called(self, _uc: object, address: int, _size: int, _data: object) -> None:
        values = [self.cpu.reg_read(register) for register in self.arguments]
        if address == DISPATCH:
            assert (self.cpu.reg_read(self.stack) - STACK) % 16 == 0  # as aligned as it was for the code itself
            self.dispatched[values[0]]()
            self._clobber()
            return
        if address == TIME:
            assert (self.cpu.reg_read(self.stack) - STACK) % 16 == 0
            assert values[0] == 1  # CLOCK_MONOTONIC
            (ctypes.c_uint64 * 2).from_address(values[1])[:] = [5, 7]
            self._clobber()
            return
        assert values[0] == UC
        if address in (PYTHON, FULL):
            self.passed.append(values[1] & 0xFFFF_FFFF)
            self.full += address == FULL
            return
        self._read_batch(*values[1:])

    def _read_batch(self, numbers: int, places: int, count: int) -> None:
        self.read += count & 0xFFFF_FFFF
        for index in range(count & 0xFFFF_FFFF):
            place = ctypes.c_uint64.from_address(places + 8 * index).value
            number = ctypes.c_int.from_address(numbers + 4 * index).value
            ctypes.c_uint64.from_address(place).value = self.registers[number]
        self._clobber()

    def _clobber(self) -> None:
        for register in (*self.arguments, *self.scratch):
            self.cpu.reg_write(register, 0xDEAD)  # as any function may

    def event(self, pc: int, number: int = NUMBER) -> int | None:
        """An event of the guest's CPU: where it goes on; None if Python is called."""
        state = self.counters._state
        self.map(state.table, (state.table_mask + 1) * ctypes.sizeof(BreakpointRow))
        self.map(state.cells, 8192)
        records = self.counters.records
        for array in (records._rows, records._places):
            self.map(array.ctypes.data, array.nbytes)
        self.map(ctypes.addressof(records._sources), ctypes.sizeof(records._sources))
        self.general[:] = [self.registers[number] for number in REGISTERS[:IP]]
        before, self.live_pc.value = len(self.passed), pc + BIAS
        for register, value in zip(self.arguments, (UC, number, ctypes.addressof(state)), strict=False):
            self.cpu.reg_write(register, value)
        self.cpu.reg_write(self.stack, STACK)
        self.cpu.mem_write(STACK, BACK.to_bytes(8, "little"))
        if self.is_a64:
            self.cpu.reg_write(arm64_const.UC_ARM64_REG_LR, BACK)
        self.cpu.emu_start(CODE, BACK)
        assert self.cpu.reg_read(self.stack) == STACK + (0 if self.is_a64 else 8)
        if len(self.passed) == before:
            return self.live_pc.value
        assert self.passed[before:] == [number]
        assert self.live_pc.value == pc + BIAS & (1 << 64) - 1
        return None


@pytest.fixture(params=product(HOSTS, (False, True)), ids=lambda param: f"{param[0]}{', copying' * param[1]}")
def host(request: pytest.FixtureRequest) -> Host:
    name, knows_general = request.param
    return Host(name, knows_general=knows_general)


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


def test_the_emulator_forgets_that_it_was_a_software_interrupt(host: Host) -> None:
    host.counters.set(0x7000, 0x9000, host.counters.cell(), has_credit=False)
    assert (host.event(0x7004), [*host.raised]) == (None, [1, 1])  # Python needs it
    assert (host.event(0x7000), [*host.raised]) == (0x9000, [0, 1])


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


@pytest.mark.parametrize("pc", [2**64 - 1, 2**64 - 2], ids=["free", "gone"])
def test_what_stands_for_a_row_of_nobody_is_no_breakpoint(host: Host, pc: int) -> None:
    """A guest can have a breakpoint at any address."""
    counters = host.counters
    for address in range(0, 0x600, 4):  # rows that are gone, wherever the search begins
        counters.set(address, 0x9000, 0, has_credit=False)
        counters.drop(address)
    assert host.event(pc) is None

    counters.set(pc, 0x9000, counters.cell(), has_credit=False)
    assert host.event(pc) is None
    counters.drop(pc)
    counters.set(pc - 4, 0x9004, 0, has_credit=False)
    assert host.event(pc - 4) == 0x9004


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


def recorded(records: HitRecords) -> list[list[int]]:
    """What was recorded: address, CPU and registers."""
    return [[at - records.bias, cpu, *values] for at, cpu, _, _, *values in records.take().tolist()]


def test_a_hit_is_recorded_with_the_registers_that_are_wanted(host: Host) -> None:
    counters, records = host.counters, host.counters.records
    records.want([2, 0])
    counters.record(0x7000, 0x9000, has_credit=True)
    counters.set(0x7010, 0x9010, counters.cell(), has_credit=False)
    for cpu, value in ((0, 5), (1, 6), (1, 2**64 - 1)):
        counters.use(cpu)
        host.registers[42] = value
        assert (host.event(0x7000), host.event(0x7010)) == (0x9000, 0x9010)

    assert records.registers == (0, 2)
    assert recorded(records) == [[0x7000, 0, 0x4000, 5], [0x7000, 1, 0x4000, 6], [0x7000, 1, 0x4000, 2**64 - 1]]
    assert len(records.take()) == 0
    assert (host.credit.value, counters.take()) == (3, [(0, 1, 1), (1, 1, 2)])

    records.want([1, 4])
    host.event(0x7000)
    assert recorded(records) == [[0x7000, 1, 0x4000, 0x4100, 2**64 - 1, 0x4300]]
    assert host.read == (1 if host.copies else 2 * 3 + 4)


def test_where_there_is_no_room_for_a_record_whoever_makes_it_is_called(host: Host) -> None:
    host.counters.records.want([1])
    host.counters.record(0x7000, 0x9000, has_credit=False)
    host.event(0x7000)
    state = host.counters._state
    state.next = state.end

    assert host.event(0x7000) is None
    assert host.full == 1
    assert len(host.counters.records.take()) == 1 << 15
    assert host.event(0x7000) == 0x9000


class Hits:
    """A dispatched hit: what it sees in the frame, and where it sends the CPU."""

    def __init__(self, host: Host, goes_to: int | None = None) -> None:
        self.host, self.goes_to = host, goes_to
        self.seen: list[list[int]] = []
        self.call = self._call
        host.dispatched[id(self.call)] = self.call

    def _call(self) -> None:
        self.seen.append([*self.host.frame, self.host.credit.value])
        if self.goes_to is not None:
            self.host.frame[IP] = self.goes_to


def test_a_hit_is_dispatched_with_the_frame_filled_and_the_cpu_goes_on(host: Host) -> None:
    hits = Hits(host)
    host.counters.dispatch(0xFFFF_8000_0000_1004, 0x9000, hits.call, has_credit=True)
    assert host.event(0xFFFF_8000_0000_1004) == 0x9000
    host.registers[41] = 2**64 - 1
    assert host.event(0xFFFF_8000_0000_1004) == 0x9000

    site = 0xFFFF_8000_0000_1004
    assert hits.seen == [[0x4000, 0x4100, 0x4200, site, 0x4300, 0], [0x4000, 2**64 - 1, 0x4200, site, 0x4300, 1]]
    assert (host.credit.value, host.counters.take(), host.read) == (2, [], 2 if host.copies else 8)


def test_a_dispatched_hit_may_say_where_the_cpu_goes_on(host: Host) -> None:
    hits = Hits(host, 0x1234_5678_9ABC)
    host.counters.dispatch(0x7000, 0, hits.call, has_credit=False)
    assert host.event(0x7000) == 0x1234_5678_9ABC
    hits.goes_to = 0x7000 + BIAS  # there by itself
    assert host.event(0x7000) == 0x7000 + BIAS
    assert host.credit.value == 0


def test_a_hit_that_puts_the_cpu_elsewhere_itself_has_it_stay_there(host: Host) -> None:
    def hit() -> None:
        host.live_pc.value = 0xFA17
        host.counters.stay()

    host.dispatched[id(hit)] = hit
    host.counters.dispatch(0x7000, 0x9000, hit, has_credit=True)
    assert host.event(0x7000) == 0xFA17
    host.counters.dispatch(0x7000, 0x9000, Hits(host).call, has_credit=True)
    assert host.event(0x7000) == 0x9000
    assert host.credit.value == 1  # of the second


def test_a_dispatched_hit_may_change_the_table(host: Host) -> None:
    """It may enable and disable what it likes, also itself, and the table moves when it grows."""

    def hit() -> None:
        host.counters.drop(0x7000)
        for address in range(0x10000, 0x14000, 4):
            host.counters.set(address, address, 0, has_credit=False)

    host.dispatched[id(hit)] = hit
    host.counters.dispatch(0x7000, 0x9000, hit, has_credit=True)
    assert host.event(0x7000) == 0x9000
    assert host.event(0x7000) is None
    assert host.event(0x10004) == 0x10004


def test_a_record_has_the_time(host: Host) -> None:
    counters, records = host.counters, host.counters.records
    counters.record(0x7000, 0x9000, has_credit=True)
    host.credit.value = 30
    assert [host.event(0x7000), host.event(0x7000)] == [0x9000] * 2
    host.time.value = 5000
    host.event(0x7000)
    assert [row[2] for row in records.take().tolist()] == [1000 - 10 * 30, 1000 - 10 * 31, 5000 - 10 * 32]

    counters._state.gettime = TIME
    host.event(0x7000)
    assert records.take()[0, 2] == 5000 - 10 * 33 + 5_000_000_007


def test_what_reads_records_knows_what_they_begin_with() -> None:
    """`kinst.runtime.hits.recorded` takes the address, the CPU, the time and the key from these columns."""
    assert [fields.index(Record, name) for name in ("pc", "cpu", "time", "key")] == list(range(HEAD))
    assert hit_records.HEAD == HEAD


@pytest.mark.parametrize("identity", [None, "x"])
def test_a_record_has_the_thread_if_it_is_known(host: Host, identity: str | None) -> None:
    counters, records, threads = host.counters, host.counters.records, host.counters.records.threads
    records.want([0])
    records.identify(1, identity)
    assert records.registers == (0, 1)
    counters.record(0x7000, 0x9000, has_credit=False, is_keyed=True)
    counters.record(0x7010, 0x9010, has_credit=False)
    assert (host.event(0x7000), host.event(0x7010)) == (None, 0x9010)
    assert len(records.take_words()) == records.width

    words = (ctypes.c_uint64 * 2)(7, 8)
    places = [(ctypes.addressof(words) + 8 * index, 7 + index) for index in range(2)]
    host.map(places[0][0], 16)
    threads.put(0x40FF, 0x4200, 77, 0x5000, places)

    def key(stack_pointer: int) -> int | None:
        host.registers[41] = stack_pointer
        if host.event(0x7000) is None:
            assert records.is_empty()
            return None
        found = records.take_words()
        assert found[4:6] == [0x4000, stack_pointer]
        return found[3]

    assert [key(sp) for sp in (0x40FF, 0x4100, 0x4200, 0x4201, 0x5100, 0)] == [None, 77, 77, None, None, None]
    host.registers[IDENTITY] += 1
    assert key(0x4200) == (77 if identity is None else None)
    host.registers[IDENTITY] -= 1
    for index in range(2):
        words[index] += 1
        assert key(0x4200) is None
        words[index] -= 1
    assert key(0x4200) == 77
    threads.put(0x8000, 0x9000, 78, 0x5000)
    assert [key(0x8001), key(0x4200)] == [78, 77]
    threads.clear()
    assert [key(0x8001), key(0x4200)] == [None, None]

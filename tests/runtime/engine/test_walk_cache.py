"""The walk cache's machine code, executed by Unicorn for each host on this process's own memory: what it gives again,
and what it leaves to the callback."""

import ctypes
import random
from functools import cache
from typing import Final

import pytest
import unicorn
from unicorn import arm64_const, x86_const

from kinst.runtime.engine.host.walks import WALKS
from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.walk_cache import WalkCache
from kinst.targets.arch.riscv64 import RISCV64
from tests.runtime.engine.host_memory import host_code, map_pages

CODE, STACK, CALLBACK, READ, WRITE, BACK = 0x10000, 0x2F000, 0x40000, 0x40100, 0x40200, 0x50000
UC: Final = 0x1234
REGISTERS: Final = {"priv": 3, "sstatus": 0xC0000, "satp": (1 << 64) - 1}
_A64: Final = arm64_const.UC_ARM64_REG_X0
HOSTS: Final = {
    "x86_64": (
        unicorn.UC_ARCH_X86,
        unicorn.UC_MODE_64,
        tuple(getattr(x86_const, f"UC_X86_REG_{name}") for name in ("RDI", "RSI", "RDX", "RCX", "R8")),
        x86_const.UC_X86_REG_RSP,
        x86_const.UC_X86_REG_RAX,
        b"\xc3",
    ),
    "aarch64": (
        unicorn.UC_ARCH_ARM64,
        unicorn.UC_MODE_ARM,
        tuple(range(_A64, _A64 + 5)),
        arm64_const.UC_ARM64_REG_SP,
        _A64,
        bytes.fromhex("c0035fd6"),
    ),
}


@cache
def engine() -> QilingMachine:
    return QilingMachine(RISCV64)


class Host:
    """The machine code of a host, with a guest's registers and two words of its tables."""

    def __init__(self, name: str) -> None:
        arch, mode, self.arguments, self.stack, self.result, returns = HOSTS[name]
        self.engine = engine()
        self.cache = WalkCache(ctypes.c_void_p(CALLBACK), self.engine.live)
        self.cache.compare(self.engine._library, REGISTERS, "priv")
        self.cache._state.read, self.cache._state.write = READ, WRITE
        self.registers = {"priv": 1, "sstatus": 0, "satp": 0x8000}
        self.tables = (ctypes.c_uint64 * 2)(11, 22)
        self.result_of_miss = 1  # whether there is a translation
        self.entry = (ctypes.c_uint64 * 2)()
        self.asked: list[tuple[int, ...]] = []
        self.raised: list[int] = []
        self.cpu = cpu = unicorn.Uc(arch, mode)
        self.mapped: set[int] = set()
        for one in (self.cache._state, self.tables, self.entry, *self.cache._buffers):
            self.map(ctypes.addressof(one), ctypes.sizeof(one))
        self.map(self.cache._state.table, len(self.cache._table))
        cpu.mem_map(CODE, 0x50000)
        cpu.mem_write(CODE, host_code(WALKS, name))
        for function in (CALLBACK, READ, WRITE):
            cpu.mem_write(function, returns)
        cpu.hook_add(unicorn.UC_HOOK_CODE, self.called, begin=CALLBACK, end=WRITE)

    def map(self, address: int, size: int) -> None:
        map_pages(self.cpu, self.mapped, [(address, size)])

    def called(self, _uc: object, address: int, _size: int, _data: object) -> None:
        values = [self.cpu.reg_read(register) for register in self.arguments]
        assert values[0] == UC
        if address == CALLBACK:
            self.asked.append((values[1], values[2] & 0xFFFF_FFFF, values[3], values[4]))
        elif address == READ:
            buffers = (ctypes.c_uint64 * 3).from_address(values[2])
            assert values[3] & 0xFFFF_FFFF == 3
            for name, buffer in zip(REGISTERS, buffers, strict=True):
                is_hidden = name != "priv" and self.registers["priv"] == 0
                ctypes.c_uint64.from_address(buffer).value = (
                    random.getrandbits(64) if is_hidden else self.registers[name]
                )
        else:
            assert values[1] & 0xFFFF_FFFF == self.engine.live.slot("priv").number
            self.registers["priv"] = ctypes.c_uint64.from_address(values[2]).value
            self.raised.append(self.registers["priv"])
        if address != CALLBACK:
            for register in self.arguments:
                self.cpu.reg_write(register, 0xDEAD)  # as any function may

    def miss(self, page: int, access: int) -> tuple[int, int] | None:
        """What is given again; None if the callback was called."""
        before = len(self.asked)
        entry, state = ctypes.addressof(self.entry), ctypes.addressof(self.cache._state)
        for register, value in zip(self.arguments, (UC, page, 16 + access, entry, state), strict=True):
            self.cpu.reg_write(register, value)
        self.cpu.reg_write(self.stack, STACK)
        self.cpu.mem_write(STACK, BACK.to_bytes(8, "little"))
        if self.result == _A64:
            self.cpu.reg_write(arm64_const.UC_ARM64_REG_LR, BACK)
        self.cpu.emu_start(CODE, BACK)
        assert self.cpu.reg_read(self.stack) == STACK + (0 if self.result == _A64 else 8)
        if len(self.asked) > before:
            assert self.asked[-1] == (page, 16 + access, entry, state)
            return None
        self.result_of_miss = self.cpu.reg_read(self.result) & 0xFF
        return self.entry[0], self.entry[1] & 0xFFFF_FFFF

    def keep(self, physical: int, permissions: int) -> None:
        """Answer the miss that the callback was called for: both words were read."""
        address = ctypes.addressof(self.tables)
        self.cache.keep(physical, permissions, [address, self.tables[0], address + 8, self.tables[1]])


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Host:
    return Host(request.param)


def test_an_answer_is_given_again_for_the_same_page_and_access_only(host: Host) -> None:
    for access, permissions in ((0, 1), (1, 3), (2, 5)):
        assert host.miss(0x7000, access) is None
        host.keep(0x8000_0000 + access, permissions)
    assert [host.miss(0x7000, access) for access in range(3)] == [
        (0x8000_0000, 1), (0x8000_0001, 3), (0x8000_0002, 5)
    ]  # fmt: skip
    assert host.miss(0x8000, 0) is None
    assert host.miss(0, 0) is None  # an empty row is for no page


def test_an_answer_holds_while_all_that_it_came_from_is_the_same(host: Host) -> None:
    assert host.miss(0x7000, 0) is None
    host.keep(0x1000, 1)
    for index in range(2):
        host.tables[index] ^= 1 << 63
        assert host.miss(0x7000, 0) is None
        host.tables[index] ^= 1 << 63
        assert host.miss(0x7000, 0) == (0x1000, 1)
    for name, change in (("sstatus", 0x40000), ("satp", 1), ("priv", 2)):
        host.registers[name] ^= change
        assert host.miss(0x7000, 0) is None
        host.registers[name] ^= change
        assert host.miss(0x7000, 0) == (0x1000, 1)
    host.registers["sstatus"] ^= 0x22  # bits that do not count
    assert host.miss(0x7000, 0) == (0x1000, 1)


def test_registers_that_cannot_be_read_are_read_at_a_higher_privilege(host: Host) -> None:
    host.registers["priv"] = 0
    assert host.miss(0x7000, 0) is None
    host.keep(0x1000, 1)
    assert host.raised == [1, 0]
    assert host.miss(0x7000, 0) == (0x1000, 1)
    host.registers["satp"] += 1
    assert host.miss(0x7000, 0) is None
    host.registers |= {"priv": 1, "satp": 0x8000}
    assert host.miss(0x7000, 0) is None  # it is kept for the lower privilege
    assert host.raised == [1, 0] * 3


def test_who_only_asks_is_told_and_the_emulator_gets_nothing(host: Host) -> None:
    def missed(page: int) -> None:
        assert host.miss(page, 0) is None

    assert host.cache.ask(missed, 0x7000) is None
    host.keep(0x1000, 1)  # it was a question, not a miss
    assert host.miss(0x7000, 0) is None
    host.keep(0x1000, 1)
    host.entry[0] = 5

    def answered(page: int) -> None:
        assert host.miss(page, 0) == (5, 0)  # as it was
        assert host.result_of_miss == 0

    assert host.cache.ask(answered, 0x7000) == 0x1000
    assert host.cache.ask(lambda _page: 0x3000, 0x7000) == 0x3000  # from the TLB
    host.tables[1] += 1
    assert host.cache.ask(missed, 0x7000) is None
    host.tables[1] -= 1
    assert (host.miss(0x7000, 0), host.result_of_miss) == ((0x1000, 1), 1)


def test_nothing_is_given_while_it_is_off_or_after_it_was_forgotten(host: Host) -> None:
    assert host.miss(0x7000, 0) is None
    host.keep(0x1000, 1)
    host.cache.turn(is_off=True)
    assert host.miss(0x7000, 0) is None
    host.cache.turn(is_off=False)
    assert host.miss(0x7000, 0) == (0x1000, 1)
    host.cache.forget()
    assert host.miss(0x7000, 0) is None


def test_what_was_not_asked_for_or_came_from_too_much_is_not_kept(host: Host) -> None:
    host.keep(0x1000, 1)
    assert host.miss(0x7000, 0) is None
    host.cache.keep(0x1000, 1, [ctypes.addressof(host.tables), 11] * 12)
    assert host.miss(0x7000, 0) is None

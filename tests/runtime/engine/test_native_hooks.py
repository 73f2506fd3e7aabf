"""The machine code of the hook at blocks, executed by Unicorn for each host, against what it stands for in Python."""

import ctypes
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pytest
import unicorn
from unicorn import arm64_const, x86_const

from kinst.runtime.engine import native_hooks
from kinst.runtime.engine.host.blocks import BLOCKS, BlockState
from kinst.runtime.engine.native_hooks import BlockHook
from tests.runtime.engine.host_memory import host_code

CODE, STATE, TABLE, STACK, FUNCTIONS, BACK = 0x10000, 0x20000, 0x100000, 0x30000, 0x40000, 0x50000
STOP, READ, LOOK = FUNCTIONS, FUNCTIONS + 0x100, FUNCTIONS + 0x200
POINTERS: Final = {"stop": STOP, "read": READ, "marks": TABLE, "look": LOOK}  # fields that are addresses
UC, ADDRESSES, SIZES = 0x1234, range(0x7000, 0x7040, 2), (1, 4, 12)


@dataclass
class Case:
    """One block, and what the hook is asked."""

    address: int
    size: int
    word: int
    marks: list[int]
    looks_at_next: bool
    is_first: bool
    register: int
    last: int  # the block before
    calls: list[tuple[object, ...]] = field(default_factory=list)

    def hook(self) -> BlockHook:
        hook = BlockHook(0, lambda error: self.calls.append((error,)))
        hook.set_trampolines(0x7020, 0x10)
        hook.watch(0, 7, 0b11, 0b10)
        hook._state.stopping = self.word
        hook._state.is_first = self.is_first
        hook._state.last = self.last
        for address in self.marks:
            hook.marks.mark(address)
        hook.marks.look_at_next(is_wanted=self.looks_at_next and bool(self.marks))
        return hook


def cases() -> Iterator[Case]:
    draw = random.Random(1)
    for _ in range(120):
        address = draw.choice(ADDRESSES)
        yield Case(
            address=address,
            size=draw.choice(SIZES),
            word=draw.choice((0, 0, 1, 2)),
            marks=draw.sample([*ADDRESSES], draw.choice((0, 0, 3, 8))),
            looks_at_next=draw.random() < 0.2,
            is_first=draw.random() < 0.3,
            register=draw.randrange(4),
            last=draw.choice((0, address, address - 2)),
        )


Done = tuple[list[tuple[object, ...]], bool, bool, int]


def in_python(case: Case) -> Done:
    """The calls that the hook makes, whether it stopped, whether the first block is still to come, and the last one."""
    hook = case.hook()

    def stop(_uc: int) -> int:
        case.calls.append(("stop",))
        return 0

    def read(_uc: int, number: int, place: int) -> int:
        case.calls.append(("read", number))
        ctypes.c_uint64.from_address(place).value = case.register
        return 0

    functions = native_hooks._STOP_FUNCTION(stop), native_hooks._READ_FUNCTION(read)
    hook._state.stop, hook._state.read = (ctypes.cast(one, ctypes.c_void_p).value or 0 for one in functions)
    hook.marks.looks.append(lambda address, size: case.calls.append(("look", address, size)))
    hook._in_python(UC, case.address, case.size, 0)
    return case.calls, hook.has_stopped, bool(hook._state.is_first), hook._state.last


@dataclass(frozen=True)
class Host:
    """How Unicorn executes a host's code: registers of the arguments, stack, and bytes that return."""

    arch: int
    mode: int
    arguments: tuple[int, ...]
    stack: int
    returns: bytes


HOSTS = {
    "x86_64": Host(
        unicorn.UC_ARCH_X86,
        unicorn.UC_MODE_64,
        (x86_const.UC_X86_REG_RDI, x86_const.UC_X86_REG_RSI, x86_const.UC_X86_REG_RDX, x86_const.UC_X86_REG_RCX),
        x86_const.UC_X86_REG_RSP,
        b"\xc3",
    ),
    "aarch64": Host(
        unicorn.UC_ARCH_ARM64,
        unicorn.UC_MODE_ARM,
        tuple(range(arm64_const.UC_ARM64_REG_X0, arm64_const.UC_ARM64_REG_X0 + 4)),
        arm64_const.UC_ARM64_REG_SP,
        bytes.fromhex("c0035fd6"),
    ),
}


def state_with(hook: BlockHook, fields: dict[str, int]) -> bytes:
    """The hook's state, but for these fields."""
    state = BlockState.from_buffer_copy(hook._state)
    for name, value in fields.items():
        assert hasattr(state, name)
        setattr(state, name, value)
    return bytes(state)


def state_in(cpu: unicorn.Uc) -> BlockState:
    """The state as the code has left it."""
    return BlockState.from_buffer_copy(cpu.mem_read(STATE, ctypes.sizeof(BlockState)))


def prepared(hook: BlockHook, host: Host, code: bytes) -> unicorn.Uc:
    """The hook's code, state and marks, and functions for it to call; it returns to BACK."""
    cpu = unicorn.Uc(host.arch, host.mode)
    for start, size in ((CODE, 0x50000), (TABLE, 1 << 20)):
        cpu.mem_map(start, size)
    cpu.mem_write(CODE, code)
    cpu.mem_write(STATE, state_with(hook, POINTERS))
    cpu.mem_write(TABLE, bytes(hook.marks._table))
    for function in (STOP, READ, LOOK):
        cpu.mem_write(function, host.returns)
    cpu.mem_write(STACK, BACK.to_bytes(8, "little"))
    cpu.reg_write(host.stack, STACK)
    if host.arch == unicorn.UC_ARCH_ARM64:
        cpu.reg_write(arm64_const.UC_ARM64_REG_LR, BACK)
    return cpu


def executed(case: Case, host: Host, code: bytes) -> Done:
    cpu, calls = prepared(case.hook(), host, code), list[tuple[object, ...]]()

    def called(_uc: object, address: int, _size: int, _data: object) -> None:
        first, second, third, _ = (cpu.reg_read(register) for register in host.arguments)
        assert first == UC
        if address == STOP:
            calls.append(("stop",))
        elif address == READ:
            calls.append(("read", second & 0xFFFF_FFFF))
            cpu.mem_write(third, case.register.to_bytes(8, "little"))
        else:
            calls.append(("look", second, third & 0xFFFF_FFFF))
            for register in host.arguments:
                cpu.reg_write(register, 0xDEAD)  # as any function may

    cpu.hook_add(unicorn.UC_HOOK_CODE, called, begin=FUNCTIONS, end=FUNCTIONS + 0xFFF)
    for register, value in zip(host.arguments, (UC, case.address, case.size, STATE), strict=True):
        cpu.reg_write(register, value)
    cpu.emu_start(CODE, BACK)
    after = state_in(cpu)
    return calls, bool(after.has_stopped), bool(after.is_first), after.last


@pytest.mark.parametrize("name", HOSTS)
def test_blocks_are_looked_at_and_runs_stop_as_in_python(name: str) -> None:
    code = host_code(BLOCKS, name)
    seen = set()
    for case in cases():
        found = executed(case, HOSTS[name], code)
        assert found == in_python(case), case
        seen |= {call[0] for call in found[0]}
        seen |= {"iteration"} if found[1] and case.address in range(0x7020, 0x7030) else set()
    assert seen == {"look", "read", "stop", "iteration"}

"""The host's machine code, each routine alone, in states that a guest can bring about: any PC, block, page or register.

Unicorn executes it for both hosts, with no memory but what the routine is given: a wrong access is an error. What it
does is compared with what it stands for in Python.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import unicorn
from hypothesis import strategies as st

from kinst.runtime.engine.address_table import AddressTable
from kinst.runtime.engine.host.blocks import BLOCKS
from kinst.runtime.engine.host.budget import BUDGET, BudgetState
from kinst.runtime.engine.host.encodings import ENCODINGS, Instruction
from kinst.runtime.engine.host.marks import MARKS
from kinst.runtime.engine.system_instructions import SystemInstructionFilter
from tests.fuzz.kind import Finding, Kind
from tests.fuzz.traffic import Reader
from tests.runtime.engine import test_block_counters as counting
from tests.runtime.engine import test_breakpoint_counters as breaking
from tests.runtime.engine import test_native_hooks as hooking
from tests.runtime.engine import test_walk_cache as walking
from tests.runtime.engine.host_memory import host_code, map_pages

_WORD: Final = 1 << 64
_EDGES: Final = (0, 1, 2, 3, 4, 0xFFF, 0x1000, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, *range(_WORD - 6, _WORD))
_HOSTS: Final = st.sampled_from(sorted(hooking.HOSTS))
_NEAR: Final = 0x40_0000


def _word(data: Reader) -> int:
    """Mostly one of few, so that they meet; at an edge, or anywhere."""
    form = data.number(1)
    if form < 160:
        return _NEAR + 4 * (form & 31)
    return _EDGES[form % len(_EDGES)] if form < 230 else data.number(8)


# -- breakpoints ------------------------------------------------------------------------------------------------------


class _Breakpoints:
    """A host's code and what it must do at each address: go on there, or None for what is passed on."""

    def __init__(self, name: str, data: Reader) -> None:
        self.host, self.data = breaking.Host(name, knows_general=bool(data.number(1) & 1)), data
        self.following: dict[int, int] = {}
        self.keyed = set[int]()
        records = self.host.counters.records
        records.want([data.number(1) % breaking.IP])
        records.identify(1, "x" if data.number(1) & 1 else None)
        if data.number(1) & 1:
            self.host.counters._state.gettime = breaking.TIME
        self.hit = self._change  # one object, by whose address it is known
        self.host.dispatched[id(self.hit)] = self.hit

    def operate(self) -> None:
        """Something that Python does with the table, or an event of the guest."""
        if self.data.number(1) & 1:
            self._change()
        else:
            self._hit_at(_word(self.data))

    def _change(self) -> None:
        """A dispatched hit may do it as well, also to its own row."""
        what, address = self.data.number(1), _word(self.data)
        if what < 120:
            self._enter(what & 3, address, 1 + (_word(self.data) >> 1))
        elif what < 160:
            self.host.counters.drop(address)
            self.following.pop(address, None)
        elif what < 200:
            low = _word(self.data)
            self.host.counters.records.threads.put(low, low + self.data.number(2), what, _word(self.data))
        else:
            numbers = [number for number in self.host.registers if number != breaking.PC]
            self.host.registers[numbers[what % len(numbers)]] = address

    def _enter(self, way: int, address: int, following: int) -> None:
        counters, has_credit = self.host.counters, bool(following & 2)
        self.keyed.discard(address)
        if way == 0:
            counters.set(address, following, counters.cell(), has_credit=has_credit)
        elif way == 1:
            counters.dispatch(address, following, self.hit, has_credit=has_credit)
        else:
            counters.record(address, following, has_credit=has_credit, is_keyed=way == 3)
            self.keyed |= {address} if way == 3 else set()
        if address < _WORD - 2:
            self.following[address] = following

    def _hit_at(self, address: int) -> None:
        expected = self.following.get(address)
        found = self.host.event(address)
        if found != expected and not (found is None and address in self.keyed):
            raise Finding(f"a breakpoint at {address:#x} goes on at {found} and not at {expected}")


def _break(drawn: tuple[str, bytes], _folder: Path) -> None:
    name, content = drawn
    data = Reader(content)
    run = _Breakpoints(name, data)
    while data.at < len(content):
        run.operate()


# -- blocks -----------------------------------------------------------------------------------------------------------


def _count(drawn: tuple[str, bytes], _folder: Path) -> None:
    """Sites anywhere near each other, and a block that begins or ends anywhere."""
    name, content = drawn
    data = Reader(content)
    sites = sorted({64 + data.number(2) % 4096 for _ in range(1 + data.number(1) % 6)})
    gaps = [site - before for before, site in zip((0, *sites), sites, strict=False)]
    case = counting.Case(
        sites=tuple(sites),
        leads=tuple(5 if gap > 5 and data.number(1) & 1 else 0 for gap in gaps),
        off=data.number(1) % len(sites),
        place=(counting.HERE, counting.THERE, 0)[data.number(1) % 3],
        start=sites[data.number(1) % len(sites)] - data.number(1)
        if data.number(1) & 3
        else _word(data) - counting.LINK,
        size=1 + data.number(2) % (1 << 13),
        is_stopped=not data.number(1) & 7,
    )
    if not 0 <= case.block[0] < _WORD:
        return
    found, expected = counting.executed(case, hooking.HOSTS[name], host_code(BLOCKS, name)), counting.in_python(case)
    if found != expected:
        raise Finding(f"{found} in place of {expected}: {case}")


def _look(drawn: tuple[str, bytes], _folder: Path) -> None:
    """Blocks anywhere, with marks, trampolines and requests to stop."""
    name, content = drawn
    data = Reader(content)
    address = _word(data)

    def case() -> hooking.Case:
        return hooking.Case(address, size, word, marks, looks, first, register, last)

    size, word, looks, first = data.number(2), data.number(1) % 3, bool(data.number(1) & 1), bool(data.number(1) & 1)
    marks = [_word(data) for _ in range(data.number(1) & 7)]
    register, last = data.number(1) & 3, address if data.number(1) & 1 else _word(data)
    mine, its = case(), case()
    found = hooking.executed(mine, hooking.HOSTS[name], host_code(BLOCKS, name))
    expected = hooking.in_python(its)
    if found != expected:
        raise Finding(f"{found} in place of {expected}: {mine}")


# -- translations -----------------------------------------------------------------------------------------------------


def _walk(drawn: tuple[str, bytes], _folder: Path) -> None:
    """What is given again is what a walk would find now, whatever the guest changed meanwhile."""
    name, content = drawn
    data, host = Reader(content), walking.Host(name)
    while data.at < len(content):
        what = data.number(1)
        if what < 30:
            host.tables[what & 1] = data.number(1) & 3
        elif what < 60:
            host.registers[("priv", "sstatus", "satp")[what % 3]] = data.number(1) & 3 or _word(data)
        elif what < 65:
            host.cache.forget()
        else:
            _miss(host, _word(data) & ~0xFFF, what % 3)


def _miss(host: walking.Host, page: int, access: int) -> None:
    seen = dict(host.registers)
    found = host.miss(page, access)
    if seen["priv"] == 0:
        return  # what is hidden has any value
    compared = tuple(seen[one] & bits for one, bits in walking.REGISTERS.items())
    answer = hash((page, access, compared, *host.tables)) & (1 << 40) - 1
    if found is None:
        host.keep(answer, access)
    elif found != (answer, access):
        raise Finding(f"the page {page:#x} is translated to {found} and not to {answer:#x}")


# -- instructions -----------------------------------------------------------------------------------------------------


def _called(name: str, code: bytes, arguments: tuple[int, ...], state: Any, *more: Any) -> tuple[int | None, int]:
    """The function that the code goes on at, if it does not return, and what it returns."""
    host = hooking.HOSTS[name]
    cpu = unicorn.Uc(host.arch, host.mode)
    cpu.mem_map(hooking.CODE, 0x50000)
    map_pages(cpu, set(), [(ctypes.addressof(one), ctypes.sizeof(one)) for one in (state, *more)])
    cpu.mem_write(hooking.CODE, code)
    cpu.mem_write(hooking.STACK, hooking.BACK.to_bytes(8, "little"))
    cpu.reg_write(host.stack, hooking.STACK)
    if host.arch == unicorn.UC_ARCH_ARM64:
        cpu.reg_write(unicorn.arm64_const.UC_ARM64_REG_LR, hooking.BACK)
    for register, value in zip(host.arguments, (*arguments, ctypes.addressof(state)), strict=True):
        cpu.reg_write(register, value)
    went: list[int] = []

    def called(_uc: object, address: int, _size: int, _data: object) -> None:
        went.append(address)
        cpu.emu_stop()

    cpu.hook_add(unicorn.UC_HOOK_CODE, called, begin=hooking.FUNCTIONS, end=hooking.FUNCTIONS + 0xFFF)
    cpu.mem_write(hooking.FUNCTIONS, host.returns)
    cpu.emu_start(hooking.CODE, hooking.BACK)
    result = (
        unicorn.arm64_const.UC_ARM64_REG_X0 if host.arch == unicorn.UC_ARCH_ARM64 else unicorn.x86_const.UC_X86_REG_RAX
    )
    return went[0] if went else None, cpu.reg_read(result) & 0xFFFF_FFFF


def _budget(drawn: tuple[str, bytes], _folder: Path) -> None:
    """Instructions anywhere, inside and outside of trampolines, and a budget of few."""
    name, content = drawn
    data = Reader(content)
    state = BudgetState(data.number(1) & 3, _word(data), data.number(2), stop=hooking.STOP, slot_mask=63)
    address = _word(data)
    before, inside = state.budget, (address - state.trampolines) % _WORD < state.trampolines_size
    is_counted = not inside or not (address - state.trampolines) & 63
    went, _ = _called(name, host_code(BUDGET, name), (hooking.UC, address, 4), state)
    if (state.budget, went) != (max(0, before - is_counted), hooking.STOP if is_counted and not before else None):
        raise Finding(f"a budget of {before} became {state.budget} at {address:#x}")


def _system(drawn: tuple[str, bytes], _folder: Path) -> None:
    """All encodings that an instruction can have; some are wanted."""
    name, content = drawn
    data = Reader(content)

    def encoding() -> tuple[int, int, int, int, int]:
        return data.number(1) & 3, data.number(1) & 7, data.number(1) & 15, data.number(1) & 15, data.number(1) & 7

    wanted = [encoding() for _ in range(data.number(1) & 15)]
    chosen = SystemInstructionFilter(wanted, lambda *_arguments: 1)
    chosen._state.callback = hooking.STOP
    asked = wanted[0] if wanted and data.number(1) & 1 else encoding()
    op0, op1, crn, crm, op2 = asked
    fields = Instruction(crn, crm, op0, op1, op2)
    arguments = hooking.UC, 0, ctypes.addressof(fields)
    went, result = _called(name, host_code(ENCODINGS, name), arguments, chosen._state, chosen._table, fields)
    if (went is not None) != (asked in wanted) or (went is None and result):
        raise Finding(f"the encoding {asked} of {wanted}")


def _watch(drawn: tuple[str, bytes], _folder: Path) -> None:
    """Addresses that are watched, some of which share a place in the table, and one that may be another."""
    name, content = drawn
    data = Reader(content)
    known = [_word(data) >> data.number(1) % 64 or 1 for _ in range(data.number(1))]
    known += [one ^ 1 << 20 + data.number(1) % 44 or 1 for one in known[:8]]
    table = AddressTable(hooking.STOP)
    table.add(known)
    if data.number(1) & 1:
        known = known[::2]
        table.keep(known)
    asked = known[0] if known and data.number(1) & 1 else _word(data) or 1
    places = (ctypes.c_uint64 * len(table._places)).from_address(table._places.ctypes.data)
    went, _ = _called(name, host_code(MARKS, name), (hooking.UC, asked, 4), table.state, places)
    if (went is not None) != (asked in known):
        raise Finding(f"{asked:#x} among {len(known)} addresses")


def _kind(name: str, run: Callable[[tuple[str, bytes], Path], None], size: int) -> Kind:
    return Kind(name, st.tuples(_HOSTS, st.binary(min_size=16, max_size=size)), run)


HOST_CODE: Final = (
    _kind("breakpoints", _break, 600),
    _kind("counted", _count, 64),
    _kind("looked-at", _look, 128),
    _kind("walks", _walk, 600),
    _kind("budgets", _budget, 48),
    _kind("registers", _system, 128),
    _kind("watched", _watch, 600),
)

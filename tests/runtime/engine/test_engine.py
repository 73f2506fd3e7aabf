"""The engine over Qiling: stops at exact places, faults at exact addresses, code that changes, hidden registers."""

import mmap
import threading
import time
from collections.abc import Iterator

import pytest

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.reports import Stop
from kinst.runtime.paging.walker import Access
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import ARCHES, NAMES
from kinst.targets.arch.riscv64 import RISCV64
from tests.runtime.machine.riscv_words import (
    A0,
    A1,
    FENCE_I,
    S0,
    S1,
    S2,
    SP,
    T0,
    WFI,
    ZERO,
    addi,
    bne,
    code,
    jalr,
    la,
    li,
    load,
    store,
)

BASE, SIZE = 0x8000_0000, 1 << 20
ALIAS = 0x9000_0000  # the same memory at another virtual address
FUNCTION = BASE + 0x1000
STACK = BASE + SIZE


class Guest:
    """riscv64 in M mode with a megabyte of RAM; pages are granted as the machine grants them."""

    def __init__(self) -> None:
        self.engine = QilingMachine(RISCV64)
        self.ram = mmap.mmap(-1, SIZE)
        self.engine.map_memory(BASE, self.ram)
        self.engine.on_tlb_fill(self.fill)
        self.fills: list[tuple[int, Access]] = []

    def fill(self, address: int, access: Access) -> tuple[int, int] | None:
        self.fills.append((address, access))
        physical = address - ALIAS + BASE if address >= ALIAS else address
        return (physical, 7 if access is Access.FETCH else 3) if 0 <= physical - BASE < SIZE else None

    def start(self, *words: int, at: int = BASE) -> None:
        self.ram[at - BASE : at - BASE + 4 * len(words)] = code(*words)
        self.engine.live.set("pc", at)
        self.engine.live.set("sp", STACK)

    def get(self, name: str) -> int:
        return self.engine.live.get(name)


@pytest.fixture
def guest() -> Iterator[Guest]:
    yield Guest()


@pytest.mark.parametrize("facts", ARCHES, ids=NAMES)
def test_every_register_of_the_frame_can_be_written_and_read(facts: ArchFacts) -> None:
    engine = QilingMachine(facts)
    fixed = {"zero", "pstate", "rflags", "cs", "ss", "ds", "es", "fs", "gs"}  # a selector needs a descriptor
    names = [name for name in facts.registers if name not in fixed]
    for number, name in enumerate(names):
        engine.live.set(name, 0x1000 + 8 * number)
    engine.frame.read()
    frame = dict(zip(facts.registers, engine.frame.regs, strict=True))
    assert [frame[name] for name in names] == [0x1000 + 8 * number for number in range(len(names))]


def test_a_fault_is_at_the_exact_address_with_the_pc_at_the_instruction(guest: Guest) -> None:
    guest.start(addi(A0, A0, 1), load(A0, A1), WFI)
    guest.engine.live.set("a1", 0x1234_5678_9ABD)
    assert guest.engine.run() is Stop.FAULT
    assert guest.engine.fault == (0x1234_5678_9ABD, Access.READ)
    assert guest.get("pc") == BASE + 4


def test_a_fetch_that_fails_is_a_fault_too(guest: Guest) -> None:
    guest.start(jalr(ZERO, A1))
    guest.engine.live.set("a1", 0x4000_0008)
    assert guest.engine.run() is Stop.FAULT
    assert guest.engine.fault == (0x4000_0008, Access.FETCH)
    assert guest.get("pc") == 0x4000_0008


def test_the_cpu_halts_by_itself(guest: Guest) -> None:
    guest.start(addi(A0, ZERO, 1), WFI)
    assert guest.engine.run() is Stop.HALTED
    assert (guest.get("a0"), guest.get("pc")) == (1, BASE + 8)


def test_stops_from_another_thread_never_repeat_or_skip_an_instruction(guest: Guest) -> None:
    """Unicorn's own uc_emu_stop does: it leaves the PC of a chained block behind."""
    rounds = 3_000_000
    guest.start(
        *li(S1, rounds),
        addi(A0, ZERO, 0),
        addi(S1, S1, -1),
        addi(A0, A0, 1),
        store(A0, SP, -8),
        load(A1, SP, -8),
        bne(S1, ZERO, -16),
        WFI,
    )
    is_done = threading.Event()

    def disturb() -> None:
        while not is_done.is_set():
            guest.engine.stop()
            time.sleep(0.0002)

    thread = threading.Thread(target=disturb)
    thread.start()
    stops = 0
    while guest.engine.run() is Stop.REQUESTED:
        stops += 1
    is_done.set()
    thread.join()
    assert stops > 3
    assert (guest.get("a0"), guest.get("a1")) == (rounds, rounds)


def test_instructions_are_counted_and_the_budget_ends_exactly(guest: Guest) -> None:
    counter = guest.engine.count_instructions()
    guest.start(*li(S1, 1000), addi(S1, S1, -1), bne(S1, ZERO, -4), WFI)
    executed = 0
    for budget in (1, 1, 1, 2, 5, 100, 333):
        counter.grant(budget)
        assert guest.engine.run() is Stop.REQUESTED
        executed += budget
        assert counter.executed == executed
    assert guest.get("s1") == 1000 - -(-(executed - 2) // 2)
    counter.grant()
    assert guest.engine.run() is Stop.HALTED
    assert counter.executed == 2 + 2000 + 1


def test_a_stop_inside_a_device_access_is_taken_after_the_instruction(guest: Guest) -> None:
    counter = guest.engine.count_instructions()
    writes: list[int] = []

    class Window:
        def read(self, _offset: int, _size: int) -> int:
            return 0

        def write(self, _offset: int, _size: int, value: int) -> None:
            writes.append(value)
            counter.grant(0)

    guest.engine.map_window(0x1000_0000, 0x1000, Window())
    memory = guest.fill
    guest.engine.on_tlb_fill(lambda at, access: (at, 3) if at >> 28 == 1 else memory(at, access))
    guest.start(*la(S0, 0x1000_0000), *(store(A0, S0, size=2), addi(A0, A0, 1)) * 3, WFI)
    stops = []
    counter.grant()
    while guest.engine.run() is Stop.REQUESTED:
        stops.append(guest.get("pc"))
        counter.grant()
    assert writes == [0, 1, 2]
    assert stops == [BASE + 20, BASE + 28, BASE + 36]


def test_what_a_callback_raises_comes_out_of_run(guest: Guest) -> None:
    def fail(_address: int, _access: Access) -> tuple[int, int] | None:
        raise ZeroDivisionError("in a callback")

    guest.start(WFI)
    guest.engine.on_tlb_fill(fail)
    with pytest.raises(ZeroDivisionError, match="in a callback"):
        guest.engine.run()


@pytest.mark.parametrize("through", [BASE, ALIAS])
def test_code_that_the_guest_changes_is_executed_as_changed(guest: Guest, through: int) -> None:
    change = (*la(S0, FUNCTION), *la(S2, through + 0x1000))
    call = jalr(1, S0)
    words: list[int] = [*change, call]
    for value in (2, 3):
        words += [*li(T0, addi(A0, ZERO, value)), store(T0, S2, size=2), FENCE_I, call, addi(S1 + 17 + value, A0, 0)]
    guest.ram[0x1000:0x1008] = code(addi(A0, ZERO, 1), jalr(ZERO, 1))
    guest.start(*words, WFI)
    if through == ALIAS:  # as AddressSpace does: pages that were fetched from keep the permission
        plain = guest.fill
        guest.engine.on_tlb_fill(lambda at, access: ((plain(at, access) or (0, 0))[0], 7))
    assert guest.engine.run() is Stop.HALTED
    assert (guest.get("x28"), guest.get("x29")) == (2, 3)


def test_registers_that_unicorn_cannot_write_are_written_in_its_state(guest: Guest) -> None:
    guest.engine.live.set("mhartid", 5)
    guest.engine.live.set("mip", 1 << 7 | 1 << 3)
    assert (guest.get("mhartid"), guest.get("mip")) == (5, 0x88)
    other = guest.engine.states.save()
    guest.engine.live.set("mhartid", 6)
    guest.engine.states.registers_of(other).set("mhartid", 7)
    guest.engine.states.restore(other)
    assert guest.get("mhartid") == 7


def test_translation_by_the_tlb_asks_once_and_reports_failure(guest: Guest) -> None:
    for _ in range(3):
        assert guest.engine.translator(Access.READ)(ALIAS + 0x5678) == BASE + 0x5678
    assert len(guest.fills) == 1
    guest.engine.flush_tlb()
    guest.engine.translator(Access.READ)(ALIAS + 0x5678)
    assert len(guest.fills) == 2
    assert guest.engine.translator(Access.WRITE)(0x1234) is None


@pytest.mark.parametrize("is_counted", [False, True])
def test_a_run_of_one_instruction_ends_in_code_that_was_translated_before(guest: Guest, *, is_counted: bool) -> None:
    engine, called = guest.engine, list[str]()
    if is_counted:
        engine.count_instructions().grant(100)
    guest.ram[FUNCTION - BASE : FUNCTION - BASE + 12] = code(addi(A1, A1, 1), addi(A1, A1, 1), WFI)
    start = (addi(A0, A0, 1), *la(S0, FUNCTION), jalr(ZERO, S0))
    guest.start(*start)
    assert engine.run() is Stop.HALTED
    for pc, expected in ((BASE, BASE + 4), (BASE + 4 * len(start) - 4, FUNCTION), (FUNCTION, FUNCTION + 4)):
        engine.live.set("pc", pc)
        engine.one.ask(lambda: called.append("after"))
        if engine.counter is not None:
            engine.counter.grant(1)
        assert engine.run() is Stop.REQUESTED
        assert guest.get("pc") == expected
    assert (guest.get("a0"), guest.get("a1"), called) == (2, 3, ["after"] * 3)
    if engine.counter is not None:
        engine.counter.grant(100)
    assert engine.run() is Stop.HALTED
    assert guest.get("a1") == 4


def test_a_run_after_one_of_one_instruction_has_its_own_faults_only(guest: Guest) -> None:
    """Code that cannot be reached any more is none of the guest's business."""
    engine = guest.engine
    guest.ram[FUNCTION - BASE : FUNCTION - BASE + 8] = code(addi(A1, A1, 1), WFI)
    guest.start(addi(A0, A0, 1), WFI)
    engine.one.ask(engine.flush_tlb)
    assert engine.run() is Stop.REQUESTED
    fill = guest.fill
    engine.on_tlb_fill(lambda address, access: fill(address, access) if address >= FUNCTION else None)
    engine.live.set("pc", FUNCTION)
    assert engine.run() is Stop.HALTED
    assert (guest.get("a0"), guest.get("a1")) == (1, 1)

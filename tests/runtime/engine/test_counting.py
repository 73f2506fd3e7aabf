"""Instructions counted by blocks, beside the same programs counted one by one: the same counts at the same places."""

import mmap
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import pytest
import unicorn

from kinst.rewriter.assemble import assemble
from kinst.runtime.engine import counting
from kinst.runtime.engine.hit_records import ClockWord
from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.reports import Stop
from kinst.runtime.machine.exceptions.amd64_segments import enter_real_mode
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.riscv64 import RISCV64
from tests.runtime.machine.riscv_words import A0, A1, A2, S0, S1, T0, addi, bne, code, load, store

BASE, SIZE, DEVICE, NOWHERE = 0x8000_0000, 1 << 16, 0x1000_0000, 0x4000_0000
CODE: Final = BASE + 0x1000 - 64  # a block ends where the page does
DATA: Final = BASE + 0x8000
FIRST: Final = 4  # bytes of the first instruction, which reads the device
COUNTER: Final = (3, 3, 14, 0, 2)  # CNTVCT_EL0
RDTIME: Final = 0xC010_2573

# Of each machine: plain instructions, accesses to a device and other calls back, exceptions, and what changes code.
AMD64_PIECES: Final = (
    "add eax, ebx; adc ecx, 3",
    "imul eax, ecx; sub eax, 7; cmp eax, ebx",
    "mov [r12 + 8], eax; mov ebx, [r12 + 8]",
    "test eax, 1; je 9f; inc ebx; inc ecx; 9:",
    "lea rsi, [r12]; lea rdi, [r12 + 64]; mov ecx, 3; rep movsb",
    "mov eax, [r13 + 8]; inc ebx",
    "mov [r13], ebx",
    "add [r13], ebx",
    "in al, 0x60",
    "out 0x61, al; inc eax",
    "int3",
    "ud2",
    "mov eax, 1; mov edx, 0; test eax, eax; div r14d",  # one by one, flags of a comparison would be lost here
    "test eax, eax; mov ebx, [r11]",
)
REAL_PIECES: Final = (  # in real mode, where the PC counts from the segment
    bytes.fromhex("40 01d8"),  # inc ax; add ax, bx
    bytes.fromhex("89c3 83e807 39d8"),  # mov bx, ax; sub ax, 7; cmp ax, bx
    bytes.fromhex("a801 7402 43 41"),  # test al, 1; je over inc bx; inc cx
    bytes.fromhex("e460 43"),  # in al, 0x60; inc bx
    bytes.fromhex("e661"),  # out 0x61, al
    bytes.fromhex("cc"),  # int3
    bytes.fromhex("0f0b"),  # ud2
    bytes.fromhex("31c9 f7f1 90"),  # xor cx, cx; div cx; nop
)
ARM64_PIECES: Final = (
    "add x0, x0, x1; eor x2, x0, #1",
    "str x0, [x19, #8]; ldr x1, [x19, #8]",
    "ands x3, x0, #1; b.eq #12; add x1, x1, #1; add x2, x2, #1",
    "ldr w1, [x20]; add x1, x1, #1",
    "str w1, [x20, #8]",
    "ldp w1, w2, [x20]; add x0, x0, #1",
    "mrs x1, cntvct_el0; add x1, x1, #1",
    "brk #1",
    "svc #0",
    "ldr x4, [x21]",
)
ARM64_UNDEFINED: Final = bytes(4)
RISCV64_PIECES: Final = (
    code(addi(A0, A0, 1), addi(A1, A0, 3)),
    code(store(A0, S0, 8), load(A1, S0, 8)),
    bytes.fromhex("0505 0505 8505"),  # c.addi a0, 1, twice, and a1
    code(bne(A0, A1, 8), addi(A2, A2, 1)),
    code(load(A1, S1, 0), addi(A1, A1, 1)),
    code(store(A1, S1, 8)),
    code(load(A2, T0, 0)),
    code(RDTIME),
    bytes.fromhex("0290"),  # c.ebreak
    bytes(2),  # c.illegal
)

LONG_ILLEGAL: Final = bytes.fromhex("0b000000")


def amd64_program(draw: random.Random) -> bytes:
    pieces = [draw.choice(AMD64_PIECES).replace("9", f"L{number}_") for number in range(30)]
    lines = "; ".join(["mov eax, [r13 + 8]; inc eax", *pieces]).replace("f;", ";").replace("L", "l")
    return assemble(AMD64, f"again: {lines}; jmp again", CODE, is_plain=True)


def real_program(draw: random.Random) -> bytes:
    body = b"".join([bytes.fromhex("e460 9090 40"), *draw.choices(REAL_PIECES, k=40)])
    return body + b"\xe9" + (-len(body) - 3 & 0xFFFF).to_bytes(2, "little")


def arm64_program(draw: random.Random) -> bytes:
    pieces = [
        assemble(ARM64, text, BASE) for text in ("ldr w1, [x20]; add x1, x1, #1", *draw.choices(ARM64_PIECES, k=30))
    ]
    body = pieces[0] + b"".join(draw.choice((piece, piece, piece, ARM64_UNDEFINED)) for piece in pieces[1:])
    return body + (0x1400_0000 | -(len(body) // 4) & 0x3FF_FFFF).to_bytes(4, "little")


def riscv64_program(draw: random.Random, pieces: tuple[bytes, ...] = RISCV64_PIECES) -> bytes:
    body = b"".join([code(load(A1, S1, 0), addi(A1, A1, 1)), *draw.choices(pieces, k=40)])
    body += bytes.fromhex("0100") * (len(body) // 2 % 2)
    offset = -len(body)
    bits = (
        (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3FF) << 21 | (offset >> 11 & 1) << 20 | (offset >> 12 & 0xFF) << 12
    )
    return body + (bits | 0x6F).to_bytes(4, "little")


@dataclass
class Machine:
    """A machine, how programs for it are drawn, and the registers that point to memory, a device and nowhere."""

    facts: ArchFacts
    program: Callable[[random.Random], bytes]
    pointers: dict[str, int]
    start: Callable[[QilingMachine], None] = lambda engine: engine.set_pc(CODE)
    name: str = ""


MACHINES: Final = (
    Machine(AMD64, amd64_program, {"r12": DATA, "r13": DEVICE, "r11": NOWHERE, "rsp": DATA}),
    Machine(ARM64, arm64_program, {"x19": DATA, "x20": DEVICE, "x21": NOWHERE}),
    Machine(RISCV64, riscv64_program, {"s0": DATA, "s1": DEVICE, "t0": NOWHERE}),
)


def start_real_mode(engine: QilingMachine) -> None:
    enter_real_mode(engine.live, BASE >> 12)
    engine.set_pc(CODE - BASE)


REAL: Final = Machine(AMD64, real_program, {}, start_real_mode, "real mode")


def every(machines: Sequence[Machine]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("machine", machines, ids=lambda machine: machine.name or machine.facts.name)


every_machine = every(MACHINES)
# Where code has two hooks at instructions, Unicorn calls neither for an undefined one of riscv64 without a size.
every_machine_with_sizes = every(
    [*MACHINES[:2], replace(MACHINES[2], program=partial(riscv64_program, pieces=(*RISCV64_PIECES[:-1], LONG_ILLEGAL)))]
)


@dataclass
class Guest:
    """A program that runs with small budgets. What happens is written down with what was executed by then."""

    machine: Machine
    draw: random.Random
    counts_blocks: bool = False
    journal: list[tuple[object, ...]] = field(default_factory=list)
    meanwhile: dict[str, Callable[[], None]] = field(default_factory=dict)  # what is done once at a moment of a run

    def __post_init__(self) -> None:
        self.engine = engine = QilingMachine(self.machine.facts)
        self.ram = mmap.mmap(-1, SIZE)
        content = self.machine.program(self.draw)
        self.ram[CODE - BASE : CODE - BASE + len(content)] = content
        engine.map_memory(BASE, self.ram)
        engine.on_tlb_fill(lambda address, _access: None if address >> 12 == NOWHERE >> 12 else (address, 7))
        self.counter = engine.count_instructions()
        engine.map_window(DEVICE, 0x1000, self)
        engine.on_interrupt(self._exception, self._failed, ClockWord(self.counter.word))
        if self.machine.facts is AMD64:
            engine.on_ports(self)
        if self.machine.facts is ARM64:
            engine.on_system_registers([COUNTER], lambda _: self.read(0, 8), lambda *_: False)
        for name, value in self.machine.pointers.items():
            engine.live.set(name, value)
        self.machine.start(self.engine)
        if self.counts_blocks:
            self._count_start()

    def _note(self, *what: object) -> None:
        self.journal.append((*what, self.counter.executed))
        if self.draw.random() < 0.3:  # its owner ends the run, or lets it run longer
            self.counter.grant(self.draw.choice((0, 0, 1, 5)))

    def _is_now(self, moment: str) -> None:
        self.meanwhile.pop(moment, lambda: None)()

    def _look(self, address: int, _size: int) -> None:
        self._is_now("look")
        self.journal.append(("look", address, self.counter.executed))

    def _count_start(self) -> None:
        """Count blocks that begin at the second instruction, to which control always comes by the first one. Look at
        all blocks that begin or end at the first instructions."""
        marks = self.engine.look_at_blocks(self._look)
        for address in range(CODE, CODE + 128):
            marks.mark(address)
        counters = self.engine.block_counters
        counters.set(np.array([CODE + FIRST], np.uint64), np.array([FIRST], np.uint64))
        counters.be_at([0])
        counters.turn_on(np.array([0]))

    def read(self, offset: int, size: int) -> int:
        self._is_now("device")
        self._note("read", offset, size)
        return self.counter.executed

    def write(self, offset: int, size: int, value: int) -> None:
        self._note("write", offset, size, value)

    def _exception(self, _uc: int, number: int, _data: int) -> None:
        pc = self.engine.pc()
        self._is_now("exception")
        self._note("exception", number, pc)
        if self.machine.facts is AMD64:
            self.engine.live.set("old_exception", (1 << 32) - 1)  # another one is no double fault
        size = {AMD64.name: 3, ARM64.name: 4, RISCV64.name: 4}[self.machine.facts.name]
        is_over = (self.machine.facts is AMD64 and number == 3) or (self.machine.facts is ARM64 and number == 2)
        if self.machine.facts is RISCV64:  # the PC is 4 behind
            half = int.from_bytes(self.ram[pc - 4 - BASE : pc - 2 - BASE], "little")
            self.engine.set_pc(pc - 4 + (4 if half & 3 == 3 else 2))
        elif not is_over:
            self.engine.set_pc(pc + size)

    def _failed(self, error: BaseException) -> None:
        raise error

    def run(self, runs: int) -> list[tuple[object, ...]]:
        for _ in range(runs):
            self.counter.grant(self.draw.choice((1, 2, 3, 7, 20, 50)))
            stop = self.engine.run()
            pc = self.engine.pc()
            self.journal.append((stop, pc, self.counter.executed))
            if stop is Stop.FAULT:
                self.engine.set_pc(pc + {AMD64.name: 3, ARM64.name: 4, RISCV64.name: 4}[self.machine.facts.name])
            elif stop is Stop.UNDEFINED:
                self.engine.set_pc(pc + 2)
        self.engine.frame.read()
        self.journal.append(("blocks", self.engine.block_counters.take()))
        return [*self.journal, tuple(self.engine.frame.regs)]


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "emulator_code", lambda *_: None)


@every([*MACHINES, REAL])
@pytest.mark.parametrize("seed", range(8))
def test_both_ways_count_the_same(machine: Machine, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_blocks = Guest(machine, random.Random(seed), counts_blocks=seed % 2 == 1)
    if not by_blocks.engine._counting.is_by_blocks:
        pytest.skip("this host counts one by one")
    found = by_blocks.run(400)
    assert by_blocks.engine._counting.is_by_blocks
    one_by_one(monkeypatch)
    each = Guest(machine, random.Random(seed), counts_blocks=seed % 2 == 1)
    assert not each.engine._counting.is_by_blocks
    assert each.run(400) == found
    assert len({kind for kind, *_ in found}) >= 5


@dataclass
class Hooked:
    """A hook that somebody else puts in, and what it has seen."""

    kind: int
    guest: Guest
    seen: list[tuple[int, ...]] = field(default_factory=list)
    since: int = -1  # what was executed when it was added

    def add(self) -> None:
        self.since = self.guest.counter.executed
        notify = self._at_memory if self.kind & unicorn.UC_HOOK_MEM_READ else self._at_code
        self.guest.engine.ql.uc.hook_add(self.kind, notify)

    def _at_memory(self, _uc: object, access: int, address: int, size: int, *_: object) -> None:
        self.seen.append((access, address, size))

    def _at_code(self, _uc: object, address: int, size: int, _data: object) -> None:
        self.seen.append((address, size, self.guest.counter.executed))


MEMORY: Final = unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE
every_kind = pytest.mark.parametrize("kind", [unicorn.UC_HOOK_CODE, unicorn.UC_HOOK_BLOCK, MEMORY])
MOMENTS: Final = ("device", "exception", "look")


@every_machine
@every_kind
def test_hooks_of_others_see_what_they_see_one_by_one(
    machine: Machine, kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> tuple[object, ...]:
        guest = Guest(machine, random.Random(7))
        guest.run(100)
        hook = Hooked(kind, guest)
        hook.add()
        guest.engine.forget_all_code()
        return guest.run(100), hook.seen

    found = run()
    one_by_one(monkeypatch)
    assert run() == found
    assert found[1]


def hooked_in_the_middle(machine: Machine, kind: int, moment: str) -> tuple[list[tuple[object, ...]], Hooked]:
    """A run in which somebody gets the engine while code runs, and hooks it. The lines of its journal from then on."""
    guest = Guest(machine, random.Random(7), counts_blocks=True)
    hook = Hooked(kind, guest)
    guest.run(50)
    guest.meanwhile[moment] = hook.add
    guest.run(400)
    assert not guest.meanwhile
    return guest.journal, hook


def test_flags_of_a_comparison_outlive_a_fault() -> None:
    """With a hook at each instruction, Unicorn computes them, and takes them for what they were computed from."""
    text = "mov eax, -1; mov ebx, 1; cmp eax, ebx; mov ebx, [r11]"
    program = assemble(AMD64, text, BASE, is_plain=True)
    guest = Guest(replace(MACHINES[0], program=lambda _: program), random.Random(0))
    if not guest.engine._counting.is_by_blocks:
        pytest.skip("this host counts one by one")
    guest.counter.grant(10)
    assert guest.engine.run() is Stop.FAULT
    assert not guest.engine.live.get("rflags") & 1


@every_machine_with_sizes
@every_kind
@pytest.mark.parametrize("moment", MOMENTS)
def test_who_gets_the_engine_while_code_runs_changes_nothing(
    machine: Machine, kind: int, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for another hook at blocks: since then the emulator calls the first one in another way, and has it called
    once more where it takes the rest of a block for one."""
    found, hook = hooked_in_the_middle(machine, kind, moment)
    assert not hook.guest.engine._counting.is_by_blocks
    one_by_one(monkeypatch)
    journal, its_hook = hooked_in_the_middle(machine, kind, moment)
    if kind == unicorn.UC_HOOK_BLOCK:
        journal, found = ([line for line in lines if line[0] != "look"] for lines in (journal, found))
    assert journal == found
    assert its_hook.since == hook.since


@every_machine_with_sizes
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_hook_at_instructions_sees_none_of_them_twice(machine: Machine, moment: str) -> None:
    """It sees all but those of a few blocks that were translated before. At each of them, another one is counted."""
    _, hook = hooked_in_the_middle(machine, unicorn.UC_HOOK_CODE, moment)
    counts = [executed for *_, executed in hook.seen]
    assert counts == sorted(set(counts))
    assert len(counts) > 500


@every_machine
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_hook_at_memory_sees_each_access_to_a_device_once_from_then_on(
    machine: Machine, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others only where code is translated after the hook was added: their blocks access memory themselves."""

    def seen() -> list[tuple[int, ...]]:
        _, hook = hooked_in_the_middle(machine, MEMORY, moment)
        return [access for access in hook.seen if access[1] >> 12 == DEVICE >> 12]

    found = seen()
    assert len(found) > 20
    one_by_one(monkeypatch)
    assert seen() == found

"""Instructions counted by blocks, beside the same programs counted one by one: the same counts at the same places."""

import mmap
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest
import unicorn

from kinst.rewriter.assemble import assemble
from kinst.runtime.engine import counting
from kinst.runtime.engine.hit_records import ClockWord
from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.reports import Stop
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.riscv64 import RISCV64
from tests.runtime.machine.riscv_words import A0, A1, A2, S0, S1, T0, addi, bne, code, load, store

BASE, SIZE, DEVICE, NOWHERE = 0x8000_0000, 1 << 16, 0x1000_0000, 0x4000_0000
DATA: Final = BASE + 0x8000
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
    "mov eax, 1; mov edx, 0; div r14d",
    "mov ebx, [r11]",
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


def amd64_program(draw: random.Random) -> bytes:
    pieces = [draw.choice(AMD64_PIECES).replace("9", f"L{number}_") for number in range(30)]
    lines = "; ".join(pieces).replace("f;", ";").replace("L", "l")
    return assemble(AMD64, f"again: {lines}; jmp again", BASE, is_plain=True)


def arm64_program(draw: random.Random) -> bytes:
    pieces = [assemble(ARM64, draw.choice(ARM64_PIECES), BASE) for _ in range(30)]
    body = b"".join(draw.choice((piece, piece, piece, ARM64_UNDEFINED)) for piece in pieces)
    return body + (0x1400_0000 | -(len(body) // 4) & 0x3FF_FFFF).to_bytes(4, "little")


def riscv64_program(draw: random.Random) -> bytes:
    body = b"".join(draw.choice(RISCV64_PIECES) for _ in range(40))
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


MACHINES: Final = (
    Machine(AMD64, amd64_program, {"r12": DATA, "r13": DEVICE, "r11": NOWHERE, "rsp": DATA}),
    Machine(ARM64, arm64_program, {"x19": DATA, "x20": DEVICE, "x21": NOWHERE}),
    Machine(RISCV64, riscv64_program, {"s0": DATA, "s1": DEVICE, "t0": NOWHERE}),
)
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.facts.name)


@dataclass
class Guest:
    """A program that runs with small budgets. What happens is written down with what was executed by then."""

    machine: Machine
    draw: random.Random
    journal: list[tuple[object, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = engine = QilingMachine(self.machine.facts)
        self.ram = mmap.mmap(-1, SIZE)
        content = self.machine.program(self.draw)
        self.ram[: len(content)] = content
        engine.map_memory(BASE, self.ram)
        engine.on_tlb_fill(lambda address, _access: None if address >> 12 == NOWHERE >> 12 else (address, 7))
        self.counter = engine.count_instructions()
        engine.map_window(DEVICE, 0x1000, self)
        engine.on_interrupt(self._exception, self._failed, (-1 & 0xFFFF, 0), ClockWord(self.counter.word))
        if self.machine.facts is AMD64:
            engine.on_ports(self)
        if self.machine.facts is ARM64:
            engine.on_system_registers([COUNTER], lambda _: self.read(0, 8), lambda *_: False)
        for name, value in self.machine.pointers.items():
            engine.live.set(name, value)
        self.engine.set_pc(BASE)

    def _note(self, *what: object) -> None:
        self.journal.append((*what, self.counter.executed))
        if self.draw.random() < 0.3:  # its owner ends the run, or lets it run longer
            self.counter.grant(self.draw.choice((0, 0, 1, 5)))

    def read(self, offset: int, size: int) -> int:
        self._note("read", offset, size)
        return self.counter.executed

    def write(self, offset: int, size: int, value: int) -> None:
        self._note("write", offset, size, value)

    def _exception(self, _uc: int, number: int, _data: int) -> None:
        pc = self.engine.pc()
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
        return [*self.journal, tuple(self.engine.frame.regs)]


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "emulator_code", lambda *_: None)


@every_machine
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_count_the_same(machine: Machine, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_blocks = Guest(machine, random.Random(seed))
    if not by_blocks.engine._counting.is_by_blocks:
        pytest.skip("this host counts one by one")
    found = by_blocks.run(400)
    assert by_blocks.engine._counting.is_by_blocks
    one_by_one(monkeypatch)
    each = Guest(machine, random.Random(seed))
    assert not each.engine._counting.is_by_blocks
    assert each.run(400) == found
    assert len({kind for kind, *_ in found}) >= 5


@every_machine
def test_what_cannot_be_counted_by_blocks_is_counted_on(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another hook at blocks of whoever uses the engine: then the emulator calls them in another way."""
    guest = Guest(machine, random.Random(7))
    guest.run(100)
    guest.engine.ql.uc.hook_add(unicorn.UC_HOOK_BLOCK, lambda *_: None)
    guest.engine.forget_all_code()
    found = guest.run(100)
    assert not guest.engine._counting.is_by_blocks
    one_by_one(monkeypatch)
    each = Guest(machine, random.Random(7))
    each.run(100)
    assert each.run(100) == found

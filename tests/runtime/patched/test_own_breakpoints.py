"""Kernels that set a breakpoint of their own at a probed instruction, as kprobes and debuggers do: they read the
instruction, write the breakpoint over it, and put the instruction back when they are told.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kinst.rewriter.assemble import assemble
from kinst.runtime import Machine, api
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.guests.guest import Guest as Ran
from kinst.runtime.tracing.hits import Hit
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from tests.runtime.machine import riscv_words as rv
from tests.runtime.patched.test_deferred import joined, relative, table_at
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

F, KEY, VECTORS = 0x180, 0x1C0, 0x800
CALLS, WITH = 6, 4  # calls of f; before the one that is this many from the last, the breakpoint is set


@dataclass(frozen=True)
class Guest:
    """Calls f, whose first instruction has a breakpoint once. `registers`: calls of f that have had their effect, how
    often the guest's handler ran, with which PC, and what it read at f before and behind."""

    machine: int
    code: int  # address
    pieces: dict[int, bytes]
    registers: tuple[str, ...]
    original: int

    def write(self, folder: Path) -> Path:
        text, table = joined(self.pieces), table_at(self.code, 0)
        key = relative(self.code, 0, 0, KEY) + relative(self.code, 0, 4, KEY + 4) + bytes(8)
        functions = {"start": (0, F), "f": (F, len(self.pieces[F])), "other": (KEY, 8)}
        symbols = [Symbol(name, self.code + start, size) for name, (start, size) in functions.items()]
        path = folder / "guest.elf"
        parts = [Part(".text", self.code, text, 7), Part("__jump_table", table, key, 4)]
        path.write_bytes(elf64(self.machine, self.code, parts, symbols))
        return path

    @property
    def at_end(self) -> list[int]:
        """What is in `registers` if all is well."""
        return [CALLS, 1, self.code + F + (self.machine == EM_X86_64), self.original, self.original]


def amd64() -> Guest:
    """Its first instruction is `inc %ecx`. After int3 the PC is behind it."""
    code, table = 0x200000, 0x280000
    start = assemble(
        AMD64,
        f"mov $0x300000, %rsp; mov ${code + VECTORS:#x}, %eax; mov ${table + 48:#x}, %edi; mov %ax, (%rdi); "
        "movw $8, 2(%rdi); movw $0x8e00, 4(%rdi); shr $16, %eax; mov %ax, 6(%rdi); movq $0, 8(%rdi); "
        f"mov ${table + 0x1000:#x}, %edx; movw $0xfff, (%rdx); movq ${table:#x}, 2(%rdx); lidt (%rdx); "
        # Code and data, which the gate and the return from it load.
        f"movabs $0xaf9a000000ffff, %rax; mov %rax, 24(%rdx); movabs $0xcf92000000ffff, %rax; mov %rax, 32(%rdx); "
        f"movw $23, (%rdx); movq ${table + 0x1010:#x}, 2(%rdx); lgdt (%rdx); mov $16, %eax; mov %eax, %ss; "
        "pushq $8; lea next(%rip), %rax; push %rax; .byte 0x48, 0xcb; next: "
        f"mov ${CALLS}, %ebx; xor %ecx, %ecx; xor %r8d, %r8d; mov ${code + F:#x}, %eax; "
        f"again: cmp ${WITH}, %ebx; jne go; mov (%rax), %r10d; movb $0xcc, (%rax); "
        f"go: call {code + F:#x}; dec %ebx; jne again; mov (%rax), %r9d; outb %al, $0xf4",
        code,
    )
    handler = assemble(AMD64, "inc %r8d; mov (%rsp), %r11; mov %r10b, (%rax); subq $1, (%rsp); iretq", code + VECTORS)
    f = bytes.fromhex("ffc190c3")
    pieces = {0: start, F: f, KEY: bytes.fromhex("0f1f440000c3"), VECTORS: handler}
    return Guest(EM_X86_64, code, pieces, ("rcx", "r8", "r11", "r10", "r9"), int.from_bytes(f, "little"))


def arm64() -> Guest:
    """Its first instruction is `add x21, x21, #1`."""
    code, brk = 0x4020_0000, 0xD420_0020
    start = assemble(
        ARM64,
        f"movz x1, #{code + F & 0xFFFF:#x}; movk x1, #{code >> 16:#x}, lsl #16; add x0, x1, #{VECTORS - F:#x}; "
        f"msr vbar_el1, x0; isb; mov x19, #{CALLS}; mov x21, #0; mov x22, #0; again: cmp x19, #{WITH}; b.ne go; "
        f"ldr w24, [x1]; movz w2, #{brk & 0xFFFF:#x}; movk w2, #{brk >> 16:#x}, lsl #16; str w2, [x1]; dsb sy; isb; "
        f"go: bl #{code + F:#x}; subs x19, x19, #1; b.ne again; ldr w20, [x1]; "
        "movz w0, #8; movk w0, #0x8400, lsl #16; hvc #0",
        code,
    )
    handler = assemble(
        ARM64, "add x22, x22, #1; mrs x23, elr_el1; str w24, [x1]; dsb sy; isb; eret", code + VECTORS + 0x200
    )
    f = assemble(ARM64, "add x21, x21, #1; ret", code + F)
    pieces = {0: start, F: f, KEY: assemble(ARM64, "nop; ret", code + KEY), VECTORS + 0x200: handler}
    return Guest(EM_AARCH64, code, pieces, ("x21", "x22", "x23", "x24", "x20"), int.from_bytes(f[:4], "little"))


def riscv64() -> Guest:
    """Its first instruction is `addi s3, s3, 1`."""
    code, was, pc = 0x8000_0000, 24, 23  # registers
    words = [*rv.la(rv.T0, code + VECTORS), rv.csrw("mtvec", rv.T0), *rv.la(rv.T1, code + F)]
    words += [rv.addi(rv.S2, 0, CALLS), rv.addi(rv.S3, 0, 0), rv.addi(rv.S4, 0, 0)]
    again = len(words)
    plant = [rv.load(was, rv.T1, size=2), *rv.li(rv.T2, rv.EBREAK), rv.store(rv.T2, rv.T1, size=2), rv.FENCE_I]
    words += [rv.addi(rv.T0, 0, WITH), rv.bne(rv.S2, rv.T0, 4 * (len(plant) + 1)), *plant]
    words += [rv.jal(rv.RA, F - 4 * len(words)), rv.addi(rv.S2, rv.S2, -1)]
    words += [rv.bne(rv.S2, 0, 4 * (again - len(words))), rv.load(rv.S5, rv.T1, size=2)]
    words += [*rv.la(rv.T1, 0x10_0000), *rv.li(rv.T2, 0x5555), rv.store(rv.T2, rv.T1, size=2), rv.jal(0, 0)]
    handler = [rv.addi(rv.S4, rv.S4, 1), rv.csrr(pc, "mepc"), rv.store(was, rv.T1, size=2), rv.FENCE_I, rv.MRET]
    f = rv.addi(rv.S3, rv.S3, 1)
    pieces = {0: rv.code(*words), F: rv.code(f, 0x8067), KEY: rv.code(rv.NOP, 0x8067), VECTORS: rv.code(*handler)}
    return Guest(EM_RISCV, code, pieces, ("x19", "x20", "x23", "x24", "x21"), f)


each_guest = pytest.mark.parametrize("make", [pytest.param(make, id=make.__name__) for make in (amd64, arm64, riscv64)])


def run(path: Path, *descriptions: str, program: str = "") -> tuple[Ran, Counter[str], str]:
    counts: Counter[str] = Counter()

    def count(hit: Hit) -> None:
        counts[f"{hit.probe.provider}::{hit.probe.function}:{hit.probe.name}"] += 1

    with api.open_image(path) as image:
        programs = (program,) if program else ()
        actions = dict.fromkeys(descriptions, count)
        trace = image.trace(*programs, actions=actions, machine=Machine(clock="icount"))
    assert trace.run(seconds=1) is End.POWER_OFF
    return trace.guest, counts, str(trace.aggregation("hits")) if program else ""


def at_end(guest: Guest, ran: Ran) -> list[int]:
    return [ran.system.cpus[0].registers.get(name) & (2**64 - 1) for name in guest.registers]


@pytest.mark.turns
@each_guest
def test_the_guests_breakpoint_is_handled_by_the_guest_and_probes_fire(
    make: Callable[[], Guest], tmp_path: Path
) -> None:
    """A probe fires for the breakpoint, and again for the instruction, to which the handler returns."""
    guest = make()
    path = guest.write(tmp_path)
    plain, _, _ = run(path)
    assert at_end(guest, plain) == guest.at_end
    probes = ("kinst::f:0", "fbt::f:entry", "fbt::f:return")
    ran, counts, _ = run(path, *probes)
    assert at_end(guest, ran) == guest.at_end
    assert counts == {"kinst::f:0": CALLS + 1, "fbt::f:entry": CALLS + 1, "fbt::f:return": CALLS}
    assert ran.system.clock.now() == plain.system.clock.now()


@pytest.mark.turns
@each_guest
@pytest.mark.parametrize("value", ["count()", "sum(arg0 * 0 + 1)"])
def test_hits_are_counted_and_recorded_there_as_well(make: Callable[[], Guest], value: str, tmp_path: Path) -> None:
    guest = make()
    ran, _, hits = run(guest.write(tmp_path), program=f"fbt::f:entry {{ @hits = {value}; }}")
    assert at_end(guest, ran) == guest.at_end
    assert hits == str(CALLS + 1) or str(CALLS + 1) in hits

"""Operands of static probes beside the instruction that loads what they name: drawn forms, sizes, signs and registers,
assembled by GNU as and executed by Unicorn."""

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
import unicorn
from unicorn import arm64_const, riscv_const, x86_const

from kinst.runtime.paging.walker import Access, PageFault
from kinst.runtime.providers.operands import Operands
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.values import dataclass
from tests.system.user_programs import COMPILERS

CODE, DATA, SIZE, MIDDLE = 0x1_0000, 0x10_0000, 0x1_0000, 0x8000
SYMBOL: Final = DATA + 0x1238
OPERANDS: Final = 60


@dataclass(frozen=True, slots=True)
class Written:
    """An operand, and the instruction that puts its value into the first register."""

    text: str
    instruction: str


Draw = Callable[[random.Random, int, str], Written]


def amd64(draw: random.Random, size: int, sign: str) -> Written:
    low = {"rdi": ("edi", "di", "dil"), "rbx": ("ebx", "bx", "bl"), "r9": ("r9d", "r9w", "r9b")}
    base = draw.choice(sorted(low))
    part = {8: base, 4: low[base][0], 2: low[base][1], 1: low[base][2]}[size]
    scale, far = draw.choice((1, 2, 4, 8)), draw.choice((0, 8, -24, 0x7FF, -0x80))
    place = draw.choice(
        (
            f"%{part}",
            f"{far or ''}(%{base})",
            f"{far}(%{base},%rcx,{scale})",
            f"{hex(far)}(%{base},%rcx)",
            f"{DATA + 0x800}(,%rcx,{scale})",
            f"known+{8 * scale}(%rip)",
            f"known-{scale}",
        )
    )
    moves = {8: "movq", 4: "movslq" if sign else "movl", 2: "movswq" if sign else "movzwl"}
    move = {**moves, 1: "movsbq" if sign else "movzbl"}[size]
    into = "%eax" if not sign and size < 8 else "%rax"
    return Written(place, f"{move} {place}, {into}")


def arm64(draw: random.Random, size: int, sign: str) -> Written:
    base, far, shift = f"x{draw.randrange(3, 6)}", draw.choice((0, 8, 24, -16)), size.bit_length() - 1
    loads = {8: "ldr x0", 4: "ldrsw x0" if sign else "ldr w0", 2: "ldrsh x0" if sign else "ldrh w0"}
    load = {**loads, 1: "ldrsb x0" if sign else "ldrb w0"}[size]
    place = draw.choice(
        (
            f"[{base}]",
            f"[{base}, {far}]",
            f"[{base}, #{far}]",
            f"[{base}, x6, lsl {shift}]",
            f"[{base}, w7, sxtw {shift}]",
            f"[{base}, w6, uxtw]",
            f"[{base}, x6]",
            f"[sp, {abs(far)}]",
            "[x8, #:lo12:known]",
        )
    )
    return Written(place, f"{load}, {place}")


def riscv64(draw: random.Random, size: int, sign: str) -> Written:
    base, far = draw.choice(("s0", "a3", "sp", "t1")), draw.choice((0, 8, -24, 2047, -2048))
    load = {8: "ld", 4: "lw" if sign else "lwu", 2: "lh" if sign else "lhu", 1: "lb" if sign else "lbu"}[size]
    place = draw.choice((f"{far}({base})", f"({base})", "%lo(known)(a7)"))
    return Written(place, f"{load} a0, {place}")


@dataclass(frozen=True, slots=True)
class Engine:
    """A machine: what draws operands, Unicorn's names, its result, and registers that are indices, by their values."""

    draw: Draw
    kind: tuple[int, int]
    numbers: ModuleType
    prefix: str
    result: str
    bases: tuple[str, ...]
    indices: dict[str, int]
    pages: dict[str, int]


ENGINES: Final = {
    "amd64": Engine(
        amd64,
        (unicorn.UC_ARCH_X86, unicorn.UC_MODE_64),
        x86_const,
        "UC_X86_REG_",
        "rax",
        ("rdi", "rbx", "r9"),
        {"rcx": 0x31},
        {},
    ),
    "arm64": Engine(
        *(arm64, (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM), arm64_const, "UC_ARM64_REG_", "x0"),
        ("x3", "x4", "x5", "sp"),
        {"x6": 0x28, "x7": 0x1_FFFF_FFF8},
        {"x8": SYMBOL & ~0xFFF},
    ),
    "riscv64": Engine(
        *(riscv64, (unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV64), riscv_const, "UC_RISCV_REG_", "a0"),
        ("s0", "a3", "sp", "t1"),
        {},
        {"a7": SYMBOL + 0x800 & ~0xFFF},
    ),
}


def assembled(machine: str, lines: list[str], folder: Path) -> bytes:
    source, linked, plain = folder / "code.S", folder / "code.elf", folder / "code.bin"
    source.write_text("\n".join([".text", ".globl _start", "_start:", *lines]) + "\n")
    options = ["-nostdlib", "-static", f"-Wl,-Ttext={CODE:#x},--defsym=known={SYMBOL:#x},--no-relax,--build-id=none"]
    subprocess.run([COMPILERS[machine], *options, "-o", linked, source], check=True)
    tools = COMPILERS[machine].removesuffix("gcc")
    subprocess.run([f"{tools}objcopy", "-O", "binary", "-j", ".text", linked, plain], check=True)
    return plain.read_bytes()


def operands(machine: str, draw: random.Random) -> list[tuple[str, Written]]:
    """Sizes with signs as notes have them, and what is read."""
    forms = [(draw.choice((1, 2, 4, 8)), draw.choice(("", "-"))) for _ in range(OPERANDS)]
    return [(f"{sign}{size}", ENGINES[machine].draw(draw, size, sign)) for size, sign in forms]


def registers(machine: str, draw: random.Random) -> dict[str, int]:
    """Pointers into the middle of the data, and the indices."""
    engine = ENGINES[machine]
    pointers = {name: DATA + MIDDLE + 16 * draw.randrange(64) for name in engine.bases}
    return pointers | engine.indices | engine.pages


@pytest.mark.turns
@pytest.mark.parametrize("machine", ENGINES)
def test_an_operand_is_what_an_instruction_loads(machine: str, tmp_path: Path) -> None:
    if shutil.which(COMPILERS[machine]) is None:
        pytest.skip(f"no {COMPILERS[machine]}")
    draw, engine, facts = random.Random(machine), ENGINES[machine], arch_by_name(machine)
    drawn, values, content = operands(machine, draw), registers(machine, draw), draw.randbytes(SIZE)
    code = assembled(machine, [written.instruction for _, written in drawn], tmp_path)
    cpu = unicorn.Uc(*engine.kind)
    cpu.mem_map(CODE, SIZE)
    cpu.mem_map(DATA, SIZE)
    cpu.mem_write(CODE, code)
    cpu.mem_write(DATA, content)
    number = {name: getattr(engine.numbers, engine.prefix + name.upper()) for name in (*values, engine.result)}
    for name, value in values.items():
        cpu.reg_write(number[name], value)
    regs = [0] * len(facts.registers)
    for name, value in values.items():
        regs[facts.operand_registers[name]] = value
    compiled = Operands(facts, {"known": SYMBOL}.get)
    firing = Firing(_frame(regs, content), Enabling(0, lambda _firing: None, lambda _firing, _index: 0, 0))
    at = CODE
    for size, written in drawn:
        cpu.emu_start(at, 0, count=1)
        at = cpu.reg_read(facts_pc(engine))
        loaded = cpu.reg_read(number[engine.result])
        assert compiled.value(f"{size}@{written.text}")(firing) == loaded, (size, written)


def facts_pc(engine: Engine) -> int:
    """Unicorn's number of the PC."""
    return int(getattr(engine.numbers, engine.prefix + ("RIP" if engine.result == "rax" else "PC")))


def _frame(regs: list[int], content: bytes) -> TrapFrame:
    def load(address: int, size: int) -> int:
        if not DATA <= address <= DATA + SIZE - size:
            raise PageFault(address, Access.READ, 0)
        return int.from_bytes(content[address - DATA :][:size], "little")

    return TrapFrame(regs, load, lambda _a, _s, _v: None, lambda _n, _v: None)

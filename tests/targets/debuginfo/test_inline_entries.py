"""Where an inlined copy is entered: what is executed as often as the source calls the function.

Random programs run under Unicorn, once with every call a call (-O0, not inlined), which gives the truth line by line,
and once optimized. Of the copies whose DW_AT_entry_pc lies outside their ranges it is that address which counts better
than the first instruction: this the compiler may move to where it is executed more often, or less.
"""

import os
import shutil
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
import unicorn
from elftools.elf.elffile import ELFFile
from unicorn import arm64_const, x86_const

from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.debuginfo.inlined import InlinedCopy
from kinst.targets.elf.file import open_elf
from tests.gated import long_after_first
from tests.targets.debuginfo.random_programs import INLINES, Program

SEEDS = range(100, 108)
STACK, STACK_SIZE = 0x7000_0000, 0x1_0000
Call = tuple[str, int]  # function, line


@dataclass(frozen=True, slots=True)
class Machine:
    """A compiler, and an emulator that runs what it compiles."""

    prefix: str
    flags: tuple[str, ...]
    load: str
    engine: tuple[int, int]
    stack: int


MACHINES = {
    "amd64": Machine(
        "x86_64-linux-gnu-",
        ("-mno-sse", "-fcf-protection=none"),
        "mov current_task(%%rip), %0",
        (unicorn.UC_ARCH_X86, unicorn.UC_MODE_64),
        x86_const.UC_X86_REG_RSP,
    ),
    "arm64": Machine(
        "aarch64-linux-gnu-",
        ("-mgeneral-regs-only",),
        "adrp %0, current_task; ldr %0, [%0, :lo12:current_task]",
        (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM),
        arm64_const.UC_ARM64_REG_SP,
    ),
}


def build(machine: Machine, source: Path, output: Path, inline: str, *options: str) -> None:
    compiler = f"{machine.prefix}gcc"
    if shutil.which(compiler) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {compiler}"
        pytest.skip(f"no {compiler}")
    freestanding = ("-ffreestanding", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector")
    defines = (f"-DINLINE=static {inline}", f'-DLOAD="{machine.load}"')
    command = [compiler, *machine.flags, *freestanding, *options, *defines, "-g", "-w", str(source), "-o", str(output)]
    subprocess.run(command, check=True)


@dataclass(frozen=True, slots=True)
class Executed:
    """A run: how often each instruction was executed, and each step from one to another."""

    counts: Counter[int]
    steps: Counter[tuple[int, int]]
    symbols: dict[str, int]


def execute(machine: Machine, path: Path) -> Executed:
    engine = unicorn.Uc(*machine.engine)
    with path.open("rb") as file:
        elf = ELFFile(file)
        symbols = {one.name: one["st_value"] for one in elf.get_section_by_name(".symtab").iter_symbols()}
        loaded = [(one["p_vaddr"], one.data(), one["p_memsz"]) for one in elf.iter_segments("PT_LOAD")]
    for page in {page for start, _, size in loaded for page in range(start >> 12, (start + size + 4095) >> 12)}:
        engine.mem_map(page << 12, 1 << 12)
    for start, content, _ in loaded:
        engine.mem_write(start, content)
    engine.mem_map(STACK, STACK_SIZE)
    engine.reg_write(machine.stack, STACK + STACK_SIZE // 2)
    result, before = Executed(Counter(), Counter(), symbols), 0

    def step(_engine: object, address: int, _size: int, _data: object) -> None:
        nonlocal before
        result.counts[address] += 1
        result.steps[before, address] += 1
        before = address

    engine.hook_add(unicorn.UC_HOOK_CODE, step)
    engine.emu_start(symbols["_start"], symbols["end_of_program"], count=5_000_000)
    return result


def calls(machine: Machine, path: Path) -> Counter[Call]:
    """How often each line calls each function."""
    run = execute(machine, path)
    targets = {run.symbols[name]: name for name in INLINES if name in run.symbols}
    made = {pair: count for pair, count in run.steps.items() if pair[1] in targets}
    command = [f"{machine.prefix}addr2line", "-e", str(path), *(hex(start) for start, _ in made)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = Counter[Call]()
    for ((_, target), count), line in zip(made.items(), lines, strict=True):
        found[targets[target], int(line.rpartition(":")[2].split()[0])] += count
    return found


def copies(path: Path) -> dict[Call, list[InlinedCopy]]:
    search, found = InlineSearch(open_elf(path)), defaultdict(list)
    for name in INLINES:
        for function in search.find(name):
            for copy in function.copies:
                found[name, copy.call.line].append(copy)
    return found


def is_outside(copy: InlinedCopy) -> bool:
    return not any(low <= copy.entry < high for low, high in copy.ranges)


@pytest.mark.parametrize("name", long_after_first([*MACHINES]))
def test_an_entry_outside_of_the_ranges_counts_calls(name: str, tmp_path: Path) -> None:
    machine, source = MACHINES[name], tmp_path / "program.c"
    outside, entered, first = 0, list[int](), list[int]()  # errors of the two ways to count
    for seed in SEEDS:
        source.write_text(Program(seed).source)
        build(machine, source, tmp_path / "plain", "__attribute__((noinline))", "-O0")
        build(machine, source, tmp_path / "inlined", "inline __attribute__((always_inline))", "-O2")
        truth, run = calls(machine, tmp_path / "plain"), execute(machine, tmp_path / "inlined")
        for call, those in copies(tmp_path / "inlined").items():
            if any(map(is_outside, those)):
                outside += 1
                entered.append(abs(sum(run.counts[copy.entry] for copy in those) - truth[call]))
                first.append(abs(sum(run.counts[copy.ranges[0][0]] for copy in those) - truth[call]))
    assert outside > 50
    assert entered.count(0) > 0.75 * outside
    assert entered.count(0) > first.count(0)
    assert sum(entered) < 0.9 * sum(first)

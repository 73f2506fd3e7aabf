"""trap: a probe for each exception and interrupt, with the state of the code that it interrupts."""

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import Configuration
from kinst.runtime.machine.exception_model import Taken
from kinst.runtime.machine.exceptions.names import AMD64_NAMES, ARM64_NAMES, RISCV64_NAMES
from kinst.runtime.machine.system import System
from kinst.targets.machines.registry import machine_facts
from tests.runtime.providers.traced import sample

FAULTS = {"amd64": "page-fault", "arm64": "data-abort", "riscv64": "*-access-fault"}
ARCHES = tuple(FAULTS)
PROGRAM = """
trap::breakpoint:entry { @ = count(); }
trap:exception:FAULT:entry { printf("%a:%x:%x ", arg3, arg1, regs[R_PC] - arg3); }
trap:interrupt::entry { @i = count(); }
END { printa("%@d ", @); printa("%@d ", @i); }
"""


def output_of(image: Path, program: str, *options: str) -> str:
    words = ["-q", "--clock", "icount", "-n", program, *options, str(image)]
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    assert result.exit_code == 0, f"{result.stderr}\n{result.exception!r}"
    return result.stdout


@pytest.mark.parametrize("arch", ARCHES)
def test_what_the_sample_takes(arch: str, tmp_path: Path) -> None:
    """The kernel's own figures are the other count: it prints them."""
    console = tmp_path / "console"
    program = PROGRAM.replace("R_PC", {"amd64": "R_RIP"}.get(arch, "R_PC")).replace("FAULT", FAULTS[arch])
    first, second, breakpoints, interrupts = output_of(sample(arch), program, "--console", str(console)).split()
    text = console.read_text()
    assert int(breakpoints) == int(re.search(r"trap: (\d+) breakpoints", text)[1])  # type: ignore[index]
    assert int(interrupts) == int(re.search(r"clock: (\d+) ticks", text)[1])  # type: ignore[index]
    assert "2 faults fixed up" in text
    assert re.fullmatch(r"kernel-\w+`copyin_word:700000000000:0", first)
    assert re.fullmatch(r"kernel-\w+`copyout_word:700000000000:0", second)


@pytest.mark.parametrize("arch", ARCHES)
def test_the_stack_is_that_of_the_interrupted_code(arch: str) -> None:
    program = f"trap::{FAULTS[arch]}:entry {{ stack(3); exit(0); }}"
    lines = [line.strip() for line in output_of(sample(arch), program, "--console", "/dev/null").splitlines() if line]
    assert [re.split("[`+]", line)[1] for line in lines] == ["copyin_word", "trap_selftest", "kmain"]


@pytest.mark.parametrize("arch", ARCHES)
def test_the_guest_does_the_same(arch: str, tmp_path: Path) -> None:
    texts = []
    for name, program in (("plain", "BEGIN"), ("traced", "trap:::entry, mmio::: { @[probefunc, stack()] = count(); }")):
        output_of(sample(arch), program, "--console", str(tmp_path / name))
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]


def test_nobody_is_told_if_nobody_asks() -> None:
    for machine in ("virt-arm64", "virt-riscv64", "pc-amd64"):
        facts = machine_facts(machine)
        exceptions: Any = System(facts, board_of(facts.name), Configuration()).exceptions
        assert exceptions._taken is None


@pytest.mark.parametrize(
    ("names", "taken", "expected"),
    [
        (ARM64_NAMES, Taken(0x25, 0), "data-abort"),
        (ARM64_NAMES, Taken(0x3F, 0), "other"),
        (ARM64_NAMES, Taken(0x80, 0, is_interrupt=True), "irq"),
        (RISCV64_NAMES, Taken(5, 0), "load-access-fault"),
        (RISCV64_NAMES, Taken(5, 0, is_interrupt=True), "supervisor-timer"),
        (AMD64_NAMES, Taken(14, 0), "page-fault"),
        (AMD64_NAMES, Taken(0x80, 0), "software"),
        (AMD64_NAMES, Taken(0x20, 0, is_interrupt=True), "external"),
        (AMD64_NAMES, Taken(0xEF, 0, is_interrupt=True), "external"),
        (AMD64_NAMES, Taken(2, 0, is_interrupt=True), "nmi"),
    ],
)
def test_names(names: object, taken: Taken, expected: str) -> None:
    assert names.of(taken) == expected  # type: ignore[attr-defined]
    assert (taken.is_interrupt, expected) in names.all()  # type: ignore[attr-defined]

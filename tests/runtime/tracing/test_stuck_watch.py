"""Guests that get no further are told of in one line, and guests that only wait, or have done their work, are not."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.runtime.cli import run
from tests.runtime.machine.riscv_words import (
    A0,
    NOP,
    SP,
    T0,
    T1,
    ZERO,
    addi,
    bne,
    code,
    csrr,
    csrw,
    jal,
    la,
    load,
    store,
)
from tests.writers.elf import EM_RISCV, Part, Symbol, elf64

START = 0x8000_0000
HANDLER = 0x100
SPIN = jal(ZERO, 0)
UART = la(A0, 0x1000_0000)
NOBODYS = la(A0, 0xD001_2000)


def firmware(folder: Path, *words: int, handler: tuple[int, ...] = (SPIN,)) -> Path:
    """`start`, and `handler` which takes its faults."""
    begin = code(*la(T0, START + HANDLER), csrw("mtvec", T0), *la(SP, START + 0x10_0000), *words)
    text = begin.ljust(HANDLER, b"\0") + code(*handler)
    symbols = [Symbol("start", START, len(begin)), Symbol("handler", START + HANDLER, 4 * len(handler))]
    path = folder / "firmware.elf"
    path.write_bytes(elf64(EM_RISCV, START, [Part(".text", START, text, 7)], symbols))
    return path


def kinst_run(image: Path, *options: str, timeout: str = "2500ms") -> Result:
    return CliRunner().invoke(run, [str(image), "--timeout", timeout, *options])


def told(result: Result) -> list[str]:
    """What is said besides that the time is over."""
    return [line for line in result.stderr.splitlines() if "timeout: CPU" not in line]


def test_a_spin_in_the_handler_of_a_fault_names_both_and_what_is_not_there(tmp_path: Path) -> None:
    (line,) = told(kinst_run(firmware(tmp_path, *NOBODYS, load(T1, A0, 0xC))))
    assert line == (
        "kinst-run: CPU 0 spins at 0x80000100 (firmware`handler): j 0; since a fault: read of 0xd001200c, code 0x5 "
        "at 0x80000034 (firmware`start+0x34): ld t1, 0xc(a0); virt-riscv64 has nothing at 0x88000000 to 0x10000000000"
    )


def test_a_handler_that_faults_is_told_of_in_json_too(tmp_path: Path) -> None:
    image = firmware(tmp_path, *NOBODYS, NOP, load(T1, A0), handler=(addi(SP, SP, -16), load(T1, A0), SPIN))
    result = kinst_run(image, "--format", "json")
    stuck = json.loads(result.stdout)["dtrace"]["end"]["stuck"]
    assert stuck["what"] == "faults again and again in its own fault handler"
    assert (stuck["address"], stuck["symbol"]) == ("0x80000104", "firmware`handler+0x4")
    assert stuck["nothing-at"] == ["0x88000000", "0x10000000000"]


def test_a_spin_of_a_guest_that_has_done_nothing_is_told_of(tmp_path: Path) -> None:
    (line,) = told(kinst_run(firmware(tmp_path, SPIN)))
    assert line == "kinst-run: CPU 0 spins at 0x80000024 (firmware`start+0x24): j 0; it has printed nothing"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((*UART, addi(T0, ZERO, 0x6B), store(T0, A0, size=0), SPIN), id="its work is done"),
        pytest.param((csrr(T0, "time"), jal(ZERO, -4)), id="it waits for a time", marks=pytest.mark.long),
        pytest.param(
            (*UART, load(T0, A0, 5, size=0), bne(ZERO, ZERO, 8), jal(ZERO, -8)),
            id="it waits for somebody to type",
            marks=pytest.mark.long,
        ),
    ],
)
def test_who_waits_or_is_done_is_left_alone(tmp_path: Path, words: tuple[int, ...]) -> None:
    assert told(kinst_run(firmware(tmp_path, *words), timeout="1500ms")) == []


def test_a_probe_that_fired_is_work(tmp_path: Path) -> None:
    result = kinst_run(firmware(tmp_path, SPIN), "-q", "-n", "kinst::start:0 { @ = count(); }", timeout="1500ms")
    assert (told(result), result.stdout.split()) == ([], ["1"])

"""Copies that an image makes of itself are found by what is in memory at an address."""

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.runtime.patched.own_copies import OwnCopies
from kinst.targets.image import open_image
from kinst.targets.machines.registry import machine_facts
from tests.images import real_image
from tests.writers.elf import EM_RISCV, Part, elf64

START, COPY = 0x8000_0000, 0x8400_3000
PAGES = 5


@pytest.fixture
def system(tmp_path: Path) -> tuple[System, OwnCopies, dict[int, int]]:
    """A machine with an image of random code and a copy of it, in which the third page was written over and a few bytes
    of each are others, as by relocations; and what addresses mean, if not themselves."""
    code = np.random.default_rng(5).integers(0, 256, PAGES * 4096, np.uint8)
    path = tmp_path / "image.elf"
    path.write_bytes(elf64(EM_RISCV, START, [Part(".text", START, code.tobytes(), 5)]))
    facts = machine_facts("virt-riscv64")
    machine = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
    loaded = load_image(open_image(path), facts, machine.memory)
    code[::10] ^= 0x55
    code[2 * 4096 : 3 * 4096] = 0x5A
    machine.memory.write(COPY, code.tobytes())
    mapped: dict[int, int] = {}
    return machine, OwnCopies(loaded, machine.memory, lambda address: mapped.get(address, address)), mapped


def test_a_copy_is_found_by_any_of_its_pages(system: tuple[System, OwnCopies, dict[int, int]]) -> None:
    _, copies, mapped = system
    assert {copies.distance(COPY + at) for at in (0, 0x1234, 0x3FFE, 0x4008)} == {COPY - START}
    assert copies.distance(COPY + 0x2100) is None  # written over
    assert copies.distance(START + 0x100) is None  # what was loaded is no copy
    assert copies.distance(COPY + 0x10_0000) is None
    assert copies.distance(0x10) is None  # no memory
    mapped[COPY + 0x1004] = START  # a virtual address of something else
    assert copies.distance(COPY + 0x1004) is None


def test_what_was_found_is_added_once(system: tuple[System, OwnCopies, dict[int, int]]) -> None:
    _, copies, _ = system
    known = [0]
    find = copies.finder(lambda: known, known.append)
    assert [find(COPY + 0x10), find(COPY + 0x20), find(0x8700_0000)] == [True, False, False]
    assert known == [0, COPY - START]


@pytest.mark.long
@pytest.mark.parametrize("name", ["u-boot-riscv64", "u-boot-arm64"])
def test_samples_of_firmware_that_moved_itself_have_names(name: str) -> None:
    words = ("--format", "folded", "--clock", "icount", "--timeout", "400ms", "-q", "--console", os.devnull)
    result = CliRunner().invoke(
        run, [str(real_image(name)), *words, "-n", "profile-4999 { @[stack()] = count(); }"], catch_exceptions=False
    )
    stacks = [line.rpartition(" ")[::2] for line in result.stdout.splitlines()]
    named = sum(int(count) for stack, count in stacks if "0x" not in stack)
    assert named > 0.9 * sum(int(count) for _, count in stacks)
    assert max(stack.count(";") for stack, _ in stacks) > 4

"""Code of modules that are not linked: what its instructions read and where they jump is known as far as it can be."""

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.program import Program, instructions_of, open_program
from kinst.targets.image import Image, open_image
from kinst.targets.instruction import Flow, Reason
from kinst.targets.module_code import code_of

SOURCE = """
extern int elsewhere; int here = 3; extern int outside(int value);
__attribute__((section(".text.apart"), noinline)) int apart(int value) { return value + here; }
__attribute__((noinline)) int near(int value) { return elsewhere * value + here; }
int first(int value) { here = elsewhere; return apart(value) + near(value) + outside(value); }
int tail(int value) { elsewhere = 7; return apart(value); }
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("module")
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    (folder / "a.c").write_text(SOURCE)
    command = ["gcc", "-O2", "-ffreestanding", "-fno-pic", "-mcmodel=small", "-c", "-o", "module.ko", "a.c"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return folder / "module.ko"


def targets_of(program: Program, function: str, flow: Flow) -> list[int]:
    row = program.functions.names.index(function)
    found = instructions_of(program, np.array([row]))
    return [int(target) for target in found.target[found.flow == flow]]


def test_calls_and_jumps_lead_to_their_functions(module: Path) -> None:
    image = open_image(module)
    program, apart = open_program(image), image.symbols.address_of("apart")
    near = image.symbols.address_of("near")

    assert targets_of(program, "first", Flow.CALL) == [apart, near, 0]  # what is not here is nowhere
    assert targets_of(program, "tail", Flow.JUMP) == [apart]


def test_what_stands_behind_an_instruction_is_not_its_data(module: Path) -> None:
    image = open_image(module)
    program = open_program(image)
    found = instructions_of(program, np.arange(len(program.functions)))

    assert not (found.reason == Reason.DATA).any()
    assert (found.reason == Reason.RELOCATED).sum() >= 8


@pytest.mark.parametrize("compiler", ["aarch64-linux-gnu-gcc", "riscv64-linux-gnu-gcc"])
def test_machines_that_scatter_distances_over_an_instruction(compiler: str, tmp_path: Path) -> None:
    """No instruction reads, calls or jumps to itself, as it seems to where its distance is missing."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    (tmp_path / "a.c").write_text(SOURCE)
    command = [compiler, "-O2", "-ffreestanding", "-fno-pic", "-c", "-o", "module.ko", "a.c"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    image = open_image(tmp_path / "module.ko")
    program = open_program(image)
    apart, near = image.symbols.address_of("apart"), image.symbols.address_of("near")
    found = instructions_of(program, np.arange(len(program.functions)))

    calls = targets_of(program, "first", Flow.CALL)
    assert [apart, near] == calls[:2]
    assert program.functions.row_at(calls[2]) is None  # what is not here is nowhere
    assert targets_of(program, "tail", Flow.JUMP)[-1:] == [apart]
    assert set(program.functions.names) == {"apart", "near", "first", "tail"}
    assert not (found.reason == Reason.DATA).any()


def test_a_linked_image_is_as_it_is_and_damage_changes_nothing(module: Path, tmp_path: Path) -> None:
    whole, image = module.read_bytes(), open_image(module)
    table = next(one for one in image.sections if one.name == ".rela.text")
    for field, value in ((0, 2**64 - 2), (0, 2**40), (8, 2 | 2**31 << 32)):
        damaged = bytearray(whole)
        for at in range(table.offset, table.offset + table.size, 24):
            struct.pack_into("<Q", damaged, at + field, value)
        (tmp_path / "damaged.ko").write_bytes(damaged)
        assert unchanged(open_image(tmp_path / "damaged.ko"))
    assert not unchanged(image)
    subprocess.run(["ld", "-o", "linked", "--unresolved-symbols=ignore-all", module], check=True, cwd=tmp_path)
    assert unchanged(open_image(tmp_path / "linked"))


def unchanged(image: Image) -> bool:
    return all(
        (code_of(image, region) == image.data[region.offset : region.offset + region.size]).all()
        for region in image.code_regions
        if region.size > 16
    )

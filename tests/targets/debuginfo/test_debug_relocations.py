"""Relocations of debug sections of object files: what stands at one place is put together as the linker does it."""

import subprocess
from pathlib import Path

import pytest

from kinst.targets.debuginfo.dwarf.relocations import relocate
from kinst.targets.elf.file import open_elf
from kinst.targets.elf.sections import content
from tests.targets.debuginfo.compiled import COMPILERS

# The distance between two symbols of a section that is not loaded, as RISC-V's assembler leaves it to the linker.
SOURCE = """
    .section .debug_own, "", @progbits
start:
    .byte 0xc0, 0xff, 0, 0
first:
    .skip 37
last:
    .reloc start, R_RISCV_SET6, last
    .reloc start, R_RISCV_SUB6, first
    .reloc start + 1, R_RISCV_SET8, last
    .reloc start + 1, R_RISCV_SUB8, first
    .reloc start + 2, R_RISCV_ADD8, last
    .reloc start + 2, R_RISCV_SUB8, first
"""


def test_a_difference_is_set_and_then_subtracted_from(tmp_path: Path) -> None:
    """SUB6 has the smaller number and stands behind SET6 all the same."""
    made = tmp_path / "own.o"
    command = [COMPILERS["riscv64"], "-c", "-x", "assembler", "-", "-o", str(made)]
    try:
        subprocess.run(command, input=SOURCE.encode(), check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip(f"no {COMPILERS['riscv64']}")
    elf = open_elf(made)
    section = next(one for one in elf.sections if one.name == ".debug_own")
    found = relocate(content(elf.data, section), section, elf).tobytes()
    assert found[:4] == bytes([0xC0 | 37, 37, 37, 0])

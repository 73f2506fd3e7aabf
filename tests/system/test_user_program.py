"""A program that tries all that Linux does for user space prints what it prints under QEMU, traced or not."""

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.images import at_hand
from tests.linux_programs import qemu_program
from tests.system.user_programs import COMPILERS, EVERY_CALL, EVERY_FUNCTION, UserProgram

KERNELS: Final = at_hand("linux-amd64", "linux-arm64", "linux-riscv64")


@pytest.mark.long
@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_user_space_cannot_tell(kernel: str, cpus: int, tmp_path: Path) -> None:
    machine = kernel.removeprefix("linux-")
    for tool in (COMPILERS[machine], qemu_program(machine)):
        if shutil.which(tool) is None:
            assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {tool}"
            pytest.skip(f"no {tool}")
    program = UserProgram(machine, tmp_path)
    theirs = program.under_qemu(cpus)
    assert theirs[-1] == "= all: done"
    for probes in ("", EVERY_FUNCTION, EVERY_CALL):
        assert program.here(cpus, probes) == theirs, probes or "plain"

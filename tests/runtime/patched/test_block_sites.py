"""Functions' entries that are counted without breakpoints: what makes a block not begin there, or code be elsewhere."""

from pathlib import Path

import pytest

from kinst.rewriter.assemble import assemble
from kinst.targets.arch.amd64 import AMD64
from tests.commands.in_process import kinst_run
from tests.runtime.patched import test_mode_check, test_moved_amd64
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

LOAD, STEP = 0x10_0000, 0x40
COUNT = "fbt:::entry { @[probefunc] = count(); }"
# keystone reads numbers as hexadecimal. `above` goes on to `below`, which is called as well; `repeat` begins with an
# instruction that comes to its own start; `again` is led to from its own end.
FUNCTIONS = {
    "start": (
        "mov $7, %ebx; more: call below; call above; mov $0x600000, %edi; mov $3, %ecx; call repeat; call again; "
        "dec %ebx; jnz more; outb %al, $0xf4"
    ),
    "above": "nop; .p2align 6, 0x90",
    "below": "inc %eax; ret",
    "repeat": "rep stosb; ret",
    "again": "inc %ecx; cmp $5, %ecx; jb again; ret",
}


def image(folder: Path) -> Path:
    text = "; .p2align 6; ".join(f"{name}: {text}" for name, text in FUNCTIONS.items())
    code = assemble(AMD64, text, LOAD)
    symbols = [Symbol(name, LOAD + STEP * row, STEP) for row, name in enumerate(FUNCTIONS)]
    path = folder / "kernel"
    path.write_bytes(elf64(EM_X86_64, LOAD, [Part(".text", LOAD, code, 7)], symbols))
    return path


def printed(path: Path, method: str, program: str, *words: str) -> tuple[str, str, int]:
    result = kinst_run(path, "-q", "--clock", "icount", "--method", method, *words, "-n", program)
    return result.stdout, result.stderr, result.returncode


@pytest.mark.parametrize("program", [COUNT, "fbt:::entry, kinst:::0, kinst:::2 { @[probefunc, probename] = count(); }"])
def test_code_that_goes_on_to_a_function_is_counted_there(tmp_path: Path, program: str) -> None:
    path = image(tmp_path)
    told = printed(path, "trap", program)
    assert printed(path, "block", program) == told
    assert "below" in told[0]


def test_code_at_more_places_than_are_looked_for(tmp_path: Path) -> None:
    """It runs where it was loaded, in a copy, and where it was linked."""
    path = test_moved_amd64.image(tmp_path)
    told = printed(path, "trap", COUNT)
    assert printed(path, "block", COUNT) == told
    assert "work" in told[0]


def test_code_of_another_mode_is_not_counted(tmp_path: Path) -> None:
    path = test_mode_check.image(tmp_path / "k.elf")
    told = printed(path, "auto", "fbt::start:entry, kinst::start:0 { @ = count(); }")
    assert printed(path, "block", "fbt::start:entry, kinst::start:0 { @ = count(); }") == told
    assert "32-bit" in told[1]

"""Variables and functions of firmware that copied itself: those of the copy, for the code that runs there."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.clauses.guest.moved_image import MovedImage
from kinst.runtime.cli import run
from kinst.targets.image import open_image
from tests.targets.debuginfo.compiled import compiled

SOURCE = Path(__file__).with_name("moves_itself.c")
BASES = {"amd64": 0x20_0000, "arm64": 0x4020_0000, "riscv64": 0x8000_0000}
OPTIONS = ("-g", "-fno-stack-protector")
MODELS = {"amd64": ("-fpie",), "arm64": (), "riscv64": ("-mcmodel=medany", "-Wl,--no-relax")}
PROGRAM = """
BEGIN { printf("BEGIN %d\\n", `counter); }
fbt::start:entry, fbt::count:entry { printf("%s %d %d\\n", probefunc, `counter, regs[R_PC] - (uint64_t)&`count <= 8); }
END { printf("END %d\\n", `counter); }
"""


def built(arch: str, folder: Path) -> Path:
    options = (*OPTIONS, *MODELS[arch], "-Wl,-e,_start", f"-Wl,-Ttext-segment={BASES[arch]:#x}")
    return compiled(folder, arch, {"moves_itself.c": SOURCE.read_text()}, *options).path


@pytest.mark.parametrize("arch", BASES)
def test_a_variable_is_where_the_code_that_runs_finds_it(arch: str, tmp_path: Path) -> None:
    words = ("-q", "-n", PROGRAM, str(built(arch, tmp_path)), "--timeout", "5")
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    assert " ".join(result.stdout.split()) == "BEGIN 7 start 7 0 count 100 1 count 105 1 END 111", result.stderr


def test_places(tmp_path: Path) -> None:
    """The copy that the code is part of; the newest for who is part of none."""
    image = open_image(built("riscv64", tmp_path))
    base, distances = BASES["riscv64"], [0x1000]
    moved = MovedImage(image, lambda: distances)
    assert moved.locate(base, 0) == moved.locate(base, base + 0x1004) == base + 0x1000
    distances += [0x100_0000, 0x200_0000]
    assert moved.locate(base, base + 0x1004) == base + 0x1000
    assert moved.locate(base, base + 0x100_0004) == base + 0x100_0000
    assert moved.locate(base, 0) == moved.locate(base, 0xFFFF_0000) == base + 0x200_0000
    assert moved.original(base + 0x100_0004) == moved.original(base + 0x200_0004) == base + 0x1004
    assert moved.original(0x10) == 0x10

"""A standalone image in our machine: who else stores to its trampolines and counters is told of, in one line."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run
from tests.images import real_image
from tests.samples.machines import MACHINES
from tests.targets.debuginfo.compiled import compiled

SOURCE = Path(__file__).with_name("stores.c")
BASES = {"amd64": 0x20_0000, "arm64": 0x4020_0000, "riscv64": 0x8000_0000}
MODELS = {"amd64": ("-fpie",), "arm64": (), "riscv64": ("-mcmodel=medany", "-Wl,--no-relax")}
CODE, DATA = 0x8_0000, 0x9_0000  # from the image's start: where it is told to have its trampolines and its counters
COUNTED = 'fbt::work:entry { @ = count(); } END { printa("%@d\\n", @); }'
MEANS = ": what it did and counted then means nothing: name memory that it leaves alone"
each_machine = pytest.mark.parametrize("arch", BASES)


@dataclass(frozen=True)
class Spoiler:
    """A guest: where it stores to from its start on, what, and how often; and how often it works before and between."""

    at: int
    value: int = 0
    before: int = 1000
    stores: int = 1
    between: int = 10

    def built(self, arch: str, folder: Path) -> Path:
        values = {
            "SPOILED": BASES[arch] + self.at,
            "VALUE": self.value,
            "BEFORE": self.before,
            "STORES": self.stores,
            "BETWEEN": self.between,
        }
        given = (f"-D{name}={value:#x}" for name, value in values.items())
        place = f"-Wl,-Ttext-segment={BASES[arch]:#x}"
        options = ("-g", "-fno-stack-protector", *MODELS[arch], *given, "-Wl,-e,_start", place)
        return compiled(folder, arch, {"stores.c": SOURCE.read_text()}, *options).path

    def ran(self, arch: str, folder: Path, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors."""
        out = folder / "alone.elf"
        places = ("--trampoline-base", f"{BASES[arch] + CODE:#x}", "--data-base", f"{BASES[arch] + DATA:#x}")
        given = [str(self.built(arch, folder)), "--standalone", *places, "--probe", "fbt::work:entry", *words]
        result = CliRunner().invoke(rewrite, [*given, "-q", "-o", str(out)])
        assert result.exit_code == 0, result.output
        program = COUNTED if not words else "fbt::work:entry { @ = count(); }"
        words = ("-q", "--clock", "icount", "--timeout", "2", "-n", program, str(out))
        done = CliRunner().invoke(run, words, prog_name="kinst-run")
        return done.exit_code, done.stdout, done.stderr


@each_machine
def test_a_store_to_a_trampoline_is_told_with_its_function(arch: str, tmp_path: Path) -> None:
    code, _, told = Spoiler(CODE + 4).ran(arch, tmp_path)
    first = rf"kinst-run: the image itself stored to a trampoline at {BASES[arch] + CODE + 4:#x} in \S+`spoil(\+0x\w+)?"
    assert re.match(first + MEANS, told), told
    assert code == 1


@each_machine
def test_the_first_store_to_counters_is_told_with_its_function(arch: str, tmp_path: Path) -> None:
    code, _, told = Spoiler(DATA, before=0).ran(arch, tmp_path)
    first = rf"kinst-run: the image itself stored to a counter at {BASES[arch] + DATA:#x} in \S+`spoil(\+0x\w+)?"
    assert re.match(first + MEANS, told), told
    assert code == 1


@each_machine
def test_counters_that_count_and_are_stored_to_are_told_of(arch: str, tmp_path: Path) -> None:
    """Whatever is stored: a number that might be a count, or an address."""
    for value in (1010, 0xFFFF_FFFF_8100_0000):
        code, counted, told = Spoiler(DATA, value).ran(arch, tmp_path)
        assert told.startswith(f"kinst-run: the image itself stored to a counter at {BASES[arch] + DATA:#x}{MEANS}")
        assert (code, counted.strip()) == (1, "")


@each_machine
def test_who_goes_on_to_store_to_counters_is_told(arch: str, tmp_path: Path) -> None:
    code, _, told = Spoiler(DATA, stores=200_000, between=1000).ran(arch, tmp_path)
    place = rf"{BASES[arch] + DATA:#x}, and goes on at {BASES[arch] + DATA:#x} in \S+`spoil(\+0x\w+)?"
    assert re.match(rf"kinst-run: the image itself stored to a counter at {place}{MEANS}", told), told
    assert code == 1


@each_machine
def test_a_store_to_the_ring_is_told_with_its_function(arch: str, tmp_path: Path) -> None:
    code, _, told = Spoiler(DATA, before=0).ran(arch, tmp_path, "--action", "record", "--ring", "16")
    assert re.match(r"kinst-run: the image itself stored to a ring at 0x\w+ in \S+`spoil", told), told
    assert code == 1


@each_machine
def test_a_store_beside_them_is_nobodys_business(arch: str, tmp_path: Path) -> None:
    assert Spoiler(DATA + 8).ran(arch, tmp_path) == (0, "1010\n\n", "")


def test_counters_in_memory_are_untouched_as_well() -> None:
    """--method jump has them behind the image, and the sample kernels leave that alone."""
    for sample in MACHINES.values():
        words = (
            "-q",
            "--clock",
            "icount",
            "--method",
            "jump",
            "-n",
            "fbt::k*:entry { @ = count(); }",
            str(sample.image),
        )
        result = CliRunner().invoke(run, [*words, "--console", "/dev/null"])
        assert (result.exit_code, result.stderr) == (0, "")


def test_gnu_mach_gives_away_what_is_behind_it(tmp_path: Path) -> None:
    """It is seen who gets it. The place is the one that images of old were given."""
    out = tmp_path / "alone.elf"
    words = ("--standalone", "--trampoline-base", "0xffffffff811c0000", "--probe", "fbt:::entry", "-q", "-o", str(out))
    assert CliRunner().invoke(rewrite, [str(real_image("gnumach")), *words]).exit_code == 0
    given = (
        "-q",
        "--clock",
        "icount",
        "--timeout",
        "1",
        "--console",
        "/dev/null",
        "-n",
        "fbt:::entry { @ = count(); }",
    )
    result = CliRunner().invoke(run, [*given, str(out)], prog_name="kinst-run")
    assert re.match(
        r"kinst-run: the image itself stored to a (trampoline|counter) at 0xffffffff811c\w+,? ", result.stderr
    )
    assert "`kmem_" in result.stderr.splitlines()[0]
    assert result.exit_code == 1

"""kinst-run --method jump: the image counts by itself, and programs print what they print with breakpoints."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.cli import rewrite
from kinst.runtime import Machine, Options
from kinst.runtime.api import open_image
from kinst.runtime.cli import run
from kinst.targets.image import open_image as read_image
from kinst.targets.manifest.packed import find_manifest
from tests.images import real_image
from tests.samples.machines import MACHINES, expected_console

COUNTED = r'fbt:::entry { @[probefunc] = count(); } END { printa("%s %@d\n", @); }'
each_machine = pytest.mark.parametrize("arch", MACHINES)


def ran(image: Path, program: str, method: str, *words: object) -> Result:
    given = ("-q", "--clock", "icount", "--method", method, "-n", program, image, *words)
    return CliRunner().invoke(run, [str(word) for word in given], prog_name="kinst-run")


def counts(text: str) -> dict[str, int]:
    return {name: int(count) for name, count in re.findall(r"^(\S+) (\d+)$", text, re.MULTILINE)}


@each_machine
@pytest.mark.parametrize("name", ["entry", "return"])
def test_counts_are_those_of_breakpoints(arch: str, name: str, tmp_path: Path) -> None:
    image, console, program = MACHINES[arch].image, tmp_path / "console", COUNTED.replace("entry", name)
    told = counts(ran(image, program, "trap", "--console", "/dev/null").stdout)
    result = ran(image, program, "jump", "--console", console)
    assert result.exit_code == 0
    found = counts(result.stdout)
    assert len(found) > 60
    assert found == {name: told[name] for name in found}
    assert console.read_text() == expected_console(1)


@each_machine
def test_static_probes_are_counted_as_by_breakpoints(arch: str) -> None:
    program = r'callout_execute::: { @[probename] = count(); } END { printa("%s %@d\n", @); }'
    told = [counts(ran(MACHINES[arch].image, program, method).stdout) for method in ("trap", "jump")]
    assert told[0] == told[1] == {"callout_start": 26, "callout_end": 26}


@each_machine
def test_who_looks_in_between_sees_what_was_counted_so_far(arch: str) -> None:
    program = r'fbt::k*:entry { @ = count(); } tick-200us { printa("%@d\n", @); }'
    printed = ran(MACHINES[arch].image, program, "jump", "--console", "/dev/null").stdout.split()
    found = list(map(int, printed))
    assert len(set(found)) > 3
    assert found == sorted(found)


@each_machine
def test_behind_exit_nothing_counts(arch: str) -> None:
    program = 'fbt:::entry { @ = count(); } tick-300us { exit(7); } END { printa("%@d", @); }'
    whole = ran(MACHINES[arch].image, program.replace("tick-300us", "tick-1h"), "jump", "--console", "/dev/null")
    ended = ran(MACHINES[arch].image, program, "jump", "--console", "/dev/null")
    assert (whole.exit_code, ended.exit_code) == (0, 7)
    assert 0 < int(ended.stdout) < int(whole.stdout)


@pytest.mark.parametrize(
    ("program", "words", "why"),
    [
        ("fbt:::entry { @[arg0] = count(); }", (), "it reads arguments or registers: --method jump only counts"),
        ("fbt:::entry { trace(1); }", (), "it does more than to aggregate: --method jump only counts"),
        ("fbt:::entry { @[cpu] = count(); }", ("--cpus", "2"), "its CPU matters, and all CPUs count together"),
        ("fbt:::entry /curcpu->cpu_id/ { @ = count(); }", ("--cpus", "2"), "--method jump only counts: leave it out"),
        ("fbt::if_input:return { @ = count(); }", (), "cannot be jumps: 1 a conditional or indirect jump"),
        ("fbt::if_input:return, fbt:::entry { @ = count(); }", (), "match any probes: 1 of 1 sites cannot be jumps"),
    ],
)
def test_what_cannot_be_counted_so_is_refused(program: str, words: tuple[str, ...], why: str) -> None:
    result = ran(MACHINES["amd64"].image, program, "jump", *words, "--console", "/dev/null")
    assert why in result.stderr
    assert (result.exit_code, result.stdout) == (1, "")


def test_an_image_with_breakpoints_has_no_jumps(tmp_path: Path) -> None:
    patched = tmp_path / "patched.elf"
    words = [str(MACHINES["amd64"].image), "--probe", "fbt::kmalloc:entry", "-o", str(patched)]
    assert CliRunner().invoke(rewrite, words).exit_code == 0
    result = ran(patched, COUNTED, "jump")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("patched.elf: has probes already: take the original, or --restore it first\n")


def test_an_image_that_leaves_its_trampolines_behind_is_told_of() -> None:
    words = ("--clock", "host", "--timeout", "2", "--console", "/dev/null")
    result = ran(real_image("u-boot-riscv64"), COUNTED, "jump", *words)
    assert result.exit_code == 1
    assert re.search(r"copied itself to 0x[0-9a-f]+ and goes on there, without its trampolines", result.stderr)


def test_from_python(tmp_path: Path) -> None:
    sample = MACHINES["riscv64"]
    with open_image(sample.image) as file:
        file.rewrite(tmp_path / "alone.elf", "fbt:::entry", method="jump", trampoline_base=sample.free)
        trace = file.trace(
            "fbt::kmalloc:entry { @ = count(); }", machine=Machine(clock="icount"), options=Options(method="jump")
        )
        trace.run()
    manifest = find_manifest(read_image(tmp_path / "alone.elf"))
    assert manifest is not None
    assert manifest.standalone is not None
    assert trace.aggregation("_")[()] > 10

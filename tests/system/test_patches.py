"""Patched code is what runs: a function of the sample kernel is stubbed out, probed and not, on three machines."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run
from tests.samples.machines import MACHINES, expected_console

STUBS = {
    "amd64": "vfs_report = mov eax, 42; ret",
    "arm64": "vfs_report = mov w0, #42; ret",
    "riscv64": "vfs_report = li a0, 42; ret",
}
REPORT = "vfs: "  # what vfs_report prints, whose checksum then misses in the last line
COUNT = """kinst::vfs_report: { @[probename] = count(); }
fbt::vfs_walk:entry, fbt::vfs_lookup:entry { @[probefunc] = count(); }"""
RETURN = 'fbt::vfs_report:return { printf("%d", arg1); }'


def invoked(image: Path, folder: Path, *options: str) -> tuple[list[str], str]:
    """Lines of the console, and what the program printed."""
    console = folder / "console"
    arguments = [str(image), "-q", "--clock", "icount", "--console", str(console), *options]
    result = CliRunner().invoke(run, arguments, prog_name="kinst-run")
    assert result.exit_code == 0, result.stderr
    return console.read_text().splitlines(), result.stdout


def patched(machine: str, folder: Path, *options: str) -> Path:
    out = folder / "p.elf"
    arguments = [str(MACHINES[machine].image), "--patch", STUBS[machine], *options, "-o", str(out)]
    result = CliRunner().invoke(rewrite, arguments, prog_name="kinst-rewrite")
    assert result.exit_code == 0, result.stderr
    return out


@pytest.mark.parametrize("machine", MACHINES)
def test_a_stub_runs_instead_of_its_function(machine: str, tmp_path: Path) -> None:
    """With probes in memory on the stub and elsewhere, with none, and with the same probes in the file."""
    expected = expected_console(1).splitlines()
    image = patched(machine, tmp_path)
    plain, nothing = invoked(image, tmp_path)
    assert plain[:-1] == [line for line in expected[:-1] if not line.startswith(REPORT)] and not nothing.strip()
    assert plain[-1] != expected[-1]
    probed, counts = invoked(image, tmp_path, "-n", COUNT)
    assert probed == plain
    offset = "5" if machine == "amd64" else "4"
    rows = [line.split() for line in counts.splitlines() if line]
    # vfs_walk is called by vfs_report alone.
    assert sorted(rows) == [["0", "1"], [offset, "1"], ["vfs_lookup", "96"]]
    _, value = invoked(image, tmp_path, "-n", RETURN)
    assert value.strip() == "42"
    in_file = patched(machine, tmp_path, "-p", "kinst::vfs_report:", "-p", "fbt::vfs_lookup:entry")
    assert invoked(in_file, tmp_path, "-n", COUNT) == (plain, counts)


def test_a_disabled_probe_leaves_the_patch_in_memory(tmp_path: Path) -> None:
    image = patched("riscv64", tmp_path, "-p", "kinst::vfs_report:")
    shown = 'BEGIN { printf("%x %x", *(uint32_t *)&`vfs_report, *(uint32_t *)((uintptr_t)&`vfs_report + 4)); exit(0); }'
    _, words = invoked(image, tmp_path, "-n", shown)
    assert words.split() == ["2a00513", "8067"]

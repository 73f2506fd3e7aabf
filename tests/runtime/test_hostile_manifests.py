"""Mutated manifests, with digests made anew, and all five commands: refused in a line, or no worse than the original.

What kinst-diff explains of a mutant it also tells: `claims.unproved`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner, Result

from kinst.rewriter import cli
from kinst.rewriter.inlining.inlinecall_cli import inlinecall
from kinst.runtime.cli import run
from tests.gated import long_after_first
from tests.hostile_manifests import Mutants

ROOT = Path(__file__).parent.parent.parent
ORIGINAL = ROOT / "samples" / "kernel-riscv64.elf"
PROBES = ("fbt::vfs_*:", "kinst::kmalloc:", "kinst::v2_limits:entry", "callout_execute:::")
UNPROVED = ("asked for", "says by itself", "names given", "inlined")


@pytest.fixture(scope="module")
def mutants(tmp_path_factory: pytest.TempPathFactory) -> Mutants:
    patched = tmp_path_factory.mktemp("hostile") / "p.elf"
    symbols = patched.with_name("map")
    symbols.write_text("0000000080000000 T given_name\n")
    options = [option for probe in PROBES for option in ("--probe", probe)]
    options += ["--patch", "vfs_report = li a0, 0; ret"]  # and its instructions are probed
    result = invoke("kinst-rewrite", cli.rewrite, ORIGINAL, *options, "--symbols", symbols, "-q", "-o", patched)
    assert result.exit_code == 0, result.stderr
    return Mutants(patched)


def invoke(name: str, command: Command, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments], prog_name=name)


def results(path: Path, out: Path) -> Iterator[tuple[str, Result]]:
    commands: list[tuple[str, Command, tuple[object, ...]]] = [
        ("kinst-list", cli.list_probes, (path,)),
        ("kinst-list", cli.list_probes, (path, "fbt::vfs_*:")),
        ("kinst-diff", cli.diff, (ORIGINAL, path, "--verbose")),
        ("kinst-rewrite", cli.rewrite, (path, "--restore", "-o", out)),
        ("kinst-rewrite", cli.rewrite, (path, "--probe", "fbt::kfree:entry", "-o", out)),
        ("kinst-run", run, ("-l", path)),
        ("kinst-run", run, (path, "--timeout", "100us", "-q")),
        ("kinst-inlinecall", inlinecall, ("v2_limits", path, "--no-cache")),
    ]
    for name, command, arguments in commands:
        yield name, invoke(name, command, *arguments)


def told(report: str) -> list[str]:
    return [line for line in report.splitlines() if line.startswith(UNPROVED)]


@pytest.mark.parametrize("seed", long_after_first(range(4)))
def test_no_mutant_gets_further_than_a_line_of_error(mutants: Mutants, seed: int, tmp_path: Path) -> None:
    path, out = tmp_path / "m.elf", tmp_path / "out.elf"
    for mutant in mutants.made(seed, 25):
        path.write_bytes(mutants.file(mutant))
        for name, result in results(path, out):
            where = f"{name}, {mutant.what}: {result.stderr}"
            assert result.exception is None or isinstance(result.exception, SystemExit), where
            assert "internal error" not in result.stderr, where
            assert "\x1b" not in result.stdout + result.stderr and "\0" not in result.stdout + result.stderr, where
            assert result.exit_code in (0, 1, 2), where
            assert result.exit_code == 0 or result.stderr or name == "kinst-diff", where


def test_what_a_mutant_changes_is_unexplained_or_told(mutants: Mutants, tmp_path: Path) -> None:
    path = tmp_path / "m.elf"
    path.write_bytes(mutants.unchanged)
    before = invoke("kinst-diff", cli.diff, ORIGINAL, path)
    assert before.exit_code == 0, before.stdout
    for mutant in mutants.made(100, 100):
        path.write_bytes(mutants.file(mutant))
        after = invoke("kinst-diff", cli.diff, ORIGINAL, path)
        assert after.exit_code == 1 or told(after.stdout) != told(before.stdout), mutant.what


def test_a_flipped_bit_is_refused_by_all_five_commands(mutants: Mutants, tmp_path: Path) -> None:
    path = tmp_path / "m.elf"
    for offset in (0, 9, 13, 20, 40, 70, len(mutants.original) // 2, len(mutants.original) - 1):
        path.write_bytes(mutants.flipped(offset))
        for name, result in results(path, tmp_path / "out.elf"):
            said = result.stderr or result.stdout
            assert result.exit_code == 1 and "manifest: damaged" in said, f"{name}, byte {offset}: {said}"
            assert not (tmp_path / "out.elf").exists()

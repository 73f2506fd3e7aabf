"""kinst-run with kinst::f:entry and kinst::f:return on the sample kernel: what programs become, match and show."""

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run
from tests.samples.machines import MACHINES, SAMPLES

ARM64 = SAMPLES / "kernel-arm64.elf"
CLAUSE = "{ @[probefunc, probename] = count(); }"


def invoked(*words: str, image: Path = ARM64) -> Result:
    words = (*words, str(image), "--clock", "icount", "--console", os.devnull)
    return CliRunner().invoke(run, words, prog_name="kinst-run")


def counts(text: str) -> dict[str, int]:
    """function:offset -> how often."""
    rows = (line.split() for line in text.splitlines())
    return {f"{row[0]}:{row[1]}": int(row[2]) for row in rows if len(row) == 3 and row[2].isdigit()}


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_one_clause_runs_in_all_copies(machine: str) -> None:
    program = f"kinst::v2_limits:entry, kinst::v2_limits:return /cpu == 0/ {CLAUSE}"
    result = invoked("-n", program, image=MACHINES[machine].image)
    matched = re.search(r"matched (\d+) probes", result.stderr)
    found = counts(result.stdout)
    assert matched is not None and len(found) <= int(matched[1])
    assert {name.partition(":")[0] for name in found} == {"rpc_read_v2", "rpc_write_v2"}
    assert sum(found.values()) == 128


def test_a_conditional_way_out_fires_only_where_control_leaves() -> None:
    """rpc_write_v2 goes on after its check 16 times and fails 16 times."""
    found = counts(invoked("-q", "-n", f"kinst::v2_limits:return {CLAUSE}").stdout)
    plain = counts(invoked("-q", "-n", f"kinst::rpc_write_v2:,kinst::rpc_read_v2: {CLAUSE}").stdout)
    assert sum(found.values()) == 64
    assert any(0 < count < plain[name] for name, count in found.items())


def test_the_program_is_shown_as_dtrace_does() -> None:
    result = invoked("-e", "-d", "-n", "kinst::v2_limits:entry,kinst::printk:entry,BEGIN /pid/ { trace(1); }")
    lines = result.stdout.splitlines()
    assert (
        lines[-6:] == ["BEGIN", "/pid/", "{", "\ttrace(1);", "}", ""] and lines[-7] == "fbt:kernel-arm64:printk:entry,"
    )
    shown = [line for line in lines if line.startswith("kinst:")]
    assert all(re.fullmatch(r"kinst:kernel-arm64:rpc_(read|write)_v2:\d+,", line) for line in shown) and len(shown) == 2


def test_probes_are_listed() -> None:
    rows = [line.split()[1:] for line in invoked("-l", "-n", "kinst::v2_limits:entry").stdout.splitlines()]
    assert [row[:3] for row in rows[1:]] == [
        ["kinst", "kernel-arm64", "rpc_write_v2"],
        ["kinst", "kernel-arm64", "rpc_read_v2"],
    ]
    verbose = invoked("-lv", "-n", "kinst::v2_limits:entry").stdout
    assert verbose.count("\tArgument Types\n\t\targs[0]: const struct rpc_request *\n") == 2


def test_other_clauses_at_the_same_instruction_are_left_alone() -> None:
    """They run always, and have kinst's arguments."""
    offset = next(iter(counts(invoked("-q", "-n", f"kinst::v2_limits:return {CLAUSE}").stdout))).partition(":")
    plain = f"kinst::{offset[0]}:{offset[2]} {{ @plain = sum(arg0); @times = count(); }}"
    inline = "kinst::v2_limits:return { @inline = max(arg0 != 0); }"
    totals = [int(line) for line in invoked("-q", "-n", plain + inline).stdout.split()]
    assert totals[0] == 0 and totals[1] >= 16 and totals[2] == 1


def test_a_patched_image_knows_what_it_was_patched_for(tmp_path: Path) -> None:
    patched = tmp_path / "p.elf"
    words = [str(ARM64), "--probe", "kinst::v2_limits:return", "-o", str(patched)]
    assert CliRunner().invoke(rewrite, words, prog_name="kinst-rewrite").exit_code == 0

    alone, with_program = invoked(image=patched), invoked("-q", "-n", f"kinst::v2_*:return {CLAUSE}", image=patched)

    assert "description 'kinst::v2_limits:return' matched 6 probes" in alone.stderr
    assert len(re.findall(r"rpc_(?:read|write)_v2:\d+", alone.stdout)) == 64
    assert sum(counts(with_program.stdout).values()) == 64


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("kinst::v2_limts:entry", "no function 'v2_limts', inlined or not, in kernel-arm64; the nearest are v2_limits"),
        (
            "kinst::v2_limits:",
            "kinst::v2_limits:entry and kinst::v2_limits:return are where its copies are entered and left",
        ),
        ("kinst:zfs:v2_limits:entry", "no module 'zfs'"),
        ("kinst::v2_limits:entry { trace(args[1]); }", r"index 1 is out of range for kinst::v2_limits:entry args[ ]"),
        ("kinst::vfs_get:0 { trace(args[0]); }", "args[ ]: an instruction has no arguments; regs[] has the registers"),
        (
            "copyin_word:entry { trace(args[0]); }",
            "args[ ]: no debug information tells the types of these arguments; arg0",
        ),
        ("vfs_lookup:entry { trace(args[7]); }", "index 7 is out of range for ::vfs_lookup:entry args[ ]\n"),
    ],
)
def test_errors(program: str, message: str) -> None:
    result = invoked("-n", program)
    assert result.exit_code == 1 and message in result.stderr

"""A function of arm64 and a copy of it that the guest makes, both called many times: all its instructions are counted,
with the first hit of each only told, and the guest notices nothing.
"""

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.assemble import assemble
from kinst.runtime.cli import run as run_command
from kinst.runtime.hits.actions import Batched
from kinst.runtime.tracing.images import preparing
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.arm64 import ARM64
from tests.writers.elf import EM_AARCH64, Part, Symbol, elf64

CODE, F, COPY, CALLS = 0x4020_0000, 0x200, 0x3000, 40
NEAR = CODE + 0x10_0000  # where a jump reaches the code from, and where trampolines are not by themselves
PROGRAM = "kinst::f: { @[probename] = count(); }"


def guest(folder: Path) -> Path:
    """Copies f, calls both by turns, and prints what came out, a digit for each call."""
    main = assemble(
        ARM64,
        f"movz x1, #{CODE >> 16:#x}, lsl #16; add x2, x1, #{F:#x}; movz x3, #{COPY:#x}; add x3, x3, x1; mov x4, #8; "
        "copy: ldr x5, [x2], #8; str x5, [x3], #8; subs x4, x4, #1; b.ne copy; dsb sy; isb; "
        f"add x22, x1, #{F:#x}; movz x23, #{COPY:#x}; add x23, x23, x1; mov x24, #{CALLS}; mov x26, #0; "
        "movz x25, #0x900, lsl #16; "
        "again: and x0, x24, #3; blr x22; bl put; and x0, x24, #3; blr x23; bl put; subs x24, x24, #1; b.ne again; "
        "movz w0, #8; movk w0, #0x8400, lsl #16; hvc #0; "
        "put: add x26, x26, x10; and x7, x10, #7; add x7, x7, #48; str w7, [x25]; ret",
        CODE,
    )
    function = assemble(
        ARM64,
        f"and x4, x0, #0xfff; adrp x5, {CODE:#x}; lsr x5, x5, #12; cbz x0, out; add x5, x5, x4; "
        "tbz x0, #1, out; add x5, x5, #3; out: mov x10, x5; ret",
        CODE + F,
    )
    text = main.ljust(F, b"\0") + function
    symbols = [Symbol("main", CODE, len(main)), Symbol("f", CODE + F, len(function))]
    path = folder / "guest.elf"
    path.write_bytes(elf64(EM_AARCH64, CODE, [Part(".text", CODE, text.ljust(0x4000, b"\0"), 7)], symbols))
    return path


def ran(path: Path, *words: str) -> tuple[str, str]:
    """The console, and what is counted."""
    console = path.with_suffix(".txt")
    words = ("-q", "--clock", "icount", "--console", str(console), *words, "-n", PROGRAM, str(path))
    result = CliRunner().invoke(run_command, words, prog_name="kinst-run")
    assert result.exit_code == 0, result.stderr
    return console.read_text(), result.stdout


@pytest.mark.parametrize("base", [None, NEAR], ids=["far", "near"])
def test_copies_are_counted_as_well(base: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, path = Counter[int](), guest(tmp_path)

    def call(action: Batched, firing: Firing) -> None:
        told[firing.site] += 1
        action.run(firing)

    plain = tmp_path / "plain.txt"
    CliRunner().invoke(run_command, ["--console", str(plain), str(path)], prog_name="kinst-run")
    monkeypatch.setattr(preparing, "nearby", lambda _image: base)
    by_trap = ran(path, "--method", "trap")
    monkeypatch.setattr(Batched, "__call__", call)
    counted = ran(path)

    assert counted == by_trap
    assert counted[0] == plain.read_text()
    assert len(counted[0]) == 2 * CALLS and len(set(counted[0])) > 3
    assert counted[1].split().count(str(2 * CALLS)) == 6  # but for what a branch jumps over
    branches = {CODE + at + offset for at in (F, COPY) for offset in (12, 20)}
    assert {site for site, hits in told.items() if hits > 1} == (set() if base else branches)

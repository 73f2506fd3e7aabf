"""Arguments that make no sense, for every option of every command: one clear line, exit code 1 or 2, no traceback."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import Command, Option
from click.testing import CliRunner

from kinst.rewriter import cli
from kinst.rewriter.inlining.inlinecall_cli import inlinecall
from kinst.runtime.cli import run
from tests.rewriter.programs import LOAD
from tests.runtime.test_cli import ENVIRONMENT, SAMPLE
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

TEXTS = (
    "", "\0", "a\0b", "-1", "0", "1e400", "9" * 5000, "0x" + "f" * 40, "\udcff", "x" * 5000, ".", "/dev/full",
    "/nowhere/x", "a/" * 3000, "\x1b[31m", "=", "x=", "=x", "%s%n", "NaN", "-", "\u0663", "64000g", "\u202e",
)  # fmt: skip
COMMANDS: dict[str, tuple[Command, tuple[str, ...]]] = {
    "kinst-rewrite": (cli.rewrite, (str(SAMPLE), "-p", "fbt::kmain:", "--dry-run", "-q")),
    "kinst-list": (cli.list_probes, (str(SAMPLE), "fbt::kmain:")),
    "kinst-diff": (cli.diff, (str(SAMPLE), str(SAMPLE))),
    "kinst-run": (run, (str(SAMPLE), "-qn", "BEGIN { exit(0); }")),
    "kinst-inlinecall": (inlinecall, ("v2_limits", str(SAMPLE), "--no-cache")),
}
OF_D = ("-b", "-x", "-D", "-U", "-I")  # tests/dlang has these
ENTRY = "import sys; sys.argv[0] = 'kinst-list'; from kinst.rewriter.commandline.entry import kinst_list as run; run()"
LIST = (sys.executable, "-W", "ignore", "-c", ENTRY)


def lines(name: str) -> Iterator[list[str]]:
    """Command lines: each option, then each argument, with each text."""
    command, words = COMMANDS[name]
    options = [one for one in command.params if isinstance(one, Option) and not one.is_flag]
    names = [one.opts[0] for one in options if one.opts[0] not in OF_D]
    for text in TEXTS:
        yield from ([*words, option, text] for option in names)
        yield [text]
        yield [text, *words[1:]]
        yield [*words, text]


@pytest.mark.parametrize("most", [80, pytest.param(None, marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_argument_ends_in_a_traceback(
    name: str, most: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = list(lines(name))
    random.Random(name).shuffle(drawn)
    for words in drawn[:most]:
        result = CliRunner().invoke(COMMANDS[name][0], words, prog_name=name)
        where = f"{[word[:40] for word in words]}: {result.stderr[:500]}"
        assert result.exception is None or isinstance(result.exception, SystemExit), where
        assert result.exit_code in (0, 1, 2) and "internal error" not in result.stderr, where
        assert "\x1b" not in result.stderr, where
        assert result.exit_code == 0 or result.stderr or name == "kinst-diff", where


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "kinst::0x10000000000000000:"],
        ["-n", "fbt::0x10000000000000000:entry"],
        ["--call", "0x10000000000000000()"],
        ["--call", 'fibonacci("\\u1234")'],
        ["--call", 'fibonacci("\\x")'],
        ["--memory", "64000g"],
        ["--memory", "0x" + "f" * 16],
        ["--timeout", "9" * 400],
    ],
)
def test_numbers_have_bounds(words: list[str]) -> None:
    result = CliRunner().invoke(run, [str(SAMPLE), *words], prog_name="kinst-run")
    assert result.exit_code in (1, 2) and result.stderr.startswith("kinst-run: "), result.stderr
    assert "internal error" not in result.stderr


@pytest.mark.parametrize("address", ["0xffffffffffffffff", "0x0"])
def test_the_last_address_is_an_address(address: str) -> None:
    result = CliRunner().invoke(cli.rewrite, [str(SAMPLE), "-p", f"kinst::{address}:", "--dry-run"], prog_name="r")
    assert result.exit_code == 1 and "bits of an address" not in result.stderr


@pytest.mark.parametrize(
    "words", [pytest.param(["--help"], marks=pytest.mark.long), ["--version"], [str(SAMPLE), "fbt::kmain:"]]
)
def test_a_full_device_is_an_error(words: list[str]) -> None:
    command = [*LIST, *words]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (1, "kinst-list: cannot write: No space left on device\n")


def test_streams_may_be_closed() -> None:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        ENTRY.format("kinst-list", "kinst_list"),
        str(SAMPLE),
        "fbt::kmain:",
    ]
    closed = subprocess.run(command, env=ENVIRONMENT, preexec_fn=lambda: os.closerange(0, 3), check=False)
    assert closed.returncode == 0


@pytest.mark.parametrize("size", [1 << 36, 1 << 42, 1 << 62])
@pytest.mark.parametrize("words", [["--call", "vm_fault()"], ["--timeout", "1ms"]])
def test_a_segment_of_terabytes_takes_nothing(size: int, words: list[str], tmp_path: Path) -> None:
    """p_memsz costs the file nothing; it would cost the host."""
    text = Part(".text", LOAD, b"\x90\xc3".ljust(64, b"\xcc"), 5, size=size, load_address=LOAD)
    image = tmp_path / "large.elf"
    image.write_bytes(elf64(EM_X86_64, LOAD, [text], [Symbol("vm_fault", LOAD, 2)]))
    result = CliRunner().invoke(run, [str(image), *words], prog_name="kinst-run")
    assert result.exit_code == 1 and "RAM" in result.stderr, result.stderr
    listed = CliRunner().invoke(cli.list_probes, [str(image)], prog_name="kinst-list")
    assert listed.exit_code in (0, 1) and "internal error" not in listed.stderr, listed.stderr

"""A file of a command that is written is none that it reads, and none that it writes otherwise: nothing is opened."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from kinst.rewriter.shell.file_name import FileName, TextWithFile
from tests.commands.all_commands import COMMANDS, run
from tests.rewriter.programs import small

_NO_FILES = {"-L", "-I", "-D"}  # folders, and what cpp gets
_FILE = re.compile(r"\b(FILE|IMAGE|OUT|ORIGINAL|PATCHED|SOURCE)\b")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder with a file for each option, and other names for some of them."""
    small().write(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("disk", "script.d", "System.map", "core", "initrd", "typed", "x.ko", "tree"):
        (tmp_path / name).write_bytes(b"\0" * 1024)
    (tmp_path / "link").symlink_to("small.elf")
    os.link("small.elf", "twin")
    (tmp_path / "dangling").symlink_to("none")
    return tmp_path


RUN = ["kinst-run", "small.elf", "-n", "BEGIN"]
LOST: list[tuple[Sequence[str], str]] = [
    ([*RUN, "--console", "small.elf"], "--console small.elf: is the file of IMAGE, which would be lost"),
    ([*RUN, "--console", "link"], "--console link: is the file of IMAGE"),
    ([*RUN, "--console", "twin"], "--console twin: is the file of IMAGE"),
    ([*RUN, "--console", "./small.elf"], "--console small.elf: is the file of"),
    ([*RUN, "-o", "small.elf"], "--output small.elf: is the file of"),
    ([*RUN, "--report", "small.elf"], "--report small.elf: is the file of"),
    ([*RUN, "--snapshot-at", "END=small.elf"], "--snapshot-at small.elf: is the file of"),
    ([*RUN, "--disk", "disk,rw", "--console", "disk"], "--console disk: is the file of --disk"),
    ([*RUN, "--disk", "disk", "-o", "disk"], "--output disk: is the file of --disk"),
    ([*RUN, "--load", "core@0x100", "-o", "core"], "--output core: is the file of --load"),
    ([*RUN, "--read", "core@0x100", "-o", "core"], "--output core: is the file of --read"),
    ([*RUN, "--read", "core", "-o", "core"], "--output core: is the file of --read"),
    ([*RUN, "--initrd", "initrd", "--report", "initrd"], "--report initrd: is the file of --initrd"),
    ([*RUN, "--input", "typed", "--console", "typed"], "--console typed: is the file of --input"),
    ([*RUN, "--dtb", "tree", "--console", "tree"], "--console tree: is the file of --dtb"),
    ([*RUN, "--module", "x=x.ko", "-o", "x.ko"], "--output x.ko: is the file of --module"),
    ([*RUN, "--user", "twin", "-o", "twin"], "--output twin: is the file of"),
    ([*RUN, "--symbols", "System.map", "-o", "System.map"], "--output System.map: is the file of --symbols"),
    (["kinst-run", "-s", "script.d", "-o", "script.d"], "--output script.d: is the file of -s"),
    ([*RUN, "-o", "new", "--report", "new"], "--report new: is the file of --output"),
    ([*RUN, "-o", "new", "--console", "./new"], "--console new: is the file of --output"),
    ([*RUN, "-o", "none", "--console", "dangling"], "--console dangling: is the file of --output"),
    (["kinst-rewrite", "small.elf", "-p", "fbt:::", "--symbols", "System.map", "-o", "System.map"],
     "--output System.map: is the file of --symbols"),
    (["kinst-rewrite", "small.elf", "-p", "fbt:::", "--debug-file", "small.kinst.elf"],
     "the output small.kinst.elf: is the file of --debug-file"),
    (["kinst-diff", "small.elf", "core", "-o", "small.elf"], "--output small.elf: is the file of ORIGINAL"),
    (["kinst-diff", "core", "small.elf", "-o", "twin"], "--output twin: is the file of PATCHED"),
    (["kinst-batch", "b.toml"], "the output b.batch/table.csv: is the file of"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "error"), LOST, ids=[" ".join(words[1:]) for words, _ in LOST])
def test_one_line_says_which_would_be_lost(words: Sequence[str], error: str, folder: Path) -> None:
    if words[0] == "kinst-batch":
        words = [*words, "--table", "csv"]
        (folder / "b.batch").mkdir()
        os.link("small.elf", "b.batch/table.csv")
        (folder / "b.toml").write_text('[[rewrite]]\nimages = ["small.elf"]\nprobes = ["fbt:::"]\n')
    if "small.kinst.elf" in words:
        small().write(folder, "small.kinst.elf")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = run(*words)
    assert result.stderr.splitlines()[-1].startswith(f"{words[0]}: {error}"), result.stderr
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "words",
    [
        ["kinst-rewrite", "small.elf", "-p", "fbt:::entry", "-o", "small.elf"],
        ["kinst-rewrite", "small.elf", "-p", "fbt:::entry", "-o", "link"],
        ["kinst-run", "-n", "BEGIN { exit(0); }", "-o", "/dev/null", "--console", "/dev/null", "--report", "/dev/null"],
    ],
)
def test_what_loses_nothing_is_done(words: Sequence[str], folder: Path) -> None:
    result = run(*words)
    assert result.exit_code == 0, result.stderr


def test_every_parameter_with_a_file_tells_which() -> None:
    lacking = [
        f"{name} {parameter.name}"
        for name, command in COMMANDS.items()
        for parameter in command.params
        if _FILE.search(parameter.metavar or parameter.human_readable_name.upper())
        and not isinstance(parameter.type, (FileName, TextWithFile))
        and _NO_FILES.isdisjoint(parameter.opts)
        and name != "kinst-batch"  # whose files a TOML file may name as well: it compares what it has read
    ]
    assert lacking == []
    written = {name: sorted(max(one.opts, key=len) for one in command.params if getattr(one.type, "is_written", False))
               for name, command in COMMANDS.items()}  # fmt: skip
    assert written["kinst-run"] == [
        *("--console", "--coverage", "--learn", "--log-file", "--output", "--report", "--snapshot-at"),
    ]
    assert written["kinst-rewrite"] == written["kinst-diff"] == ["--output"]

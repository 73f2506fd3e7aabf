"""docs/reference and docs/man say what the code says, of every name; examples are D, and manual pages are man(7)."""

import re
import shutil
import subprocess

import pytest
from click.testing import CliRunner

from docs.generate import dlang
from docs.generate.__main__ import documents
from docs.generate.commands import ROOT, commands
from kinst.runtime.cli import run


def test_what_is_committed_is_what_the_code_says() -> None:
    wanted = documents()
    found = {path: path.read_text() for folder in ("reference", "man") for path in (ROOT / "docs" / folder).iterdir()}
    wrong = sorted(path.name for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))
    assert wrong == [], "run `poe reference`"


def test_a_name_without_a_description_is_refused() -> None:
    with pytest.raises(LookupError, match=r"\[errors\] and the code differ: D_SYNTAX"):
        dlang.tags(entry.name for entry in dlang.tags(dlang.DESCRIBED["errors"]) if entry.name != "D_SYNTAX")


def test_examples_are_d() -> None:
    """All in one program, each in its clause; aggregations of several examples are not the same one."""
    entries = [*dlang.variables(), *dlang.actions(), *dlang.subroutines(), *dlang.aggregations()]
    texts = [entry.example for entry in entries if entry.example]
    assert len(texts) > 100
    clauses = [re.sub(r"(?<!%)@(\w*)", rf"@\g<1>_{number}", text) for number, text in enumerate(texts)]
    program = "BEGIN { self->spec = speculation(); }\n" + "".join(
        f"fbt::kmalloc:entry {{ {text}; }}\n" for text in clauses
    )
    kernel = str(ROOT / "samples" / "kernel-riscv64.elf")
    result = CliRunner().invoke(run, ["-qwe", "-n", program, kernel], prog_name="kinst-run")
    assert result.exit_code == 0, result.output


def test_manual_pages_are_clean() -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for command in commands():
        page = ROOT / "docs" / "man" / f"{command.name}.1"
        result = subprocess.run(
            ["groff", "-man", "-ww", "-Tutf8", str(page)], capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stderr) == (0, "")
        plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", result.stdout)
        for _, options in command.groups:
            for option in options:
                assert option.spelling in plain

"""The current folder is somebody else's: modules that lie there are never run, by no process of ours."""

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from kinst.rewriter.shell.own_process import own_environment
from tests.commands.launchers import ENVIRONMENT, ROOT
from tests.rewriter.programs import small

_BATCH = """
[[rewrite]]
images = ["small.elf"]
probes = ["fbt:::entry"]
[[call]]
images = ["small.elf"]
function = "vm_fault"
arguments = ["1"]
"""
# What each does ends well, and imports what the others do not: documents, processes of their own.
COMMANDS = [
    ("kinst_rewrite", "small.elf", "-p", "fbt:::entry", "--patch", "vm_fault = nop", "-o", "patched.elf"),
    ("kinst_list", "small.elf"),
    ("kinst_diff", "small.elf", "patched.elf", "--format", "html"),
    ("kinst_run", "-n", "BEGIN { @[stack()] = count(); exit(0); }", "--report", "report.html", "--format", "parquet",
     "-o", "out.parquet"),
    ("kinst_inlinecall", "poison", str(ROOT / "samples" / "kernel-amd64.elf")),
    ("kinst_samples", "samples"),
    ("kinst_batch", "batch.toml", "--jobs", "1"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an image, a batch, and a trap for every module that could be imported."""
    small().write(tmp_path)
    (tmp_path / "batch.toml").write_text(_BATCH)
    for name in {*sys.stdlib_module_names, *packages_distributions(), "kinst"} - set(sys.builtin_module_names):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'trap')!r}, 'a').write({name + ' '!r})\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# All in one process, one after the other: each imports there what those before it did not.
_ONE_AFTER_THE_OTHER = """
import sys
from pathlib import Path
from kinst.rewriter.commandline import entry
for function, *arguments in {commands!r}:
    sys.argv = [function, *arguments]
    try:
        getattr(entry, function)()
    except SystemExit as ending:
        assert not ending.code, (function, ending.code)
    assert not Path("trap").exists(), (function, Path("trap").read_text())
"""


def test_no_command_imports_from_it(folder: Path) -> None:
    # As the scripts that pip installs: they lie elsewhere, and Python looks beside them.
    command = [sys.executable, "-P", "-c", _ONE_AFTER_THE_OTHER.format(commands=COMMANDS)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (folder / "trap").exists()
    assert {path.name for path in folder.iterdir()} >= {"patched.elf", "report.html", "out.parquet", "samples"}


def test_one_that_does_is_seen(folder: Path) -> None:
    command = [sys.executable, "-c", _ONE_AFTER_THE_OTHER.format(commands=COMMANDS[1:2])]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (folder / "trap").exists()


def test_a_trap_would_be_seen(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", "import lief"], env=ENVIRONMENT, check=True)
    assert (folder / "trap").read_text() == "lief "


def test_a_path_that_has_it_is_not_handed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a notebook, or where a library has put it there."""
    monkeypatch.setattr(sys, "path", ["", ".", "__editable__.hook", str(tmp_path)])
    assert own_environment()["PYTHONPATH"] == str(tmp_path)
    monkeypatch.setattr(sys, "path", [""])
    assert os.pathsep not in own_environment()["PYTHONPATH"]

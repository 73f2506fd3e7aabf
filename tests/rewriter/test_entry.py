"""What all commands have in common: --help and --version, Ctrl-C before they run, and files that do not exist."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner

from kinst.rewriter import cli
from kinst.rewriter.inlining import inlinecall_cli
from kinst.runtime.batch.cli import batch
from kinst.runtime.cli import run

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "samples" / "kernel-riscv64.elf"
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / ".typing"), str(ROOT)])}
COMMANDS: dict[str, Command] = {
    "kinst_rewrite": cli.rewrite,
    "kinst_list": cli.list_probes,
    "kinst_diff": cli.diff,
    "kinst_inlinecall": inlinecall_cli.inlinecall,
    "kinst_run": run,
    "kinst_batch": batch,
}
# Sends Ctrl-C in the middle of the imports, and says if the process survives it.
INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from kinst.rewriter.commandline.entry import {command} as start
start()
print("survived")
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_control_c_during_the_imports_is_no_traceback(command: str) -> None:
    """The shell is told by the signal, as of any other process."""
    script = INTERRUPTED.format(command=command)
    result = subprocess.run(
        [sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_version(command: str) -> None:
    runner, name = CliRunner(), command.replace("_", "-")
    short, long = (runner.invoke(COMMANDS[command], [option], prog_name=name) for option in ("-h", "--help"))
    assert short.stdout == long.stdout
    assert short.stdout.startswith(f"Usage: {name} ")
    version = runner.invoke(COMMANDS[command], ["--version"], prog_name=name)
    assert (version.exit_code, version.stdout.split()[0]) == (0, name)


MISSING = [
    ("kinst_rewrite", ["nowhere.elf"]),
    ("kinst_rewrite", ["nowhere.elf", "--probe", "a:b:c:d:e", "--trampoline-base", "what"]),
    ("kinst_rewrite", ["nowhere.elf", "--restore", "--probe", "fbt:::"]),
    ("kinst_list", ["nowhere.elf", "a:b:c:d:e", "--name", "x=y"]),
    ("kinst_list", [str(SAMPLE), "--symbols", "nowhere.elf", "a:b:c:d:e"]),
    ("kinst_diff", ["nowhere.elf", str(SAMPLE)]),
    ("kinst_diff", [str(ROOT / "README.md"), "nowhere.elf"]),
    ("kinst_inlinecall", ["f", "nowhere.elf", "--debug-file", "nowhere"]),
    ("kinst_batch", ["nowhere.elf", "--jobs", "2", "--timeout", "soon"]),
    ("kinst_run", ["nowhere.elf", "--machine", "pdp11", "--cpus", "99", "--memory", "lots"]),
    ("kinst_run", ["nowhere.elf", "-n", "syntax error"]),
    ("kinst_run", ["nowhere.elf", "-s", "nowhere.d", "-x", "nothing"]),
    ("kinst_run", [str(SAMPLE), "--debug-file", "nowhere.elf", "-n", "syntax error"]),
]


@pytest.mark.parametrize(("command", "arguments"), MISSING)
def test_a_file_that_does_not_exist_is_that_error(command: str, arguments: list[str]) -> None:
    name = command.replace("_", "-")
    result = CliRunner().invoke(COMMANDS[command], arguments, prog_name=name)
    message = f"{name}: nowhere.elf: cannot be read: No such file or directory\n"
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", message)


def test_a_word_that_may_be_a_missing_image_is_told_of() -> None:
    """Without an ending, it can as well be an argument of the program."""
    result = CliRunner().invoke(run, ["vmlinx", "-n", "fbt:::entry"], prog_name="kinst-run")
    assert result.exit_code == 1
    assert result.stderr.endswith("    vmlinx: there is no such file: it was taken for $1\n")
    done = CliRunner().invoke(run, ["-qn", "BEGIN { trace($$1); exit(0); }", "word"], prog_name="kinst-run")
    assert (done.exit_code, done.stdout) == (0, "word\n")

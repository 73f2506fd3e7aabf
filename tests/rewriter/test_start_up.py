"""Nothing heavy is imported before it is used: counted in modules, which no other process on the machine changes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / ".typing"), str(ROOT)])}
HEAVY = {"capstone", "elftools", "keystone", "lief", "numpy", "qiling", "unicorn", "zstandard"}
SAMPLE = str(ROOT / "samples" / "kernel-riscv64.elf")
COMMANDS = ("kinst_rewrite", "kinst_list", "kinst_diff", "kinst_inlinecall", "kinst_run")
# Runs a console script, and says on the last line of stderr what it imported. Nothing has started another thread.
SCRIPT = """
import atexit, json, os, sys
def at_exit():
    assert os.listdir("/proc/self/task") == [str(os.getpid())]
    print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
atexit.register(at_exit)
command, *sys.argv = sys.argv[1:]
import kinst.rewriter.commandline.entry
getattr(kinst.rewriter.commandline.entry, command)()
"""


# The thread of QEMU's monitor has ended when it was joined, and the system may list it for a moment longer.
ANY_THREADS = "".join(line for line in SCRIPT.splitlines(keepends=True) if "/proc/self/task" not in line)


def run(command: str, *arguments: str, script: str = SCRIPT, **variables: str) -> tuple[int, set[str]]:
    """The exit code of a command, and what heavy libraries it imported."""
    words = [sys.executable, "-c", script, command, command.replace("_", "-"), *arguments]
    environment = ENVIRONMENT | variables
    result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return result.returncode, HEAVY & set(json.loads(result.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_library(command: str) -> None:
    assert run(command, "--help") == (0, set())


@pytest.mark.parametrize(
    ("command", "arguments", "code"),
    [
        ("kinst_rewrite", ("--no-such-option", SAMPLE), 2),
        ("kinst_rewrite", (SAMPLE,), 2),
        ("kinst_rewrite", (SAMPLE, "-p", "kinst:::", "--trampoline-base", "here"), 2),
        ("kinst_rewrite", (SAMPLE, "-p", "kinst:::", "--name", "a:b"), 2),
        ("kinst_rewrite", (SAMPLE, "--restore", "-p", "kinst:::"), 2),
        ("kinst_list", (SAMPLE, "--name", "a:b"), 2),
        ("kinst_list", ("there is no such file",), 1),
        ("kinst_diff", (SAMPLE, SAMPLE, "--format", "none"), 2),
        ("kinst_inlinecall", ("f",), 2),
        ("kinst_run", ("--no-such-option",), 2),
        ("kinst_run", (SAMPLE, "--until", "("), 2),
        ("kinst_run", (SAMPLE, "--timeout", "soon"), 2),
        ("kinst_run", (SAMPLE, "--memory", "much"), 2),
        ("kinst_run", (SAMPLE, "--clock", "sundial"), 2),
        ("kinst_run", ("-n", "BEGIN", "-x", "nosuchoption"), 1),
        ("kinst_run", ("there_is_no_such.elf",), 1),
    ],
)
def test_a_wrong_option_needs_no_library(command: str, arguments: tuple[str, ...], code: int) -> None:
    assert run(command, *arguments) == (code, set())


def test_a_program_without_an_image_needs_neither_reader_nor_engine() -> None:
    assert run("kinst_run", "-n", "BEGIN { exit(0) }") == (0, {"numpy"})


def test_the_api_is_imported_when_it_is_used() -> None:
    program = f"import kinst.runtime, sys; print(*(name for name in {sorted(HEAVY)} if name in sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


def test_a_command_imports_what_its_image_needs(tmp_path: Path) -> None:
    """Nothing is assembled or run, only a manifest is compressed, no amd64 code is decoded, and of DWARF only what is
    asked."""
    assert run("kinst_list", SAMPLE, "fbt:::entry") == (0, {"lief", "numpy"})
    assert run("kinst_inlinecall", "f", SAMPLE)[1] == {"elftools", "numpy"}
    out = str(tmp_path / "patched.elf")
    assert run("kinst_rewrite", SAMPLE, "-p", "fbt:::entry", "-o", out) == (0, {"lief", "numpy", "zstandard"})


def test_a_run_does_without_the_second_reader() -> None:
    """LIEF's opinion is asked of files that are written; to import it is half of what a run begins with."""
    code, libraries = run("kinst_run", SAMPLE, "-n", "fbt:::entry { @ = count(); }", "--timeout", "1us")
    assert (code, "lief" in libraries) == (0, False)


def test_a_kept_image_under_qemu_needs_neither_our_machine_nor_what_plans(tmp_path: Path) -> None:
    program = shutil.which("qemu-system-riscv64")
    if program is None:
        pytest.skip("needs qemu-system-riscv64")
    words = ("--on", f"{program} -M virt -m 128M", "-q", "--console", str(tmp_path / "console"))
    asked = (*words, "-n", "fbt::vfs_get:entry { @ = count(); }", SAMPLE)
    made, kept = (run("kinst_run", *asked, script=ANY_THREADS, XDG_CACHE_HOME=str(tmp_path)) for _ in range(2))
    assert made[0] == 0
    assert "lief" in made[1]
    assert kept[0] == 0
    assert kept[1].isdisjoint({"keystone", "lief", "qiling", "unicorn"})


def test_what_runs_a_kept_image_imports_nothing_that_plans_or_unwinds() -> None:
    apart = {"rewriter.standalone.plan", "runtime.unwinding.unwind", "runtime.tracing.inline_arguments"}
    program = "import sys, kinst.runtime.tracing.run_command, kinst.runtime.live.building; print(*sys.modules)"
    words = [sys.executable, "-c", program]
    result = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    imported = {name.removeprefix("kinst.") for name in result.stdout.split()}
    assert "runtime.live.building" in imported
    assert imported.isdisjoint(apart)


def test_an_image_object_asks_the_second_reader_before_it_writes(tmp_path: Path) -> None:
    program = f"""
import sys
from kinst.runtime import open_image
with open_image({SAMPLE!r}) as image:
    image.call("fibonacci", 3)
    with image.trace("fbt::fibonacci:entry {{ @ = count(); }}") as trace:
        trace.run()
    print("lief" in sys.modules)
    image.rewrite({str(tmp_path / "patched.elf")!r}, "fbt::fibonacci:entry")
    print("lief" in sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert result.stdout.split()[-2:] == ["False", "True"]


@pytest.mark.parametrize(
    ("line", "libraries"),
    [
        ("kinst-list --for", set()),
        ("kinst-run --machine v", set()),
        (f"kinst-list {SAMPLE} kinst::fib", {"numpy"}),
        (f"kinst-run {SAMPLE} -n fbt::fib", {"numpy"}),
    ],
)
def test_a_shell_is_answered_at_once(line: str, libraries: set[str]) -> None:
    command = line.split()[0].replace("-", "_")
    assert run(command, KINST_COMPLETE="bash", KINST_LINE=line) == (0, libraries)

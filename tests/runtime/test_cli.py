"""kinst-run as a user meets it: what goes to which stream, exit codes, pipes that close, Ctrl-C."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.images import real_image

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "samples" / "kernel-riscv64.elf"
KMAIN = 1072  # the identifier of fbt::kmain:entry, whatever else is enabled
HEADER = "CPU     ID                    FUNCTION:NAME"
LAUNCH = "from kinst.runtime.cli import run; run(prog_name='kinst-run')"
COMMAND = [sys.executable, "-W", "ignore", "-c", LAUNCH]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / ".typing"), str(ROOT)])}


def started(*arguments: str | Path, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """In a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT, check=False
    )


def test_a_plain_run_prints_the_console_and_nothing_else() -> None:
    result = started(SAMPLE)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (ROOT / "samples" / "kernel.out").read_text()


def test_descriptions_on_stderr_header_and_firings_with_the_console_on_stdout() -> None:
    result = started(SAMPLE, "-n", "fbt::kmain:entry", "-n", "fbt::kmai[n]:entry,fbt::fibonacci:return")
    lines = result.stdout.splitlines()
    assert result.stderr.splitlines()[0] == "kinst-run: description 'fbt::kmain:entry' matched 1 probe"
    assert lines[:2] == [HEADER, f"  0   {KMAIN}                      kmain:entry "]
    assert "kernel: booting" in lines


def test_console_and_output_to_files(tmp_path: Path) -> None:
    console, output = tmp_path / "console", tmp_path / "output"
    result = kinst_run(SAMPLE, "-n", "fbt::kmain:entry", "--console", console, "-o", output)
    assert result.stdout == ""
    assert output.read_text().splitlines() == [HEADER, f"  0   {KMAIN}                      kmain:entry ", ""]
    assert console.read_text().startswith("kernel: booting")
    kinst_run(SAMPLE, "-n", "fbt::kmain:entry", "--console", console, "-o", output)
    assert output.read_text().count(HEADER) == 2  # -o appends, as dtrace does


def test_quiet_leaves_the_console() -> None:
    result = kinst_run(SAMPLE, "-q", "-n", "fbt:::entry")
    assert (result.stderr, result.stdout) == ("", (ROOT / "samples" / "kernel.out").read_text() + "\n")


def test_a_call_prints_what_came_back() -> None:
    result = kinst_run(SAMPLE, "--call", "fibonacci(10)")
    assert (result.returncode, result.stdout) == (0, "fibonacci(10) = 0x37\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.elf"], 1, "nowhere.elf: cannot be read: No such file or directory"),
        ([ROOT / "README.md"], 1, "not an ELF image"),
        ([ROOT], 1, "is a directory"),
        ([SAMPLE, "-n", "fbt:::entry { trace(nothing); }"], 1, "failed to resolve nothing"),
        ([SAMPLE, "-n", "fbt::nothing:entry"], 1, "does not match any probes: no function 'nothing' in kernel-riscv64"),
        ([SAMPLE, "-n", "vax:::entry"], 1, "does not match any probes: no provider 'vax'"),
        ([SAMPLE, "-x", "nosuch"], 1, "failed to set -x nosuch: Invalid option name"),
        ([SAMPLE, "-b", "lots"], 1, "failed to set -b lots: Invalid value for specified option"),
        (["-qn", "BEGIN", "-o", "/nowhere/out"], 1, "failed to open output file '/nowhere/out': No such file"),
        (["-n", "BEGIN", "--timeout", "1y"], 2, "--timeout 1y"),
        ([SAMPLE, "-s", "nowhere.d"], 1, "failed to open nowhere.d: No such file or directory"),
        ([SAMPLE, "--machine", "pc-amd64"], 2, "is for riscv64"),
        ([SAMPLE, "--cpus", "0"], 2, "1 to 8 CPUs"),
        ([SAMPLE, "--memory", "lots"], 2, "--memory lots"),
        ([SAMPLE, "--timeout", "1y"], 2, "--timeout 1y"),
        ([SAMPLE, "--until", "["], 2, "not a regular expression"),
        ([SAMPLE, "--call", "f(("], 2, "--call f(("),
    ],
)
def test_errors_are_one_line_with_an_exit_code(arguments: list[str | Path], code: int, message: str) -> None:
    result = kinst_run(*arguments)
    assert (result.returncode, result.stdout) == (code, "")
    assert [line.startswith("    ") for line in result.stderr.splitlines()] in ([False], [False, True, True])
    assert result.stderr.startswith("kinst-run: ")
    assert message in result.stderr


@pytest.mark.parametrize(("words", "code"), [(("nowhere.elf",), 1), (("-n", "BEGIN", "--timeout", "1y"), 2)])
def test_a_process_has_the_streams_and_the_exit_code_of_an_error(words: tuple[str, ...], code: int) -> None:
    result, expected = started(*words), kinst_run(*words)
    assert (result.returncode, result.stdout, result.stderr) == (code, "", expected.stderr)


def test_a_guest_stopped_for_good_is_an_error_after_its_output(tmp_path: Path) -> None:
    image = tmp_path / "wedged.elf"
    content = bytearray(SAMPLE.read_bytes())
    entry = content.index(b"\x73\x00\x50\x10")  # its first wfi: an ebreak without a handler follows nowhere
    content[entry : entry + 4] = b"\x6f\x00\x00\x00"
    image.write_bytes(content)
    result = kinst_run(image, "--timeout", "300ms")
    assert result.returncode == 0  # it loops; the timeout is no error
    assert result.stdout.startswith("kernel: booting")


def test_a_reader_that_goes_away_ends_the_run_quietly() -> None:
    process = subprocess.Popen(
        [*COMMAND, str(SAMPLE), "-n", "kinst:::"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"CPU")
    process.stdout.close()
    assert process.wait(60) == 0
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()


def test_control_c_loses_nothing_and_is_no_error() -> None:
    """OpenSBI ends in a loop of traps, since there is nothing where it jumps to."""
    command = [*COMMAND, str(real_image("opensbi-1.1")), "-n", "fbt:::entry"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"CPU")
        assert process.stdout.readline().endswith(b":entry \n")  # it runs
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Traceback" not in errors
    assert b"kinst-run: interrupted: CPU 0 runs at 0x" in errors
    assert not out or out.endswith(b"\n")

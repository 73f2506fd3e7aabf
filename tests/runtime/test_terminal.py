"""What a terminal is sent: no control character that an image or a guest chose. A pipe gets every byte."""

import os
import pty
import subprocess
from pathlib import Path

from tests.commands.in_process import command, kinst_run
from tests.rewriter.programs import FUNCTIONS, small
from tests.runtime.test_cli import COMMAND, ENVIRONMENT, SAMPLE

PROGRAM = r"""
BEGIN
{
    printf("\033[1m%s %c|%-6s|\n", "a\033[2Jb\r", 0x1b, "\ax");
    printf("%*s|\n", 8, "\033");
    trace("x\ay");
    @["k\r"] = count();
    printa("\033[7m%s %@d\n", @);
    exit(0);
}
"""


def on_terminal(*arguments: object, command: list[str] = COMMAND) -> tuple[bytes, bytes]:
    """What a command writes to a terminal and to stderr."""
    master, slave = pty.openpty()
    words = [*command, *map(str, arguments)]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as run:
        os.close(slave)
        output = b""
        while piece := _read(master):
            output += piece
        _, errors = run.communicate(timeout=60)
    os.close(master)
    return output.replace(b"\r\n", b"\n"), errors


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # what Linux says when nobody has the other end any more
        return b""


def test_values_are_escaped_and_what_the_format_says_is_not() -> None:
    output, _ = on_terminal("-qn", PROGRAM)
    assert output == b"\x1b[1ma\\x1b[2Jb\\x0d \\x1b|\\x07x |\n    \\x1b|\nx\\x07y\x1b[7mk\\x0d 1\n\n"


def test_a_pipe_gets_every_byte() -> None:
    run = subprocess.run([*COMMAND, "-qn", PROGRAM], capture_output=True, env=ENVIRONMENT, check=True)
    assert run.stdout == b"\x1b[1ma\x1b[2Jb\r \x1b|\x07x    |\n       \x1b|\nx\x07y\x1b[7mk\r 1\n\n"


def test_a_file_gets_every_byte_while_stdout_is_a_terminal(tmp_path: Path) -> None:
    program = r'BEGIN { freopen("%s"); printf("%%s\n", "\033"); freopen(""); printf("%%s\n", "\033"); exit(0); }'
    output, _ = on_terminal("-qwn", program % (tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b"\x1b\n"
    assert output == b"\\x1b\n\n"


def test_the_console_of_the_guest_is_its_own(tmp_path: Path) -> None:
    console = tmp_path / "console"
    subprocess.run([*COMMAND, SAMPLE, "--console", console], env=ENVIRONMENT, check=True)
    output, _ = on_terminal(SAMPLE)
    assert b"\r" in output and output == console.read_bytes()


def test_names_of_an_image_are_escaped_for_pipes_too(tmp_path: Path) -> None:
    """A list is for people; whoever wants to take it apart has --format json."""
    image = hostile(tmp_path)
    for done in (command("list_probes", image), kinst_run("-l", image)):
        assert done.returncode == 0
        assert "evil\\x1b[31m\\x0akinst" in done.stdout and "\x1b" not in done.stdout


def test_messages_are_escaped() -> None:
    done = kinst_run(SAMPLE, "-n", "fbt::\x1b[31m:entry")
    assert done.returncode == 1 and "\\x1b[31m" in done.stderr and "\x1b" not in done.stderr


def test_a_patched_image_keeps_names_that_can_be_read_back(tmp_path: Path) -> None:
    image, out = hostile(tmp_path), tmp_path / "p.elf"
    assert command("rewrite", image, "-p", "fbt:::", "-q", "-o", out).returncode == 0
    assert "evil\\x1b[31m\\x0akinst" in command("list_probes", out).stdout


def hostile(folder: Path) -> Path:
    functions = {"evil\x1b[31m\nkinst" if name == "dtrace_foo" else name: code for name, code in FUNCTIONS.items()}
    return small(functions=functions).write(folder)

"""A shell on Debian's kernels, typed at: by --input and at a terminal; a paste that is long, and Ctrl-C."""

import hashlib
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import at_hand, real_image
from tests.runtime.terminal_session import TerminalSession
from tests.writers.cpio import CHARACTERS, DIRECTORY, FILE, LINK, Entry, archive

INIT = b"""#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
tty=/dev/ttyS0
[ -c /dev/ttyAMA0 ] && tty=/dev/ttyAMA0
setsid sh -c "exec sh -i <$tty >$tty 2>&1"
"""
LINUX = at_hand("linux-amd64", "linux-arm64", "linux-riscv64")


def shell(machine: str, folder: Path) -> Path:
    """An initial file system whose init starts a shell on the serial line."""
    busybox = real_image(f"busybox-{machine}").read_bytes()
    folders = (Entry(name, DIRECTORY) for name in ("bin", "dev", "proc", "tmp"))
    devices = (Entry("dev/console", CHARACTERS, device=(5, 1)), Entry("dev/null", CHARACTERS, device=(1, 3)))
    programs = (Entry("bin/busybox", FILE, busybox), Entry("bin/sh", LINK, b"busybox"), Entry("init", FILE, INIT))
    path = folder / "shell.cpio"
    path.write_bytes(archive([*folders, *devices, *programs]))
    return path


@pytest.mark.long
@pytest.mark.parametrize("name", LINUX)
def test_lines_of_a_file_at_a_shells_prompt(name: str, tmp_path: Path) -> None:
    initrd, lines = shell(name.removeprefix("linux-"), tmp_path), tmp_path / "lines"
    lines.write_text("echo $((6 * 7))\necho typed at cat | rev\npoweroff -f\n")
    options = ("-q", "--clock", "icount", "--memory", "256M", "--timeout", "60s", "--initrd", str(initrd))
    result = CliRunner().invoke(run, [*options, "--input", str(lines), "--prompt", "# $", str(real_image(name))])
    assert result.exit_code == 0, result.stderr
    assert re.search(r"^42\r?\n", result.stdout, re.MULTILINE)
    assert "tac ta depyt" in result.stdout


@pytest.mark.long
@pytest.mark.parametrize("name", LINUX)
def test_a_shell_at_a_terminal(name: str, tmp_path: Path) -> None:
    text = b"".join(b"line %04d of a paste 0123456789abcdef\n" % number for number in range(105))  # 4 KB
    initrd = shell(name.removeprefix("linux-"), tmp_path)
    program = 'syscall::execve:entry { printf("started %s", copyinstr(arg0)); } END { printf("the end"); }'
    with TerminalSession(real_image(name), "--memory", "256m", "--initrd", initrd, "-n", program) as session:
        session.expect(rb"# (\x1b\[6n)?$")
        session.press(b"sleep 1000\r")
        session.expect(rb"started [^\n]*\n")
        session.press(b"\x03")
        session.expect(rb"# ")
        session.press(b"cat > /tmp/f\r")
        session.expect(rb"started [^\n]*\n")
        session.press(text)
        session.expect(rb"line 0104 [^\n]*\n")
        session.press(b"\x04md5sum /tmp/f\r")
        session.expect(hashlib.md5(text).hexdigest().encode())
        session.press(b"\x01x")
        assert session.ended() == 0
        assert b"the end" in session.shown
        assert session.settings() == session.before

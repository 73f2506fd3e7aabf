"""Devices of the user's own: a Python file that a board file names."""

from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.samples.machines import MACHINES

BOARD = """\
extends = "virt-arm64"
starts = "plain-arm64"
[start]
x0 = "fdt"
[devices.console]
kind = "own.py:Shout"
interrupt = 1
loudness = 2
"""
DEVICE = """\
class Shout:
    def __init__(self, place):
        self.output, self.times = place.wire.console_output, place.facts.properties["loudness"]

    def read(self, offset, size):
        return 0x90  # PL011's flags: nothing to read, room to write

    def write(self, offset, size, value):
        if offset == 0:
            self.output(bytes((value,)).upper() * self.times)
"""


def run(folder: Path, device: str, board: str = BOARD) -> tuple[str, str, int]:
    (folder / "own.py").write_text(device)
    (folder / "board.toml").write_text(board)
    words = ("--clock", "icount", "--until", "BBOOOOTTIINNGG", "--timeout", "100ms")
    result = kinst_run("-q", *words, "--board", folder / "board.toml", MACHINES["arm64"].image)
    return result.stdout, result.stderr, result.returncode


def test_a_device_of_ten_lines(tmp_path: Path) -> None:
    console, errors, status = run(tmp_path, DEVICE)
    assert (errors, status) == ("", 0)
    assert console.startswith("KKEERRNNEELL::  BBOOOOTTIINNGG")


@pytest.mark.parametrize(
    ("device", "board", "why"),
    [
        ("x = (", BOARD, "own.py: SyntaxError: "),
        ("x = 1", BOARD, "own.py: has no class Shout"),
        ("class Shout: pass", BOARD, "own.py:Shout: has no method read(): a device has read(offset, size)"),
        (DEVICE.replace("loudness", "volume"), BOARD, "devices.console: own.py:Shout: KeyError: 'volume'"),
        (DEVICE.replace("0x90", "1 // 0"), BOARD, "devices.console: read() failed: ZeroDivisionError: "),
        (DEVICE, BOARD.replace("own.py", "own.txt"), "devices.console.kind: 'own.txt:Shout' does not exist"),
    ],
)
def test_what_it_does_wrong_is_said(device: str, board: str, why: str, tmp_path: Path) -> None:
    _, errors, status = run(tmp_path, device, board)
    assert status in (1, 2)
    assert why in errors.splitlines()[0]
    assert "Traceback" not in errors

"""`--disk` on boards of board files: a card in the socket of an SD host, or a line that says why there is none."""

from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.samples.machines import MACHINES

BOARD = """\
extends = "virt-arm64"
starts = "plain-arm64"
[start]
x0 = "fdt"
[devices]
virtio = false
"""
HOST = '[devices.{name}]\nkind = "sdhci"\naddress = {address}\nsocket = {socket}\n'
ONE = HOST.format(name="a", address=0x3000_0000, socket=0)
TWO = ONE + HOST.format(name="b", address=0x3000_1000, socket=7)
SHARED = ONE + HOST.format(name="b", address=0x3000_1000, socket=0)


def run(folder: Path, board: str, *words: str, disks: int = 0, size: int = 1 << 20) -> tuple[str, str, int]:
    (folder / "board.toml").write_text(BOARD + board)
    for number in range(disks):
        with (folder / f"disk{number}").open("wb") as file:
            file.truncate(size)
        words += ("--disk", str(folder / f"disk{number}"))
    end = ("--clock", "icount", "--until", "booting", "--timeout", "100ms")
    result = kinst_run("-q", *end, "--board", folder / "board.toml", *words, MACHINES["arm64"].image)
    return result.stdout, result.stderr, result.returncode


@pytest.mark.parametrize(("board", "disks"), [("", 0), (ONE, 1), (TWO, 2), (TWO, 1), (SHARED, 1)])
def test_a_card_is_in_each_socket_that_has_a_disk(board: str, disks: int, tmp_path: Path) -> None:
    console, errors, status = run(tmp_path, board, disks=disks)
    assert (errors, status) == ("", 0)
    assert "booting" in console


@pytest.mark.parametrize(
    ("board", "disks", "words", "why"),
    [
        ("", 1, (), "has nowhere to put a disk: its board file names no virtio-mmio and no SD host"),
        (SHARED, 2, (), "has room for 1 disks, as SD cards, not for 2"),
        (ONE, 0, ("--rng-seed", "1"), "has no virtio-mmio for a source of random numbers or a console"),
        (ONE, 0, ("--virtio-console",), "has no virtio-mmio for a source of random numbers or a console"),
    ],
)
def test_what_has_no_place_is_refused(board: str, disks: int, words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    _, errors, status = run(tmp_path, board, *words, disks=disks)
    assert why in errors
    assert (errors.count("\n"), status) == (1, 1)


def test_a_disk_that_no_card_can_have_is_refused(tmp_path: Path) -> None:
    _, errors, status = run(tmp_path, ONE, disks=1, size=512)
    assert (
        "disk disk0: cannot be an SD card: its size, 512 bytes, is no multiple of 262,144: truncate -s 262144" in errors
    )
    assert status == 1

"""Where an arm64 U-Boot looks for its device tree, by its first words."""

import struct
from pathlib import Path
from random import Random

import pytest

from kinst.runtime.machine.loading.u_boot import HEADER, tree_place
from tests.commands.in_process import kinst_run
from tests.images import at_hand, real_image
from tests.samples.machines import MACHINES

BASE = 0x4A00_0000


def begun(at: int, *words: int) -> bytes:
    return bytes(at) + struct.pack("<4Q", *words) + bytes(64)


@pytest.mark.parametrize("at", [8, 0x78, 0x600])
def test_the_words_may_come_after_a_hook_of_the_board_s(at: int) -> None:
    assert tree_place(begun(at, BASE, 0x9_0000, 0x9_0000, 0xA_0000), BASE) == BASE + 0x9_0000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        begun(8, BASE + 8, 0x9_0000, 0x9_0000, 0xA_0000),  # linked elsewhere
        begun(8, BASE, 0x9_0000, 0x8_0000, 0xA_0000),  # .bss is before the end
        begun(8, BASE, 0x9_0000, 0x9_0000, 1 << 40),
        begun(8, BASE, 64, 64, 64),
        begun(HEADER, BASE, 0x9_0000, 0x9_0000, 0xA_0000),
        begun(4, BASE, 0x9_0000, 0x9_0000, 0xA_0000),  # not aligned
    ],
)
def test_anything_else_is_none(content: bytes) -> None:
    assert tree_place(content, BASE) is None


def test_random_bytes_and_zeros_are_none() -> None:
    random = Random(1)
    assert not any(tree_place(random.randbytes(HEADER), 0) for _ in range(200))
    assert tree_place(bytes(HEADER), 0) is None


def test_other_images_are_none() -> None:
    assert all(tree_place(sample.image.read_bytes()[:HEADER], 0) is None for sample in MACHINES.values())


@pytest.mark.parametrize("name", at_hand("u-boot-rockchip"))
def test_u_boot_finds_the_tree_without_being_told_where(name: str, tmp_path: Path) -> None:
    """Its ELF file ends elsewhere than its bytes."""
    board = tmp_path / "mine.toml"
    board.write_text('extends = "rk3399"\n[start]\nx0 = "fdt"\n')
    words = ("--until", "DRAM:", "--timeout", "5s", "-q")
    assert "Model: mine" in kinst_run("--board", board, *words, real_image(name)).stdout

"""A flash bank used the way drivers do: probing, erasing, programming."""

import pytest

from kinst.runtime.machine.devices.cfi_flash import CfiFlash

BANK, BLOCK = 64 << 20, 256 << 10
BOTH = 0x0001_0001  # a command or an answer on both chips


def flash() -> CfiFlash:
    return CfiFlash(BANK)


def test_it_is_memory_until_told_otherwise() -> None:
    device = flash()
    device.content[0x1000:0x1008] = bytes(range(1, 9))
    assert device.read(0x1000, 8) == 0x0807_0605_0403_0201
    assert device.read(0x1002, 2) == 0x0403


def test_drivers_find_its_geometry() -> None:
    device = flash()
    device.write(0x55 * 4, 4, 0x98 * BOTH)

    def query(index: int) -> int:
        value = device.read(index * 4, 4)
        assert value & 0xFFFF == value >> 16
        return value & 0xFF

    assert bytes(query(index) for index in (0x10, 0x11, 0x12, 0x31, 0x32, 0x33)) == b"QRYPRI"
    assert query(0x13) == 1  # Intel's command set
    chip = 1 << query(0x27)
    blocks, size = query(0x2D) + 256 * query(0x2E) + 1, (query(0x2F) + 256 * query(0x30)) * 256
    assert 2 * chip == BANK
    assert (blocks * size, 2 * size) == (chip, BLOCK)
    device.write(0, 4, 0xFF * BOTH)
    assert device.read(0x40, 4) == 0


def test_the_identification_says_who_and_that_nothing_is_locked() -> None:
    device = flash()
    device.write(0, 4, 0x90 * BOTH)
    assert [device.read(BLOCK + 4 * index, 4) for index in range(3)] == [0x89 * BOTH, 0x18 * BOTH, 0]


def test_erasing_sets_and_programming_clears_bits() -> None:
    device = flash()
    device.content[BLOCK - 1] = 0x12
    device.write(BLOCK + 8, 4, 0x20 * BOTH)
    device.write(BLOCK + 8, 4, 0xD0 * BOTH)
    assert device.read(BLOCK, 4) == 0x80 * BOTH  # ready
    for value in (0xFFFF_00FF, 0x1234_5678):
        device.write(BLOCK, 4, 0x40 * BOTH)
        device.write(BLOCK, 4, value)
    device.write(0, 4, 0xFF * BOTH)
    assert device.read(BLOCK, 4) == 0x1234_0078
    assert device.content[BLOCK - 1] == 0x12
    assert device.content[2 * BLOCK - 1] == 0xFF
    assert device.content[2 * BLOCK] == 0


def test_an_erase_that_is_not_confirmed_does_nothing() -> None:
    device = flash()
    device.write(0, 4, 0x20 * BOTH)
    device.write(0, 4, 0xFF * BOTH)
    device.write(0, 4, 0xFF * BOTH)
    assert device.read(0, 4) == 0


@pytest.mark.parametrize("width", [2, 4])
def test_buffered_writes(width: int) -> None:
    device = flash()
    device.content[:64] = b"\xff" * 64
    device.write(0, 4, 0xE8 * BOTH)
    device.write(0, width, 3)  # four words
    for index in range(4):
        device.write(index * width, width, 0x1111 * (index + 1))
    device.write(0, 4, 0xD0 * BOTH)
    assert device.read(0, 2) == 0x80
    device.write(0, 4, 0xFF * BOTH)
    assert [device.read(index * width, 2) for index in range(4)] == [0x1111, 0x2222, 0x3333, 0x4444]
    assert device.read(4 * width, width) == (1 << 8 * width) - 1

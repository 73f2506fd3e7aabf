"""Memory maps that are drawn, and ranges taken from them: page by page what was there, but for the range."""

import random
import struct
from collections.abc import Iterator

import pytest

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.e820 import reserve
from kinst.runtime.readout.memory import Space
from kinst.targets.errors import MachineError

PAGE = 0x1000
PARAMETERS = 0x3000
TREE = """FlatView #0
 AS "memory", root: system
  0000000000000000-00000000000fffff (prio 0, ram): kinst-ram
"""


@pytest.fixture
def memory() -> Iterator[SharedRam]:
    found = SharedRam(1 << 20)
    found.place(TREE)
    yield found
    found.close()


def write(memory: SharedRam, entries: list[tuple[int, int, int]], disk: tuple[int, int] = (0, 0)) -> None:
    page = bytearray(PAGE)
    page[0x1E8] = len(entries)
    for row, entry in enumerate(entries):
        struct.pack_into("<QQI", page, 0x2D0 + 20 * row, *entry)
    for (low, high), value in zip(((0x218, 0xC0), (0x21C, 0xC4)), disk, strict=True):
        struct.pack_into("<I", page, low, value & 0xFFFF_FFFF)
        struct.pack_into("<I", page, high, value >> 32)
    memory.write(PARAMETERS, bytes(page))


def pages(memory: SharedRam) -> dict[int, int]:
    """The kind of each page that the map has; each is there once."""
    page, found = memory.read(Space.PHYSICAL, PARAMETERS, PAGE), dict[int, int]()
    for row in range(page[0x1E8]):
        start, size, kind = struct.unpack_from("<QQI", page, 0x2D0 + 20 * row)
        assert size
        for at in range(start, start + size, PAGE):
            assert at not in found
            found[at] = kind
    return found


@pytest.mark.parametrize("seed", range(50))
def test_only_the_range_changes(memory: SharedRam, seed: int) -> None:
    draw, at, entries = random.Random(seed), 0, []
    for _ in range(draw.randint(1, 12)):
        at += PAGE * draw.randint(0, 3)
        size = PAGE * draw.randint(1, 9)
        entries.append((at, size, draw.choice((1, 1, 2, 3))))
        at += size
    write(memory, entries)
    before = pages(memory)
    start, count = PAGE * draw.randint(0, at // PAGE), draw.randint(1, 5)
    taken = [start + PAGE * number for number in range(count)]
    holder = any(first <= start and taken[-1] < first + size for first, size, kind in entries if kind == 1)
    if not holder:
        with pytest.raises(MachineError, match="has no RAM at"):
            reserve(memory, PARAMETERS, start, PAGE * count)
        assert pages(memory) == before
        return
    reserve(memory, PARAMETERS, start, PAGE * count)
    assert pages(memory) == before | dict.fromkeys(taken, 2)


def test_a_ram_disk_must_not_be_there(memory: SharedRam) -> None:
    write(memory, [(0, 0x2_0000_0000, 1)], (0x1_0000_5000, 0x2000))
    reserve(memory, PARAMETERS, 0x1_0000_3000, 0x2000)
    write(memory, [(0, 0x2_0000_0000, 1)], (0x1_0000_5000, 0x2000))
    with pytest.raises(MachineError, match="initial RAM disk at 0x100005000, where trampolines are"):
        reserve(memory, PARAMETERS, 0x1_0000_6000, 0x2000)


def test_a_map_without_place_for_more(memory: SharedRam) -> None:
    write(memory, [(PAGE * 4 * row, PAGE * 3, 1) for row in range(127)])
    with pytest.raises(MachineError, match="no place for another entry: it has 127"):
        reserve(memory, PARAMETERS, PAGE, PAGE)
    reserve(memory, PARAMETERS, 0, PAGE)

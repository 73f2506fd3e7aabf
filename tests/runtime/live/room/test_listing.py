"""Linux' list of its early mappings, drawn at random: the kernel's element begins with the room, all others stay."""

import random
import struct

import pytest

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.listing import claim
from kinst.runtime.readout.memory import Space
from kinst.targets.errors import MachineError

RAM, SIZE = 0x4000_0000, 1 << 20
KERNEL = 0xFFFF_8000_1000_0000  # where all of RAM is linked
TEXT, HEAD = KERNEL + 0x1_2000, RAM + 0x100


@pytest.fixture
def ram() -> SharedRam:
    found = SharedRam(SIZE)
    found.place(
        f'FlatView #0\n AS "memory", root: system\n  {RAM:016x}-{RAM + SIZE - 1:016x} (prio 0, ram): kinst-ram\n'
    )
    return found


def physical(link: int) -> int:
    return link - KERNEL + RAM


def write(ram: SharedRam, ranges: list[tuple[int, int]], places: list[int]) -> None:
    """Link the elements, whose addresses are `places`, in this order."""
    ram.write(HEAD, struct.pack("<Q", places[0] if places else 0))
    for place, following, (start, size) in zip(places, [*places, 0][1:], ranges, strict=True):
        ram.write(physical(place), struct.pack("<4Q", following, start, size, 0x42))


def read(ram: SharedRam, places: list[int]) -> list[tuple[int, int]]:
    return [struct.unpack("<2Q", ram.read(Space.PHYSICAL, physical(place) + 8, 16)) for place in places]


def test_the_kernels_element_begins_with_the_room(ram: SharedRam) -> None:
    drawn = random.Random(1)
    for _ in range(50):
        room = KERNEL - drawn.randrange(1, 600) * 0x1_0000
        before = [(room - drawn.randrange(2, 99) * 0x1000, 0x1000) for _ in range(drawn.randrange(3))]
        behind = [(TEXT + drawn.randrange(1, 99) * 0x10_0000, 0x3000) for _ in range(drawn.randrange(4))]
        own = TEXT - drawn.randrange(0x1_0000), 0x8_0000
        ranges = [*before, own, *behind]
        places = [KERNEL + 0x4_0000 + 64 * one for one in drawn.sample(range(999), len(ranges))]
        write(ram, ranges, places)
        claim(ram, HEAD, room, TEXT, physical)
        assert read(ram, places) == [*before, (room, own[0] + own[1] - room), *behind]


def test_a_kernel_that_is_not_listed_is_told_of(ram: SharedRam) -> None:
    for ranges in ([], [(TEXT + 0x1000, 0x1000)]):
        places = [KERNEL + 0x4_0000 + 64 * row for row in range(len(ranges))]
        write(ram, ranges, places)
        with pytest.raises(MachineError, match="does not list itself where modules are put: add nokaslr to --append"):
            claim(ram, HEAD, KERNEL - 0x1_0000, TEXT, physical)


def test_what_is_in_the_room_is_told_of(ram: SharedRam) -> None:
    ranges, places = [(KERNEL - 0x2000, 0x1000), (KERNEL, 0x8_0000)], [KERNEL + 0x4_0000, KERNEL + 0x4_0040]
    write(ram, ranges, places)
    with pytest.raises(MachineError, match=f"the kernel has mapped {KERNEL - 0x2000:#x} in front of itself"):
        claim(ram, HEAD, KERNEL - 0x1_0000, TEXT, physical)
    assert read(ram, places) == ranges


def test_a_list_without_an_end_ends(ram: SharedRam) -> None:
    place = KERNEL + 0x4_0000
    ram.write(HEAD, struct.pack("<Q", place))
    ram.write(physical(place), struct.pack("<3Q", place, 0x1000, 0x1000))
    with pytest.raises(MachineError, match="does not list itself"):
        claim(ram, HEAD, KERNEL - 0x1_0000, TEXT, physical)

"""What a guest's device tree tells of memory, and what in a file that was stored to is found."""

import random
from typing import cast

import pytest

from kinst.runtime.live.copied.telling import keep_back
from kinst.runtime.live.ram import NAME, SharedRam
from kinst.runtime.machine.devices.fdt import Node, flatten
from kinst.runtime.machine.devices.fdt_reader import unflatten
from kinst.runtime.readout.memory import Space
from kinst.targets.errors import MachineError

START, SIZE = 0x4000_0000, 4 << 20
TREE = START + 0x1_0000


def ram() -> SharedRam:
    found = SharedRam(SIZE)
    found.place(
        f'FlatView #0\n AS "memory", root: system\n  {START:016x}-{START + SIZE - 1:016x} (prio 0, ram): {NAME}\n'
    )
    return found


def with_tree(*banks: tuple[int, int], cells: tuple[int, int]) -> SharedRam:
    memory, root = ram(), Node("", {"#address-cells": cells[0], "#size-cells": cells[1]})
    reg = b"".join(at.to_bytes(4 * cells[0], "big") + size.to_bytes(4 * cells[1], "big") for at, size in banks)
    root.add("memory@40000000", {"device_type": "memory", "reg": reg})
    root.add("memory-controller@0", {"reg": reg})
    memory.write(TREE, flatten(root))
    return memory


@pytest.mark.parametrize("cells", [(2, 2), (1, 1), (2, 1)])
def test_the_end_of_one_bank_is_not_told(cells: tuple[int, int]) -> None:
    memory = with_tree((0x1000, 0x2000), (START, SIZE), cells=cells)
    keep_back(memory, range(START + 0x30_0000, START + SIZE))
    root = unflatten(memory.read(Space.PHYSICAL, TREE, 0x1000)).root
    told, untouched = (cast(bytes, child.properties["reg"]) for child in root.children)
    assert len(told) == len(untouched)
    assert told.replace((0x30_0000).to_bytes(4, "big"), SIZE.to_bytes(4, "big")) == untouched
    assert told != untouched


def test_a_tree_that_does_not_tell_of_it_is_refused() -> None:
    with pytest.raises(MachineError, match="does not tell of memory up to 0x40400000"):
        keep_back(with_tree((START, SIZE // 2), cells=(2, 2)), range(START + 0x30_0000, START + SIZE))
    with pytest.raises(MachineError, match="no device tree in its memory"):
        keep_back(ram(), range(START + 0x30_0000, START + SIZE))


def test_what_was_stored_is_found_wherever_pages_begin() -> None:
    """Beside a search of all of it, which looks at each byte."""
    drawn = random.Random(7)
    for _ in range(30):
        memory, needle = ram(), drawn.randbytes(drawn.choice((1, 7, 32, 5000))) + bytes(drawn.choice((0, 3, 6000)))
        places = sorted({drawn.randrange(0, SIZE - len(needle), 0x400) + drawn.randrange(3) - 1 & ~0 for _ in range(4)})
        for place in places:
            memory.write(START + max(place, 0), needle)
        whole = memory.read(Space.PHYSICAL, START, SIZE)
        expected, at = [], whole.find(needle)
        while at >= 0:
            expected.append(START + at)
            at = whole.find(needle, at + 1)
        memory.close()
        again = ram()
        for place in places:
            again.write(START + max(place, 0), needle)
        assert [*again.find(needle)] == expected
        again.close()

"""Memory that QEMU shares: where it says that it is."""

import mmap

import pytest

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.readout.memory import Space, UnreadableError
from kinst.targets.errors import MachineError

PAGE = mmap.PAGESIZE
# Two views, of which one is not what CPUs and devices see; a hole at 2 pages; and memory of another kind.
TREE = f"""
FlatView #0
 AS "cpu-smm-0", root: memory
 Root memory region: memory
  {0:016x}-{8 * PAGE - 1:016x} (prio 0, ram): kinst-ram
FlatView #1
 AS "memory", root: system
 AS "cpu-memory-0", root: system
 Root memory region: system
  {0:016x}-{2 * PAGE - 1:016x} (prio 0, ram): kinst-ram
  {2 * PAGE:016x}-{3 * PAGE - 1:016x} (prio 0, rom): pc.bios
  {1 << 32:016x}-{(1 << 32) + PAGE - 1:016x} (prio 0, ram): /objects/kinst-ram @{2 * PAGE:016x}
"""


@pytest.fixture
def ram() -> SharedRam:
    """Three pages, each with its number."""
    found = SharedRam(3 * PAGE)
    found.place(TREE)
    with mmap.mmap(found.descriptor, found.size) as view:
        for page in range(3):
            view[page * PAGE : (page + 1) * PAGE] = bytes([page + 1]) * PAGE
    return found


def test_addresses_are_where_the_tree_says(ram: SharedRam) -> None:
    assert ram.read(Space.PHYSICAL, PAGE - 1, 2) == b"\1\2"
    assert ram.read(Space.PHYSICAL, 1 << 32, 1) == b"\3"
    assert ram.start == 0


@pytest.mark.parametrize(("space", "address"), [(Space.PHYSICAL, 2 * PAGE - 1), (Space.VIRTUAL, 0)])
def test_what_it_does_not_back_cannot_be_read(ram: SharedRam, space: Space, address: int) -> None:
    with pytest.raises(UnreadableError, match=f"no 2 bytes at {space.value} address {address:#x}"):
        ram.read(space, address, 2)


def test_content_is_found_at_its_physical_addresses(ram: SharedRam) -> None:
    assert list(ram.find(b"\1\2")) == [PAGE - 1]
    assert next(ram.find(b"\3\3")) == 1 << 32
    assert list(ram.find(b"\2\3")) == []  # they lie side by side in the file alone


def test_a_machine_that_has_not_taken_it_is_refused() -> None:
    with pytest.raises(MachineError, match="has not put this machine's memory into the file"):
        SharedRam(PAGE).place(TREE.replace("kinst-ram", "pc.ram"))

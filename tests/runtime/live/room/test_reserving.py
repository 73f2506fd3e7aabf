"""A device tree in a guest's RAM, where it reserves memory, and where it is not one."""

from pathlib import Path

import pytest

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.reserving import may_move_itself, reserve
from kinst.runtime.machine.devices.fdt import Node, flatten
from kinst.runtime.machine.devices.fdt_reader import unflatten
from kinst.runtime.readout.memory import Space
from kinst.targets.errors import MachineError
from kinst.targets.image import open_image
from tests.writers.elf import EM_RISCV, Part, Symbol, elf64

RAM, SIZE, AT = 0x4000_0000, 1 << 20, 0x4008_0000


@pytest.fixture
def ram() -> SharedRam:
    found = SharedRam(SIZE)
    found.place(
        f'FlatView #0\n AS "memory", root: system\n  {RAM:016x}-{RAM + SIZE - 1:016x} (prio 0, ram): kinst-ram\n'
    )
    return found


def tree(*names: str) -> Node:
    root = Node("")
    for name in names:
        root.add(name, {"kaslr-seed": bytes(range(8)), "reg": (0, RAM, 0, SIZE)})
    return root


def test_it_reserves_what_it_reserved_and_one_range_more_and_has_no_seed(ram: SharedRam) -> None:
    ram.write(AT, flatten(tree("memory@40000000", "chosen"), 3, 0x1_0000, [(0x4001_0000, 0x1000)]))
    reserve(ram, 0x4002_0000, 0x2_0000, keeps_seed=False)
    blob = ram.read(Space.PHYSICAL, AT, 0x1_0000)
    found = unflatten(blob)
    assert found.reservations == ((0x4001_0000, 0x1000), (0x4002_0000, 0x2_0000))
    memory, chosen = found.root.children
    assert "kaslr-seed" in memory.properties
    assert [*chosen.properties] == ["reg"]
    assert int.from_bytes(blob[28:32], "big") == 3  # the CPU that boots


def test_a_kernel_that_can_move_keeps_its_seed(ram: SharedRam) -> None:
    ram.write(AT, flatten(tree("memory@40000000", "chosen"), 3, 0x1_0000))
    reserve(ram, 0x4002_0000, 0x2_0000, keeps_seed=True)
    found = unflatten(ram.read(Space.PHYSICAL, AT, 0x1_0000))
    assert found.root.children[1].properties["kaslr-seed"] == bytes(range(8))


@pytest.mark.parametrize(("end", "may_move"), [(0x1000, False), (0x1018, True)])
def test_a_kernel_without_relocations_cannot_move(tmp_path: Path, end: int, may_move: bool) -> None:  # noqa: FBT001
    path = tmp_path / "kernel.elf"
    symbols = [Symbol("__rela_dyn_start", 0x1000, 0), Symbol("__rela_dyn_end", end, 0)]
    path.write_bytes(elf64(EM_RISCV, 0x1000, [Part(".text", 0x1000, bytes(0x1000), 5)], symbols))
    assert may_move_itself(open_image(path)) is may_move


def test_a_tree_without_memory_is_no_machines(ram: SharedRam) -> None:
    """The kernel's file may have others, for tests of its own; and the same bytes may be anything."""
    other = flatten(tree("chosen"))
    ram.write(AT, other)
    ram.write(AT + 0x1_0000, bytes.fromhex("d00dfeed") + bytes([0xFF]) * 60)
    ram.write(RAM + SIZE - 4, bytes.fromhex("d00dfeed"))
    with pytest.raises(MachineError, match="the guest has no device tree in its memory"):
        reserve(ram, 0x4002_0000, 0x2_0000, keeps_seed=False)
    assert ram.read(Space.PHYSICAL, AT, len(other)) == other

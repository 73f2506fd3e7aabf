"""The memory behind QEMU's gdb stub, and what becomes of the guest."""

from pathlib import Path

import pytest

from kinst.runtime.readout.gdb import GdbStub
from kinst.runtime.readout.memory import Space, UnreadableError
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import open_image
from tests.runtime.readout.qemu import emulator
from tests.samples.machines import MACHINES


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_memory_is_what_was_loaded_by_virtual_and_physical_addresses(machine: str, tmp_path: Path) -> None:
    sample = MACHINES[machine].image
    image = open_image(sample)
    with emulator(machine, tmp_path, "-kernel", str(sample), "-S") as qemu:
        with GdbStub("localhost", qemu.port).open() as memory:
            assert set(memory.spaces) == set(Space)
            for segment in (one for one in image.segments if one.kind == PT_LOAD):
                wanted = image.read(segment.address, segment.file_size)
                assert memory.read(Space.PHYSICAL, segment.load_address, segment.file_size) == wanted
                if segment.address == segment.load_address:
                    assert memory.read(Space.VIRTUAL, segment.address, segment.file_size) == wanted
        assert qemu.status() == "prelaunch"  # -S: nobody but its owner starts it


def test_a_guest_that_runs_goes_on_behind_each_reading(tmp_path: Path) -> None:
    with emulator("arm64", tmp_path) as qemu:
        for _ in range(3):
            qemu.wait_for("running")
            with GdbStub("localhost", qemu.port).open() as memory:
                assert qemu.status() == "paused"
                memory.read(Space.PHYSICAL, 0x4000_0000, 8)
        qemu.wait_for("running")


def test_what_the_guests_tables_do_not_map_cannot_be_read(tmp_path: Path) -> None:
    """QEMU gives zeros for physical addresses at which there is nothing."""
    with emulator("amd64", tmp_path, "-kernel", str(MACHINES["amd64"].image)) as qemu:
        qemu.wait_for("shutdown")
        with GdbStub("localhost", qemu.port).open() as memory:
            with pytest.raises(UnreadableError, match=r"gdb:localhost:.*: cannot read virtual address 0x7ffff0000000 "):
                memory.read(Space.VIRTUAL, 0x7FFF_F000_0000, 8)
            assert memory.read(Space.PHYSICAL, 0x7FFF_F000_0000, 8) == bytes(8)
            link, physical = 0xFFFF_FFFF_8010_1000, 0x10_1000
            assert memory.read(Space.VIRTUAL, link, 64) == memory.read(Space.PHYSICAL, physical, 64) != bytes(64)
        assert qemu.status() == "shutdown"

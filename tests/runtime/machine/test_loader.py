"""Where an image's segments end up: by physical address, moved, or where a Linux kernel's boot header says."""

from pathlib import Path

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.loader import load_image, misplaced
from kinst.runtime.machine.system import System
from kinst.targets.errors import MachineError
from kinst.targets.image import open_image
from kinst.targets.machines.registry import machine_facts
from tests.writers.elf import EM_AARCH64, EM_RISCV, ET_EXEC, Part, elf64

ET_DYN = 3
MACHINES = {EM_AARCH64: "virt-arm64", EM_RISCV: "virt-riscv64"}
RAM = {EM_AARCH64: 0x4000_0000, EM_RISCV: 0x8000_0000}
VIRTUAL = 0xFFFF_FFFF_8000_0000
MAGIC = {EM_AARCH64: b"ARM\x64", EM_RISCV: b"RSC\x05"}


def boot_header(machine: int, text_offset: int) -> bytes:
    return bytes(8) + text_offset.to_bytes(8, "little") + bytes(40) + MAGIC[machine] + bytes(4)


def loaded(
    folder: Path, machine: int, content: bytes, *, kind: int = ET_EXEC, physical: int = 0, memory: int | None = None
) -> tuple[System, Loaded]:
    """A segment of `content` and one behind it, at VIRTUAL and VIRTUAL + 0x10000."""
    parts = [
        Part(".text", VIRTUAL, content, 5, load_address=physical),
        Part(".data", VIRTUAL + 0x1_0000, b"data", 6, size=0x2000, load_address=physical + 0x1_0000),
    ]
    path = folder / "image.elf"
    path.write_bytes(elf64(machine, VIRTUAL + 8, parts, kind=kind))
    facts = machine_facts(MACHINES[machine])
    system = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT, memory=memory))
    return system, load_image(open_image(path), facts, system.memory)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("text_offset", "at"), [(0x20_0000, 0x20_0000), (0x8_0000, 0x8_0000), (0, 0x20_0000)])
def test_a_linux_kernel_goes_where_its_header_says(tmp_path: Path, machine: int, text_offset: int, at: int) -> None:
    start = RAM[machine] + at
    system, image = loaded(tmp_path, machine, boot_header(machine, text_offset), physical=1 << 40)
    assert image.segments == ((VIRTUAL, start, 64), (VIRTUAL + 0x1_0000, start + 0x1_0000, 0x2000))
    assert (image.bias, image.entry, image.physical_entry) == (0, VIRTUAL + 8, start + 8)
    assert system.memory.read(start + 56, 4) == MAGIC[machine]
    assert system.memory.read(start + 0x1_0000, 8) == b"data" + bytes(4)


def test_a_linux_kernel_that_is_linked_where_there_is_memory_stays_there(tmp_path: Path) -> None:
    physical = RAM[EM_RISCV] + 0x40_0000
    _, image = loaded(tmp_path, EM_RISCV, boot_header(EM_RISCV, 0x20_0000), physical=physical)
    assert image.segments[0] == (VIRTUAL, physical, 64)


def test_a_linux_kernel_goes_where_its_header_says_even_if_flash_is_where_it_is_linked(tmp_path: Path) -> None:
    """virt-arm64's first bank of flash is memory that firmware may be linked into."""
    _, image = loaded(tmp_path, EM_AARCH64, boot_header(EM_AARCH64, 0x8_0000), physical=0)
    assert image.segments[0][1] == RAM[EM_AARCH64] + 0x8_0000
    _, firmware = loaded(tmp_path, EM_AARCH64, bytes(64), physical=0)
    assert firmware.segments[0][1] == 0


def test_a_linux_kernel_cannot_be_anywhere_in_memory(tmp_path: Path) -> None:
    """It is told by its header how far from a boundary of 2 MiB it starts."""
    physical = RAM[EM_AARCH64] + 0x31_0000
    _, image = loaded(tmp_path, EM_AARCH64, boot_header(EM_AARCH64, 0x8_0000), physical=physical)
    assert image.segments[0][1] == RAM[EM_AARCH64] + 0x8_0000


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(boot_header(EM_RISCV, 0x20_0000)[:60], id="too short for a header"),
        pytest.param(boot_header(EM_AARCH64, 0x20_0000), id="another machine's header"),
        pytest.param(bytes(64), id="no header"),
    ],
)
def test_any_other_image_outside_memory_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(MachineError, match=r"segment 0: .* at 0x0 are not in virt-riscv64's RAM, .* another board"):
        loaded(tmp_path, EM_RISCV, content)


def test_a_kernel_for_which_memory_is_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"0x40 bytes at 0x80200000 are not in .*: try --memory 3m or more"):
        loaded(tmp_path, EM_RISCV, boot_header(EM_RISCV, 0x20_0000), memory=0x20_0000)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (  # another's DRAM, and its SRAM
            (0x4_0000, 0xFF3B_0000),
            "and no --memory will do: the image wants 0x40000 to 0xff3b1000, and is linked for another board",
        ),
        ((0x8F60_0000,), "wants RAM at 0x8f600000 to 0x8f601000, as another board has it; .*, --memory 1271m or more"),
        (
            (0x4000_0000, 0x47FF_F800),
            "are not in virt-arm64's RAM, 0x40000000 to 0x48000000: try --memory 129m or more",
        ),
    ],
    ids=["sram", "ram", "end"],
)
def test_an_image_of_another_board_is_told_what_it_wants(tmp_path: Path, parts: tuple[int, ...], told: str) -> None:
    path = tmp_path / "image.elf"
    path.write_bytes(elf64(EM_AARCH64, parts[0], [Part(f".{at:x}", at, b"code", 7, size=0x1000) for at in parts]))
    facts = machine_facts("virt-arm64")
    system = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
    with pytest.raises(MachineError, match=told):
        load_image(open_image(path), facts, system.memory)


@pytest.mark.parametrize(
    ("at", "told"),
    [(0x20_0000, "memory at 0x200000 to 0x201000, where virt-arm64 has flash, 0x0 to 0x4000000"), (0, "")],
)
def test_what_is_linked_into_flash_starts_there_or_is_of_another_board(tmp_path: Path, at: int, told: str) -> None:
    path = tmp_path / "image.elf"
    path.write_bytes(elf64(EM_AARCH64, at, [Part(".text", at, b"code", 7, size=0x1000)]))
    facts = machine_facts("virt-arm64")
    system = System(facts, board_of(facts.name), Configuration(clock=ClockKind.ICOUNT))
    found = misplaced(load_image(open_image(path), facts, system.memory), facts)
    assert told in (found or "")
    assert bool(found) is bool(told)


def test_position_independent_firmware_moves_to_the_start_of_memory(tmp_path: Path) -> None:
    _, image = loaded(tmp_path, EM_RISCV, bytes(64), kind=ET_DYN, physical=0)
    assert image.segments[0][1] == RAM[EM_RISCV]
    assert image.bias == RAM[EM_RISCV]

"""Where the trampolines of an image go that is patched in memory."""

from pathlib import Path

import pytest

from kinst.runtime.tracing.images.nearby import nearby
from kinst.runtime.trap.arch.registry import jump
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.image import open_image
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, elf64

KERNEL, MIB = 0xFFFF_8000_0800_0000, 1 << 20


def at(folder: Path, machine: int, address: int, size: int = 0x1000) -> int | None:
    path = folder / "image.elf"
    path.write_bytes(elf64(machine, address, [Part(".text", address, bytes(size), 5)], []))
    return nearby(open_image(path))


def test_they_are_below_a_kernel_where_a_jump_reaches_all_of_it(tmp_path: Path) -> None:
    base, make = at(tmp_path, EM_AARCH64, KERNEL, 40 * MIB), jump(ARM64)
    assert base is not None and make is not None
    assert base + 64 * MIB <= KERNEL
    assert make(base, KERNEL + 40 * MIB) is not None


@pytest.mark.parametrize(
    ("machine", "address", "size"),
    [
        (EM_AARCH64, KERNEL, 80 * MIB),  # too far for a jump
        (EM_AARCH64, 0x4020_0000, 0x1000),  # there may be code anywhere
        (EM_RISCV, 0xFFFF_FFFF_8000_0000, 0x1000),  # a jump reaches 1 MiB
        (EM_X86_64, 0xFFFF_FFFF_8100_0000, 0x1000),  # trampolines jump back by an address
    ],
)
def test_elsewhere_they_are_where_they_always_are(machine: int, address: int, size: int, tmp_path: Path) -> None:
    assert at(tmp_path, machine, address, size) is None

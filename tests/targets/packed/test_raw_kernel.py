"""An Image for arm64 or riscv64: an ELF file with the kernel's own names, sections and place is made of it."""

import random
from pathlib import Path

import numpy as np
import pytest

from kinst.targets.direct_calls import call_targets
from kinst.targets.errors import ImageError
from kinst.targets.image import open_image
from kinst.targets.kernels.patched_at_boot import boot_patched_ranges
from kinst.targets.packed.unpacking import unpacked
from tests.images import at_hand, real_image
from tests.writers.boot_images import Layout, boot_header, compressed, kallsyms

BASE = 0xFFFF_FFFF_8000_0000
TEXT, TABLE, AT, ROOM = 0x1000, 0x9000, 0xA000, 0x8_0000
MAGIC = {"arm64": b"ARM\x64", "riscv64": b"RSC\x05"}


def symbols(*, has_data: bool = True) -> list[tuple[int, str, str]]:
    named = {0: "_start", TEXT: "_stext", TABLE - 0x100: "_etext"}
    if has_data:
        named |= {TABLE: "__start___jump_table", TABLE + 0x20: "__stop___jump_table"}
        named |= {TABLE + 0x40: "__start_BTF", TABLE + 0x50: "__stop_BTF"}
    functions = {TEXT + 16 * number: f"function_{number}" for number in range(1, 1200)}
    found = [(BASE + at, "T" if at < TABLE else "D", name) for at, name in {**functions, **named}.items()]
    return sorted(found)


def image(arch: str, layout: Layout = "6.12", *, has_data: bool = True, btf: bytes = b"\x9f\xeb\1\0") -> bytes:
    """Of the form of 7.0 only pointers among the data tell where it is linked."""
    data = bytearray(boot_header(MAGIC[arch], ROOM, 0x20_0000 if arch == "riscv64" else 0).ljust(AT, b"\0"))
    data[TABLE + 0x40 : TABLE + 0x40 + len(btf)] = btf
    pointers = b"".join((BASE + TEXT + 16 * number).to_bytes(8, "little") for number in range(1, 100, 3))
    elsewhere = b"".join((BASE + (number << 24)).to_bytes(8, "little") for number in range(1, 100))
    tables = kallsyms(symbols(has_data=has_data), BASE + AT, layout)
    tail = bytes(-len(tables) & 7) + (b"" if layout == "6.12" else pointers + elsewhere)
    return bytes(data) + tables + tail + bytes(0x1000)


@pytest.mark.parametrize("layout", ["6.1", "6.12", "7.0"])
@pytest.mark.parametrize("arch", MAGIC)
def test_an_elf_file_is_made(arch: str, layout: Layout, tmp_path: Path) -> None:
    data, path = image(arch, layout), tmp_path / "Image.gz"
    path.write_bytes(compressed(data, "gzip"))
    made = open_image(path)
    assert (made.packing, made.facts.name, made.entry) == ("gzip, Image", arch, BASE)
    load = made.segments[0]
    assert (load.address, load.file_size, load.size) == (BASE, len(data), ROOM)
    assert made.read(BASE, len(data)) == data
    assert {name: (place, letter) for place, letter, name in symbols()}.keys() <= set(
        made.symbols.names(np.arange(len(made.symbols)))
    )
    assert made.symbols.address_of("function_7") == BASE + TEXT + 7 * 16
    places = {one.name: (one.address - BASE, one.size) for one in made.sections}
    assert places[".head.text"] == (0, TEXT)
    assert places[".text"] == (TEXT, TABLE - 0x100 - TEXT)
    assert places["__jump_table"] == (TABLE, 0x20)
    assert places[".BTF"] == (TABLE + 0x40, 0x10)
    assert places[".bss"] == (len(data), ROOM - len(data))


def test_types_are_believed_by_their_magic(tmp_path: Path) -> None:
    path = tmp_path / "Image"
    path.write_bytes(image("arm64", btf=b"\x9f\xec\1\0"))
    assert ".BTF" not in {one.name for one in open_image(path).sections}


def test_without_pointers_the_place_is_not_known() -> None:
    whole = image("arm64", "7.0")
    with pytest.raises(ImageError, match="where it is linked"):
        unpacked(np.frombuffer(whole.replace((BASE >> 32).to_bytes(4, "little"), bytes(4)), np.uint8))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (boot_header(MAGIC["arm64"], ROOM).ljust(0x4000, b"\0"), "an Image without kallsyms"),
        (
            boot_header(MAGIC["arm64"], 1 << 40).ljust(0x4000, b"\0"),
            "it takes 0x10000000000 bytes",
        ),
        (image("riscv64", has_data=False), "CONFIG_KALLSYMS_ALL"),
    ],
)
def test_what_tells_too_little_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ImageError, match=why):
        unpacked(np.frombuffer(data, np.uint8))


def test_damage_is_one_error(tmp_path: Path) -> None:
    whole, rng, path = image("arm64"), random.Random(1), tmp_path / "Image"
    for _ in range(40):
        damaged = bytearray(whole[: rng.randrange(100, len(whole) + 1)])
        for _ in range(rng.randint(0, 20)):
            damaged[rng.randrange(64, len(damaged))] = rng.randrange(256)
        path.write_bytes(bytes(damaged))
        try:
            open_image(path)
        except ImageError as error:
            assert "\n" not in str(error)


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-6.12-arm64", "linux-riscv64"))
def test_debians_kernels_are_what_their_vmlinux_is(name: str, tmp_path: Path) -> None:
    """The Image is what objcopy makes of a vmlinux: the bytes of its segments."""
    whole = open_image(real_image(name))
    loads = [one for one in whole.segments if one.kind == 1 and one.file_size]
    low = min(one.address for one in loads)
    data = bytearray(max(one.address + one.file_size for one in loads) - low)
    for one in loads:
        at = one.address - low
        data[at : at + one.file_size] = whole.data[one.offset : one.offset + one.file_size].tobytes()
    (tmp_path / "Image").write_bytes(data)
    made = open_image(tmp_path / "Image")
    theirs, ours = (set(map(tuple, boot_patched_ranges(image).tolist())) for image in (whole, made))
    assert len(theirs - ours) < 0.005 * len(theirs)
    assert ours <= theirs


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("vmlinuz-arm64", "vmlinuz-16k-arm64", "vmlinuz-rt-arm64", "vmlinuz-riscv64"))
def test_debians_newest_kernels_open_as_they_are_installed(name: str) -> None:
    """KIMAGE_VADDR and KERNEL_LINK_ADDR, and types; calls lead to functions."""
    made = open_image(real_image(name))
    base = (
        0xFFFF_FFFF_8000_0000
        if "riscv64" in name
        else 0xFFFF_C000_8000_0000
        if "16k" in name
        else 0xFFFF_8000_8000_0000
    )
    assert made.segments[0].address == base
    assert {".text", ".init.text", ".BTF", "__jump_table"} <= {one.name for one in made.sections}
    start = made.symbols.address_of("vfs_read")
    assert start is not None
    code = np.frombuffer(made.read(start, 1 << 16), np.uint8)
    targets = call_targets(code, start, made.facts)
    assert len(targets) > 1000
    assert np.isin(targets, made.symbols.address).mean() > 0.95

"""Records of static probes: read from notes of every shape, and from the sample kernels."""

import struct
from pathlib import Path

import pytest

from kinst.targets.arch.registry import NAMES
from kinst.targets.image import open_image
from kinst.targets.static_probes import (
    StaticPlace,
    StaticProbe,
    operand_type,
    split_operands,
    static_notes,
    take_apart,
)
from tests.writers.elf import EM_X86_64, Part, elf64

SAMPLES = Path(__file__).parents[2] / "samples"
TEXT, BASE = 0xFFFF_FFFF_8010_0000, 0xFFFF_FFFF_8020_0000


def note(
    provider: bytes, name: bytes, operands: bytes, address: int = TEXT, base: int = BASE, semaphore: int = 0
) -> bytes:
    descriptor = struct.pack("<QQQ", address, base, semaphore) + b"\0".join((provider, name, operands)) + b"\0"
    return raw_note(b"stapsdt\0", descriptor)


def raw_note(owner: bytes, descriptor: bytes, kind: int = 3) -> bytes:
    parts = [struct.pack("<III", len(owner), len(descriptor), kind), owner, descriptor]
    return b"".join(part + bytes(-len(part) % 4) for part in parts)


def image_with(folder: Path, notes: bytes, *, base: int | None = BASE) -> Path:
    parts = [Part(".text", TEXT, b"\x90" * 64 + b"\xc3", 5), Part(".note.stapsdt", 0xFFFF_FFFF_8030_0000, notes, 4)]
    if base is not None:
        parts.append(Part(".stapsdt.base", base, b"\0", 4))
    path = folder / "image.elf"
    path.write_bytes(elf64(EM_X86_64, TEXT, parts))
    return path


def notes_of(
    folder: Path, notes: bytes, *, base: int | None = BASE
) -> list[tuple[str, str, int, tuple[str, ...], int]]:
    found = static_notes(open_image(image_with(folder, notes, base=base)))
    return [(one.provider, one.name, one.place.address, one.place.operands, one.semaphore) for one in found]


def test_notes_are_read_in_the_order_of_addresses_and_once(tmp_path: Path) -> None:
    late = note(b"net", b"packet__in__done", b"-4@%edi 8@-16(%rbp) 4@$5", TEXT + 8)
    early = note(b"vfs", b"open", b"", TEXT + 1, semaphore=TEXT + 0x100)
    assert notes_of(tmp_path, late + raw_note(b"GNU\0", b"other") + early + late) == [
        ("vfs", "open", TEXT + 1, (), TEXT + 0x100),
        ("net", "packet-in-done", TEXT + 8, ("-4@%edi", "8@-16(%rbp)", "4@$5"), 0),
    ]


def test_addresses_move_with_the_base(tmp_path: Path) -> None:
    moved = note(b"p", b"n", b"", TEXT - 0x1000, BASE - 0x1000, BASE)
    assert notes_of(tmp_path, moved) == [("p", "n", TEXT, (), BASE + 0x1000)]
    assert notes_of(tmp_path, moved, base=None) == [("p", "n", TEXT - 0x1000, (), BASE)]
    below = note(b"p", b"n", b"", TEXT + 0x10, BASE + 0x10)
    assert notes_of(tmp_path, below) == [("p", "n", TEXT, (), 0)]


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\x08\0\0\0",
        note(b"p", b"n", b"")[:-8],
        struct.pack("<III", 8, 1 << 31, 3) + b"stapsdt\0",
        struct.pack("<III", 1 << 31, 8, 3) + b"stapsdt\0",
        raw_note(b"stapsdt\0", b"short"),
        raw_note(b"stapsdt\0", bytes(24) + b"no end"),
        raw_note(b"stapsdt\0", note(b"p", b"n", b"")[20:], kind=4),
        note(b"", b"n", b""),
        note(b"a:b", b"n", b""),
        note(b"p", b"n n", b""),
        note(b"p", b"\xff\xfe", b""),
        note(b"p" * 200, b"n", b""),
    ],
)
def test_what_is_damaged_is_left_out(tmp_path: Path, damaged: bytes) -> None:
    good = note(b"p", b"good", b"8@%rax")
    assert [name for _, name, *_ in notes_of(tmp_path, good + damaged)] == ["good"]


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("", ()),
        ("8@%rax", ("8@%rax",)),
        (" -4@%edi  8@symbol(%rip)\t4@$-5 ", ("-4@%edi", "8@symbol(%rip)", "4@$-5")),
        ("8@[sp, 16] -4@w0 8@[x0, x1, lsl 3]", ("8@[sp, 16]", "-4@w0", "8@[x0, x1, lsl 3]")),
        ("4f@%xmm0 -8@-24(s0)", ("4f@%xmm0", "-8@-24(s0)")),
        ("%rax %rbx", ("%rax", "%rbx")),
    ],
)
def test_operands_are_told_apart(text: str, operands: tuple[str, ...]) -> None:
    assert split_operands(text) == operands


@pytest.mark.parametrize(
    ("operand", "parts", "kind"),
    [
        ("-4@%edi", (4, True, "%edi"), "int32_t"),
        ("8@-16(%rbp)", (8, False, "-16(%rbp)"), "uint64_t"),
        ("1@$5", (1, False, "$5"), "uint8_t"),
        ("-2@[sp, 16]", (2, True, "[sp, 16]"), "int16_t"),
        ("-8@a0", (8, True, "a0"), "int64_t"),
        ("%rax", (8, False, "%rax"), "uint64_t"),
        ("4f@%xmm0", None, "uintptr_t"),
        ("16@%xmm0", None, "uintptr_t"),
        ("99999999999999999999@%rax", None, "uintptr_t"),
    ],
)
def test_sizes_and_signs(operand: str, parts: tuple[int, bool, str] | None, kind: str) -> None:
    assert take_apart(operand) == parts
    assert operand_type(operand) == kind


def test_types_are_those_of_the_first_place() -> None:
    places = (StaticPlace(1, ("-4@%edi", "8@%rax")), StaticPlace(2, ("4@$1",)))
    assert StaticProbe("p", "", "f", "n", places).types == ("int32_t", "uint64_t")
    assert StaticProbe("p", "", "f", "n", places, declared=("char *",)).types == ("char *", "uint64_t")
    assert StaticProbe("p", "", "f", "n", ()).types == ()


@pytest.mark.parametrize("arch", NAMES)
def test_the_sample_kernels_have_those_of_their_callouts(arch: str) -> None:
    image = open_image(SAMPLES / f"kernel-{arch}.elf")
    found = static_notes(image)
    assert [(one.provider, one.name, one.semaphore) for one in found] == [
        ("callout_execute", "callout_start", 0), ("callout_execute", "callout_end", 0),
    ]  # fmt: skip
    start = image.symbols.address_of("callout_execute")
    assert start is not None
    assert all(start < one.place.address < start + 64 for one in found)
    assert all(image.read(one.place.address, 4).startswith(image.facts.nops) for one in found)
    assert all(operand_type(one.place.operands[0]) == "uint64_t" for one in found)

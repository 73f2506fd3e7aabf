"""Symbols: tables of an image, System.map and nm's output, mapping symbols, and which of them name functions."""

from pathlib import Path

import numpy as np
import pytest

from kinst.targets.elf.symbols import (
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_NOTYPE,
    STT_OBJECT,
    Symbols,
    is_assembler_label,
    mapping_letters,
    read_symbol_table,
)
from kinst.targets.errors import ImageError
from kinst.targets.functions.named_functions import data_in_code, named_functions
from kinst.targets.image import open_image
from kinst.targets.names.symbol_file import read_symbol_file
from tests.images import real_image
from tests.targets.inputs import functions_of, symbol_table
from tests.writers.elf import EM_RISCV, Part, elf64

CODE = 0x80000000


def read(tmp_path: Path, text: str) -> Symbols:
    path = tmp_path / "System.map"
    path.write_text(text)
    return read_symbol_file(path)


# Symbol files.


def test_system_map(tmp_path: Path) -> None:
    symbols = read(
        tmp_path,
        "0000000000000000 A VDSO\nffffffff81000000 T _text\nffffffff81000010 t helper\nffffffff81000020 W weak_one\n"
        "ffffffff82000000 D some_data\n",
    )
    assert symbols.names(np.arange(5)) == ["VDSO", "_text", "helper", "weak_one", "some_data"]
    assert symbols.address[1:3].tolist() == [0xFFFFFFFF81000000, 0xFFFFFFFF81000010]
    assert symbols.kind.tolist() == [STT_NOTYPE, STT_FUNC, STT_FUNC, STT_FUNC, STT_OBJECT]
    assert symbols.binding.tolist()[1:4] == [STB_GLOBAL, STB_LOCAL, STB_WEAK]


def test_output_of_nm_with_sizes_undefined_symbols_and_file_names(tmp_path: Path) -> None:
    symbols = read(
        tmp_path,
        "\nkernel.o:\n                 U undefined\n                 w weak_undefined\n"
        "0000000080000000 0000000000000024 T main\n0000000080000024 t local\n"
        "0000000080000100 T versioned [module]\n",
    )
    assert symbols.names(np.arange(3)) == ["main", "local", "versioned"]
    assert symbols.size.tolist() == [0x24, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no symbols"),
        ("\n\n", "no symbols"),
        ("hello world\n", "System.map:1: not a line"),
        ("80000000 T f\n80000010 TT g\n", "System.map:2: not a line"),
        ("80000000 T\n", "System.map:1: not a line"),
        ("80000000 1 T\n", "System.map:1: not a line"),
        ("-1 T f\n", "System.map:1: not a line"),
        ("1ffffffffffffffff T f\n", "System.map:1: not a line"),
        ("80000000 5 f g\n", "System.map:1: not a line"),
        ("\x00\x7f\x01\n", "System.map:1: not a line"),
    ],
)
def test_what_is_no_symbol_file(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_symbol_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="No such file"):
        read_symbol_file(tmp_path / "none")
    with pytest.raises(ImageError, match="directory"):
        read_symbol_file(tmp_path)


def test_symbols_of_another_image(tmp_path: Path) -> None:
    path, image = tmp_path / "System.map", open_image(real_image("opensbi-1.1"))
    path.write_text("80000000 T _start\n80000010 t f\nffffffff80000000 T elsewhere\n")
    assert len(read_symbol_file(path, regions=image.code_regions)) == 3
    path.write_text("80000000 T _start\nffffffff81000000 T _text\nffffffff81000010 T f\n")
    with pytest.raises(ImageError, match=r"symbols of another image: its code is at 0x80000000 to 0xffffffff81000010"):
        read_symbol_file(path, regions=image.code_regions)
    path.write_text("80000000 D data\n")
    with pytest.raises(ImageError, match="it has no code"):
        read_symbol_file(path, regions=image.code_regions)


def test_system_map_gives_a_stripped_image_its_names(tmp_path: Path) -> None:
    """nm's own view of Xen, on the copy without symbols: the same functions as with the symbol table."""
    whole = open_image(real_image("xen-arm64"))
    rows = np.flatnonzero(whole.symbols.kind == STT_FUNC)
    lines = [
        f"{int(whole.symbols.address[row]):016x} {int(whole.symbols.size[row]):016x} T {name}"
        for row, name in zip(rows.tolist(), whole.symbols.names(rows), strict=True)
    ]
    found = functions_of(whole, read(tmp_path, "\n".join(lines)))
    expected = functions_of(whole)
    named = dict(zip(expected.address.tolist(), expected.size.tolist(), strict=True))
    same = [
        named.get(address) == size for address, size in zip(found.address.tolist(), found.size.tolist(), strict=True)
    ]
    assert np.mean(same) > 0.99


# Tables.


def test_names_that_share_a_tail() -> None:
    symbols = symbol_table({"open": (1, 0, STT_FUNC, STB_GLOBAL), "reopen": (2, 0, STT_FUNC, STB_GLOBAL)})
    shared = Symbols(
        symbols.address, symbols.size, symbols.kind, symbols.binding, symbols.section,
        np.array([3, 1], np.uint64), b"\0reopen\0",
    )  # fmt: skip
    assert shared.names(np.arange(2)) == ["open", "reopen"]
    assert shared.rows_named("open").tolist() == [0]
    assert shared.address_of("reopen") == 2
    assert shared.address_of("pen") is None
    assert shared.rows_named("").tolist() == []


def test_joined_tables_keep_their_names() -> None:
    first = symbol_table({"a": (1, 0, STT_FUNC, STB_GLOBAL)})
    second = symbol_table({"b": (2, 0, STT_FUNC, STB_GLOBAL), "c": (3, 0, STT_FUNC, STB_LOCAL)})
    both = first.joined(second)
    assert both.names(np.arange(3)) == ["a", "b", "c"]
    assert both.take(np.array([2, 0])).names(np.arange(2)) == ["c", "a"]


def test_symbol_table_whose_strings_have_no_end() -> None:
    table = np.zeros(24, np.uint8)
    table[0] = 1
    symbols = read_symbol_table(table, np.frombuffer(b"\0abc", np.uint8), ".symtab")
    assert symbols.names(np.array([0])) == ["abc"]


MAPPING = {"$x": "x", "$d": "d", "$d.12": "d", "$t": "t", "$a": "a", "$xrv64i2p1_m2p0": "x", "__efistub_$d": "d",
           "$dollar": "", "$": "", "x$d": "", "$y": "", "d": ""}  # fmt: skip


def test_mapping_symbols() -> None:
    symbols = symbol_table(dict.fromkeys(MAPPING, (0, 0, STT_NOTYPE, STB_LOCAL)))
    found = [chr(letter) if letter else "" for letter in mapping_letters(symbols).tolist()]
    assert dict(zip(MAPPING, found, strict=True)) == MAPPING


def test_labels_of_the_assembler() -> None:
    names = [".L12", ".LBB0", "__pi_.L0", "f", "L", ".text", "#"]
    symbols = symbol_table(dict.fromkeys(names, (0, 0, STT_NOTYPE, STB_LOCAL)))
    assert is_assembler_label(symbols).tolist() == [True, True, True, False, False, False, True]


# Which functions symbols name. The image is 0x400 bytes of nops and returns.


@pytest.fixture
def image_path(tmp_path: Path) -> Path:
    code = bytearray(b"\x13\0\0\0" * 0x100)
    code[0x3F0:0x3F4] = b"\x67\x80\0\0"  # ret
    path = tmp_path / "code.elf"
    path.write_bytes(elf64(EM_RISCV, CODE, [Part(".text", CODE, bytes(code), 5)]))
    return path


def named(path: Path, rows: dict[str, tuple[int, int, int, int]]) -> dict[str, tuple[int, int]]:
    """Name -> offset and size of what is surely a function."""
    moved = {name: (CODE + at, size, kind, binding) for name, (at, size, kind, binding) in rows.items()}
    found = named_functions(open_image(path), symbol_table(moved))
    return {
        name: (int(start) - CODE, int(end - start))
        for name, start, end, certain in zip(found.names, found.address, found.end, found.is_certain, strict=True)
        if certain
    }


def test_sizes_are_the_symbols_own(image_path: Path) -> None:
    rows = {"f": (0, 16, STT_FUNC, STB_GLOBAL), "g": (32, 8, STT_FUNC, STB_LOCAL)}
    assert named(image_path, rows) == {"f": (0, 16), "g": (32, 8)}


def test_a_symbol_without_size_ends_at_the_next_one(image_path: Path) -> None:
    rows = {"f": (0, 0, STT_FUNC, STB_GLOBAL), "g": (32, 8, STT_FUNC, STB_LOCAL), "h": (0x3E0, 0, STT_FUNC, STB_LOCAL)}
    assert named(image_path, rows) == {"f": (0, 32), "g": (32, 8), "h": (0x3E0, 32)}


def test_what_two_sizes_cover_belongs_to_the_later(image_path: Path) -> None:
    rows = {"outer": (0, 64, STT_FUNC, STB_GLOBAL), "inner": (16, 16, STT_FUNC, STB_GLOBAL)}
    assert named(image_path, rows) == {"outer": (0, 16), "inner": (16, 48)}


def test_a_size_never_leaves_the_code(image_path: Path) -> None:
    rows = {"f": (0x3F0, 1 << 40, STT_FUNC, STB_GLOBAL), "g": (0x500, 8, STT_FUNC, STB_GLOBAL)}
    assert named(image_path, rows) == {"f": (0x3F0, 16)}


def test_labels_inside_a_function_are_none(image_path: Path) -> None:
    rows = {
        "f": (0, 64, STT_FUNC, STB_GLOBAL), "inside": (16, 0, STT_NOTYPE, STB_LOCAL),
        "asm": (64, 0, STT_FUNC, STB_GLOBAL), "loop": (80, 0, STT_NOTYPE, STB_LOCAL),
        "sized": (128, 8, STT_NOTYPE, STB_LOCAL), "$x": (132, 0, STT_NOTYPE, STB_LOCAL), "odd": (7, 4, STT_FUNC, 1),
    }  # fmt: skip
    assert named(image_path, rows) == {"f": (0, 64), "asm": (64, 64), "sized": (128, 8)}


def test_the_primary_name_does_not_depend_on_the_order(image_path: Path) -> None:
    rows = {
        "_stext": (0, 0, STT_NOTYPE, STB_GLOBAL), "__vfs_read": (0, 16, STT_FUNC, STB_GLOBAL),
        "vfs_read": (0, 16, STT_FUNC, STB_GLOBAL), "a_local": (0, 16, STT_FUNC, STB_LOCAL),
        "a_weak": (0, 16, STT_FUNC, STB_WEAK),
    }  # fmt: skip
    for order in (list(rows), list(reversed(rows))):
        moved = {name: (CODE, *rows[name][1:]) for name in order}
        found = named_functions(open_image(image_path), symbol_table(moved))
        assert found.names == ("vfs_read",)
        assert found.aliases == {0: ("__vfs_read", "a_local", "a_weak", "_stext")}


def test_statics_of_the_same_name_are_apart(image_path: Path) -> None:
    rows = {"f#1": (0, 16, STT_FUNC, STB_LOCAL), "f#2": (32, 16, STT_FUNC, STB_LOCAL)}
    moved = {name: (CODE + at, *rest) for name, (at, *rest) in rows.items()}
    found = named_functions(open_image(image_path), symbol_table(moved))  # type: ignore[arg-type]
    assert found.names == ("f", "f")
    assert (found.address - np.uint64(CODE)).tolist() == [0, 32]


def test_data_among_code_is_marked(image_path: Path) -> None:
    rows = {
        "$d": (CODE + 16, 0, STT_NOTYPE, STB_LOCAL), "$x": (CODE + 24, 0, STT_NOTYPE, STB_LOCAL),
        "table": (CODE + 64, 32, STT_OBJECT, STB_LOCAL), "$d#last": (CODE + 0x3F8, 0, STT_NOTYPE, STB_LOCAL),
        "$d#elsewhere": (CODE + 0x900, 0, STT_NOTYPE, STB_LOCAL),
    }  # fmt: skip
    found = data_in_code(open_image(image_path), symbol_table(rows))
    assert [(int(start) - CODE, int(size)) for start, size in found] == [(16, 8), (64, 32), (0x3F8, 8)]


@pytest.mark.parametrize("name", ["gnumach", "xen-arm64"])
def test_sized_functions_of_a_real_image_are_what_nm_would_print(name: str) -> None:
    image = open_image(real_image(name))
    symbols = image.symbols
    found = named_functions(image, symbols)
    bounds = dict(zip(found.address.tolist(), found.end.tolist(), strict=True))
    rows = np.flatnonzero((symbols.kind == STT_FUNC) & (symbols.size > 0))
    assert len(rows) > 1000
    for row, name in zip(rows.tolist(), symbols.names(rows), strict=True):
        start = int(symbols.address[row])
        assert bounds[start] == start + int(symbols.size[row])
        number = int(np.searchsorted(found.address, np.uint64(start)))
        assert name in (found.names[number], *found.aliases.get(number, ()))

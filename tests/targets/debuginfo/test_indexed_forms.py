"""Names and addresses by index (DW_FORM_strx*, DW_OP_addrx), as clang writes DWARF 5: assembled here, gcc does not."""

from pathlib import Path

import pytest

from kinst.targets.c_types import ImageTypes, Integer, Typedef
from kinst.targets.debuginfo.image_types import image_types
from tests.targets.debuginfo.compiled import compiled

ABBREVIATIONS = """
    .section .debug_abbrev,"",@progbits
abbrev: .uleb128 1, 0x11; .byte 1; .uleb128 0x72, 0x17, 0x73, 0x17, 0, 0  # compile_unit: str_offsets_base, addr_base
    .uleb128 2, 0x24; .byte 0; .uleb128 0x03, 0x25, 0x3e, 0x0b, 0x0b, 0x0b, 0, 0  # base_type: name strx1
    .uleb128 3, 0x16; .byte 0; .uleb128 0x49, 0x13, 0x03, 0x26, 0, 0  # typedef: type, name strx2
    .uleb128 4, 0x34; .byte 0; .uleb128 0x03, 0x1a, 0x49, 0x13, 0x02, 0x18, 0, 0  # variable: name strx
    .uleb128 5, 0x04; .byte 1; .uleb128 0x03, 0x28, 0x0b, 0x0b, 0, 0  # enumeration_type: name strx4
    .uleb128 6, 0x28; .byte 0; .uleb128 0x03, 0x27, 0x1c, 0x0b, 0, 0  # enumerator: name strx3
    .byte 0
"""


def unit(number: int, size: int, value: int) -> str:
    """One unit and its parts of the tables: all names are numbered from 0 again."""
    names = [f"base_{number}", f"alias_{number}", "shared", f"kind_{number}", f"VALUE_{number}"]
    table = "\n".join(f".long .Lname{number}_{index}" for index in range(len(names)))
    strings = "\n".join(f'.Lname{number}_{index}: .asciz "{name}"' for index, name in enumerate(names))
    return f"""
    .section .debug_info,"",@progbits
.Lunit{number}: .long .Lend{number} - .Lversion{number}
.Lversion{number}: .short 5; .byte 1, 8; .long abbrev
    .uleb128 1; .long .Loffsets{number} - offsets, .Laddresses{number} - addresses
.Lbase{number}: .uleb128 2; .byte 0, 5, {size}
.Lalias{number}: .uleb128 3; .long .Lbase{number} - .Lunit{number}; .short 1
    .uleb128 4, 2; .long .Lalias{number} - .Lunit{number}; .uleb128 2; .byte 0xa1, 1
    .uleb128 5; .long 3; .byte 4
    .uleb128 6; .byte 4, 0, 0, {value}
    .byte 0, 0
.Lend{number}:
    .section .debug_str_offsets,"",@progbits
    .long {4 * len(names) + 4}; .short 5, 0
.Loffsets{number}:
{table}
    .section .debug_addr,"",@progbits
    .long 20; .short 5; .byte 8, 0
.Laddresses{number}: .quad 0, variable_{number}
    .section .debug_str,"MS",@progbits,1
{strings}
    .data
    .globl variable_{number}
variable_{number}: .quad 0
    .local shared_{number}
"""


START = """
    .section .debug_str_offsets,"",@progbits
offsets:
    .section .debug_addr,"",@progbits
addresses:
    .section .debug_str,"MS",@progbits,1
    .asciz "first"
    .text
    .globl start
start: nop
    .data
    .set shared, variable_2
    .globl shared
"""


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> ImageTypes:
    folder: Path = tmp_path_factory.mktemp("indexed")
    source = START + ABBREVIATIONS + unit(1, 2, 7) + unit(2, 4, 9)
    return image_types(compiled(folder, "amd64", {"units.s": source}))


def test_names_are_found_in_the_unit_whose_part_of_the_table_has_them(types: ImageTypes) -> None:
    assert types.type_named("base_1") == Integer("base_1", 2, is_signed=True)
    assert types.type_named("alias_2") == Typedef("alias_2", Integer("base_2", 4, is_signed=True))
    assert types.type_named("alias_3") is None


def test_enumerators_by_index(types: ImageTypes) -> None:
    found = [types.enumerator(f"VALUE_{number}") for number in (1, 2)]
    assert [entry and (entry[0].tag, entry[1]) for entry in found] == [("kind_1", 7), ("kind_2", 9)]


def test_an_address_by_index_tells_namesakes_apart(types: ImageTypes) -> None:
    """Both units have a variable "shared"; the symbol is the second's."""
    symbol = types.symbol("shared")
    assert symbol is not None and symbol.type == types.type_named("alias_2")

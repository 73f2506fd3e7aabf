"""Every form of name, reference, address and range, in DWARF made by hand; and damage."""

import random
import struct

import pytest

from kinst.targets.debuginfo.dwarf.numbers import At, Form, Tag
from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.debuginfo.inlined import InlinedCopy
from kinst.targets.elf.file import ElfFile
from kinst.targets.errors import ImageError
from tests.writers.dwarf import Attribute, Die, Dwarf, padded

LOW, HIGH = 0x1000, 0x1010
SYMBOLS = {"outer": (0x1000, 0x800), "outer.cold": (0x9000, 0x100)}
RANGE: tuple[Attribute, ...] = ((At.LOW_PC, Form.ADDR, LOW), (At.HIGH_PC, Form.ADDR, HIGH))


def copy_of(label: str, form: Form = Form.REF4, *more: Attribute) -> Die:
    return Die(Tag.INLINED_SUBROUTINE, ((At.ABSTRACT_ORIGIN, form, label), *(more or RANGE)))


def around(*copies: Die) -> Die:
    return Die(Tag.SUBPROGRAM, ((At.NAME, Form.STRING, "outer"), *RANGE), copies)


def function(*more: Attribute, label: str = "f", name: Attribute = (At.NAME, Form.STRP, "wanted")) -> Die:
    return Die(Tag.SUBPROGRAM, (name, (At.INLINE, Form.DATA1, 1), *more), label=label)


def unit(*dies: Die, version: int = 5, wide: int = 4, more: tuple[Attribute, ...] = ()) -> tuple[int, int, Die]:
    return version, wide, Die(Tag.COMPILE_UNIT, ((At.NAME, Form.STRING, "a.c"), *more), dies)


def built(*units: tuple[int, int, Die], **others: bytes) -> ElfFile:
    dwarf = Dwarf(others=others)
    dwarf.string("something that ends like un")
    return dwarf.units(*units).file(SYMBOLS)


def only(elf: ElfFile, name: str = "wanted") -> InlinedCopy:
    (found,) = InlineSearch(elf).find(name)
    (copy,) = found.copies
    return copy


@pytest.mark.parametrize("wide", [4, 8])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("form", [Form.REF1, Form.REF2, Form.REF4, Form.REF8, Form.REF_UDATA, Form.REF_ADDR])
def test_references(form: Form, version: int, wide: int) -> None:
    for order in (1, -1):
        dies = (function(), around(copy_of("f", form)))[::order]
        copy = only(built(unit(*dies, version=version, wide=wide)))
        assert copy == InlinedCopy(((LOW, HIGH),), LOW, "outer", LOW, copy.call)


def test_indirect_forms() -> None:
    name: Attribute = (At.NAME, Form.INDIRECT, (Form.STRING, "wanted"))
    copy = Die(Tag.INLINED_SUBROUTINE, ((At.ABSTRACT_ORIGIN, Form.INDIRECT, (Form.REF4, "f")), *RANGE))

    assert only(built(unit(around(copy), function(name=name)))).ranges == ((LOW, HIGH),)


@pytest.mark.parametrize("form", [Form.STRP, Form.STRING])
@pytest.mark.parametrize("attribute", [At.NAME, At.LINKAGE_NAME, At.MIPS_LINKAGE_NAME])
def test_names(attribute: At, form: Form) -> None:
    die = Die(
        Tag.SUBPROGRAM,
        ((At.DECL_LINE, Form.UDATA, 300), (attribute, form, "wanted"), (At.INLINE, Form.IMPLICIT_CONST, 3)),
        label="f",
    )
    elf = built(unit(die, around(copy_of("f"))))

    assert only(elf).caller == "outer" and InlineSearch(elf).exists("wanted")
    assert InlineSearch(elf).find("wante") == InlineSearch(elf).find("anted") == ()


def indexed(form: Form) -> Dwarf:
    """Two units with a table of names each: index 1 is "other" in the first and "wanted" in the second."""
    dwarf = Dwarf()
    other, wanted = dwarf.string("other"), dwarf.string("wanted")
    dwarf.others["str_offsets"] = b"".join(
        struct.pack("<IHHII", 12, 5, 0, *pair) for pair in ((wanted, other), (other, wanted))
    )
    units = [
        unit(
            function(name=(At.NAME, form, 1), label=f"f{number}"),
            around(copy_of(f"f{number}", Form.REF4, (At.LOW_PC, Form.ADDR, LOW + number), RANGE[1])),
            more=((At.STR_OFFSETS_BASE, Form.SEC_OFFSET, 8 + 16 * number),),
        )
        for number in range(2)
    ]
    return dwarf.units(*units)


@pytest.mark.parametrize("form", [Form.STRX, Form.STRX1, Form.STRX2, Form.STRX3, Form.STRX4, Form.GNU_STR_INDEX])
def test_names_by_index(form: Form) -> None:
    elf = indexed(form).file(SYMBOLS)

    assert only(elf).ranges == ((LOW + 1, HIGH),)
    assert only(elf, "other").ranges == ((LOW, HIGH),)
    assert InlineSearch(elf).names("*") == ["other", "wanted"]


def test_a_name_that_other_names_end_with() -> None:
    dwarf = Dwarf()
    tail = dwarf.string("not_wanted") + 4
    elf = dwarf.units(
        unit(function(name=(At.NAME, Form.STRP, tail)), around(copy_of("f"))),
        unit(function(name=(At.NAME, Form.STRP, tail - 4), label="g"), around(copy_of("g"))),
    ).file(SYMBOLS)

    assert len(InlineSearch(elf).find("wanted")) == len(InlineSearch(elf).find("not_wanted")) == 1


def test_the_name_of_something_else() -> None:
    variable = Die(0x34, ((At.NAME, Form.STRP, "wanted"),), label="f")
    elf = built(unit(variable, around(copy_of("f"))))

    assert InlineSearch(elf).find("wanted") == () and not InlineSearch(elf).exists("wanted")


def test_an_instance_out_of_line_is_no_copy() -> None:
    instance = Die(Tag.SUBPROGRAM, ((At.ABSTRACT_ORIGIN, Form.REF4, "f"), *RANGE))
    (found,) = InlineSearch(built(unit(function(), instance))).find("wanted")

    assert found.copies == () and found.is_out_of_line


def test_another_unit_and_a_chain_of_origins() -> None:
    """As LTO writes it: the copy is of an entry that only refers to the function, in another unit."""
    middle = Die(Tag.SUBPROGRAM, ((At.ABSTRACT_ORIGIN, Form.REF_ADDR, "f"),), label="m")
    abstract = Die(Tag.INLINED_SUBROUTINE, ((At.ABSTRACT_ORIGIN, Form.REF4, "m"),), label="n")
    elf = built(unit(around(copy_of("n")), abstract, middle), unit(function()))

    assert only(elf).caller == "outer"


@pytest.mark.parametrize("root", [Tag.PARTIAL_UNIT, Tag.COMPILE_UNIT])
def test_partial_units(root: Tag) -> None:
    elf = built((4, 4, Die(root, (), (function(),))), unit(around(copy_of("f", Form.REF_ADDR)), version=4))

    assert only(elf).ranges == ((LOW, HIGH),)


def test_a_specification_is_completed() -> None:
    declared = Die(Tag.SUBPROGRAM, ((At.NAME, Form.STRP, "wanted"), (At.DECLARATION, Form.FLAG_PRESENT, 1)), label="d")
    completed = Die(Tag.SUBPROGRAM, ((At.SPECIFICATION, Form.REF4, "d"), (At.INLINE, Form.DATA1, 1)), label="f")
    elf = built(unit(completed, Die(0x13, (), (declared,)), around(copy_of("f"))))

    assert only(elf).caller == "outer"
    assert InlineSearch(elf).names("w*") == ["wanted"]


# -- where code is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ((Form.ADDR, LOW), (Form.ADDR, HIGH)),
        ((Form.ADDR, LOW), (Form.DATA4, 0x10)),
        ((Form.ADDR, LOW), (Form.UDATA, 0x10)),
        ((Form.ADDRX, 1), (Form.DATA1, 0x10)),
        ((Form.ADDRX1, 1), (Form.ADDRX2, 0)),
        ((Form.ADDRX3, 1), (Form.ADDRX4, 0)),
    ],
)
def test_low_and_high(low: tuple[Form, int], high: tuple[Form, int]) -> None:
    table = struct.pack("<IHBBQQ", 20, 5, 8, 0, HIGH, LOW)
    copy = copy_of("f", Form.REF4, (At.LOW_PC, *low), (At.HIGH_PC, *high))
    elf = built(unit(function(), around(copy), more=((At.ADDR_BASE, Form.SEC_OFFSET, 8),)), addr=table)

    assert only(elf).ranges == ((LOW, HIGH),)


@pytest.mark.parametrize(("form", "value"), [(Form.ADDR, LOW + 4), (Form.DATA2, 4), (Form.UDATA, 4), (Form.ADDRX, 0)])
def test_entry_pc(form: Form, value: int) -> None:
    table = struct.pack("<IHBBQ", 12, 5, 8, 0, LOW + 4)
    copy = copy_of("f", Form.REF4, *RANGE, (At.ENTRY_PC, form, value))
    elf = built(unit(function(), around(copy), more=((At.ADDR_BASE, Form.SEC_OFFSET, 8),)), addr=table)

    assert only(elf).entry == LOW + 4


def test_old_ranges() -> None:
    """From the unit's base, from a new base, an empty one; DWARF 3 has the offset as a plain number."""
    pairs = [(0x10, 0x20), (0x30, 0x30), (2**64 - 1, 0x9000), (0, 8), (0, 0), (1, 2)]
    copy = copy_of("f", Form.REF4, (At.RANGES, Form.DATA4, 16))
    elf = built(
        unit(function(), around(copy), version=3, more=((At.LOW_PC, Form.ADDR, LOW),)),
        ranges=bytes(16) + b"".join(struct.pack("<QQ", *pair) for pair in pairs),
    )

    assert only(elf).ranges == ((LOW + 0x10, LOW + 0x20), (0x9000, 0x9008))


@pytest.mark.parametrize("form", [Form.SEC_OFFSET, Form.RNGLISTX])
def test_range_lists(form: Form) -> None:
    """One of every kind (DWARF 5, 7.25)."""
    word = struct.Struct("<Q").pack
    entries = [
        b"\x04\x10\x20",  # offset_pair from the unit's base
        b"\x04\x30\x30",  # an empty one
        b"\x01\x00" + b"\x04\x01\x02",  # base_addressx
        b"\x02\x00\x01",  # startx_endx
        b"\x03\x01\x08",  # startx_length
        b"\x05" + word(0x6000) + b"\x04\x05\x85\x01",  # base_address
        b"\x06" + word(0x7000) + word(0x7001),  # start_end
        b"\x07" + word(0x8000) + b"\x04",  # start_length
        b"\x00",
    ]
    lists = struct.pack("<IHBBI", 0, 5, 8, 0, 1) + struct.pack("<I", 4) + b"".join(entries)
    at = 16 if form == Form.SEC_OFFSET else 0
    more: tuple[Attribute, ...] = (
        (At.LOW_PC, Form.ADDR, LOW), (At.ADDR_BASE, Form.SEC_OFFSET, 8), (At.RNGLISTS_BASE, Form.SEC_OFFSET, 12)
    )  # fmt: skip
    elf = built(
        unit(function(), around(copy_of("f", Form.REF4, (At.RANGES, form, at))), more=more),
        addr=struct.pack("<IHBBQQ", 20, 5, 8, 0, 0x4000, 0x5000),
        rnglists=lists,
    )

    assert only(elf).ranges == (
        (LOW + 0x10, LOW + 0x20), (0x4001, 0x4002), (0x4000, 0x5000), (0x5000, 0x5008), (0x6005, 0x6085),
        (0x7000, 0x7001), (0x8000, 0x8004),
    )  # fmt: skip


def test_recursive_and_nested_copies() -> None:
    """A copy in a copy in a copy, as deep as the writer of this test can recurse; the reader does not."""
    die = copy_of("f")
    for _ in range(600):
        die = Die(Tag.INLINED_SUBROUTINE, die.attributes, (die,))

    assert len(InlineSearch(built(unit(function(), around(die)))).find("wanted")[0].copies) == 601


def test_cold_parts() -> None:
    copy = copy_of("f", Form.REF4, (At.LOW_PC, Form.ADDR, 0x9010), (At.HIGH_PC, Form.DATA1, 4))

    assert only(built(unit(function(), around(copy)))).caller == "outer.cold"


def test_a_copy_without_instructions_is_none() -> None:
    copies = (
        copy_of("f", Form.REF4, (At.LOW_PC, Form.ADDR, LOW)),
        copy_of("f", Form.REF4, (At.CALL_LINE, Form.DATA1, 1)),
    )
    (found,) = InlineSearch(built(unit(function(), around(*copies)))).find("wanted")

    assert found.copies == ()


# -- parameters -------------------------------------------------------------------------------------------------------


def test_parameters_are_in_the_order_of_the_declaration() -> None:
    names = ("a", "b", "c", "d")
    declared = [Die(Tag.FORMAL_PARAMETER, ((At.NAME, Form.STRING, name),), label=name) for name in names]
    abstract = Die(Tag.SUBPROGRAM, ((At.NAME, Form.STRP, "wanted"), (At.INLINE, Form.DATA1, 1)), declared, "f")
    places: dict[str, Attribute] = {
        "c": (At.CONST_VALUE, Form.SDATA, 5),
        "a": (At.LOCATION, Form.EXPRLOC, b"\x91\x08"),
        "d": (At.LOCATION, Form.SEC_OFFSET, 12),
    }
    here = [Die(Tag.FORMAL_PARAMETER, ((At.ABSTRACT_ORIGIN, Form.REF4, name), place)) for name, place in places.items()]
    copy = Die(Tag.INLINED_SUBROUTINE, ((At.ABSTRACT_ORIGIN, Form.REF4, "f"), *RANGE), here)
    outer = Die(Tag.SUBPROGRAM, ((At.FRAME_BASE, Form.EXPRLOC, b"\x9c"), *RANGE), (copy,))
    word = struct.Struct("<Q").pack
    lists = b"".join(
        [
            bytes(12),
            b"\x04\x00\x04\x01\x50",  # offset_pair
            b"\x09\x01\x01",  # GNU_view_pair
            b"\x08" + word(LOW + 4) + b"\x02\x01\x51",  # start_length
            b"\x07" + word(LOW + 6) + word(LOW + 8) + b"\x00",  # start_end, optimised out
            b"\x05\x01\x52\x00",  # default_location
        ]
    )
    elf = built(unit(abstract, outer, more=((At.LOW_PC, Form.ADDR, LOW),)), loclists=lists)
    (found,) = InlineSearch(elf).find("wanted", with_parameters=True)
    a, b, c, d = found.copies[0].parameters

    assert [one.name for one in (a, b, c, d)] == list(names)
    assert [(one.low, one.high, one.expression, one.frame_base) for one in a.locations] == [
        (LOW, HIGH, b"\x91\x08", b"\x9c")
    ]
    assert b.locations == c.locations == () and (b.constant, c.constant) == (None, 5)
    assert [(one.low, one.high, one.expression) for one in d.locations] == [
        (LOW, LOW + 4, b"\x50"), (LOW + 4, LOW + 6, b"\x51"), (LOW + 6, LOW + 8, b""), (LOW, HIGH, b"\x52")
    ]  # fmt: skip


def test_old_location_lists() -> None:
    parameter = Die(Tag.FORMAL_PARAMETER, ((At.NAME, Form.STRING, "a"),), label="a")
    abstract = Die(Tag.SUBPROGRAM, ((At.NAME, Form.STRP, "wanted"), (At.INLINE, Form.DATA1, 1)), (parameter,), "f")
    here = Die(Tag.FORMAL_PARAMETER, ((At.ABSTRACT_ORIGIN, Form.REF4, "a"), (At.LOCATION, Form.DATA4, 0)))
    copy = Die(Tag.INLINED_SUBROUTINE, ((At.ABSTRACT_ORIGIN, Form.REF4, "f"), *RANGE), (here,))
    pair = struct.Struct("<QQ").pack
    lists = pair(0, 4) + b"\x01\x00\x50" + pair(2**64 - 1, 0x9000) + pair(1, 2) + b"\x02\x00\x91\x08" + pair(0, 0)
    elf = built(unit(abstract, around(copy), version=3, more=((At.LOW_PC, Form.ADDR, LOW),)), loc=lists)
    (found,) = InlineSearch(elf).find("wanted", with_parameters=True)

    assert [(one.low, one.high, one.expression) for one in found.copies[0].parameters[0].locations] == [
        (LOW, LOW + 4, b"\x50"), (0x9001, 0x9002, b"\x91\x08")
    ]  # fmt: skip


# -- damage -----------------------------------------------------------------------------------------------------------


def two() -> Dwarf:
    return Dwarf().units(
        unit(function(), around(copy_of("f"))),
        unit(function(label="g", name=(At.NAME, Form.STRP, "intact")), around(copy_of("g"))),
    )


def test_a_damaged_unit_is_named_and_the_others_are_of_use() -> None:
    dwarf = two()
    dwarf.info[12] = 0x7F  # the code of the first unit's root
    elf = dwarf.file(SYMBOLS)

    with pytest.raises(ImageError, match=r"memory\.elf: \.debug_info: the unit at 0x0: .*not declared"):
        InlineSearch(elf).find("wanted")
    assert only(elf, "intact").caller == "outer"
    matching = InlineSearch(elf).find_matching("*")
    assert [one.name for one in matching.found] == ["intact"]
    assert len(matching.damage) == 1 and "the unit at 0x0" in matching.damage[0]


def test_a_damaged_unit_hides_no_names_that_others_have_by_index() -> None:
    """Where its part of the table of names begins is not known: any name may be in it."""
    dwarf = indexed(Form.STRX1)
    dwarf.info[12] = 0x7F  # the code of the first unit's root
    search = InlineSearch(dwarf.file(SYMBOLS))

    with pytest.raises(ImageError, match="the unit at 0x0"):
        search.find("wanted")
    readable = search.find_readable("wanted")
    assert [copy.ranges for copy in readable.found[0].copies] == [((LOW + 1, HIGH),)]
    assert len(readable.damage) == 1 and "the unit at 0x0" in readable.damage[0]


def test_a_cut_section() -> None:
    dwarf = two()
    second = int.from_bytes(dwarf.info[:4], "little") + 4
    del dwarf.info[second + 30 :]
    elf = dwarf.file(SYMBOLS)

    assert only(elf).caller == "outer"
    with pytest.raises(ImageError, match=f"the unit at {second:#x}: its length .* the file is cut"):
        InlineSearch(elf).find("intact")
    matching = InlineSearch(elf).find_matching("*")
    assert [one.name for one in matching.found] == ["wanted"]
    assert len(matching.damage) == 1 and f"the unit at {second:#x}" in matching.damage[0]


def test_a_damaged_list_is_named_with_its_entry() -> None:
    copy = Die(
        Tag.INLINED_SUBROUTINE,
        ((At.ABSTRACT_ORIGIN, Form.REF4, "f"), (At.RANGES, Form.SEC_OFFSET, 0)),
    )
    for lists in (b"\xee" * 8, b"\x04" + b"\x80" * 30 + b"\0\0"):  # a kind that does not exist, an endless number
        elf = built(unit(function(), around(copy), version=5), rnglists=lists)
        with pytest.raises(ImageError, match=r"memory\.elf: \.debug_info: the unit at 0x0, in the entry at 0x.*: a "):
            InlineSearch(elf).find("wanted")


def test_references_in_a_circle() -> None:
    first = Die(Tag.SUBPROGRAM, ((At.NAME, Form.STRP, "wanted"), (At.ABSTRACT_ORIGIN, Form.REF4, "b")), label="a")
    second = Die(Tag.SUBPROGRAM, ((At.ABSTRACT_ORIGIN, Form.REF4, "a"),), label="b")

    assert InlineSearch(built(unit(first, second, around(copy_of("b"))))).find("wanted") == ()


def test_huge_abbreviations() -> None:
    """A code, a tag and attributes of many bytes each, and a table without an end."""
    dwarf = Dwarf().units(unit(function(), around(copy_of("f"))))
    dwarf.abbrev[0:1] = b"\x81" + b"\x80" * 15 + b"\x00"
    assert only(dwarf.file(SYMBOLS)).caller == "outer"
    dwarf.abbrev[0:1] = b"\x81" + b"\x80" * 300
    with pytest.raises(ImageError, match="the unit at 0x0: a number of more than 140 bits"):
        InlineSearch(dwarf.file(SYMBOLS)).find("wanted")

    endless = two()
    endless.abbrev[:] = b"\x01\x11\x01" + b"\x03\x08" * 500_000
    with pytest.raises(ImageError, match="the unit at 0x0: its abbreviations are damaged"):
        InlineSearch(endless.file(SYMBOLS)).find("wanted")


@pytest.mark.parametrize("form", [Form.GNU_REF_ALT, Form.GNU_STRP_ALT])
def test_supplementary_files_are_refused_by_name(form: Form) -> None:
    elf = built(unit(function((At.DECL_FILE, form, 0)), around(copy_of("f"))))

    with pytest.raises(ImageError, match=r"dwz, \.gnu_debugaltlink"):
        InlineSearch(elf).find("wanted")


def test_random_damage_is_an_error_or_an_answer() -> None:
    choose = random.Random(4)
    for _ in range(1500):
        dwarf = two()
        for _ in range(3):
            section = choose.choice([dwarf.info, dwarf.abbrev, dwarf.strings])
            section[choose.randrange(len(section))] = choose.randrange(256)
        elf = dwarf.file(SYMBOLS)
        for name in ("wanted", "intact"):
            try:
                InlineSearch(elf).find(name, with_parameters=True)
                InlineSearch(elf).names("*")
            except ImageError as error:
                assert "memory.elf" in str(error)


def test_padded_codes_are_refused() -> None:
    dwarf = two()
    dwarf.info[12:13] = padded(1)

    with pytest.raises(ImageError, match="more bytes than it needs"):
        InlineSearch(dwarf.file(SYMBOLS)).find("wanted")

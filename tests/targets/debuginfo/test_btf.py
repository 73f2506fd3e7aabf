"""BTF: every kind of type from sections written here by the format's document, damaged ones, and a real kernel's
against its DWARF."""

import random
from pathlib import Path

import pytest

from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    EnumType,
    Float,
    Function,
    Integer,
    IntegerKind,
    Member,
    Pointer,
    Qualified,
    Typedef,
    Void,
)
from kinst.targets.debuginfo.btf import BtfTypes
from kinst.targets.debuginfo.dwarf.entry_search import DebugInfo
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.types import DwarfTypes
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.image import open_image
from tests.images import CACHE
from tests.targets.debuginfo.btf_writer import Section, plain
from tests.writers.elf import EM_RISCV, Part, elf64

INT, UINT = Integer("int", 4, is_signed=True), Integer("unsigned int", 4, is_signed=False)
CHAR = Integer("char", 1, is_signed=True, kind=IntegerKind.CHARACTER)


def test_base_types() -> None:
    section = Section()
    for name, size, encoding in (("int", 4, 1), ("long unsigned int", 8, 0), ("char", 1, 1), ("_Bool", 1, 4)):
        section.integer(name, size, encoding)
    section.integer("__int128", 16, 1)
    section.add("double", 16, 8)
    types = section.decoded()
    word = Integer("unsigned long", 8, is_signed=False)
    assert types.type_named("int") == INT
    assert types.type_named("char") == CHAR
    assert types.type_named("long unsigned int") == word
    assert types.type_named("_Bool") == Integer("_Bool", 1, is_signed=False, kind=IntegerKind.BOOLEAN)
    assert types.type_named("__int128") == Array(word, 2)
    assert types.type_named("double") == Float("double", 8)
    assert types.type_named("in") is None


def test_derived_types() -> None:
    section = Section()
    integer = section.integer("int", 4, 1)
    const = section.add("", 10, integer)
    both = section.add("", 9, const)
    tagged = section.add("user", 18, section.add("", 11, section.add("", 2, both)))
    array = section.add("", 3, 0, integer, integer, 7)
    flexible = section.add("", 3, 0, array, integer, 0)
    section.add("pointer_t", 8, tagged)
    section.add("table_t", 8, flexible)
    section.add("nothing_t", 8, 0)
    types = section.decoded()
    qualified = Qualified(Qualified(INT, is_const=True), is_volatile=True)
    assert types.type_named("pointer_t") == Typedef("pointer_t", Pointer(qualified))
    assert types.type_named("table_t") == Typedef("table_t", Array(Array(INT, 7), None))
    assert types.type_named("nothing_t") == Typedef("nothing_t", Void())


def test_structs_refer_to_themselves_and_to_declarations() -> None:
    section = Section()
    integer = section.integer("int", 4, 1)
    section.struct("node", 24, ("next", 3, 0), ("late", 5, 64), ("value", integer, 128))
    assert section.add("", 2, 2) == 3
    section.add("late", 7, 0)
    section.add("", 2, 4)
    section.struct("late", 4, ("only", integer, 0))
    section.add("late", 7, 0, flag=1)  # a union of the same tag, never defined
    types = section.decoded()
    node, late = plain("node", types.type_named("struct node")), plain("late", types.type_named("struct late"))
    assert node.members == (
        Member("next", Pointer(node), 0),
        Member("late", Pointer(late), 8),
        Member("value", INT, 16),
    )
    assert (node.size, node.alignment, node.module, node.kind) == (24, 8, "kernel", AggregateKind.STRUCT)
    assert late.members == (Member("only", INT, 0),)
    union = plain("late", types.type_named("union late"))
    assert union.members is None and union.kind is AggregateKind.UNION
    assert types.type_named("struct nosuch") is None
    assert types.type_named("enum node") is None


def test_bit_fields_with_the_flag_and_before_there_was_one() -> None:
    section = Section()
    unsigned = section.integer("unsigned int", 4)
    narrow = section.integer("unsigned int", 4, bits=5, offset=3)
    members = (("a", unsigned, 3 << 24 | 0), ("b", unsigned, 7 << 24 | 35), ("whole", unsigned, 64))
    section.struct("new", 12, *members, flag=1)
    section.struct("old", 8, ("a", narrow, 32), ("whole", unsigned, 0))
    types = section.decoded()
    new, old = plain("new", types.type_named("struct new")), plain("old", types.type_named("struct old"))
    assert new.members == (Member("a", UINT, 0, 0, 3), Member("b", UINT, 4, 3, 7), Member("whole", UINT, 8))
    assert old.members == (Member("a", UINT, 4, 3, 5), Member("whole", UINT, 0))


def test_enumerations() -> None:
    section = Section()
    words = [section.name("RED"), 0, section.name("BLUE"), -2]
    section.add("colour", 6, 4, *words, length=2, flag=1)
    section.add("", 6, 4, section.name("HIGH"), 0xFFFFFFFF, length=1)
    section.add("wide", 19, 8, section.name("BIG"), 1, 2, length=1)
    types = section.decoded()
    colour = EnumType("colour", INT, (("RED", 0), ("BLUE", -2)))
    assert types.type_named("enum colour") == colour
    assert types.enumerator("BLUE") == (colour, -2)
    assert types.enumerator("HIGH") == (EnumType("", UINT, (("HIGH", 0xFFFFFFFF),)), 0xFFFFFFFF)
    wide = types.type_named("enum wide")
    assert types.enumerator("BIG") == (wide, 1 | 2 << 32)
    assert isinstance(wide, EnumType) and wide.base == Integer("unsigned long", 8, is_signed=False)
    assert types.enumerator("colour") is None


def test_functions_and_variables() -> None:
    section = Section()
    integer = section.integer("int", 4, 1)
    text = section.add("", 2, section.integer("char", 1, 1))
    section.add("print", 12, section.prototype(integer, ("format", text), ("", 0)))
    section.add("stop", 12, section.prototype(0))
    section.add("counter", 14, integer, 1)
    section.add(".data..percpu", 15, 4, 8, 0, 4, length=1)
    section.add("tag", 17, 1, -1)
    section.add("after_t", 8, integer)
    types = section.decoded()
    print_type = Function(INT, (Pointer(CHAR),), is_variadic=True)
    assert types.function("print") == types.variable("print") == print_type
    assert types.function("stop") == Function(Void(), ())
    assert types.function("counter") is None
    assert types.variable("counter") == INT
    assert types.type_named("after_t") == Typedef("after_t", INT)  # what was skipped had its right size


def image_with(data: bytes, path: Path) -> Path:
    code, btf = Part(".text", 0x80000000, b"\x13\0\0\0" * 4, 5), Part(".BTF", 0x80002000, data, 4)
    path.write_bytes(elf64(EM_RISCV, 0x80000000, [code, btf]))
    return path


def test_an_image_with_btf_is_asked_for_nothing_else(tmp_path: Path) -> None:
    section = Section()
    section.add("pid_t", 8, section.integer("int", 4, 1))
    types = image_types(open_image(image_with(section.data, tmp_path / "kernel")))
    assert types.type_named("pid_t", "kernel") == Typedef("pid_t", INT)
    assert types.type_named("pid_t", "other") is None


@pytest.mark.parametrize("data", [b"", b"\x9f\xeb", b"\0" * 64, Section().data[:20], Section().data[:-1]])
def test_what_is_no_btf_is_ignored(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no BTF"):
        BtfTypes(data, "kernel")
    types = image_types(open_image(image_with(data + b"\0" * (not data), tmp_path / "kernel")))
    assert types.type_named("int") is None
    assert types.obstacle() == ""  # no struct was asked for
    assert types.type_named("struct x") is None
    assert types.obstacle() == f"{tmp_path / 'kernel'}: .BTF: no BTF: " + (
        "shorter than its header" if len(data) < 24 else "wrong magic, or sections beyond its end"
    )


def test_types_that_are_damaged_are_told(tmp_path: Path) -> None:
    section = Section()
    section.struct("node", 24)
    section.types = b"\xee" * len(section.types)
    types = image_types(open_image(image_with(section.data, tmp_path / "kernel")))
    assert types.type_named("struct node") is None
    assert types.obstacle() == f"{tmp_path / 'kernel'}: .BTF: damaged: a type's name is beyond its strings"


@pytest.mark.parametrize("seed", range(40))
def test_damaged_types_are_no_error(seed: int) -> None:
    section, choose = Section(), random.Random(seed)
    integer = section.integer("int", 4, 1)
    section.struct("node", 24, ("next", 3, 0), ("value", integer, 128))
    section.add("", 2, 2)
    section.add("colour", 6, 4, section.name("RED"), 0, length=1)
    section.add("print", 12, section.prototype(integer, ("format", 3)))
    section.add("node_t", 8, 2)
    types = bytearray(section.types)
    for _ in range(6):
        types[choose.randrange(len(types))] = choose.randrange(256)
    section.types = bytes(types)
    decoded = section.decoded()
    for name in ("int", "struct node", "node_t", "enum colour", "union node"):
        found = decoded.type_named(name)
        if isinstance(found, Aggregate):
            assert found.members is None or isinstance(found.members, tuple)
    for kind in (decoded.function("print"), decoded.variable("print")):
        assert kind is None or isinstance(kind, Function)
    assert decoded.enumerator("RED") is None or decoded.enumerator("nosuch") is None


VMLINUX = CACHE / "linux-riscv64" / "image.elf"


@pytest.mark.skipif(not VMLINUX.exists(), reason="a vmlinux of 300 MB: python -m tests.images linux-riscv64")
def test_a_kernels_btf_says_what_its_dwarf_says() -> None:
    image = open_image(VMLINUX)
    types, dwarf = image_types(image), DwarfTypes(DebugInfo(DebugSections(image)), image.module)
    for name in ("struct list_head", "struct task_struct", "struct page"):
        compact, full = plain(name, types.type_named(name)), plain(name, dwarf.type_named(name))
        assert compact.size == full.size  # an alignment that was asked for is in DWARF only
        assert [member_place(member) for member in compact.members or ()] == [
            member_place(member) for member in full.members or ()
        ]
    symbol = types.symbol("init_task")  # BTF does not know it
    assert symbol is not None and symbol.type is types.type_named("struct task_struct")


def member_place(member: Member) -> tuple[str, int, int, int | None]:
    return member.name, member.offset, member.bit_offset, member.bit_size

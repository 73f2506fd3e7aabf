"""CTF of illumos and FreeBSD, written here by the formats' documents from what DWARF says of drawn C files, and put
into the files that gcc made of them: read again, it is what DWARF says. GNU's objdump is the second reader."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kinst.targets.arch.registry import NAMES
from kinst.targets.c_types import Aggregate, AggregateKind, CType, Function, Integer, Member, Pointer, Typedef
from kinst.targets.debuginfo.ctf.types import CtfTypes, ctf_types
from kinst.targets.debuginfo.dwarf.entry_search import DebugInfo
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.types import DwarfTypes
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.errors import ImageError
from kinst.targets.image import Image, open_image
from tests.gated import draws, taking_turns
from tests.targets.debuginfo.compiled import COMPILERS, compiled
from tests.targets.debuginfo.ctf_writer import GNU1, SUN2, SUN3, Writer
from tests.targets.debuginfo.drawn_c import drawn_file, names_of
from tests.targets.debuginfo.shapes import shape

FORMS = {"illumos": SUN2, "freebsd": SUN3}
INT = Integer("int", 4, is_signed=True)


def listed(path: Path) -> list[tuple[str, str, int]]:
    """Symbols as ctf(5) says which have an entry: what they are, name, address."""
    with path.open("rb") as file:
        found = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        return [
            (one["st_info"]["type"], one.name, one["st_value"])
            for one in found
            if one["st_info"]["type"] in ("STT_OBJECT", "STT_FUNC") and one["st_shndx"] != "SHN_UNDEF" and one.name
        ]


def dwarf_of(image: Image) -> DwarfTypes:
    return DwarfTypes(DebugInfo(DebugSections(image)), image.module)


def with_section(image: Image, machine: str, data: bytes) -> Image:
    """The image with .SUNW_ctf and without DWARF."""
    prefix = COMPILERS[machine].removesuffix("gcc")
    path, section = image.path.with_suffix(".ctf"), image.path.with_suffix(".section")
    section.write_bytes(data)
    command = [f"{prefix}objcopy", "--strip-debug", "--add-section", f".SUNW_ctf={section}", str(image.path), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return open_image(path)


def written(image: Image, names: list[str], form: tuple[int, int], *, has_functions: bool = True) -> Writer:
    """All types that DWARF has of these names, and of the symbols."""
    dwarf, writer = dwarf_of(image), Writer(form, labels=["build 1"], has_functions=has_functions)
    for name in names:
        kind = dwarf.type_named(name)
        assert kind is not None
        writer.type(kind)
    symbols = iter(listed(image.path))

    def type_of(_what: str, name: str) -> CType | None:
        return dwarf.variable(name, next(symbols)[2])

    writer.describe([(what, name) for what, name, _ in listed(image.path)], type_of)
    return writer


def read(image: Image) -> CtfTypes:
    types = ctf_types(image, image.module)
    assert types is not None
    return types


@pytest.mark.parametrize("draw", draws(1, 25))
@pytest.mark.parametrize(("machine", "form"), taking_turns(NAMES, tuple(FORMS)))
def test_what_was_written_is_read(tmp_path: Path, machine: str, form: str, draw: int) -> None:
    for seed in range(draw):
        sources = {f"{name}.c": drawn_file(seed, name, is_first=name == "a") for name in "ab"}
        image = compiled(tmp_path, machine, sources, "-gdwarf-5", "-O0", "-w")
        names = [one for text in sources.values() for one in names_of(text)]
        data = written(image, names, FORMS[form]).data(is_compressed=seed % 2 == 0)
        dwarf, types = dwarf_of(image), read(with_section(image, machine, data))
        for name in names:
            compare(dwarf.type_named(name), types.type_named(name))
        for _, name, address in listed(image.path):
            compare(dwarf.variable(name, address), types.variable(name, address))


def compare(expected: CType | None, found: CType | None) -> None:
    assert expected is not None and found is not None
    assert shape(found, by_bits=True) == shape(expected, by_bits=True)


# -- GNU's reader -----------------------------------------------------------------------------------------------------

_TYPE = re.compile(r" +0x[0-9a-f]+: \(kind [67]\) (struct|union) (\w+) \(size 0x([0-9a-f]+)\)")
_MEMBER = re.compile(r"( +)\[0x([0-9a-f]+)\] (\w*)")


def dumped(path: Path, section: str, machine: str) -> dict[str, tuple[int, list[tuple[int, str]]]]:
    """Structs and unions as objdump prints them: size, and offset in bits and name of each member."""
    command = [COMPILERS[machine].removesuffix("gcc") + "objdump", f"--ctf={section}", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, tuple[int, list[tuple[int, str]]]] = {}
    members: list[tuple[int, str]] = []
    indentation = 0
    for line in text[text.index("  Types:") :].splitlines():
        if at := _TYPE.match(line):
            members, indentation = [], 0
            found[f"{at[1]} {at[2]}"] = int(at[3], 16), members
        elif at := _MEMBER.match(line):
            indentation = indentation or len(at[1])
            if len(at[1]) == indentation:  # those inside of an anonymous one are behind it, further to the right
                members.append((int(at[2], 16), at[3]))
        else:
            members = []
    return found


def ours(types: CtfTypes, names: list[str]) -> Iterator[tuple[str, tuple[int, list[tuple[int, str]]]]]:
    for name in names:
        kind = types.type_named(name)
        assert isinstance(kind, Aggregate) and kind.members is not None
        yield name, (kind.size, [(8 * one.offset + one.bit_offset, one.name) for one in kind.members])


@pytest.mark.parametrize("machine", NAMES[:1])
@pytest.mark.parametrize("maker", ["gcc", "writer"])
def test_structs_are_those_that_objdump_prints(tmp_path: Path, maker: str, machine: str) -> None:
    sources = {"a.c": drawn_file(5, "a", is_first=True)}
    image = compiled(tmp_path, machine, sources, "-gdwarf-5", "-gctf", "-O0", "-w", "-r")
    names = [one for one in names_of(sources["a.c"]) if not one.startswith("enum")]
    section = ".ctf"
    if maker == "writer":
        data = written(image, names, GNU1, has_functions=False).data()  # with one, libctf 2.40 aborts
        path = with_section(compiled(tmp_path, machine, sources, "-g0"), machine, data).path
        subprocess.run(["strip", str(path)], check=True)  # libctf reads no version 1 beside symbols
        section, image = ".SUNW_ctf", open_image(path)
    expected = dumped(image.path, section, machine)
    assert len(names) > 5
    assert {name: expected[name] for name in names} == dict(ours(read(image), names))


# -- parents ----------------------------------------------------------------------------------------------------------


def parent_and_child(label: str = "build 1") -> tuple[Writer, Writer]:
    """A child's own types have the highest bit of their numbers; others are the parent's."""
    parent, child = Writer(labels=["build 1"]), Writer(parent="genunix", parent_label=label)
    shared = Aggregate(AggregateKind.STRUCT, "shared")
    shared.complete((Member("value", INT, 0),), 4, 4)
    parent.type(Typedef("shared_t", shared))
    child.numbers |= {id(shared): parent.type(shared), INT: parent.type(INT)}
    own = Aggregate(AggregateKind.STRUCT, "own")
    own.complete((Member("shared", Pointer(shared), 0), Member("more", INT, 8)), 16, 8)
    child.type(own)
    return parent, child


def test_a_child_goes_on_where_its_parent_ends(tmp_path: Path) -> None:
    parent, child = parent_and_child()
    image = with_section(empty(tmp_path / "unix"), "amd64", child.data())
    genunix = with_section(empty(tmp_path / "genunix"), "amd64", parent.data())
    types = image_types(image, modules={"genunix": genunix.path})
    own = types.type_named("struct own")
    assert isinstance(own, Aggregate) and own.members is not None and own.size == 16
    assert own.members[0].type == Pointer(types.type_named("struct shared") or INT)
    assert own.members[1].type == INT
    assert list(types.sources()) == [
        "types of image.ctf: CTF (.SUNW_ctf) of image.ctf",
        "types of genunix: CTF (.SUNW_ctf) of image.ctf",
    ]


def empty(folder: Path) -> Image:
    folder.mkdir()
    return compiled(folder, "amd64", {"main.c": "void start(void) { for (;;); }"}, "-g0")


@pytest.mark.parametrize(
    ("label", "modules", "why"),
    [
        ("build 1", {}, "its types continue those of genunix, which is missing: give it with --module genunix=FILE"),
        (
            "build 2",
            {"genunix"},
            "its types continue build 2 of genunix, and the file given for genunix is another build",
        ),
    ],
)
def test_a_child_without_its_parent_has_no_types(tmp_path: Path, label: str, modules: set[str], why: str) -> None:
    parent, child = parent_and_child(label)
    image = with_section(empty(tmp_path / "unix"), "amd64", child.data())
    genunix = with_section(empty(tmp_path / "genunix"), "amd64", parent.data())
    types = image_types(image, modules=dict.fromkeys(modules, genunix.path))
    assert types.type_named("struct own") is None
    assert types.obstacle() == f"{image.path}: .SUNW_ctf: {why}"


def test_files_that_continue_one_another_are_read_once(tmp_path: Path) -> None:
    _, child = parent_and_child()
    image = with_section(empty(tmp_path / "unix"), "amd64", child.data())
    types = image_types(image, modules={"genunix": image.path})
    assert types.type_named("struct own") is None and "which is missing" in types.obstacle()


# -- what does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xf1\xcf", "no CTF: shorter than its header"),
        (b"\xf1\xcf\2\0", "no CTF: shorter than its header"),
        (b"\0" * 64, "no CTF: its magic is 0x0000, not 0xcff1 or 0xdff2"),
        (b"\xf2\xdf\5\0" + b"\0" * 64, "version 5 of GNU's CTF is not supported, 1, 3 and 4 are"),
        (b"\xf1\xcf\1\0" + b"\0" * 64, "version 1 of illumos and FreeBSD's CTF is not supported, 2 and 3 are"),
        (Writer().data()[:-1], "damaged: its parts have 1 bytes, and there are 0"),
        (Writer().data(is_compressed=True)[:-9], "damaged: its parts have 1 bytes, and there are 0"),
        (Writer(records=[b"\0\0\0\0\0\x78\0\0"]).data(), "damaged: type 1 is of kind 15, which does not exist"),
        (Writer(records=[b"\0\0\0\0\0\x08\0\0"]).data(), "damaged: type 1 ends beyond the types"),
        (Writer(records=[b"\x09\0\0\0\0\x18\0\0"]).data(), "damaged: a type's name is beyond its strings"),
    ],
)
def test_what_is_damaged_is_one_line(tmp_path: Path, data: bytes, why: str) -> None:
    image = with_section(empty(tmp_path / "kernel"), "amd64", data)
    with pytest.raises(ImageError) as error:
        ctf_types(image, "kernel")
    assert str(error.value) == f"{image.path}: .SUNW_ctf: {why}"
    types = image_types(image)
    assert types.type_named("struct point") is None and types.obstacle() == str(error.value)


def test_types_of_other_symbols_are_not_believed(tmp_path: Path) -> None:
    """An image that lost symbols after its CTF was made."""
    source = "int counter; static int f(char x) { return x; } int g(void) { return f(1); } void start(void) { g(); }"
    image = compiled(tmp_path, "amd64", {"a.c": source}, "-gdwarf-5", "-O0")
    whole = with_section(image, "amd64", written(image, [], SUN2).data())
    assert isinstance(read(whole).function("f", whole.symbols.address_of("f")), Function)
    subprocess.run(["strip", "-x", str(whole.path)], check=True)
    types = image_types(open_image(whole.path))
    assert types.function("g") is None
    assert types.obstacle() == f"{whole.path}: .SUNW_ctf: types of 3 functions, and the symbol table has 2 of them"

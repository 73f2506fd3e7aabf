"""CTF of gcc and GNU ld against DWARF of the same file, over drawn C files: all types, variables and functions."""

from pathlib import Path

import numpy as np
import pytest

from kinst.targets.arch.registry import NAMES
from kinst.targets.c_types import (
    AggregateKind,
    CType,
    Pointer,
    Void,
    size_of,
)
from kinst.targets.debuginfo.ctf.types import CtfTypes, ctf_types
from kinst.targets.debuginfo.dwarf.entry_search import DebugInfo
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.types import DwarfTypes
from kinst.targets.elf.symbols import STB_GLOBAL, STT_FUNC, STT_OBJECT
from kinst.targets.image import Image
from tests.gated import draws, taking_turns
from tests.targets.debuginfo.compiled import compiled
from tests.targets.debuginfo.drawn_c import drawn_file, names_of
from tests.targets.debuginfo.shapes import shape

LINKS = {  # how a linker is told to keep what it knows of symbols
    "variables": ("-Wl,--ctf-variables",),
    "relocatable": ("-r",),
    "shared": ("-shared", "-fPIC"),
}


def read(folder: Path, machine: str, sources: dict[str, str], *options: str) -> tuple[Image, DwarfTypes, CtfTypes]:
    image = compiled(folder, machine, sources, "-gdwarf-5", "-gctf", "-O0", "-w", *options)
    types = ctf_types(image, image.module)
    assert types is not None
    return image, DwarfTypes(DebugInfo(DebugSections(image)), image.module), types


@pytest.mark.parametrize("draw", draws(1, 40))
@pytest.mark.parametrize(("machine", "link"), taking_turns(NAMES, tuple(LINKS)))
def test_ctf_says_what_dwarf_says(tmp_path: Path, machine: str, link: str, draw: int) -> None:
    for seed in range(draw):
        sources = {f"{name}.c": drawn_file(seed, name, is_first=name == "a") for name in "ab"}
        image, dwarf, types = read(tmp_path, machine, sources, *LINKS[link])
        for name in (one for text in sources.values() for one in names_of(text)):
            compare(name, dwarf.type_named(name), types.type_named(name))
        assert compare_symbols(image, dwarf, types, is_dynamic=link == "shared") > 40


def compare_symbols(image: Image, dwarf: DwarfTypes, types: CtfTypes, *, is_dynamic: bool) -> int:
    """How many symbols have types; the linker knows those of .dynsym alone, if it has that."""
    symbols, known = image.symbols, 0
    for row in range(len(symbols)):
        name, address = symbols.names(np.array([row]))[0], int(symbols.address[row])
        if symbols.kind[row] in (STT_FUNC, STT_OBJECT) and name[0] in "ab":
            found = types.variable(name, address)
            if found is not None or not is_dynamic or symbols.binding[row] == STB_GLOBAL:
                compare(name, dwarf.variable(name, address), found)
                known += 1
    return known


def compare(name: str, expected: CType | None, found: CType | None) -> None:
    assert expected is not None and found is not None, name
    assert shape(found) == shape(expected), name


CONFLICTS = {
    "main.c": """
    struct same { int a; }; typedef struct same same_t; struct only { long only; } kept; same_t here;
    static int near(same_t *p) { return p->a; } static int alike(int x) { return x; }
    int shared(same_t *p) { return near(p); }
    void start(void) { same_t one = { 0 }; shared(&one); alike(1); for (;;); }
    """,
    "other.c": """
    struct same { long b, c; }; struct only *pointer; int use(void);
    static int near(struct same *p, char x) { return p->b + x; } static int alike(int x) { return x + 1; }
    int far(struct same *p) { return near(p, 1); } int use(void) { return alike(2); }
    """,
}


def agrees(found: object, expected: object) -> bool:
    """Whether shapes are the same but for structs that are only declared in the first one."""
    if not (isinstance(found, tuple | list) and isinstance(expected, tuple | list)):
        return found == expected
    match found:
        case (AggregateKind() as kind, tag, None), *_:
            return bool(expected[0][:2] == (kind, tag))
        case _:
            return len(found) == len(expected) and all(map(agrees, found, expected))


@pytest.mark.parametrize("link", LINKS)
def test_types_that_files_define_in_different_ways_are_never_mixed(tmp_path: Path, link: str) -> None:
    """What DWARF tells by address CTF tells by the file of a local symbol, or not at all."""
    image, dwarf, types = read(tmp_path, "amd64", CONFLICTS, *LINKS[link])
    table = image.symbols
    said: set[str] = set()
    silent: set[str] = set()
    for row in np.flatnonzero((table.kind == STT_FUNC) | (table.kind == STT_OBJECT)).tolist():
        name, address = table.names(np.array([row]))[0], int(table.address[row])
        expected, found = dwarf.variable(name, address), types.variable(name, address)
        if expected is not None:
            (silent if found is None else said).add(name)
            assert found is None or agrees(shape(found), shape(expected))
    assert said >= {"start", "shared", "here", "pointer", "use"}
    # Of these only an index tells which file's they are.
    assert silent == (set() if link == "relocatable" else {"near", "alike"})


def test_a_declared_struct_is_the_one_that_a_single_file_defines(tmp_path: Path) -> None:
    image, _, types = read(tmp_path, "amd64", CONFLICTS, "-r", "-Wl,--ctf-share-types=share-duplicated")
    here, pointer = (types.variable(name, image.symbols.address_of(name)) for name in ("here", "pointer"))
    assert here is not None and size_of(here) == 4
    assert isinstance(pointer, Pointer) and size_of(pointer.target) == 8
    assert size_of(types.type_named("struct same") or Void()) == 4  # by name the first, as DWARF's

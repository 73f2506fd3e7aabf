"""Parameters of inlined copies: every one of GNU Mach against pyelftools' reader, and what compilers say of types."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from elftools.dwarf.die import DIE
from elftools.dwarf.locationlists import BaseAddressEntry, LocationEntry, LocationExpr, LocationParser
from elftools.elf.elffile import ELFFile

from kinst.targets.c_types import Function, Integer, Pointer, Qualified, Typedef
from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.debuginfo.inlined import InlinedParameter
from kinst.targets.elf.file import open_elf
from tests.images import real_image
from tests.targets.debuginfo.compiled import compiled

Places = list[tuple[int, int, bytes]]


def text(die: DIE) -> str:
    """The name of a function or parameter, which its origin may have."""
    while "DW_AT_name" not in die.attributes:
        die = die.get_DIE_from_attribute("DW_AT_abstract_origin")
    return str(die.attributes["DW_AT_name"].value.decode())


def entered(die: DIE) -> int | None:
    """Where a copy is entered, unless only its list of ranges tells."""
    found = die.attributes.get("DW_AT_entry_pc", die.attributes.get("DW_AT_low_pc"))
    return None if found is None else int(found.value)


def copies(dwarf: Any, units: int) -> Iterator[DIE]:
    for unit in list(dwarf.iter_CUs())[:units]:
        for die in unit.iter_DIEs():
            if die.tag == "DW_TAG_inlined_subroutine" and entered(die) is not None:
                yield die


def places(parser: LocationParser, die: DIE) -> Places | bytes | None:
    """A list of places, or the one expression."""
    attribute = die.attributes.get("DW_AT_location")
    if attribute is None:
        return None
    found = parser.parse_from_attribute(attribute, die.cu["version"], die)
    if isinstance(found, LocationExpr):
        return bytes(found.loc_expr)
    base, listed = die.cu.get_top_DIE().attributes["DW_AT_low_pc"].value, []
    for one in found:
        if isinstance(one, BaseAddressEntry):
            base = one.base_address
        elif isinstance(one, LocationEntry):
            offset = 0 if one.is_absolute else base
            listed.append((one.begin_offset + offset, one.end_offset + offset, bytes(one.loc_expr)))
    return listed


def test_places_are_those_of_another_reader() -> None:
    """Copies by name of the function and where they are entered; those without an instruction are none for us."""
    path = real_image("gnumach")
    search, compared = InlineSearch(open_elf(path)), 0
    ours_of = cache(lambda name: by_entry(search, name))
    with path.open("rb") as file:
        dwarf = ELFFile(file).get_dwarf_info()
        parser = LocationParser(dwarf.location_lists())
        for die in copies(dwarf, units=40):
            parameters = [child for child in die.iter_children() if child.tag == "DW_TAG_formal_parameter"]
            expected = {text(child): places(parser, child) for child in parameters}
            ours = ours_of(text(die)).get(entered(die) or 0, [])
            assert not ours or any(matches(mine, expected) for mine in ours), (hex(die.offset), expected)
            compared += len(expected) if ours else 0
    assert compared > 300


def by_entry(search: InlineSearch, name: str) -> dict[int, list[dict[str, InlinedParameter]]]:
    found: dict[int, list[dict[str, InlinedParameter]]] = {}
    for function in search.find(name, with_parameters=True):
        for copy in function.copies:
            found.setdefault(copy.entry, []).append({one.name: one for one in copy.parameters})
    return found


def matches(ours: dict[str, InlinedParameter], expected: dict[str, Places | bytes | None]) -> bool:
    for name, there in expected.items():
        here = [(one.low, one.high, one.expression) for one in ours[name].locations] if name in ours else None
        if here is None or (isinstance(there, list) and here != there):
            return False
        if isinstance(there, bytes) and {expression for _, _, expression in here} != {there}:
            return False
        if there is None and here:
            return False
    return all(one.name in expected or not one.locations for one in ours.values())


SOURCE = """
struct item { int value; struct item *next; };
typedef unsigned long size_type;
volatile int device;
static inline __attribute__((always_inline)) int
inlined(struct item *item, const char *text, size_type size, int (*call)(struct item *, ...), unsigned char small[4])
{
    device = item->value + *text + size + call(item) + small[1];
    return device;
}
int called(struct item *item, ...) { return item->value; }
struct item first; unsigned char bytes[4];
void start(void) { inlined(&first, "text", 5, called, bytes); for (;;); }
"""


def test_types_are_those_of_the_image(tmp_path: Path) -> None:
    image = compiled(tmp_path, "amd64", {"a.c": SOURCE}, "-g")
    (found,) = InlineSearch(image).find("inlined", with_parameters=True)
    item, words, size, call, small = (one.type for one in found.copies[0].parameters)

    assert isinstance(item, Pointer) and str(getattr(item.target, "tag", "")) == "item"
    assert isinstance(words, Pointer) and isinstance(words.target, Qualified) and words.target.is_const
    assert isinstance(size, Typedef) and isinstance(size.target, Integer) and size.target.size == 8
    assert isinstance(call, Pointer) and isinstance(call.target, Function) and call.target.is_variadic
    assert call.target.parameters == (item,)
    assert isinstance(small, Pointer) and isinstance(small.target, Integer) and small.target.name == "unsigned char"
    assert InlineSearch(image).find("inlined")[0].copies[0].parameters == ()

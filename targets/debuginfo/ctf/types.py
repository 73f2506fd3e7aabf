"""A file with CTF -> its types, enumerators, prototypes and variables, by name.

GNU ld merges the dictionaries of all objects. What is the same in all goes into one; a type that files define in
different ways goes into a dictionary of each of those files, whose parent the first is: then the section is an archive.

    archive: magic (8) | model (8) | dictionaries (8) | where names begin (8) | where dictionaries begin (8) | for each:
             its name and itself, as offsets (16)
    dictionary: its size (8) | itself
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kinst.targets.c_types import CType, EnumType, Function, is_complete
from kinst.targets.debuginfo.ctf.dictionary import ArrayOrder, Dictionary
from kinst.targets.debuginfo.ctf.homes import Homes
from kinst.targets.debuginfo.ctf.origin import array_order
from kinst.targets.debuginfo.ctf.parts import Parts, parts_of
from kinst.targets.debuginfo.ctf.section import ctf_section
from kinst.targets.debuginfo.ctf.symbols import Described, What
from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.header import SHT_DYNSYM, SHT_SYMTAB
from kinst.targets.elf.sections import Section, content
from kinst.targets.elf.symbols import Symbols, no_symbols, symbols_in
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

_ARCHIVE: Final = struct.Struct("<QQQQQ")
_ENTRY: Final = struct.Struct("<QQ")
_SIZE: Final = struct.Struct("<Q")
_MAGIC: Final = 0x8B47F2A4D7623EEB
_SHARED: Final = ".ctf"  # what ld calls the dictionary of what all files have
_LABEL: Final = struct.Struct("<II")

ParentOf = Callable[[str], "CtfTypes | None"]


class CtfTypes:
    """The types of one file. `units` are of its source files, by their paths."""

    def __init__(self, shared: Described, units: Mapping[str, Described], table: Symbols) -> None:
        """Nothing is looked up yet. `table` is .symtab."""
        self.shared = shared.dictionary
        self._shared = shared
        self._all = [shared, *units.values()]
        self._homes = Homes(table, units)
        self.shared.ask(self._only_definition)

    def type_named(self, name: str) -> CType | None:
        """A typedef or base type by its name, or "struct x", "union x", "enum x"; the first complete one."""
        declared: CType | None = None
        for one in self._all:
            found = one.dictionary.type_named(name)
            if found is not None and is_complete(found):
                return found
            declared = declared or found
        return declared

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """An enumeration constant: its type and its value."""
        return next((found for one in self._all if (found := one.dictionary.enumerator(name)) is not None), None)

    def function(self, name: str, address: int | None) -> Function | None:
        """The prototype of the function of that name at an address. Raises ValueError: see `variable`."""
        if not any(one.has_functions for one in self._all):
            raise ValueError("it has no types of functions and variables: gcc -Wl,--ctf-variables links them")
        found = self._of_symbol(What.FUNCTION, name, address or 0)
        return found if isinstance(found, Function) else None

    def variable(self, name: str, address: int | None) -> CType | None:
        """The type of the variable or function of that name at an address.

        Raises:
            ValueError: it has no types of symbols, or those of another symbol table.
        """
        found = self._of_symbol(What.OBJECT, name, address or 0)
        return self.function(name, address) if found is None else found

    def _of_symbol(self, what: What, name: str, address: int) -> CType | None:
        """By the order of symbols, which is exact; else by name, if it is certain which file's the name is."""
        for one in self._all:
            if (found := one.ordered(what, name, address)) is not None:
                return found
        return self._by_name(what, name, address)

    def _by_name(self, what: What, name: str, address: int) -> CType | None:
        if len(self._all) == 1:  # no two files differ in anything
            return self._shared.named(what, name)
        home = self._homes.of(what, name, address)
        if home.unit is not None:
            # What is not there is the shared one, by an index. Variables that differ ld leaves out (binutils 2.40).
            return home.unit.named(what, name) or self._shared.indexed(what, name)
        if home.is_shared:
            return self._shared.named(what, name)
        found = [kind for one in self._all if (kind := one.named(what, name)) is not None]
        return found[0] if home.is_only and len(found) == 1 else None

    def _only_definition(self, name: str) -> CType | None:
        """What the shared dictionary declares, if one file alone defines it: which one is meant is not said."""
        found = [kind for one in self._all[1:] if (kind := one.dictionary.defined(name)) is not None]
        return found[0] if len(found) == 1 else None


def ctf_types(elf: ElfLike, module: str, parent_of: ParentOf = lambda _name: None) -> CtfTypes | None:
    """The CTF of a file; None if it has none.

    Args:
        elf: a kernel, firmware or a module.
        module: the name of its types' module.
        parent_of: the types of another module by its name, if those of this one continue them.

    Raises:
        ImageError: it is damaged, of another version, or its parent is not there.
    """
    section = ctf_section(elf)
    if section is None:
        return None
    try:
        return _read(elf, section, module, parent_of)
    except ValueError as error:
        raise ImageError(f"{elf.path}: {section.name}: {error}") from None


def _read(elf: ElfLike, section: Section, module: str, parent_of: ParentOf) -> CtfTypes:
    data = content(elf.data, section).tobytes()
    members = dict(_members(data)) if data.startswith(_SIZE.pack(_MAGIC)) else {_SHARED: parts_of(data)}
    first = _first(members)
    makes = _Makes(
        module,
        {False: _table(elf, section, SHT_SYMTAB), True: _table(elf, section, SHT_DYNSYM)},
        array_order(elf, members[first].format),
    )
    shared = makes.shared(members[first], parent_of)
    units = {name: makes.unit(parts, shared) for name, parts in members.items() if name != first}
    described = {name: makes.described(one) for name, one in units.items()}
    return CtfTypes(makes.described(shared), described, makes.tables[False])


@dataclass(frozen=True, slots=True)
class _Makes:
    """What all dictionaries of a file are made with. `tables` are .symtab (False) and .dynsym (True)."""

    module: str
    tables: Mapping[bool, Symbols]
    order: ArrayOrder

    def unit(self, parts: Parts, shared: Dictionary) -> Dictionary:
        return self._dictionary(parts, shared if parts.parent else None)

    def shared(self, parts: Parts, parent_of: ParentOf) -> Dictionary:
        """A dictionary that others may continue, with its parent in another file if it has one."""
        found = self._dictionary(parts, None)
        if not parts.parent:
            return found
        name = found.text(parts.parent)
        parent = parent_of(name)
        if parent is None:
            raise ValueError(f"its types continue those of {name}, which is missing: give it with --module {name}=FILE")
        label = found.text(parts.parent_label)
        if label and label not in _labels(parent.shared):
            raise ValueError(f"its types continue {label} of {name}, and the file given for {name} is another build")
        found.belong(parent.shared)
        return found

    def described(self, one: Dictionary) -> Described:
        return Described(one, self.tables[one.parts.is_dynamic])

    def _dictionary(self, parts: Parts, parent: Dictionary | None) -> Dictionary:
        return Dictionary(parts, self.module, self.tables[parts.is_dynamic].strings, parent, self.order)


def _first(members: Mapping[str, Parts]) -> str:
    """The name of the dictionary that others continue."""
    if _SHARED in members:
        return _SHARED
    found = next((name for name, one in members.items() if not one.parent), None)
    if found is None:
        raise ValueError("damaged: an archive without a dictionary that stands by itself")
    return found


def _table(elf: ElfLike, section: Section, kind: int) -> Symbols:
    """.symtab or .dynsym; the section says which one, if it links to one."""
    tables = [one for one in elf.sections if one.kind == kind and one.size]
    linked = [one for one in tables if one.index == section.link]
    return symbols_in(elf.data, elf.header, (linked or tables)[0], elf.sections) if tables else no_symbols()


def _members(data: bytes) -> Iterator[tuple[str, Parts]]:
    """The dictionaries of an archive, by their names."""
    if len(data) < _ARCHIVE.size:
        raise ValueError("damaged: the archive ends in its header")
    _, _, count, names, dictionaries = _ARCHIVE.unpack_from(data)
    if count > (len(data) - _ARCHIVE.size) // _ENTRY.size:
        raise ValueError(f"damaged: {count} dictionaries are more than fit into the archive")
    for row in range(count):
        name, start = _ENTRY.unpack_from(data, _ARCHIVE.size + row * _ENTRY.size)
        start += dictionaries
        if start + _SIZE.size > len(data) or names + name >= len(data):
            raise ValueError("damaged: a dictionary begins beyond the archive")
        (size,) = _SIZE.unpack_from(data, start)
        text = text_of(data[names + name : max(data.find(b"\0", names + name), 0)])
        yield text, parts_of(data[start + _SIZE.size : start + _SIZE.size + size])


def _labels(dictionary: Dictionary) -> list[str]:
    labels = dictionary.parts.labels
    return [dictionary.text(name) for name, _ in _LABEL.iter_unpack(labels[: len(labels) & ~7])]

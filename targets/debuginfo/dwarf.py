"""The DWARF of an image -> its entries by name. The one file that knows pyelftools.

Nothing is parsed until a name is asked for, and then only the units that can have it: those whose bytes hold the name
or the offset of the name in .debug_str, which `bytes.find` tells at memory speed. Of such a unit the top-level entries
are indexed once (about 20 us each).

What is slow in a vmlinux (160 MB of .debug_info, 3,000 units of 10,000 top-level entries): each unit that is looked
into takes 0.2 s, so a name whose definition lies behind many units that only declare it takes seconds, and one that
hundreds of other names end with (.debug_str shares tails), such as "i", is searched for in all units. Types of kernels
come from .BTF where there is one, so only the types of their variables come from here.
"""

import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from typing import Any, Final

import numpy as np
from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from kinst.targets.elf_header import FileKind
from kinst.targets.image import Image
from kinst.targets.sections import content

# What pyelftools raises when it reads damaged debug information.
_DAMAGE: Final = (
    *(DWARFError, ELFError, ConstructError, LookupError, AssertionError, ValueError, TypeError, AttributeError),
    *(ArithmeticError, NotImplementedError, RecursionError, zlib.error, struct.error),
)
_NEEDED: Final = ("info", "abbrev", "str", "line_str", "str_offsets", "addr", "types")
_SECTIONS: Final = (  # the others that pyelftools knows
    *("debug_aranges_sec", "debug_frame_sec", "eh_frame_sec", "debug_loc_sec", "debug_ranges_sec", "debug_line_sec"),
    *("debug_pubtypes_sec", "debug_pubnames_sec", "debug_loclists_sec", "debug_rnglists_sec"),
    *("debug_sup_sec", "gnu_debugaltlink_sec"),
)
_UNIT_TYPE: Final = 2  # DW_UT_type
_COMPRESSED: Final = 0x800  # SHF_COMPRESSED
_ZLIB: Final = 1  # ELFCOMPRESS_ZLIB
_FEW: Final = 64  # places of a name in .debug_str that are looked for one by one
_TAG, _ATTRIBUTE = "DW_TAG_", "DW_AT_"
_INDEXED: Final = frozenset(
    _TAG + tag
    for tag in (
        *("base_type", "typedef", "structure_type", "class_type", "union_type", "enumeration_type"),
        *("variable", "subprogram", "unspecified_type"),
    )
)
_OP_ADDR, _OP_PLUS_UCONST, _OP_ADDRX, _OP_CONSTU = 0x03, 0x23, 0xA1, 0x10


class _Reader(DWARFInfo):  # type: ignore[misc]  # pyelftools is not typed
    """pyelftools looks for type units in DWARF 4's .debug_types only; DWARF 5 has them in .debug_info."""

    def get_DIE_by_sig8(self, sig8: int) -> DIE:  # noqa: N802 - pyelftools' name
        """The entry of a type by its signature."""
        at = self._signatures.get(sig8)
        return super().get_DIE_by_sig8(sig8) if at is None else self.get_CU_at(at[0]).get_DIE_from_refaddr(sum(at))

    @cached_property
    def _signatures(self) -> dict[int, tuple[int, int]]:
        """Signature -> offset of the unit, and of the type's entry in it.

        length (4) | version (2) | unit type (1) | 1 | abbreviations (4) | signature (8) | type's offset (4)
        """
        found, info = {}, self.debug_info_sec.stream.getvalue()
        for unit in unit_offsets(info).tolist():
            if unit + 24 <= len(info):
                version, kind, signature, offset = struct.unpack_from("<4xHB5xQI", info, unit)
                if version >= 5 and kind == _UNIT_TYPE:
                    found[signature] = unit, offset
        return found


class Entry:
    """A debugging information entry. `tag` and attributes are named without their prefixes DW_TAG_ and DW_AT_."""

    __slots__ = ("_die", "offset", "tag")

    def __init__(self, die: DIE) -> None:
        self._die = die
        self.offset: int = die.offset  # in .debug_info: its identity
        self.tag = str(die.tag).removeprefix(_TAG)

    @property
    def name(self) -> str:
        """DW_AT_name; empty if it has none."""
        return _name_of(self._die)

    def has(self, attribute: str) -> bool:
        """Whether it has the attribute (and it is not false, if it is a flag)."""
        found = self._die.attributes.get(_ATTRIBUTE + attribute)
        return found is not None and found.value is not False

    def number(self, attribute: str) -> int | None:
        """A constant; None if there is none, or an expression or a reference to what is known at run time only."""
        found = self._die.attributes.get(_ATTRIBUTE + attribute)
        if found is None:
            return None
        if isinstance(found.value, int) and not found.form.startswith("DW_FORM_ref"):
            return int(found.value)
        return _constant(found.value)

    def reference(self, attribute: str) -> "Entry | None":
        """The entry that an attribute refers to; also one that this entry completes may have the attribute."""
        try:
            die = _holder(self._die, _ATTRIBUTE + attribute)
            return None if die is None else Entry(die.get_DIE_from_attribute(_ATTRIBUTE + attribute))
        except _DAMAGE:
            return None

    def children(self) -> Iterator["Entry"]:
        """The entries in it; as far as they can be read."""
        for die in _children(self._die):
            yield Entry(die)

    def address(self) -> int | None:
        """Where the variable or function is, if that is one fixed address."""
        low = self._die.attributes.get("DW_AT_low_pc")
        if low is not None and isinstance(low.value, int):
            return int(low.value)
        location = self._die.attributes.get("DW_AT_location")
        try:
            return None if location is None else _location(self._die, location.value)
        except _DAMAGE:
            return None


class DebugInfo:
    """The DWARF of one image; without entries if it has none, or none that can be read."""

    def __init__(self, image: Image) -> None:
        """Nothing is read yet."""
        self._image = image
        self._indexes: dict[int, dict[str, list[int]]] = {}
        self._enumerators: dict[int, dict[str, int]] = {}

    def named(self, name: str) -> Iterator[Entry]:
        """The top-level entries of that name, unit by unit."""
        for unit in self._units_with(name.encode(errors="surrogateescape")):
            cu = self._cu(unit)
            for offset in self._index(unit).get(name, ()):
                if cu is not None:
                    yield Entry(cu.get_DIE_from_refaddr(offset))

    def enumerations_with(self, name: str) -> Iterator[Entry]:
        """The enumerations that have an enumerator of that name."""
        for unit in self._units_with(name.encode(errors="surrogateescape")):
            cu, offset = self._cu(unit), self._enumerators_of(unit).get(name)
            if cu is not None and offset is not None:
                yield Entry(cu.get_DIE_from_refaddr(offset))

    # -- which units may have a name ----------------------------------------------------------------------------------

    def _units_with(self, name: bytes) -> list[int]:
        """Offsets of the units that have a name, and perhaps of some that have not."""
        if not name or self._dwarf is None:
            return []
        text, info = name + b"\0", self._info
        places = _places(text, self._strings)
        if len(places) > _FEW:
            return [int(unit) for unit in self._units]
        found = _places(text, info)
        for place in places:
            found += _places(place.to_bytes(4, "little"), info)  # the low half of a 64-bit offset, too
        units = set(self._units[np.searchsorted(self._units, np.array(found, np.int64), "right") - 1].tolist())
        return sorted(units | self._units_by_index(places))

    def _units_by_index(self, places: list[int]) -> set[int]:
        """Units that have the offset of a name in their part of .debug_str_offsets (DW_FORM_strx)."""
        table, found = self._string_offsets, set[int]()
        if not table or not self._offset_bases:
            return found
        bases, units = (np.array(column, np.int64) for column in zip(*self._offset_bases, strict=True))
        for place in places:
            at = np.array(_places(place.to_bytes(4, "little"), table), np.int64)
            rows = np.searchsorted(bases, at, "right") - 1
            found.update(units[np.isin(bases, bases[rows[rows >= 0]])].tolist())
        return found

    @cached_property
    def _offset_bases(self) -> list[tuple[int, int]]:
        """(DW_AT_str_offsets_base, unit), ascending."""
        found = []
        for unit in self._units.tolist():
            cu = self._cu(unit)
            base = None if cu is None else cu.get_top_DIE().attributes.get("DW_AT_str_offsets_base")
            if base is not None:
                found.append((int(base.value), unit))
        return sorted(found)

    # -- units --------------------------------------------------------------------------------------------------------

    def _cu(self, unit: int) -> CompileUnit | None:
        try:
            cu = self._dwarf.get_CU_at(unit)
            # pyelftools 0.33 reads 8 bytes of this form.
            cu.structs.Dwarf_dw_form["DW_FORM_strx4"] = cu.structs.the_Dwarf_uint32
            cu.get_top_DIE()
        except _DAMAGE:
            return None
        return cu

    def _index(self, unit: int) -> dict[str, list[int]]:
        """Name -> offsets of top-level entries of a unit."""
        index = self._indexes.get(unit)
        if index is None:
            index = self._indexes[unit] = defaultdict(list)
            for entry in self._top_level(unit):
                if entry.tag in _INDEXED:
                    index[_full_name(entry)].append(entry.offset)
        return index

    def _enumerators_of(self, unit: int) -> dict[str, int]:
        found = self._enumerators.get(unit)
        if found is None:
            found = self._enumerators[unit] = {}
            for die in self._top_level(unit):
                if die.tag == "DW_TAG_enumeration_type":
                    for entry in Entry(die).children():
                        found.setdefault(entry.name, die.offset)
        return found

    def _top_level(self, unit: int) -> Iterator[DIE]:
        cu = self._cu(unit)
        if cu is not None:
            yield from _children(cu.get_top_DIE())

    # -- sections -----------------------------------------------------------------------------------------------------

    @cached_property
    def _dwarf(self) -> Any:
        """pyelftools' reader; None without DWARF."""
        try:
            sections = _relocated(self._image) if self._image.kind is FileKind.REL else _linked(self._image)
        except _DAMAGE:
            return None
        if sections["debug_info_sec"] is None or sections["debug_abbrev_sec"] is None:
            return None
        machine = self._image.facts.name
        config = DwarfConfig(little_endian=True, default_address_size=8, machine_arch=machine)
        return _Reader(config=config, **dict.fromkeys(_SECTIONS), **sections)

    def _bytes(self, section: str) -> bytes:
        found = None if self._dwarf is None else getattr(self._dwarf, f"debug_{section}_sec")
        return b"" if found is None else found.stream.getvalue()

    @cached_property
    def _info(self) -> bytes:
        return self._bytes("info")

    @cached_property
    def _strings(self) -> bytes:
        return self._bytes("str")

    @cached_property
    def _string_offsets(self) -> bytes:
        return self._bytes("str_offsets")

    @cached_property
    def _units(self) -> NDArray[np.int64]:
        """Where units start."""
        return unit_offsets(self._info)


def unit_offsets(info: bytes) -> NDArray[np.int64]:
    """Where the units of .debug_info start, each with its length (4; 0xffffffff: 8 more)."""
    found, at = [], 0
    while at + 12 <= len(info):
        (length,) = struct.unpack_from("<I", info, at)
        head = 4
        if length == 0xFFFFFFFF:
            (length,) = struct.unpack_from("<Q", info, at + 4)
            head = 12
        found.append(at)
        at += head + length
    return np.array(found or [0], np.int64)


def _linked(image: Image) -> dict[str, DebugSectionDescriptor | None]:
    """The sections that describe types, variables and functions: the others may be ten times as large."""
    return {f"debug_{name}_sec": _section(image, name) for name in _NEEDED}


def _relocated(image: Image) -> dict[str, DebugSectionDescriptor | None]:
    """The same of a module, whose debug sections have relocations themselves."""
    found = ELFFile(BytesIO(image.data.tobytes())).get_dwarf_info(follow_links=False)
    return {f"debug_{name}_sec": getattr(found, f"debug_{name}_sec") for name in _NEEDED}


def _section(image: Image, name: str) -> DebugSectionDescriptor | None:
    section = image.section(f".debug_{name}")
    if section is None:
        return None
    data = content(image.data, section).tobytes()
    if section.flags & _COMPRESSED:
        kind, _, _, _ = struct.unpack_from("<IIQQ", data)
        if kind != _ZLIB:  # Python has no zstd before 3.14
            return None
        data = zlib.decompress(data[24:])
    return DebugSectionDescriptor(BytesIO(data), section.name, section.offset, len(data), section.address)


def _children(die: DIE) -> Iterator[DIE]:
    last = die.offset
    try:
        for child in die.iter_children():
            if child.offset <= last:  # a damaged DW_AT_sibling leads back
                return
            last = child.offset
            yield child
    except _DAMAGE:
        return


def _places(wanted: bytes, data: bytes) -> list[int]:
    found, at = [], data.find(wanted)
    while at >= 0:
        found.append(at)
        at = data.find(wanted, at + 1)
    return found


def _name_of(die: DIE) -> str:
    found = die.attributes.get("DW_AT_name")
    return found.value.decode(errors="backslashreplace") if found is not None and isinstance(found.value, bytes) else ""


def _full_name(die: DIE) -> str:
    """The name, also of the definition of something that was declared before, whose entry only refers to that."""
    name = _name_of(die)
    try:
        if not name and "DW_AT_specification" in die.attributes:
            return _name_of(die.get_DIE_from_attribute("DW_AT_specification"))
    except _DAMAGE:
        pass
    return name


def _holder(die: DIE, attribute: str) -> DIE | None:
    """The entry itself or the one that it completes, whichever has the attribute."""
    for _ in range(8):
        if attribute in die.attributes:
            return die
        origin = next((a for a in ("DW_AT_specification", "DW_AT_abstract_origin") if a in die.attributes), None)
        if origin is None:
            return None
        die = die.get_DIE_from_attribute(origin)
    return None


def _constant(value: object) -> int | None:
    """Of an expression only what DWARF 2 compilers make of offsets: DW_OP_plus_uconst n, DW_OP_constu n."""
    if isinstance(value, list) and len(value) > 1 and value[0] in (_OP_PLUS_UCONST, _OP_CONSTU):
        return _leb128(value[1:])
    return None


def _location(die: DIE, expression: object) -> int | None:
    if not isinstance(expression, list) or not expression:
        return None
    if expression[0] == _OP_ADDR and len(expression) == 9:
        return int.from_bytes(bytes(expression[1:]), "little")
    if expression[0] == _OP_ADDRX:
        return int(die.dwarfinfo.get_addr(die.cu, _leb128(expression[1:])))
    return None


def _leb128(digits: list[int]) -> int:
    return sum((digit & 0x7F) << 7 * place for place, digit in enumerate(digits))

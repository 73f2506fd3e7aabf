""".debug_abbrev -> for each code of a unit how to skip such an entry, and what it is made of (DWARF 5, 7.5.3).

Skipping an entry must take almost no time, so each declaration is made into a plan once: how many bytes such entries
have if all their values have a fixed size, and where DW_AT_sibling is. The units of a kernel have 200 declarations
each, but only a few thousand of them differ, so plans are kept by the bytes of their declarations.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

from kinst.targets.debuginfo.dwarf.forms import Sizes, step
from kinst.targets.debuginfo.dwarf.numbers import At, Form, Tag
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb, signed_leb
from kinst.targets.values import dataclass

INLINED: Final = (1, 3)  # DW_AT_inline: DW_INL_inlined, DW_INL_declared_inlined: it was inlined somewhere
NAMES: Final = (At.NAME, At.LINKAGE_NAME, At.MIPS_LINKAGE_NAME)
ORIGINS: Final = (At.ABSTRACT_ORIGIN, At.SPECIFICATION)
# Forms whose value can be found as bytes: four of them (the low half of eight), or the text itself.
_SEARCHABLE_NAMES: Final = frozenset({Form.STRP, Form.LINE_STRP, Form.STRING})
_SEARCHABLE_ORIGINS: Final = frozenset({Form.REF4, Form.REF8, Form.REF_ADDR})
_FAR: Final = frozenset({Form.REF_ADDR, Form.INDIRECT})
_SUBROUTINES: Final = frozenset({Tag.SUBPROGRAM, Tag.INLINED_SUBROUTINE})


@dataclass(frozen=True, slots=True)
class Declaration:
    """What entries of one code are made of. `attributes` are (attribute, form, value of DW_FORM_implicit_const)."""

    tag: int
    has_children: bool = False
    attributes: tuple[tuple[int, int, int], ...] = ()
    name_places: tuple[int, ...] = ()  # where in an entry the names of a subprogram are, if that is fixed
    has_names: bool = False
    has_floating_names: bool = False  # some are after something of variable length
    is_reference: bool = False  # a subprogram or inlined copy that refers to another entry
    is_abstract: bool = False  # a subprogram with DW_AT_inline
    has_frame: bool = False  # a subprogram with DW_AT_frame_base
    # Where the offset of its name in .debug_str is, and DW_AT_inline (0: the declaration says that it is inlined), if
    # it has both and they can be read without reading the entry.
    quick: tuple[int, int] | None = None
    is_far: bool = False  # it may refer to an entry of another unit
    is_odd: bool = False  # its names or references have forms that a search of bytes does not find

    @property
    def is_subprogram(self) -> bool:
        """Whether such entries are subprograms."""
        return self.tag == Tag.SUBPROGRAM


_FAR_BYTES: Final = re.compile(rb"[\x31\x47][\x10\x16]")  # an origin and its form, or what looks like it

# Bytes of the fixed part, code included; where DW_AT_sibling is (0: not usable); the steps after the fixed part.
Plan = tuple[int, int, tuple[int, ...], Declaration]
Plans = dict[int | bytes, Plan]  # by code: its number if that is one byte, else its bytes
NULL_PLAN: Final[Plan] = (1, 0, (), Declaration(0))

_LEB = rb"[\x80-\xff]*+[\x00-\x7f]"
_NOT_ZERO = rb"(?:[\x80-\xff]++[\x00-\x7f]|[\x01-\x7f])"
# code | tag, children, (attribute, form)*, 0, 0; DW_FORM_implicit_const has its value after it.
_DECLARATION: Final = re.compile(
    rb"(%b)(%b[\x00\x01](?:%b(?:\x21%b|%b))*+\x00\x00)" % (_NOT_ZERO, _LEB, _NOT_ZERO, _LEB, _LEB)
)


class Abbreviations:
    """The plans of all units, made when a unit is opened."""

    def __init__(self, section: bytes) -> None:
        """`section` is the content of .debug_abbrev; nothing is read yet."""
        self._section = section
        self._known: dict[tuple[Sizes, int], _Known] = {}
        self._tables: dict[tuple[int, Sizes], Plans] = {}

    def plans(self, offset: int, end: int, sizes: Sizes) -> Plans:
        """The plans of the table at `offset`; `end` is where the next table may begin.

        Raises:
            ImageError: the table is damaged.
        """
        found = self._tables.get((offset, sizes))
        if found is None:
            found = self._read(offset, end, sizes)
            self._tables = {(offset, sizes): found}  # neighbours share tables; all of a kernel's take 200 MB
        return found

    def far_tables(self, ends: Mapping[int, int], sizes: Sizes) -> set[int]:
        """Offsets of the tables in which a subprogram or inlined copy may refer to another unit, as LTO and dwz do.

        Args:
            ends: the offset of each table, and where the next begins, ascending.
            sizes: of a unit; any will do.
        """
        starts, found = list(ends), set[int]()
        for match in _FAR_BYTES.finditer(self._section):
            row = bisect_right(starts, match.start()) - 1
            if row < 0 or starts[row] in found:
                continue
            plans = self.plans(starts[row], ends[starts[row]], sizes)
            if any(plan[3].is_far for plan in plans.values()):
                found.add(starts[row])
        return found

    def has_odd(self, plans: Plans) -> bool:
        """Whether a unit must be read as a whole: some of its names or references cannot be found as bytes."""
        return any(plan[3].is_odd for plan in plans.values()) if self._any_odd else False

    @property
    def _any_odd(self) -> bool:
        return any(known.any_odd for known in self._known.values())

    def _read(self, offset: int, end: int, sizes: Sizes) -> Plans:
        if not 0 <= offset < len(self._section):
            raise ImageError(f"its abbreviations at {offset:#x} are beyond the end of .debug_abbrev")
        short, long = self._plans_of(sizes, 1), dict[int, _Known]()
        plans: Plans = {0: NULL_PLAN}
        for code, body in self._declarations(offset, end):
            key = code[0] if len(code) == 1 else code if code[-1] else key_of(leb(code, 0)[0])
            if isinstance(key, int):
                plans[key] = short[body]
                continue
            known = long.get(len(key))
            if known is None:
                known = long[len(key)] = self._plans_of(sizes, len(key))
            plans[key] = known[body]
        return plans

    def _plans_of(self, sizes: Sizes, code_size: int) -> "_Known":
        return self._known.setdefault((sizes, code_size), _Known(sizes, code_size))

    def _declarations(self, offset: int, end: int) -> list[tuple[bytes, bytes]]:
        table = self._section[offset:end]
        found = _DECLARATION.findall(table)
        size = sum(len(code) + len(body) for code, body in found)
        # `findall` skips what does not match. If everything matched, the table is whole.
        if table[size:] == b"\0":
            return found
        found, at = [], 0
        while at < len(table) and table[at]:
            match = _DECLARATION.match(table, at)
            if match is None:
                raise ImageError(f"its abbreviations are damaged at {offset + at:#x} of .debug_abbrev")
            found.append((match[1], match[2]))
            at = match.end()
        return found


def key_of(code: int) -> int | bytes:
    """The key of a code in `Plans`."""
    if code < 0x80:
        return code
    digits = bytearray()
    while code > 0x7F:
        digits.append(0x80 | (code & 0x7F))
        code >>= 7
    digits.append(code)
    return bytes(digits)


class _Known(dict[bytes, Plan]):
    """The bytes of a declaration -> its plan, for codes of one length."""

    def __init__(self, sizes: Sizes, code_size: int) -> None:
        super().__init__()
        self._sizes, self._code_size = sizes, code_size
        self.any_odd = False

    def __missing__(self, body: bytes) -> Plan:
        plan = self[body] = _plan(_declaration(body, self._sizes, self._code_size), self._sizes, self._code_size)
        self.any_odd |= plan[3].is_odd
        return plan


def _declaration(body: bytes, sizes: Sizes, code_size: int) -> Declaration:
    tag, at = leb(body, 0)
    has_children = body[at] != 0
    attributes = tuple(_attributes(body, at + 1))
    forms: Mapping[int, int] = {attribute: form for attribute, form, _ in attributes}
    is_subprogram, is_subroutine = tag == Tag.SUBPROGRAM, tag in _SUBROUTINES
    places = tuple(_name_places(attributes, sizes, code_size)) if is_subprogram else ()
    names = [forms[name] for name in NAMES if is_subprogram and name in forms]
    origins = [forms[origin] for origin in ORIGINS if is_subroutine and origin in forms]
    return Declaration(
        tag=tag,
        has_children=has_children,
        attributes=attributes,
        name_places=places,
        has_names=bool(names),
        has_floating_names=len(places) < len(names),
        is_reference=bool(origins),
        is_abstract=is_subprogram and At.INLINE in forms,
        has_frame=is_subprogram and At.FRAME_BASE in forms,
        quick=_quick(attributes, sizes, code_size) if is_subprogram and At.INLINE in forms else None,
        is_far=not _FAR.isdisjoint(origins),
        is_odd=not (_SEARCHABLE_NAMES.issuperset(names) and _SEARCHABLE_ORIGINS.issuperset(origins)),
    )


def _attributes(body: bytes, at: int) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    while True:
        attribute, at = leb(body, at)
        form, at = leb(body, at)
        value = 0
        if form == Form.IMPLICIT_CONST:
            value, at = signed_leb(body, at)
        if not attribute:
            return found
        found.append((attribute, form, value))


def _name_places(attributes: tuple[tuple[int, int, int], ...], sizes: Sizes, code_size: int) -> list[int]:
    at, places = code_size, []
    for attribute, form, _ in attributes:
        if attribute in NAMES:
            places.append(at)
        how = step(form, sizes)
        if how < 0:
            break
        at += how
    return places


def _quick(attributes: tuple[tuple[int, int, int], ...], sizes: Sizes, code_size: int) -> tuple[int, int] | None:
    at, found = code_size, dict[int, int]()
    for attribute, form, value in attributes:
        if attribute == At.INLINE and form == Form.IMPLICIT_CONST and value in INLINED:
            found[attribute] = 0
        elif (attribute, form) in ((At.INLINE, Form.DATA1), (At.NAME, Form.STRP)):
            found[attribute] = at
        how = step(form, sizes)
        if how < 0:
            break
        at += how
    if At.NAME not in found or At.INLINE not in found or sizes.offset != 4:
        return None
    return found[At.NAME], found[At.INLINE]


def _plan(declaration: Declaration, sizes: Sizes, code_size: int) -> Plan:
    """Consecutive steps of fixed size become one."""
    size, sibling, steps = code_size, 0, list[int]()
    for attribute, form, _ in declaration.attributes:
        how = step(form, sizes)
        if attribute == At.SIBLING and not steps and form in (Form.REF4, Form.REF8):
            sibling = size
        if not steps and how >= 0:
            size += how
        elif how >= 0 and steps[-1] >= 0:
            steps[-1] += how
        else:
            steps.append(how)
    return size, sibling if declaration.has_children else 0, tuple(steps), declaration

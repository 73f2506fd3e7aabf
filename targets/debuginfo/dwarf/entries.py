"""An entry of DWARF that describes a type, a variable or a function: with names in place of numbers, and without
errors.

Damaged parts are ignored, since the rest is still useful.
"""

from collections.abc import Iterator
from typing import Final

from kinst.targets.debuginfo.dwarf.forms import UNIT_REFERENCES
from kinst.targets.debuginfo.dwarf.numbers import At, Form, Op, Tag
from kinst.targets.debuginfo.dwarf.type_units import DAMAGED, SignedTypes
from kinst.targets.debuginfo.dwarf.units import Entry, UnitEntries
from kinst.targets.leb128 import leb
from kinst.targets.visible import text_of

TAGS: Final = {int(tag): tag.name.lower() for tag in Tag}
ATTRIBUTES: Final = {attribute.name.lower(): int(attribute) for attribute in At}
_ORIGINS: Final = ("specification", "abstract_origin")
_LONGEST_CHAIN: Final = 8  # of entries that complete one another
_REFERENCES: Final = UNIT_REFERENCES | {Form.REF_ADDR, Form.REF_SIG8}


class NamedEntry:
    """An entry whose tag and attributes go by name, without the prefixes DW_TAG_ and DW_AT_; in `Entry` they are
    numbers."""

    __slots__ = ("_entries", "_raw", "_signed", "offset", "tag")

    def __init__(self, entries: UnitEntries, raw: Entry, signed: SignedTypes) -> None:
        """`signed` knows the types that have units of their own."""
        self._entries = entries
        self._signed = signed
        self._raw = raw
        # In .debug_info; below zero in .debug_types. It identifies the entry.
        self.offset = -1 - raw.offset if entries.units in signed.old else raw.offset
        self.tag = TAGS.get(raw.declaration.tag, "")

    @property
    def name(self) -> str:
        """DW_AT_name; empty if it has none."""
        try:
            found = self._entries.text(self._raw, ATTRIBUTES["name"])
        except DAMAGED:
            return ""
        return "" if found is None else text_of(found)

    @property
    def full_name(self) -> str:
        """The name; also of the definition of something declared earlier, whose entry only refers to that."""
        holder = self._holder("name")
        return "" if holder is None else holder.name

    def has(self, attribute: str) -> bool:
        """Whether it has the attribute, and if that is a flag whether it is true."""
        form, value = self._raw.values.get(ATTRIBUTES[attribute], (Form.FLAG, 0))
        return form != Form.FLAG or value != 0

    def number(self, attribute: str) -> int | None:
        """A constant; None if there is none, or an expression or a reference to what is known at run time only."""
        form, value = self._raw.values.get(ATTRIBUTES[attribute], (0, b""))
        if isinstance(value, bytes):
            return _constant(value)
        return None if form in _REFERENCES else value

    def reference(self, attribute: str) -> "NamedEntry | None":
        """The entry that an attribute refers to, of this entry or of one that it completes."""
        holder = self._holder(attribute)
        return None if holder is None else holder._target(attribute)

    def children(self) -> Iterator["NamedEntry"]:
        """The direct children, up to the first that cannot be read."""
        last = self._raw.end - 1
        try:
            for child in self._entries.children(self._raw):
                if child.offset <= last:  # a damaged DW_AT_sibling leads back
                    return
                last = child.offset
                yield NamedEntry(self._entries, child, self._signed)
        except DAMAGED:
            return

    def address(self) -> int | None:
        """Where the variable or function is, if that is one fixed address."""
        try:
            low = self._entries.address(self._raw, ATTRIBUTES["low_pc"])
            return self._location() if low is None else low
        except DAMAGED:
            return None

    def _location(self) -> int | None:
        expression = self._raw.block(ATTRIBUTES["location"])
        if not expression:
            return None
        if expression[0] == Op.ADDR and len(expression) == 9:
            return int.from_bytes(expression[1:], "little")
        return self._entries.indexed_address(leb(expression, 1)[0]) if expression[0] == Op.ADDRX else None

    def _target(self, attribute: str) -> "NamedEntry | None":
        form, value = self._raw.values.get(ATTRIBUTES[attribute], (0, b""))
        if isinstance(value, bytes) or form not in _REFERENCES:
            return None
        try:
            return NamedEntry(*self._defined(*self._found(form, value)), self._signed)
        except DAMAGED:
            return None

    def _defined(self, entries: UnitEntries, raw: Entry) -> tuple[UnitEntries, Entry]:
        """The type itself, if the entry only names one that has a unit of its own."""
        form, value = raw.values.get(ATTRIBUTES["signature"], (0, b""))
        return self._signed.find(value) if form == Form.REF_SIG8 and isinstance(value, int) else (entries, raw)

    def _found(self, form: int, value: int) -> tuple[UnitEntries, Entry]:
        if form == Form.REF_SIG8:
            return self._signed.find(value)
        unit = self._entries.unit
        if unit.offset <= value < unit.end:
            return self._entries, self._entries.entry(value)
        return self._entries.units.entry(value)

    def _holder(self, attribute: str) -> "NamedEntry | None":
        """The entry itself, or the one that it completes, whichever has the attribute."""
        entry: NamedEntry | None = self
        for _ in range(_LONGEST_CHAIN):
            if entry is None or ATTRIBUTES[attribute] in entry._raw.values:
                return entry
            origin = next((one for one in _ORIGINS if ATTRIBUTES[one] in entry._raw.values), None)
            entry = None if origin is None else entry._target(origin)
        return None


def _constant(expression: bytes) -> int | None:
    """Of an expression only what DWARF 2 compilers make of offsets: DW_OP_plus_uconst n, DW_OP_constu n."""
    if len(expression) > 1 and expression[0] in (Op.PLUS_UCONST, Op.CONSTU):
        return leb(expression, 1)[0]
    return None

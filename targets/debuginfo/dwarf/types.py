"""Entries of DWARF -> C types, enumerators, variables and prototypes, each made on demand.

Every unit has its own copy of the types it uses. Copies become one type: structs and unions of the same tag (or,
without a tag, of the same typedef) whose members have the same names and places are one `Aggregate`; everything else is
compared by value anyway.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    CType,
    EnumType,
    Function,
    Integer,
    IntegerKind,
    Member,
    Pointer,
    Qualified,
    Typedef,
    Void,
    alignment_of,
    is_complete,
    size_of,
)
from kinst.targets.debuginfo.c_layout import Content, UnreadAggregate, base_type, bit_field, enum_base, float_type
from kinst.targets.debuginfo.dwarf.entries import NamedEntry
from kinst.targets.debuginfo.dwarf.entry_search import DebugInfo

_DEEPEST: Final = 100  # nesting of types; only damaged or hostile debug information has more
_KINDS: Final = {
    "structure_type": AggregateKind.STRUCT,
    "class_type": AggregateKind.STRUCT,
    "union_type": AggregateKind.UNION,
}
_TAGS: Final = {
    "struct": frozenset({"structure_type", "class_type"}),
    "union": frozenset({"union_type"}),
    "enum": frozenset({"enumeration_type"}),
}
_KEYWORDS: Final = {
    "structure_type": "struct ",
    "union_type": "union ",
    "enumeration_type": "enum ",
    "typedef": "",
}
_PLAIN: Final = frozenset({"typedef", "base_type"})
_FUNCTIONS: Final = frozenset({"subprogram"})
_OBJECTS: Final = frozenset({"subprogram", "variable"})
# DW_ATE_, DWARF 5 table 7.11.
_BOOLEAN, _COMPLEX, _FLOAT, _SIGNED, _SIGNED_CHAR, _UNSIGNED_CHAR, _IMAGINARY = 2, 3, 4, 5, 6, 8, 9
_DECIMAL_FLOAT, _SIGNED_FIXED = 0xF, 0xD
_ENDLESS: Final = {(1 << bits) - 1 for bits in (32, 64)} | {-1}  # the upper bound of an array without elements

_Shape = tuple[object, ...]


class DwarfTypes:
    """What the DWARF of one image says about types and symbols, by name."""

    def __init__(
        self, info: DebugInfo, module: str, elsewhere: Callable[[str], CType | None] = lambda _name: None
    ) -> None:
        """Nothing is read yet. `elsewhere` is asked first for a type by its name, so that one type is one object."""
        self._elsewhere = elsewhere
        self._info = info
        self._module = module
        self._built: dict[int, CType] = {}  # by offset of the entry
        self._same_tag: dict[tuple[AggregateKind, str, str], list[_Definition]] = {}

    # -- by name ------------------------------------------------------------------------------------------------------

    def type_named(self, name: str) -> CType | None:
        """A typedef or base type by its name, or "struct x", "union x", "enum x"; complete if any unit has it so."""
        keyword, _, tag = name.partition(" ")
        wanted, bare = (_TAGS[keyword], tag.strip()) if keyword in _TAGS else (_PLAIN, name)
        for entry in self._info.named(bare, wanted, declarations=False):
            kind = self._type(entry, 0)
            if is_complete(kind):
                return kind
        entry_of_any = next(self._info.named(bare, wanted), None)
        return None if entry_of_any is None else self._type(entry_of_any, 0)

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """An enumeration constant: its type and its value."""
        for entry in self._info.enumerations_with(name):
            kind = self._type(entry, 0)
            value = dict(kind.enumerators).get(name) if isinstance(kind, EnumType) else None
            if value is not None and isinstance(kind, EnumType):
                return kind, value
        return None

    def variable(self, name: str, address: int | None) -> CType | None:
        """The type of the variable or function of that name at an address; else of any of that name, preferably a
        definition; else of what is at the address by another name."""
        here = self._at(address, _OBJECTS)
        found: CType | None = None
        for entry in chain((one for one in here if one.full_name == name), self._named_objects(name), here):
            kind = self._function(entry) if entry.tag == "subprogram" else self._reference(entry, "type", 0)
            # What has external linkage is the same wherever it is declared.
            if entry.address() == address or (entry.has("external") and is_complete(kind)):
                return kind
            if found is None or not entry.has("declaration"):
                found = kind
        return found

    def function(self, name: str, address: int | None) -> Function | None:
        """The prototype of the function of that name at an address; else of any of that name, or at the address."""
        here = self._at(address, _FUNCTIONS)
        entries = chain((one for one in here if one.full_name == name), self._info.named(name, _FUNCTIONS), here)
        found: Function | None = None
        for entry in entries:
            kind = self._function(entry)
            if kind.parameters or (address and entry.address() == address):
                return kind
            found = found or kind  # builtins such as memcpy have no parameters in some units
        return found

    def _named_objects(self, name: str) -> Iterator[NamedEntry]:
        return self._info.named(name, _OBJECTS)

    def _at(self, address: int | None, tags: frozenset[str]) -> list[NamedEntry]:
        return list(self._info.at_address(address, tags)) if address else []

    # -- types --------------------------------------------------------------------------------------------------------

    def _type(self, entry: NamedEntry, depth: int) -> CType:
        built = self._built.get(entry.offset)
        if built is None:
            built = Void() if depth > _DEEPEST else self._named_elsewhere(entry) or self._new(entry, depth + 1)
            # Kept only now: a type that refers to itself goes through an aggregate, whose members are read later.
            self._built[entry.offset] = built
        return built

    def _named_elsewhere(self, entry: NamedEntry) -> CType | None:
        name, keyword = entry.name, _KEYWORDS.get(entry.tag)
        if not name or keyword is None:
            return None
        # It may be complete there, and then it is the same object everywhere.
        found = self._elsewhere(keyword + name)
        return None if found is None or not is_complete(found) else found

    def _reference(self, entry: NamedEntry, attribute: str, depth: int) -> CType:
        """No DW_AT_type means void."""
        target = entry.reference(attribute)
        return Void() if target is None else self._type(target, depth)

    def _new(self, entry: NamedEntry, depth: int) -> CType:
        match entry.tag:
            case "base_type":
                return _base(entry)
            case "typedef":
                return self._typedef(entry, depth)
            case "array_type":
                return self._array(entry, depth)
            case "structure_type" | "class_type" | "union_type":
                return self._aggregate(entry, "")
            case "enumeration_type":
                return self._enumeration(entry, depth)
            case "subroutine_type":
                return self._function(entry, depth)
            case _:
                return self._derived(entry, depth)

    def _derived(self, entry: NamedEntry, depth: int) -> CType:
        """A pointer, or a type with a qualifier; D has no restrict and no _Atomic."""
        match entry.tag:
            case "pointer_type" | "reference_type" | "rvalue_reference_type" | "ptr_to_member_type":
                return Pointer(self._reference(entry, "type", depth))
            case "const_type":
                return Qualified(self._reference(entry, "type", depth), is_const=True)
            case "volatile_type":
                return Qualified(self._reference(entry, "type", depth), is_volatile=True)
            case "restrict_type" | "atomic_type" | "shared_type" | "packed_type" | "immutable_type":
                return self._reference(entry, "type", depth)
            case _:
                return Void()

    def _typedef(self, entry: NamedEntry, depth: int) -> CType:
        target = entry.reference("type")
        if target is not None and target.tag in _KINDS and not target.name:
            return Typedef(entry.name, self._built.setdefault(target.offset, self._aggregate(target, entry.name)))
        return Typedef(entry.name, Void() if target is None else self._type(target, depth))

    def _array(self, entry: NamedEntry, depth: int) -> CType:
        kind = self._reference(entry, "type", depth)
        lengths = [_length(child) for child in entry.children() if child.tag in ("subrange_type", "enumeration_type")]
        # DW_TAG_subrange_type children are in source order, the first dimension outermost: built from the inside.
        for length in reversed(lengths[:_DEEPEST]):
            kind = Array(kind, length)
        return kind if lengths else Array(kind, None)

    def _enumeration(self, entry: NamedEntry, depth: int) -> EnumType:
        values = tuple(
            (child.name, child.number("const_value") or 0) for child in entry.children() if child.tag == "enumerator"
        )
        size = entry.number("byte_size") or 4
        is_signed = any(value < 0 for _, value in values)
        underlying = self._reference(entry, "type", depth) if entry.reference("type") is not None else None
        while isinstance(underlying, Typedef):
            underlying = underlying.target
        if not isinstance(underlying, Integer):
            underlying = enum_base(size, is_signed=is_signed)
        return EnumType(entry.name, underlying, values)

    def _function(self, entry: NamedEntry, depth: int = 0) -> Function:
        children = list(entry.children())
        types = tuple(self._reference(child, "type", depth) for child in children if child.tag == "formal_parameter")
        is_variadic = any(child.tag == "unspecified_parameters" for child in children)
        # `int f()` in C says nothing of its parameters, unlike `int f(void)`, which is marked as prototyped.
        is_known = bool(types) or is_variadic or entry.has("prototyped")
        return Function(self._reference(entry, "type", depth), types if is_known else None, is_variadic)

    # -- structs and unions -------------------------------------------------------------------------------------------

    def _aggregate(self, entry: NamedEntry, typedef: str) -> Aggregate:
        """The one `Aggregate` that all equal copies of a definition share; a declaration stands for the first of its
        tag."""
        kind, tag = _KINDS[entry.tag], entry.name
        if not tag and not typedef:
            return self._unread(kind, tag, entry)
        known = self._same_tag.setdefault((kind, tag, typedef), [])
        if entry.has("declaration"):
            if not known:
                known.append(_Definition(self._declared(kind, tag), None))
            return known[0].aggregate
        for definition in known:
            if definition.accepts(entry):
                return definition.aggregate
        # Another struct of the same tag: units may define different ones, which stay apart.
        known.append(_Definition(self._unread(kind, tag, entry), entry))
        return known[-1].aggregate

    def _unread(self, kind: AggregateKind, tag: str, entry: NamedEntry) -> Aggregate:
        return UnreadAggregate(kind, tag, self._module, lambda: self._content(entry))

    def _declared(self, kind: AggregateKind, tag: str) -> Aggregate:
        """A struct that this unit only declares: another one may define it."""

        def load() -> Content | None:
            definition = self._same_tag[kind, tag, ""][0]
            if definition.entry is None:
                definition.entry = self._definition(kind, tag)
            return None if definition.entry is None else self._content(definition.entry)

        return UnreadAggregate(kind, tag, self._module, load)

    def _definition(self, kind: AggregateKind, tag: str) -> NamedEntry | None:
        wanted = [name for name, which in _KINDS.items() if which is kind]
        return next(self._info.named(tag, wanted, declarations=False), None)

    def _content(self, entry: NamedEntry) -> Content:
        members = tuple(self._members(entry))
        size = entry.number("byte_size") or 0
        return members, size, entry.number("alignment")

    def _members(self, entry: NamedEntry) -> Iterator[Member]:
        for child in entry.children():
            if child.tag == "member":
                yield self._member(child)

    def _member(self, entry: NamedEntry) -> Member:
        kind, offset = self._reference(entry, "type", 0), entry.number("data_member_location") or 0
        width, first = entry.number("bit_size"), entry.number("data_bit_offset")
        if width is None:
            return Member(entry.name, kind, offset)
        if first is None and (from_top := entry.number("bit_offset")) is not None:
            # DWARF 2 and 3 count from the most significant bit of a storage unit at the member's offset.
            unit = entry.number("byte_size") or size_of(kind) or alignment_of(kind)
            first = 8 * unit - from_top - width
        return bit_field(entry.name, kind, 8 * offset + (first or 0), width)


class _Definition:
    """A struct as some unit defines it; `entry` is None while only declarations are known."""

    __slots__ = ("_shape", "aggregate", "entry")

    def __init__(self, aggregate: Aggregate, entry: NamedEntry | None) -> None:
        self.aggregate = aggregate
        self.entry = entry
        self._shape: _Shape | None = None

    def accepts(self, entry: NamedEntry) -> bool:
        """Whether a definition is a copy of this one, or the one that was missing."""
        if self.entry is None:
            self.entry = entry
            return True
        if self._shape is None:
            self._shape = _shape(self.entry)
        return self._shape == _shape(entry)


def _shape(entry: NamedEntry) -> _Shape:
    """What two definitions of one struct have in common."""
    places = ("data_member_location", "bit_size", "bit_offset", "data_bit_offset")
    members = [(child.name, *map(child.number, places)) for child in entry.children() if child.tag == "member"]
    return entry.number("byte_size"), *members


def _base(entry: NamedEntry) -> CType:
    encoding, size, name = entry.number("encoding"), entry.number("byte_size") or 1, entry.name
    if encoding in (_FLOAT, _COMPLEX, _IMAGINARY, _DECIMAL_FLOAT):
        return float_type(name, size)
    is_signed = encoding in (_SIGNED, _SIGNED_CHAR, _SIGNED_FIXED)
    if encoding == _BOOLEAN:
        return base_type(name, size, is_signed=False, kind=IntegerKind.BOOLEAN)
    is_character = encoding in (_SIGNED_CHAR, _UNSIGNED_CHAR)
    kind = IntegerKind.CHARACTER if is_character else IntegerKind.PLAIN
    return base_type(name, size, is_signed=is_signed, kind=kind)


def _length(subrange: NamedEntry) -> int | None:
    """How many elements; None if the debug information does not say, or says it only at run time."""
    count, last = subrange.number("count"), subrange.number("upper_bound")
    if count is not None:
        return 0 if count in _ENDLESS else count
    if last is None:
        return None
    return 0 if last in _ENDLESS else last + 1 - (subrange.number("lower_bound") or 0)

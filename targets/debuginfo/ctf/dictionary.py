"""One dictionary of CTF -> C types and enumerators, by number and by name, each made when it is needed."""

from array import array
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.c_types import (
    POINTER_SIZE,
    AggregateKind,
    Array,
    CType,
    EnumType,
    Function,
    IntegerKind,
    Member,
    Pointer,
    Qualified,
    Typedef,
    Void,
)
from kinst.targets.debuginfo.c_layout import (
    Content,
    UnreadAggregate,
    base_type,
    bit_field,
    enum_base,
    float_type,
)
from kinst.targets.debuginfo.ctf.parts import Parts
from kinst.targets.debuginfo.ctf.records import Kind, Record, Records
from kinst.targets.debuginfo.ctf.sizes import size_of_bits, size_of_struct
from kinst.targets.visible import text_of

_DEEPEST: Final = 100  # nesting of types; only damaged or hostile ones have more
_OUTSIDE: Final = 1 << 31  # a name is in the strings of the file's symbols
_SIGNED, _CHARACTER, _BOOLEAN = 1, 2, 4  # encodings of an integer
_KINDS: Final = {"struct": Kind.STRUCT, "union": Kind.UNION, "enum": Kind.ENUM}
_PLAIN: Final = (Kind.TYPEDEF, Kind.INTEGER, Kind.FLOAT)
_AGGREGATES: Final = {Kind.STRUCT: AggregateKind.STRUCT, Kind.UNION: AggregateKind.UNION}

Find = Callable[[str], CType | None]


class ArrayOrder(Enum):
    """In which order a dictionary has the dimensions of an array: gcc before 14 began with the last (PR 114186)."""

    OUTER_FIRST = "outer first"
    INNER_FIRST = "inner first"
    UNKNOWN = "unknown"


def _no_type(_name: str) -> CType | None:
    return None


class Dictionary:
    """The types of one dictionary. Those of its parent have its numbers; its own have another bit besides."""

    def __init__(
        self,
        parts: Parts,
        module: str,
        outside: bytes = b"",
        parent: "Dictionary | None" = None,
        order: ArrayOrder = ArrayOrder.OUTER_FIRST,
    ) -> None:
        """All records are found, and no type is made.

        Args:
            parts: the dictionary.
            module: whose types they are.
            outside: strings of the file's symbols, for names that are there.
            parent: what its numbers without their highest bit mean.
            order: of arrays of arrays.

        Raises:
            ValueError: it is damaged.
        """
        self.parts = parts
        self.parent = parent
        self._elsewhere: Find = _no_type  # what knows a struct that is only declared here
        self._module = module
        self._order = order
        self._outside = outside
        self._records = Records(parts.format, parts.types)
        self._own_bit = 1 << (8 * parts.format.width - 1)
        self._built: dict[int, CType] = {}
        self._wholes: dict[str, tuple[Dictionary, int]] = {}
        inside = self._records.names[self._records.names < _OUTSIDE]
        if int(inside.max()) >= max(len(parts.strings), 1):
            raise ValueError("damaged: a type's name is beyond its strings")

    def belong(self, parent: "Dictionary") -> None:
        """Continue the types of another dictionary."""
        self.parent = parent

    def ask(self, elsewhere: Find) -> None:
        """Have what is only declared here, and in dictionaries that continue this one, looked up."""
        self._elsewhere = elsewhere

    # -- names --------------------------------------------------------------------------------------------------------

    def text(self, reference: int) -> str:
        """A string by its reference, which is an offset and where it counts from; empty if it is nowhere."""
        strings = self._outside if reference & _OUTSIDE else self.parts.strings
        at = reference & ~_OUTSIDE
        end = strings.find(b"\0", at)
        return text_of(strings[at : end if end >= 0 else len(strings)])

    def places(self, name: str) -> list[int]:
        """Every reference that is this name: linkers of symbols merge tails, so that it can be the end of another."""
        wanted = name.encode(errors="surrogateescape") + b"\0"
        if len(wanted) == 1:
            return []
        inside = [at for at in _occurrences(self.parts.strings, wanted) if _begins(self.parts.strings, at)]
        return inside + [at | _OUTSIDE for at in _occurrences(self._outside, wanted)]

    def type_named(self, name: str) -> CType | None:
        """A typedef or base type by its name, or "struct x", "union x", "enum x"; what is declared is looked up."""
        keyword, _, tag = name.partition(" ")
        kind = _KINDS.get(keyword)
        if kind is None:
            found = next((number for one in _PLAIN for number in self._numbers(name, one)), None)
            home, whole = self._whole(name)
            if found is not None and home is self and self._records.kinds[found] == Kind.INTEGER:
                found = whole or found
        else:
            found = next(iter(self._numbers(tag.strip(), kind)), None)
            found = next(self._declarations(tag.strip(), kind), None) if found is None else found
        return None if found is None else self._own(found, 0)

    def defined(self, name: str) -> CType | None:
        """A struct, union or enumeration that is defined here, by its keyword and tag."""
        keyword, _, tag = name.partition(" ")
        return next((self._own(number, 0) for number in self._numbers(tag, _KINDS[keyword])), None)

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """An enumeration constant: its type and its value."""
        names, numbers = self._enumerators
        for row in np.flatnonzero(np.isin(names, self.places(name))).tolist():
            kind = self._own(int(numbers[row]), 0)
            if isinstance(kind, EnumType):
                return kind, dict(kind.enumerators)[name]
        return None

    @cached_property
    def _enumerators(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Name of every enumerator, and the number of its type."""
        names, numbers = array("I"), array("I")
        for number in np.flatnonzero(self._records.kinds == Kind.ENUM).tolist():
            found = [name for name, _ in self._records.enumerators(self._records[number])]
            names.extend(found)
            numbers.extend([number] * len(found))
        return np.array(names, np.uint32), np.array(numbers, np.uint32)

    def _numbers(self, name: str, kind: Kind) -> list[int]:
        """The numbers of records with this name and kind; those that the name means first, in the whole program."""
        places, records = self.places(name), self._records
        if not places:
            return []
        found = np.flatnonzero(np.isin(records.names, places) & (records.kinds == kind))
        # Integers of the same name are bit-fields, which are no roots in FreeBSD's; the others come first.
        return [*found[records.is_root[found]].tolist(), *found[~records.is_root[found]].tolist()]

    def _declarations(self, tag: str, kind: Kind) -> Iterator[int]:
        return (number for number in self._numbers(tag, Kind.FORWARD) if kind in _declared(self._records[number]))

    # -- types --------------------------------------------------------------------------------------------------------

    def type(self, number: int, depth: int = 0) -> CType:
        """A type by its number, its own or its parent's; void if there is none."""
        if self.parent is None:
            return Void() if number & self._own_bit else self._own(number, depth)
        if number & self._own_bit:
            return self._own(number & ~self._own_bit, depth)
        return self.parent.type(number, depth)

    def prototype(self, result: int, parameters: tuple[int, ...], depth: int = 0) -> Function:
        """A function of types by their numbers; a last parameter 0 is "..."."""
        is_variadic = bool(parameters) and not parameters[-1]
        types = tuple(self.type(one, depth) for one in (parameters[:-1] if is_variadic else parameters))
        return Function(self.type(result, depth), types, is_variadic)

    def _own(self, number: int, depth: int) -> CType:
        if not 0 < number < len(self._records) or depth > _DEEPEST:
            return Void()
        built = self._built.get(number)
        if built is None:
            built = self._built[number] = self._new(self._records[number], depth + 1)
        return built

    def _new(self, record: Record, depth: int) -> CType:
        match record.kind:
            case Kind.INTEGER:
                return self._integer(record)
            case Kind.FLOAT:
                return float_type(self.text(record.name), record.value)
            case Kind.STRUCT | Kind.UNION:
                return self._aggregate(record)
            case Kind.ENUM:
                return self._enumeration(record)
            case Kind.FORWARD:
                return self._forward(record)
            case _:
                return self._composed(record, depth)

    def _composed(self, record: Record, depth: int) -> CType:
        match record.kind:
            case Kind.ARRAY:
                return self._array(record, depth)
            case Kind.FUNCTION:
                return self.prototype(record.value, self._records.parameters(record), depth)
            case Kind.SLICE:
                return self.type(self._records.bits(record)[0], depth)
            case _:
                return self._derived(record, depth)

    def _array(self, record: Record, depth: int) -> CType:
        """An array, or all the dimensions of one; where it is not known in which order they are, as many elements."""
        element, length = self._records.array(record)
        lengths = [length or None]  # 0 stands for [] and [0]
        dictionary, inner = self._located(element)
        while inner is not None and inner.kind is Kind.ARRAY and len(lengths) < _DEEPEST:
            element, length = dictionary._records.array(inner)
            lengths.append(length or None)
            dictionary, inner = dictionary._located(element)
        kind = dictionary.type(element, depth)
        for one in reversed(_dimensions(lengths, self._order)):
            kind = Array(kind, one)
        return kind

    def _located(self, number: int) -> "tuple[Dictionary, Record | None]":
        """Where the record of a number is."""
        if self.parent is not None and not number & self._own_bit:
            return self.parent._located(number)
        own = number & ~self._own_bit
        is_there = own < len(self._records) and (self.parent is not None or own == number)
        return self, self._records[own] if is_there else None

    def _derived(self, record: Record, depth: int) -> CType:
        match record.kind:
            case Kind.POINTER:
                return Pointer(self.type(record.value, depth))
            case Kind.TYPEDEF:
                return Typedef(self.text(record.name), self.type(record.value, depth))
            case Kind.CONST:
                return Qualified(self.type(record.value, depth), is_const=True)
            case Kind.VOLATILE:
                return Qualified(self.type(record.value, depth), is_volatile=True)
            case Kind.RESTRICT:
                return self.type(record.value, depth)
            case _:
                return Void()

    def _integer(self, record: Record) -> CType:
        """Void is an integer without bits."""
        encoding, _, bits = self._records.encoding(record)
        name, size = self.text(record.name), record.value
        if not size or (not bits and name == "void"):
            return Void()
        if encoding & _BOOLEAN:
            return base_type(name, size, is_signed=False, kind=IntegerKind.BOOLEAN)
        kind = IntegerKind.CHARACTER if encoding & _CHARACTER or size == 1 else IntegerKind.PLAIN
        return base_type(name, size, is_signed=bool(encoding & _SIGNED), kind=kind)

    def _enumeration(self, record: Record) -> CType:
        """Values have 32 bits and a sign. CTF does not say what the compiler takes for their type."""
        values = tuple((self.text(name), value) for name, value in self._records.enumerators(record))
        is_signed = any(value < 0 for _, value in values)
        return EnumType(self.text(record.name), enum_base(record.value, is_signed=is_signed), values)

    def _aggregate(self, record: Record) -> CType:
        kind, tag = _AGGREGATES[record.kind], self.text(record.name)
        return UnreadAggregate(kind, tag, self._module, lambda: self._content(record))

    def _forward(self, record: Record) -> CType:
        """What is declared: as it is defined here, in the parent, or in the only unit that defines it."""
        kinds, tag = _declared(record), self.text(record.name)
        dictionary: Dictionary | None = self
        while dictionary is not None and tag:
            for keyword in (word for word, kind in _KINDS.items() if kind in kinds):
                found = dictionary.defined(f"{keyword} {tag}") or dictionary._elsewhere(f"{keyword} {tag}")
                if found is not None:
                    return found
            dictionary = dictionary.parent
        if kinds[0] is Kind.ENUM:
            return EnumType(tag, enum_base(4, is_signed=False), ())
        return UnreadAggregate(_AGGREGATES[kinds[0]], tag, self._module, lambda: None)

    def _content(self, record: Record) -> Content:
        found, ends = [], []
        for name, number, offset in self._records.members(record):
            kind, first, width = self._bits(number)
            text = self.text(name)
            member = Member(text, kind, offset // 8) if width is None else bit_field(text, kind, offset + first, width)
            found.append(member)
            ends.append(offset // 8 + self._recorded_size(number))
        members = tuple(found)
        size = size_of_struct(record.value, ends, members) if self.parts.format.is_gnu else record.value
        return members, size, None

    def _recorded_size(self, number: int, depth: int = 0) -> int:
        """The bytes that libctf takes a type for."""
        dictionary, record = self._located(number)
        if record is None or depth > _DEEPEST:
            return 0
        match record.kind:
            case Kind.POINTER:
                return POINTER_SIZE
            case Kind.ARRAY:
                element, length = dictionary._records.array(record)
                return length * dictionary._recorded_size(element, depth + 1)
            case Kind.SLICE:
                return size_of_bits(dictionary._records.bits(record)[2])
            case Kind.TYPEDEF | Kind.CONST | Kind.VOLATILE | Kind.RESTRICT:
                return dictionary._recorded_size(record.value, depth + 1)
            case Kind.INTEGER | Kind.FLOAT | Kind.STRUCT | Kind.UNION | Kind.ENUM:
                return record.value
            case _:
                return 0

    def _bits(self, number: int) -> tuple[CType, int, int | None]:
        """The type of a member; of a bit-field also its first bit and number of bits, or None."""
        dictionary, record = self._located(number)
        if record is not None and record.kind is Kind.SLICE:
            kind, first, width = dictionary._records.bits(record)
            return dictionary.type(kind), first, width or None
        if record is not None and record.kind is Kind.INTEGER and record.value:
            _, first, width = dictionary._records.encoding(record)
            home, whole = dictionary._whole(dictionary.text(record.name))
            if whole and width and width != 8 * home._records[whole].value:
                return home._own(whole, 0), first, width
        return self.type(number), 0, None

    def _whole(self, name: str) -> "tuple[Dictionary, int]":
        """Where the integer type of that name is; 0: nowhere. Sun's formats have an integer of its name and of fewer
        bits, and perhaps bytes, for each bit-field."""
        found = self._wholes.get(name)
        if found is None:
            records = self._records
            own = max(self._numbers(name, Kind.INTEGER), key=lambda one: records.encoding(records[one])[2], default=0)
            bits = records.encoding(records[own])[2] if own else 0
            found = self, own if bits and bits == 8 * records[own].value else 0
            if self.parent is not None:
                home, other = self.parent._whole(name)
                found = found if not other or bits > 8 * home._records[other].value else (home, other)
            self._wholes[name] = found
        return found


def _dimensions(lengths: list[int | None], order: ArrayOrder) -> list[int | None]:
    """The lengths of arrays of arrays, the outermost first."""
    if order is ArrayOrder.OUTER_FIRST or lengths == lengths[::-1]:
        return lengths
    if order is ArrayOrder.INNER_FIRST:
        return lengths[::-1]
    known = [one for one in lengths if one is not None]
    return [prod(known) if len(known) == len(lengths) else None]


def _declared(record: Record) -> tuple[Kind, ...]:
    """What a declaration may be of. ctfconvert writes 0, for a struct as for a union."""
    return (Kind(record.value),) if record.value in (Kind.STRUCT, Kind.UNION, Kind.ENUM) else (Kind.STRUCT, Kind.UNION)


def _occurrences(strings: bytes, wanted: bytes) -> Iterator[int]:
    at = strings.find(wanted)
    while at >= 0:
        yield at
        at = strings.find(wanted, at + 1)


def _begins(strings: bytes, at: int) -> bool:
    """Whether a string of the dictionary's own begins there: those are not merged."""
    return at > 0 and strings[at - 1] == 0

"""The .BTF section of a kernel -> C types, enumerators, prototypes, by name (Linux, Documentation/bpf/btf.rst).

BTF has every type once and no more than that: 4 MB where DWARF has 160. It tells of functions and per-CPU variables;
the types of all others are in DWARF only.

    header: magic 0xeb9f (2) | version (1) | flags (1) | header's length (4) | types: offset, length | strings: the same
    type:   name (4) | info (4): vlen 15:0, kind 28:24, kind's flag 31 | size or type (4) | what its kind adds
"""

import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.c_types import (
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
from kinst.targets.elf_header import FileKind
from kinst.targets.image import Image
from kinst.targets.sections import content

_MAGIC: Final = 0xEB9F
_HEADER: Final = struct.Struct("<HBBIIIII")
_DEEPEST: Final = 100
_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF = range(1, 9)
_VOLATILE, _CONST, _RESTRICT, _FUNC, _FUNC_PROTO, _VAR, _DATASEC, _FLOAT, _DECL_TAG, _TYPE_TAG, _ENUM64 = range(9, 20)
# Kind -> words that follow, and words for each of `vlen` more.
_EXTRA: Final = {
    _INT: (1, 0),
    _ARRAY: (3, 0),
    _STRUCT: (0, 3),
    _UNION: (0, 3),
    _ENUM: (0, 2),
    _FUNC_PROTO: (0, 2),
    _VAR: (1, 0),
    _DATASEC: (0, 3),
    _DECL_TAG: (1, 0),
    _ENUM64: (0, 3),
}
_KINDS: Final = {
    "struct": (_STRUCT, _FWD),
    "union": (_UNION, _FWD),
    "enum": (_ENUM, _ENUM64),
}
_SIGNED, _CHARACTER, _BOOLEAN = 1, 2, 4  # encodings of an INT


@dataclass(frozen=True, slots=True)
class _Record:
    """One type. `words` is where its own words start in the section's."""

    name: int
    kind: int
    flag: int
    length: int
    value: int  # size or type
    words: int


class BtfTypes:
    """The types of one .BTF section, made when they are asked for."""

    def __init__(self, data: bytes, module: str) -> None:
        """Nothing is read yet but the header.

        Raises:
            ValueError: it is no BTF, or a damaged one.
        """
        if len(data) < _HEADER.size:
            raise ValueError("no BTF: shorter than its header")
        magic, _, _, head, type_start, type_size, string_start, string_size = _HEADER.unpack_from(data)
        if magic != _MAGIC or head + max(type_start + type_size, string_start + string_size) > len(data):
            raise ValueError("no BTF: wrong magic, or sections beyond its end")
        self._module = module
        self._strings = data[head + string_start : head + string_start + string_size]
        self._words = array("I", data[head + type_start : head + type_start + (type_size & ~3)])
        self._built: dict[int, CType] = {}

    # -- by name ------------------------------------------------------------------------------------------------------

    def type_named(self, name: str) -> CType | None:
        """See `ImageTypes`."""
        keyword, _, tag = name.partition(" ")
        kinds, bare = (_KINDS[keyword], tag.strip()) if keyword in _KINDS else ((_TYPEDEF, _INT, _FLOAT), name)
        for kind in kinds:
            for number in self._numbers(bare, kind):
                if kind != _FWD or (self._record(number).flag == 1) == (keyword == "union"):
                    return self._type(number, 0)
        return None

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """See `ImageTypes`."""
        at = self._string(name)
        rows = [] if at is None else np.flatnonzero(self._enumerators[0] == at).tolist()
        for row in rows:
            kind = self._type(int(self._enumerators[1][row]), 0)
            if isinstance(kind, EnumType):
                return kind, dict(kind.enumerators)[name]
        return None

    def variable(self, name: str) -> CType | None:
        """The type of a variable that BTF has, or of a function."""
        for number in self._numbers(name, _VAR):
            return self._type(self._record(number).value, 0)
        return self.function(name)

    def function(self, name: str) -> Function | None:
        """A prototype."""
        for number in self._numbers(name, _FUNC):
            kind = self._type(self._record(number).value, 0)
            return kind if isinstance(kind, Function) else None
        return None

    # -- records ------------------------------------------------------------------------------------------------------

    @cached_property
    def _starts(self) -> list[int]:
        """Where each record starts, in words; type number 1 is the first."""
        words, found, at, end = self._words, [0], 0, len(self._words)
        while at + 3 <= end:
            found.append(at)
            info = words[at + 1]
            fixed, each = _EXTRA.get(info >> 24 & 31, (0, 0))
            at += 3 + fixed + each * (info & 0xFFFF)
        if at > end:
            found.pop()
        return found

    @cached_property
    def _columns(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Name and kind of every record; of number 0, which is void, nothing that anybody looks for."""
        starts = np.array(self._starts, np.int64)
        words = np.frombuffer(self._words, np.uint32) if len(self._words) else np.zeros(2, np.uint32)
        kinds = (words[starts + 1] >> np.uint32(24) & np.uint32(31)).astype(np.uint8)
        kinds[0] = 0
        return words[starts], kinds

    @cached_property
    def _enumerators(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Name of every enumerator, and the number of its type."""
        names, numbers = array("I"), array("I")
        for kind, each in ((_ENUM, 2), (_ENUM64, 3)):
            for number in np.flatnonzero(self._columns[1] == kind).tolist():
                record = self._record(number)
                found = self._words[record.words : record.words + each * record.length : each]
                names.extend(found)
                numbers.extend([number] * len(found))
        return np.array(names, np.uint32), np.array(numbers, np.uint32)

    def _numbers(self, name: str, kind: int) -> list[int]:
        at = self._string(name)
        if at is None:
            return []
        names, kinds = self._columns
        found: list[int] = np.flatnonzero((names == at) & (kinds == kind)).tolist()
        return found

    def _string(self, name: str) -> int | None:
        """Where a name is: every string is there once."""
        text = name.encode(errors="surrogateescape")
        at = self._strings.find(b"\0" + text + b"\0") if text else -1
        return None if at < 0 else at + 1

    def _text(self, at: int) -> str:
        end = self._strings.find(b"\0", at)
        return self._strings[at : end if end >= 0 else len(self._strings)].decode(errors="backslashreplace")

    def _record(self, number: int) -> _Record:
        at = self._starts[number]
        name, info, value = self._words[at : at + 3]
        return _Record(name, info >> 24 & 31, info >> 31, info & 0xFFFF, value, at + 3)

    def _rows(self, record: _Record, each: int) -> Iterator[tuple[int, ...]]:
        for row in range(record.length):
            at = record.words + each * row
            yield tuple(self._words[at : at + each])

    # -- types --------------------------------------------------------------------------------------------------------

    def _type(self, number: int, depth: int) -> CType:
        if not 0 < number < len(self._starts) or depth > _DEEPEST:
            return Void()
        built = self._built.get(number)
        if built is None:
            built = self._built[number] = self._new(self._record(number), depth + 1)
        return built

    def _new(self, record: _Record, depth: int) -> CType:
        make = _MAKERS.get(record.kind)
        return Void() if make is None else make(self, record, depth)

    def _int(self, record: _Record, _depth: int) -> CType:
        encoding = self._words[record.words] >> 24 & 15
        kind = IntegerKind.CHARACTER if encoding & _CHARACTER or record.value == 1 else IntegerKind.PLAIN
        if encoding & _BOOLEAN:
            kind = IntegerKind.BOOLEAN
        # BTF calls char "signed" or not as DWARF does, and marks none of its kind as a character.
        return base_type(self._text(record.name), record.value, is_signed=bool(encoding & _SIGNED), kind=kind)

    def _float(self, record: _Record, _depth: int) -> CType:
        return float_type(self._text(record.name), record.value)

    def _pointer(self, record: _Record, depth: int) -> CType:
        return Pointer(self._type(record.value, depth))

    def _const(self, record: _Record, depth: int) -> CType:
        return Qualified(self._type(record.value, depth), is_const=True)

    def _volatile(self, record: _Record, depth: int) -> CType:
        return Qualified(self._type(record.value, depth), is_volatile=True)

    def _same(self, record: _Record, depth: int) -> CType:
        """restrict, a tag of a type, a function's prototype."""
        return self._type(record.value, depth)

    def _typedef(self, record: _Record, depth: int) -> CType:
        return Typedef(self._text(record.name), self._type(record.value, depth))

    def _array(self, record: _Record, depth: int) -> CType:
        """Type, index's type, number of elements; 0 of them stands for [] and [0]."""
        element, _, length = self._words[record.words : record.words + 3]
        return Array(self._type(element, depth), length or None)

    def _enum(self, record: _Record, _depth: int) -> CType:
        if record.kind == _ENUM64:
            values = [(name, low | high << 32, 64) for name, low, high in self._rows(record, 3)]
        else:
            values = [(name, value, 32) for name, value in self._rows(record, 2)]
        is_signed = record.flag == 1
        named = tuple((self._text(name), _signed(value, bits) if is_signed else value) for name, value, bits in values)
        return EnumType(self._text(record.name), enum_base(record.value, is_signed=is_signed), named)

    def _prototype(self, record: _Record, depth: int) -> CType:
        """A last parameter without name and type is "..."."""
        rows = list(self._rows(record, 2))
        is_variadic = bool(rows) and rows[-1] == (0, 0)
        types = tuple(self._type(number, depth) for _, number in (rows[:-1] if is_variadic else rows))
        return Function(self._type(record.value, depth), types, is_variadic)

    def _aggregate(self, record: _Record, _depth: int) -> CType:
        kind = AggregateKind.STRUCT if record.kind == _STRUCT else AggregateKind.UNION
        return UnreadAggregate(kind, self._text(record.name), self._module, lambda: self._content(record))

    def _forward(self, record: _Record, depth: int) -> CType:
        """A declaration: of what is defined, if it is."""
        name, kind = self._text(record.name), _UNION if record.flag else _STRUCT
        for number in self._numbers(name, kind):
            return self._type(number, depth)
        which = AggregateKind.UNION if record.flag else AggregateKind.STRUCT
        return UnreadAggregate(which, name, self._module, lambda: None)

    def _content(self, record: _Record) -> Content:
        """With the kind's flag a member's offset has its width in the upper 8 bits."""
        members = []
        for name, number, offset in self._rows(record, 3):
            kind = self._type(number, 0)
            width, bit = (offset >> 24, offset & 0xFFFFFF) if record.flag else self._old_width(number, offset)
            text = self._text(name)
            members.append(bit_field(text, kind, bit, width) if width else Member(text, kind, bit // 8))
        return tuple(members), record.value, None

    def _old_width(self, number: int, offset: int) -> tuple[int, int]:
        """Before the flag a bit-field's type was an INT of fewer bits, with an offset of its own."""
        record = self._record(number) if 0 < number < len(self._starts) else None
        if record is None or record.kind != _INT:
            return 0, offset
        detail = self._words[record.words]
        bits = detail & 0xFF
        return (0, offset) if bits == 8 * record.value else (bits, offset + (detail >> 16 & 0xFF))


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


_MAKERS: Final[dict[int, Callable[[BtfTypes, _Record, int], CType]]] = {
    _INT: BtfTypes._int,
    _PTR: BtfTypes._pointer,
    _ARRAY: BtfTypes._array,
    _STRUCT: BtfTypes._aggregate,
    _UNION: BtfTypes._aggregate,
    _ENUM: BtfTypes._enum,
    _ENUM64: BtfTypes._enum,
    _FWD: BtfTypes._forward,
    _TYPEDEF: BtfTypes._typedef,
    _VOLATILE: BtfTypes._volatile,
    _CONST: BtfTypes._const,
    _RESTRICT: BtfTypes._same,
    _FUNC: BtfTypes._same,
    _FUNC_PROTO: BtfTypes._prototype,
    _FLOAT: BtfTypes._float,
    _TYPE_TAG: BtfTypes._same,
}


def btf_types(image: Image) -> BtfTypes | None:
    """The BTF of a linked image. That of a module refers to its kernel's, which is another file."""
    section = image.section(".BTF")
    if section is None or image.kind is FileKind.REL:
        return None
    try:
        return BtfTypes(content(image.data, section).tobytes(), image.module)
    except ValueError:
        return None

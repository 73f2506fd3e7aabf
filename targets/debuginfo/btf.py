"""The .BTF section of a kernel -> C types, enumerators, prototypes, by name (Linux, Documentation/bpf/btf.rst).

BTF has every type once, and nothing else: 4 MB where DWARF has 160. It describes functions and per-CPU variables; the
types of all other variables are in DWARF only. Of several types of one name the first counts, as for bpftool and
libbpf.

A module's BTF is split: its numbers of types and offsets of strings continue those of its kernel. Since Linux 6.11 a
module can have .BTF.base instead, a selection of the kernel's types without their members, so that it fits other builds
of the kernel: those types are looked up in the kernel by name.

    header: magic 0xeb9f (2) | version (1) | flags (1) | header's length (4) | types: offset, length | strings: the same
    type:   name (4) | info (4): vlen 15:0, kind 28:24, kind's flag 31 | size or type (4) | what its kind adds
"""

import struct
from array import array
from collections.abc import Callable, Iterator
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
from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.sections import content
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

_MAGIC: Final = 0xEB9F
_HEADER: Final = struct.Struct("<HBBIIIII")
_DEEPEST: Final = 100
_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF = range(1, 9)
_VOLATILE, _CONST, _RESTRICT, _FUNC, _FUNC_PROTO, _VAR, _DATASEC, _FLOAT, _DECL_TAG, _TYPE_TAG, _ENUM64 = range(9, 20)
# Kind -> words that follow, and words for each of `vlen` elements.
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

Find = Callable[[str], CType | None]


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
    """The types of one .BTF section, each made when it is needed."""

    def __init__(
        self, data: bytes, module: str, base: "BtfTypes | None" = None, elsewhere: Find = lambda _name: None
    ) -> None:
        """Nothing is read yet but the header.

        Args:
            data: the section.
            module: whose types they are.
            base: what it continues.
            elsewhere: what knows, by name, the members of structs that have none here.

        Raises:
            ValueError: it is no BTF, or damaged.
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
        self._base = base
        self._elsewhere = elsewhere
        self._first_string = 0 if base is None else base.end_of_strings
        self._shift = 0 if base is None else base.count - 1  # our record 1 has the number after the base's last

    @property
    def count(self) -> int:
        """How many numbers of types there are, including 0, which is void, and those of the base."""
        return len(self._starts) + self._shift

    @property
    def end_of_strings(self) -> int:
        """Where the strings of what continues this begin."""
        return self._first_string + len(self._strings)

    @property
    def is_whole(self) -> bool:
        """Whether all names are its own: BTF that was split from another refers to strings that it does not have.

        Raises:
            ValueError: it is damaged.
        """
        if self._strings[:1] != b"\0":
            return False
        if int(self._columns[0].max()) >= len(self._strings):
            raise ValueError("damaged: a type's name is beyond its strings")
        return True

    # -- by name ------------------------------------------------------------------------------------------------------

    def type_named(self, name: str) -> CType | None:
        """A typedef or base type by its name, or "struct x", "union x", "enum x"."""
        keyword, _, tag = name.partition(" ")
        kinds, bare = (_KINDS[keyword], tag.strip()) if keyword in _KINDS else ((_TYPEDEF, _INT, _FLOAT), name)
        for kind in kinds:
            for number in self._numbers(bare, kind):
                if kind != _FWD or (self._record(number).flag == 1) == (keyword == "union"):
                    return self._own(number, 0)
        return None

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """An enumeration constant: its type and its value."""
        for row in np.flatnonzero(np.isin(self._enumerators[0], self._places(name))).tolist():
            kind = self._own(int(self._enumerators[1][row]), 0)
            if isinstance(kind, EnumType):
                return kind, dict(kind.enumerators)[name]
        return None

    def variable(self, name: str) -> CType | None:
        """The type of a variable that BTF has, or of a function."""
        for number in self._numbers(name, _VAR):
            return self._type(self._record(number).value, 0)
        return self.function(name)

    def function(self, name: str) -> Function | None:
        """The prototype of the first function of that name."""
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
        """Name and kind of every record; number 0, which is void, has nothing that is searched for."""
        starts = np.array(self._starts, np.int64)
        words = np.frombuffer(self._words, np.uint32) if len(self._words) > 1 else np.zeros(2, np.uint32)
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
        """The numbers of this section's own records with this name and kind."""
        places = self._places(name)
        if not places:
            return []
        names, kinds = self._columns
        found: list[int] = np.flatnonzero(np.isin(names, places) & (kinds == kind)).tolist()
        return found

    def _places(self, name: str) -> list[int]:
        """Where a name is: every string occurs once, but split BTF may have it again."""
        text = name.encode(errors="surrogateescape") + b"\0"
        found = [] if self._base is None else self._base._places(name)
        at = self._strings.find(b"\0" + text)
        if len(text) > 1 and at >= 0:
            found.append(self._first_string + at + 1)
        if len(text) > 1 and self._base is not None and self._strings.startswith(text):
            found.append(self._first_string)
        return found

    def _text(self, at: int) -> str:
        if at < self._first_string and self._base is not None:
            return self._base._text(at)
        at -= self._first_string
        end = self._strings.find(b"\0", at)
        return text_of(self._strings[at : end if end >= 0 else len(self._strings)])

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
        """A type by its number among all."""
        if self._base is not None and number < self._base.count:
            return self._base._type(number, depth)
        return self._own(number - self._shift, depth)

    def _own(self, number: int, depth: int) -> CType:
        """A type by its number in this section."""
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
        values: list[tuple[int, int, int]]
        if record.kind == _ENUM64:
            values = [(name, low | high << 32, 64) for name, low, high in self._rows(record, 3)]
        else:
            values = [(name, value, 32) for name, value in self._rows(record, 2)]
        is_signed, name = record.flag == 1, self._text(record.name)
        if name and not values and (known := self._elsewhere(f"enum {name}")) is not None:
            return known
        named = tuple((self._text(at), _signed(value, bits) if is_signed else value) for at, value, bits in values)
        return EnumType(name, enum_base(record.value, is_signed=is_signed), named)

    def _prototype(self, record: _Record, depth: int) -> CType:
        """A last parameter without name and type is "..."."""
        rows = list(self._rows(record, 2))
        is_variadic = bool(rows) and rows[-1] == (0, 0)
        types = tuple(self._type(number, depth) for _, number in (rows[:-1] if is_variadic else rows))
        return Function(self._type(record.value, depth), types, is_variadic)

    def _aggregate(self, record: _Record, _depth: int) -> CType:
        kind, name = AggregateKind.STRUCT if record.kind == _STRUCT else AggregateKind.UNION, self._text(record.name)
        known = self._elsewhere(f"{kind.value} {name}") if name and not record.length else None
        return known or UnreadAggregate(kind, name, self._module, lambda: self._content(record))

    def _forward(self, record: _Record, depth: int) -> CType:
        """A declaration: of what is defined, if it is."""
        name, kind = self._text(record.name), _UNION if record.flag else _STRUCT
        for number in self._numbers(name, kind):
            return self._own(number, depth)
        which = AggregateKind.UNION if record.flag else AggregateKind.STRUCT
        if self._base is not None and (known := self._base.type_named(f"{which.value} {name}")) is not None:
            return known
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
        if self._base is not None and number < self._base.count:
            return self._base._old_width(number, offset)
        number -= self._shift
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


def btf_types(elf: ElfLike, module: str, base: BtfTypes | None = None) -> BtfTypes | None:
    """The BTF of a file; None if it has none, or one that is split from one that is not given.

    Args:
        elf: a kernel, a module, or their debug file.
        module: the name of its types' module.
        base: the BTF of the kernel that a module belongs to.

    Raises:
        ImageError: it is damaged.
    """
    try:
        found = _section(elf, ".BTF", module)
        if found is None or found.is_whole:
            return found
        distilled = _section(elf, ".BTF.base", module, elsewhere=_no_type if base is None else base.type_named)
        return _section(elf, ".BTF", module, distilled or base) if distilled or base else None
    except ValueError as error:
        raise ImageError(f"{elf.path}: .BTF: {error}") from None


def _no_type(_name: str) -> CType | None:
    return None


def _section(
    elf: ElfLike, name: str, module: str, base: BtfTypes | None = None, elsewhere: Find = _no_type
) -> BtfTypes | None:
    section = next((one for one in elf.sections if one.name == name), None)
    if section is None:
        return None
    return BtfTypes(content(elf.data, section).tobytes(), module, base, elsewhere)

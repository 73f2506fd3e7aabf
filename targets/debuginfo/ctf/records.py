"""The part of a CTF dictionary that has its types -> records by number, and columns to search in.

record: name (4) | info: count, whether it is a root, kind | size or type | if the size is all ones: size (8, high half
        first) | what its kind adds
"""

import struct
from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.debuginfo.ctf.parts import Format
from kinst.targets.values import dataclass

_WIDE_SIZE: Final = struct.Struct("<II")
_ENUMERATOR: Final = struct.Struct("<Ii")
_WORD: Final = struct.Struct("<I")
_SLICE: Final = struct.Struct("<IHH")


class Kind(IntEnum):
    """What a record is."""

    UNKNOWN = 0  # a gap in the numbers
    INTEGER = 1
    FLOAT = 2
    POINTER = 3
    ARRAY = 4
    FUNCTION = 5
    STRUCT = 6
    UNION = 7
    ENUM = 8
    FORWARD = 9
    TYPEDEF = 10
    VOLATILE = 11
    CONST = 12
    RESTRICT = 13
    SLICE = 14  # bits of an integer, GNU's


# Bytes behind a record, and for each that it counts, of kinds for which they are the same in all formats.
_BEHIND: Final = {
    Kind.INTEGER: (_WORD.size, 0),
    Kind.FLOAT: (_WORD.size, 0),
    Kind.ENUM: (0, _ENUMERATOR.size),
    Kind.SLICE: (_SLICE.size, 0),
}


@dataclass(frozen=True, slots=True)
class Record:
    """One type. `value` is its size in bytes or the number of a type; `at` is where what its kind adds begins."""

    name: int
    kind: Kind
    count: int
    value: int
    at: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """Shapes of what records are made of."""

    head: struct.Struct
    count: int  # mask
    shift: int  # of the kind; the bit below it is the root's
    no_size: int  # in place of a size that does not fit
    array: struct.Struct
    member: struct.Struct
    large_member: struct.Struct  # of structs of `large` bytes or more
    large: int


_LAYOUTS: Final = {  # by bytes of a type's number; `x` in a shape is what fills up
    2: _Layout(
        head=struct.Struct("<IHH"),
        count=0x3FF,
        shift=11,
        no_size=0xFFFF,
        array=struct.Struct("<HHI"),
        member=struct.Struct("<IHH"),
        large_member=struct.Struct("<IH2xII"),
        large=1 << 13,
    ),
    4: _Layout(
        head=struct.Struct("<III"),
        count=0xFFFFFF,
        shift=26,
        no_size=0xFFFFFFFF,
        array=struct.Struct("<III"),
        member=struct.Struct("<III"),
        large_member=struct.Struct("<IIII"),
        large=1 << 29,
    ),
}


class Records:
    """The records of a dictionary; the first one has the number 1."""

    def __init__(self, form: Format, data: bytes) -> None:
        """All are found, none is read.

        Raises:
            ValueError: one is of no kind that there is, or ends beyond the part.
        """
        self._format = form
        self._layout = _LAYOUTS[form.width]
        self._data = data
        self._starts = array("I", [0])
        names, kinds, roots = array("I", [0]), bytearray(1), bytearray(1)
        for start, name, kind, is_root in self._found():
            self._starts.append(start)
            names.append(name)
            kinds.append(kind)
            roots.append(is_root)
        self.names: NDArray[np.uint32] = np.array(names, np.uint32)
        self.kinds: NDArray[np.uint8] = np.frombuffer(kinds, np.uint8)
        self.is_root: NDArray[np.bool_] = np.frombuffer(roots, np.bool_)  # what names mean; others have namesakes

    def __len__(self) -> int:
        """How many numbers there are, with 0, which is no type."""
        return len(self._starts)

    def _found(self) -> Iterator[tuple[int, int, int, int]]:
        layout, data, at = self._layout, self._data, 0
        while at < len(data):
            if at + layout.head.size > len(data):
                raise ValueError(f"damaged: type {len(self._starts)} ends beyond the types")
            name, info, value = layout.head.unpack_from(data, at)
            end = at + layout.head.size + self._size(info, value, at)
            if end > len(data):
                raise ValueError(f"damaged: type {len(self._starts)} ends beyond the types")
            yield at, name, info >> layout.shift, info >> (layout.shift - 1) & 1
            at = end

    def _size(self, info: int, value: int, at: int) -> int:
        """Bytes behind a record's head."""
        layout, count, wide = self._layout, info & self._layout.count, 0
        if value == layout.no_size:
            value, wide = self._wide_size(at), _WIDE_SIZE.size
        match info >> layout.shift:
            case Kind.FUNCTION:
                return wide + -(-count * self._format.width // self._format.multiple) * self._format.multiple
            case Kind.STRUCT | Kind.UNION:
                return wide + count * self._member(value).size
            case Kind.ARRAY:
                return wide + layout.array.size
            case kind if kind <= Kind.SLICE:
                fixed, each = _BEHIND.get(Kind(kind), (0, 0))
                return wide + fixed + count * each
            case kind:
                raise ValueError(f"damaged: type {len(self._starts)} is of kind {kind}, which does not exist")

    def _wide_size(self, at: int) -> int:
        at += self._layout.head.size
        if at + _WIDE_SIZE.size > len(self._data):
            raise ValueError(f"damaged: type {len(self._starts)} ends beyond the types")
        high, low = _WIDE_SIZE.unpack_from(self._data, at)
        return int(high << 32 | low)

    def _member(self, size: int) -> struct.Struct:
        return self._layout.member if size < self._layout.large else self._layout.large_member

    def __getitem__(self, number: int) -> Record:
        """A record by its number."""
        layout, at = self._layout, self._starts[number]
        name, info, value = layout.head.unpack_from(self._data, at)
        behind = at + layout.head.size
        if value == layout.no_size:
            value, behind = self._wide_size(at), behind + _WIDE_SIZE.size
        return Record(name, Kind(info >> layout.shift), info & layout.count, value, behind)

    def members(self, record: Record) -> Iterator[tuple[int, int, int]]:
        """Of a struct or union: name, type, offset in bits."""
        shape = self._member(record.value)
        for name, *rest in shape.iter_unpack(self._data[record.at : record.at + record.count * shape.size]):
            if len(rest) == 2:
                kind, offset = reversed(rest) if self._format.is_offset_first else rest
            elif self._format.is_offset_first:
                kind, offset = rest[1], rest[0] << 32 | rest[2]
            else:
                kind, offset = rest[0], rest[1] << 32 | rest[2]
            yield name, kind, offset

    def enumerators(self, record: Record) -> Iterator[tuple[int, int]]:
        """Name and value of each, which is signed."""
        yield from _ENUMERATOR.iter_unpack(self._data[record.at : record.at + record.count * _ENUMERATOR.size])

    def array(self, record: Record) -> tuple[int, int]:
        """Type and number of an array's elements."""
        element, _, length = self._layout.array.unpack_from(self._data, record.at)
        return element, length

    def parameters(self, record: Record) -> tuple[int, ...]:
        """The types of a function's parameters; a last 0 is "..."."""
        return numbers(self._data[record.at : record.at + record.count * self._format.width], self._format)

    def encoding(self, record: Record) -> tuple[int, int, int]:
        """Of an integer: flags of its encoding, and offset and number of its bits."""
        (word,) = _WORD.unpack_from(self._data, record.at)
        return word >> 24, word >> 16 & 0xFF, word & 0xFFFF

    def bits(self, record: Record) -> tuple[int, int, int]:
        """Of a slice: type, and offset and number of its bits."""
        found: tuple[int, int, int] = _SLICE.unpack_from(self._data, record.at)
        return found


def numbers(data: bytes, form: Format) -> tuple[int, ...]:
    """Bytes as numbers of types."""
    return tuple(np.frombuffer(data[: len(data) // form.width * form.width], f"<u{form.width}").tolist())


def info_of(info: int, form: Format) -> tuple[int, int]:
    """Kind and count of a word that describes a type."""
    layout = _LAYOUTS[form.width]
    return info >> layout.shift, info & layout.count

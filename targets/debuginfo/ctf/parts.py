"""One dictionary of CTF -> its parts as bytes, decompressed, and which of the formats they are in.

Two families have the name. Sun's (illumos, ctf(5); FreeBSD, sys/ctf.h) has magic 0xcff1, GNU's (binutils, ctf.h) has
0xdff2, and each counts its versions by itself. All are little-endian on our machines, and all offsets count from the
end of the header, in what was compressed.

    preamble: magic (2) | version (1) | flags (1)
    header:   words of 4 bytes: names, then where each part begins, in the order of the parts; bytes of strings
    parts:    labels | objects | functions | names of both (GNU) | variables (GNU) | types | strings
"""

import struct
import zlib
from itertools import pairwise
from typing import Final

from kinst.targets.values import dataclass

_PREAMBLE: Final = struct.Struct("<HBB")
_SUN, _GNU = 0xCFF1, 0xDFF2
_COMPRESSED: Final = 1
_NEW_FUNCTIONS, _DYNAMIC = 2, 8  # flags of GNU's version 4
_LARGEST: Final = 1 << 30  # bytes of a dictionary: a larger one is not believed
_PARTS: Final = ("labels", "objects", "functions", "object_names", "function_names", "variables", "types", "strings")
_OLD_GNU: Final = ("labels", "objects", "functions", "variables", "types", "strings")
_OF_SUN: Final = ("labels", "objects", "functions", "types", "strings")


@dataclass(frozen=True, slots=True)
class Format:
    """What differs between the formats.

    A number of a type has `width` bytes; its highest bit is set if it is the child's own.
    """

    width: int
    parts: tuple[str, ...]
    is_gnu: bool = False
    has_unit: bool = False  # whether the header names the file that was compiled
    is_offset_first: bool = False  # whether a member's offset comes before its type
    multiple: int = 4  # bytes to whose multiple a list of parameters is filled up
    has_function_types: bool = False  # a function's entry is the number of its type; else its result and parameters


_FORMATS: Final = {
    (_SUN, 2): Format(2, _OF_SUN),
    (_SUN, 3): Format(4, _OF_SUN),
    (_GNU, 1): Format(2, _OLD_GNU, is_gnu=True),
    (_GNU, 3): Format(4, _OLD_GNU, is_gnu=True, is_offset_first=True, multiple=8),
    (_GNU, 4): Format(4, _PARTS, is_gnu=True, has_unit=True, is_offset_first=True, multiple=8, has_function_types=True),
}


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a dictionary; those that its format does not have are empty.

    `parent`, `parent_label` and `unit` are names, as references to strings; 0: none.
    """

    format: Format
    parent_label: int
    parent: int
    unit: int
    is_dynamic: bool  # its symbols are those of .dynsym
    labels: bytes
    objects: bytes
    functions: bytes
    object_names: bytes
    function_names: bytes
    variables: bytes
    types: bytes
    strings: bytes


def parts_of(data: bytes) -> Parts:
    """The parts of a dictionary.

    Raises:
        ValueError: it is no CTF, damaged, or of a version that is not known.
    """
    if len(data) < _PREAMBLE.size:
        raise ValueError("no CTF: shorter than its header")
    magic, version, flags = _PREAMBLE.unpack_from(data)
    if magic not in (_SUN, _GNU):
        raise ValueError(f"no CTF: its magic is {magic:#06x}, not {_SUN:#06x} or {_GNU:#06x}")
    known = _FORMATS.get((magic, version))
    if known is None:
        family, versions = ("GNU", "1, 3 and 4") if magic == _GNU else ("illumos and FreeBSD", "2 and 3")
        raise ValueError(f"version {version} of {family}'s CTF is not supported, {versions} are")
    names, starts, size = _header(data, known)
    bounds = (*starts, starts[-1] + size)
    if any(after < before for before, after in pairwise(bounds)):
        raise ValueError("damaged: its parts are not in order")
    head = _PREAMBLE.size + 4 * (len(names) + len(starts) + 1)
    body = _inflated(data[head:], bounds[-1]) if flags & _COMPRESSED else data[head:]
    if len(body) < bounds[-1]:
        raise ValueError(f"damaged: its parts have {bounds[-1]} bytes, and there are {len(body)}")
    found = dict.fromkeys(_PARTS, b"")
    found |= {name: body[start:end] for name, (start, end) in zip(known.parts, pairwise(bounds), strict=True)}
    if known.has_function_types and not flags & _NEW_FUNCTIONS:
        found |= {"functions": b"", "function_names": b""}  # before binutils 2.36, in a format that nobody wrote down
    label, parent, *unit = names
    return Parts(
        format=known,
        parent_label=label,
        parent=parent,
        unit=unit[0] if unit else 0,
        is_dynamic=bool(flags & _DYNAMIC),
        **found,
    )


def _header(data: bytes, known: Format) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Names, where parts begin, and bytes of strings."""
    names = 3 if known.has_unit else 2
    words = struct.Struct(f"<{names + len(known.parts) + 1}I")
    if len(data) < _PREAMBLE.size + words.size:
        raise ValueError("no CTF: shorter than its header")
    found = words.unpack_from(data, _PREAMBLE.size)
    return found[:names], found[names:-1], found[-1]


def _inflated(data: bytes, size: int) -> bytes:
    if size > _LARGEST:
        raise ValueError(f"damaged: it would have {size} bytes when it is decompressed")
    unpacker = zlib.decompressobj()
    try:
        return unpacker.decompress(data, size) if size else b""
    except zlib.error as error:
        raise ValueError(f"damaged: {error}") from None

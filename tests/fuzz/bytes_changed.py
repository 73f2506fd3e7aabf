"""Files that were right once: a few words of them overwritten, mostly with numbers that programs stumble over."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

_EDGES = (
    0,
    1,
    2,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    1 << 40,
    (1 << 63) - 1,
)
_FORMS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}

Change = tuple[int, int, int]  # offset, bytes, value


@dataclass(frozen=True, slots=True)
class Damage:
    """What happens to a file: words overwritten at offsets in its `parts`, then perhaps its end cut off."""

    base: int  # which of the files
    changes: tuple[Change, ...]
    kept: int | None = None  # bytes; None: all

    def of(self, data: bytes, parts: Sequence[range]) -> bytes:
        """The damaged file; offsets count through the parts."""
        result, total = bytearray(data), sum(map(len, parts))
        for offset, size, value in self.changes:
            at = _place(offset % total, parts)
            size = min(size, len(result) - at)
            if size in _FORMS:
                struct.pack_into(_FORMS[size], result, at, value & (1 << 8 * size) - 1)
        return bytes(result if self.kept is None else result[: self.kept % (len(result) + 1)])


def _place(offset: int, parts: Sequence[range]) -> int:
    for part in parts:
        if offset < len(part):
            return part[offset]
        offset -= len(part)
    raise AssertionError("offsets count through the parts")


def damages(bases: int, *, most: int = 6) -> st.SearchStrategy[Damage]:
    """Damages of one of so many files."""
    values = st.one_of(st.sampled_from(_EDGES), st.integers(-(1 << 63), (1 << 64) - 1), st.integers(0, 0x1_0000))
    change = st.tuples(st.integers(0, 1 << 24), st.sampled_from(tuple(_FORMS)), values)
    kept = st.one_of(st.none(), st.none(), st.none(), st.integers(0, 1 << 24))
    return st.builds(Damage, st.integers(0, bases - 1), st.lists(change, min_size=1, max_size=most).map(tuple), kept)

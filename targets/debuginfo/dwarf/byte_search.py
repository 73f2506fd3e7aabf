"""Bytes in a section of hundreds of megabytes -> where they are, at the speed of memory.

Pieces that fit into the processor's cache are copied, and numpy compares two bytes of a pattern with the whole piece at
once: three times as fast as `bytes.find`, which compares one place after another. Many patterns of four bytes are
searched together, by a table of their possible first two bytes.

Pages are released as soon as they have been searched: the system keeps them in its cache, but the process does not grow
by the size of the section.
"""

import mmap
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kinst.targets.columns import unique

_PIECE: Final = 1 << 19
_FEW: Final = 24  # patterns that are searched for one by one
_TAIL: Final = 4  # bytes at the end of a string by which many are searched together
_SMALL: Final = 1 << 16  # bytes that `bytes.find` searches in no time


def find_all(data: bytes, wanted: bytes) -> list[int]:
    """Every place of `wanted`, ascending."""
    found, at = [], data.find(wanted)
    while at >= 0:
        found.append(at)
        at = data.find(wanted, at + 1)
    return found


def places_of(data: memoryview, patterns: Sequence[bytes]) -> list[int]:
    """Every place of every pattern, ascending. Patterns have two bytes or more."""
    if len(data) <= _SMALL:
        small = bytes(data)
        return sorted({place for pattern in patterns for place in find_all(small, pattern)})
    found: list[int] = []
    longest = max((len(pattern) for pattern in patterns), default=0)
    chosen = [(pattern, *_rarest(pattern)) for pattern in patterns]
    give_back = Mapped(data)
    for start in range(0, len(data) if patterns else 0, _PIECE):
        piece = bytes(data[start : start + _PIECE + longest - 1])
        shifted = piece[1:]
        give_back.pages(start)
        for pattern, at, pair in chosen:
            for odd, text in ((0, piece), (1, shifted)):
                hits = np.flatnonzero(np.frombuffer(text, np.uint16, len(text) // 2) == pair)
                for place in (hits * 2 + (odd - at)).tolist():
                    if 0 <= place < _PIECE and piece.startswith(pattern, place):
                        found.append(start + place)
    return sorted(set(found))


def _rarest(pattern: bytes) -> tuple[int, np.uint16]:
    """The two bytes of a pattern to search for, and their places in it: the rarest, since zeros are everywhere in debug
    information."""
    at = min(range(len(pattern) - 1), key=lambda place: (pattern[place : place + 2].count(0), place))
    return at, np.frombuffer(pattern, np.uint16, 1, at)[0]


def places_of_words(data: memoryview, words: Sequence[int]) -> list[int]:
    """Every place, aligned or not, of one of some 32-bit numbers."""
    wanted = sorted({word & 0xFFFFFFFF for word in words})
    if len(wanted) <= _FEW:
        return places_of(data, [word.to_bytes(4, "little") for word in wanted])
    exact = np.array(wanted, np.uint32)
    low = np.zeros(1 << 16, np.bool_)
    low[exact & np.uint32(0xFFFF)] = True
    found: list[NDArray[np.int64]] = []
    give_back = Mapped(data)
    for start in range(0, len(data), _PIECE):
        piece = bytes(data[start : start + _PIECE + 3])
        give_back.pages(start)
        for shift in range(4):
            numbers = np.frombuffer(piece[shift:], "<u4", (len(piece) - shift) // 4)
            likely = np.flatnonzero(low[numbers.astype(np.uint16)])
            likely = likely[np.isin(numbers[likely], exact)]
            found.append(likely * 4 + (start + shift))
    places = unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
    return [int(place) for place in places.tolist()]


def places_of_strings(data: memoryview, texts: Collection[bytes]) -> list[int]:
    """Every place, ascending, where one of some texts is a string or the end of one: linkers merge string tails."""
    if len(texts) <= _FEW:
        return places_of(data, [text + b"\0" for text in texts])
    long, found = {text for text in texts if len(text) >= _TAIL}, list[int]()
    tails = np.array(sorted({int.from_bytes(text[-_TAIL:], "little") for text in long}), np.uint32)
    overlap = max(map(len, texts))
    give_back = Mapped(data)
    for start in range(0, len(data), _PIECE):
        before = min(overlap, start)  # a text that ends in this piece may begin in the one before
        piece = bytes(data[start - before : start + _PIECE])
        give_back.pages(start)
        ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == 0)
        ends = ends[ends >= max(before, _TAIL)]
        words = sliding_window_view(np.frombuffer(piece, np.uint8), _TAIL)[ends - _TAIL].copy().view("<u4")[:, 0]
        for end in ends[np.isin(words, tails)].tolist():
            at = max(piece.rfind(b"\0", 0, end) + 1, end - overlap)
            found += [start - before + place for place in range(at, end - _TAIL + 1) if piece[place:end] in long]
    return sorted({*found, *places_of(data, [text + b"\0" for text in texts if len(text) < _TAIL])})


class Mapped:
    """The mapped file that holds the bytes, if there is one."""

    def __init__(self, data: memoryview) -> None:
        """`data`: a part of the file."""
        base: object = data
        while isinstance(base, memoryview | np.ndarray):
            base = base.obj if isinstance(base, memoryview) else base.base
        self._file = base if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") else None
        self._start = 0
        if self._file is not None:
            self._start = _address(data) - _address(self._file)

    def pages(self, start: int) -> None:
        """Give back the pages of the piece that starts at an offset; they are read again on demand."""
        self.stretch(start, start + _PIECE)

    def stretch(self, start: int, end: int) -> None:
        """The same from one offset to another."""
        if self._file is not None:
            first = (self._start + start) // mmap.PAGESIZE * mmap.PAGESIZE
            self._file.madvise(mmap.MADV_DONTNEED, first, min(self._start + end, len(self._file)) - first)


def _address(data: memoryview | mmap.mmap) -> int:
    return int(np.frombuffer(data, np.uint8).ctypes.data)

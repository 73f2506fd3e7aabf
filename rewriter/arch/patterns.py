"""Instruction words -> rows of a table of encodings; the one matcher of the machines whose instructions are words.

A table reads like the manual: each `Pattern` is an encoding, drawn as a bit diagram, and what follows from it. The
first one that matches wins; the last one matches everything. In bulk, some bits of a word (the key) index a lookup
table, which decides most words at once; masks are compared only if the key leaves several patterns open. A single word
is an array of one.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kinst.targets.instruction import Flow, Reason, Verdict
from kinst.targets.values import dataclass

Word = TypeVar("Word", int, NDArray[np.int64])


def distance(start: int, end: int) -> int:
    """The signed distance from one address to another, modulo 2**64."""
    return (end - start + (1 << 63)) % (1 << 64) - (1 << 63)


@dataclass(frozen=True, slots=True)
class Immediate:
    """A signed displacement scattered over a word: ``(low, width, shift)`` of each piece; `bits` wide in all."""

    pieces: tuple[tuple[int, int, int], ...]
    bits: int
    page: int = 1  # the result is relative to the instruction's address rounded down to this (adrp)

    def of(self, word: Word) -> Word:
        """The displacement in one word, or in each of an array."""
        value = word & 0
        for low, width, shift in self.pieces:
            value = value | ((word >> low) & ((1 << width) - 1)) << shift
        sign = 1 << (self.bits - 1)
        return (value ^ sign) - sign

    @property
    def mask(self) -> int:
        """The bits of a word that hold the displacement."""
        return sum((1 << width) - 1 << low for low, width, _ in self.pieces)

    def bits_of(self, displacement: Word) -> Word:
        """The bits of a word that hold one displacement, or an array of them, cut to the field."""
        word = displacement & 0
        for low, width, shift in self.pieces:
            word = word | (displacement >> shift & (1 << width) - 1) << low
        return word

    def placed(self, displacement: int) -> int | None:
        """The bits of a word that hold a displacement; None if it does not fit."""
        word = self.bits_of(displacement)
        return word if self.of(word) == displacement else None


@dataclass(frozen=True, slots=True)
class Pattern:
    """One encoding and what follows from it. `encoding` is the bit diagram from the highest bit down: 0, 1, ``.`` for
    any, ``name:width`` for a field."""

    name: str
    encoding: str
    kind: int
    verdict: Verdict = Verdict.COPY
    reason: Reason = Reason.NONE
    flow: Flow = Flow.NEXT
    target: Immediate | None = None
    reads: int = 0  # bytes that it loads at `target`

    def bits(self) -> str:
        """The diagram with one character for each bit."""
        return "".join(_token_bits(token) for token in self.encoding.split())

    @property
    def mask(self) -> int:
        """Ones where the encoding is fixed."""
        return int(self.bits().translate(str.maketrans("01.", "110")), 2)

    @property
    def value(self) -> int:
        """The encoding with zeros for all bits that are not fixed."""
        return int(self.bits().replace(".", "0"), 2)


def _token_bits(token: str) -> str:
    name, colon, width = token.partition(":")
    return "." * int(width) if colon else name


class PatternTable:
    """Patterns of one width, ready to match words in bulk."""

    def __init__(self, patterns: Sequence[Pattern], width: int, key: Sequence[tuple[int, int]]) -> None:
        """`width` in bits; `key` gives (low, width) of the pieces of a word that index the lookup table."""
        if wrong := [pattern.name for pattern in patterns if len(pattern.bits()) != width]:
            raise ValueError(f"encodings that are not {width} bits wide: {wrong}")
        self.patterns = tuple(patterns)
        self.kind = np.array([pattern.kind for pattern in patterns], np.uint8)
        self.verdict = np.array([pattern.verdict for pattern in patterns], np.uint8)
        self.reason = np.array([pattern.reason for pattern in patterns], np.uint8)
        self.flow = np.array([pattern.flow for pattern in patterns], np.uint8)
        self.reads = np.array([pattern.reads for pattern in patterns], np.uint8)
        self._masks = np.array([pattern.mask for pattern in patterns], np.uint32)
        self._values = np.array([pattern.value for pattern in patterns], np.uint32)
        self._key = tuple(key)
        self._lookup, self._groups = self._build_lookup()
        self._immediates = tuple(dict.fromkeys(p.target for p in patterns if p.target is not None))
        self._immediate = np.array([self._immediates.index(p.target) if p.target else -1 for p in patterns], np.int8)

    def row(self, name: str) -> int:
        """The row of the pattern called `name`."""
        return next(row for row, pattern in enumerate(self.patterns) if pattern.name == name)

    def match(self, words: NDArray[np.uint32]) -> NDArray[np.uint16]:
        """The row of the first pattern that matches each word."""
        rows: NDArray[np.uint16] = self._lookup[self._index(words)]
        open_rows = np.flatnonzero(rows >= len(self.patterns))
        group_of = rows[open_rows] - len(self.patterns)
        for number in np.unique(group_of):
            members = open_rows[group_of == number]
            rows[members] = self._first_fit(words[members], self._groups[number])
        return rows

    def targets(
        self, rows: NDArray[np.uint16], words: NDArray[np.uint32], addresses: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """The branch target or literal address of each word; 0 where its pattern has none."""
        result = np.zeros(len(words), np.uint64)
        immediate = self._immediate[rows]
        for number, layout in enumerate(self._immediates):
            at = np.flatnonzero(immediate == number)
            base = addresses[at] & np.uint64(-layout.page & 0xFFFF_FFFF_FFFF_FFFF)
            result[at] = base + layout.of(words[at].astype(np.int64)).view(np.uint64)
        return result

    def _index(self, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The key of each word: its pieces side by side, the first piece lowest."""
        index = np.zeros(0, np.uint32)
        position = 0
        for low, width in self._key:
            piece = (words >> np.uint32(low)) & np.uint32((1 << width) - 1)
            index = piece if position == 0 else index | (piece << np.uint32(position))
            position += width
        return index

    def _build_lookup(self) -> tuple[NDArray[np.uint16], list[NDArray[np.uint16]]]:
        """Key -> the row, or ``len(patterns) + group`` if the rows of a group are still open."""
        keys = np.arange(1 << sum(width for _, width in self._key), dtype=np.uint32)
        words, position, key_mask = np.zeros_like(keys), 0, 0
        for low, width in self._key:
            words |= ((keys >> np.uint32(position)) & np.uint32((1 << width) - 1)) << np.uint32(low)
            key_mask |= ((1 << width) - 1) << low
            position += width
        fits = ((words[:, None] ^ self._values) & self._masks & np.uint32(key_mask)) == 0
        certain = fits & ((self._masks & ~np.uint32(key_mask)) == 0)
        last = certain.argmax(axis=1)  # the first that needs no other bits: those after it are never reached
        fits &= np.arange(len(self.patterns)) <= last[:, None]
        lookup, still_open = last.astype(np.uint16), np.flatnonzero(fits.sum(axis=1) != 1)
        numbers: dict[bytes, int] = {}  # groups of rows, as bits
        for key, bits in zip(still_open.tolist(), np.packbits(fits[still_open], axis=1), strict=True):
            lookup[key] = len(self.patterns) + numbers.setdefault(bits.tobytes(), len(numbers))
        every = (np.unpackbits(np.frombuffer(bits, np.uint8)) for bits in numbers)
        return lookup, [np.flatnonzero(group).astype(np.uint16) for group in every]

    def _first_fit(self, words: NDArray[np.uint32], candidates: NDArray[np.uint16]) -> NDArray[np.uint16]:
        rows = np.full(len(words), candidates[-1], np.uint16)
        for row in candidates[-2::-1]:
            rows[(words & self._masks[row]) == self._values[row]] = row
        return rows

"""The bytes of a Linux kernel -> the symbols that it keeps for itself, kallsyms, wherever they are among its data.

scripts/kallsyms.c writes these tables, aligned to 8 bytes (since 7.0: 4):

    before 6.4   offsets  relative_base  num_syms  names  markers  seqs_of_names  token_table  token_index
    since then   num_syms  names  markers  token_table  token_index  offsets  relative_base  seqs_of_names
    since 7.0    the same without relative_base

    num_syms      u32
    names         for each symbol a length, of two bytes from 128 on, and as many tokens; the first letter that they
                  spell is the symbol's type, as nm has it
    markers       u32: where in names each 256th symbol begins
    token_table   256 texts; every letter that occurs in a name is a token for itself
    token_index   u16: where in token_table each begins
    offsets       s32: from relative_base, for amd64's per-CPU symbols from 0, or from themselves (7.0)

Nothing says where they are. The tokens of the ten digits follow each other, which is rare, and the index must fit them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.symbols import Symbols, nm_symbols
from kinst.targets.visible import text_of

Addresses = NDArray[np.uint64]
_DIGITS: Final = b"".join(b"%d\0" % digit for digit in range(10))
_FIRST_DIGIT: Final = 0x30
_TOKENS: Final = 256
_LONGEST_TOKEN: Final = 64
_STEP: Final = 256  # symbols from marker to marker
_BLOCK: Final = (_STEP * 2, _STEP * 512)  # bytes that their names take
_FEWEST_MARKERS: Final = 4
_FARTHEST: Final = 1 << 25  # bytes from the markers to the tokens: another table may lie between
_FITTING: Final = 0.9  # share of code symbols that must be in code
_INDEX_SIZE: Final = 2 * _TOKENS
_WORD: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class KernelSymbols:
    """Symbols in the order of their addresses, with nm's letters for their types."""

    addresses: Addresses
    letters: bytes
    names: tuple[bytes, ...]

    @property
    def symbols(self) -> Symbols:
        """The same as a symbol table; sizes are not known."""
        rows = zip(self.addresses.tolist(), map(chr, self.letters), map(text_of, self.names), strict=True)
        return nm_symbols((address, 0, letter, name) for address, letter, name in rows)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's bytes, and what its addresses are."""

    data: bytes
    word: Callable[[int], int]  # the 64 bits at an offset, as the kernel sees them: a relocation may write them
    address: Callable[[int], int | None]  # of the byte at an offset; None: it is not loaded
    is_code: Callable[[Addresses], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class _Tables:
    """Where the tables are, as offsets into the data."""

    tokens: tuple[bytes, ...]
    count_at: int  # num_syms
    names: int
    count: int
    end: int  # of token_index


def kernel_symbols(kernel: Kernel) -> KernelSymbols | None:
    """The symbols of a kernel; None if there are none, or none that fit its code."""
    for tables in _tables(kernel.data):
        texts = _texts(kernel.data, tables)
        if texts is None:
            continue
        letters, names = bytes(text[0] for text in texts), tuple(text[1:] for text in texts)
        is_text = np.isin(np.frombuffer(letters, np.uint8), np.frombuffer(b"tT", np.uint8))
        for addresses in _addresses(kernel, tables):
            if is_text.any() and np.mean(kernel.is_code(addresses[is_text])) > _FITTING:
                return KernelSymbols(addresses, letters, names)
    return None


def _tables(data: bytes) -> Iterator[_Tables]:
    at = data.find(_DIGITS)
    while at >= 0:
        found = _token_table(data, at)
        if found is not None:
            start, end, tokens = found
            for markers, marks in _marker_tables(data, start):
                for count_at, names, count in _counts(data, markers, marks):
                    yield _Tables(tokens, count_at, names, count, end)
        at = data.find(_DIGITS, at + 1)


def _token_table(data: bytes, digits: int) -> tuple[int, int, tuple[bytes, ...]] | None:
    """Start of the table whose token of "0" is at an offset, end of its index, and the tokens."""
    end = digits
    for _ in range(_TOKENS - _FIRST_DIGIT):
        end = data.find(b"\0", end, end + _LONGEST_TOKEN) + 1
        if not end:
            return None
    for alignment in (8, 4):
        at = -(-end // alignment) * alignment
        if at + _INDEX_SIZE > len(data):
            continue
        index = np.frombuffer(data, "<u2", _TOKENS, at).astype(np.int64)
        if index[0] or (np.diff(index) <= 0).any():
            continue
        start = digits - int(index[_FIRST_DIGIT])
        tokens = data[max(start, 0) : end].split(b"\0")[:_TOKENS]
        if np.array_equal(np.cumsum([0, *(len(token) + 1 for token in tokens[:-1])]), index):
            return start, at + _INDEX_SIZE, tuple(tokens)
    return None


def _marker_tables(data: bytes, end: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Where words before `end` could be the markers, the nearest first: 0, then steps of the size of 256 names."""
    low = max(0, end - _FARTHEST) & -4
    words = np.frombuffer(data[low : end & -4], "<u4").astype(np.int64)
    steps = np.diff(words)
    fits = (steps >= _BLOCK[0]) & (steps <= _BLOCK[1])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], fits, [False]]).astype(np.int8)))
    for first, last in edges.reshape(-1, 2)[::-1].tolist():
        zero = first + np.flatnonzero(words[first:last] == 0)
        if len(zero) and last - zero[0] + 1 >= _FEWEST_MARKERS:
            yield low + 4 * int(zero[0]), words[zero[0] : last + 1]


def _counts(data: bytes, markers: int, marks: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Where num_syms and names could be that end at these markers, and how many symbols there are."""
    last, blocks = int(marks[-1]), len(marks)
    for names in range(markers - last & -4, max(markers - last - _BLOCK[1], 8), -4):
        for count_at in (names - 8, names - 4):
            count = int.from_bytes(data[count_at : count_at + 4], "little")
            is_padded = count_at == names - 4 or not any(data[names - 4 : names])
            if is_padded and -(-count // _STEP) == blocks and _ends_there(data, names + last, count, markers):
                yield count_at, names, count


def _ends_there(data: bytes, at: int, count: int, end: int) -> bool:
    """Whether the names behind the last marker, of which one begins at an offset, end with the table."""
    for _ in range((count - 1) % _STEP + 1):
        size, width = _length(data, at)
        at += size + width
    return end - 8 < at <= end and not any(data[at:end])


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Of a name in tokens, and of that number in bytes."""
    first, second = (data[at : at + 2] + b"\0\0")[:2]
    return (first & 0x7F | second << 7, 2) if first & 0x80 else (first, 1)


def _texts(data: bytes, tables: _Tables) -> list[bytes] | None:
    """What each symbol's tokens spell, its type first; None: one is empty."""
    found, at, tokens = [], tables.names, tables.tokens
    for _ in range(tables.count):
        size, width = _length(data, at)
        at += width
        found.append(b"".join([tokens[token] for token in data[at : at + size]]))
        at += size
    return found if all(found) else None


def _addresses(kernel: Kernel, tables: _Tables) -> Iterator[Addresses]:
    """What the offsets could mean."""
    size = 4 * tables.count
    room = -(-size // 8) * 8
    for at, base_at in (
        (tables.end, tables.end + room),
        (tables.count_at - 8 - room, tables.count_at - 8),
    ):
        if at < 0 or base_at + 8 > len(kernel.data):
            continue
        offsets = np.frombuffer(kernel.data[at : at + size], "<i4").astype(np.int64)
        base = kernel.word(base_at)
        yield np.uint64(base) + offsets.astype(np.uint32).astype(np.uint64)
        below = np.uint64(base - 1 & _WORD) - offsets.astype(np.uint64)
        yield np.where(offsets < 0, below, offsets.astype(np.uint64))
        place = kernel.address(at)
        if place is not None:
            own = np.uint64(place) + np.arange(tables.count, dtype=np.uint64) * np.uint64(4)
            yield own + offsets.astype(np.uint64)

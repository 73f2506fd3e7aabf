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

Nothing says where they are, nor which of the forms it is. The tokens of the ten digits follow each other, which is
rare, and the index must fit them. What the offsets mean is told by what they yield (`_fits`): symbols in the order of
their addresses, as they are sorted when they are written, with those of code in the code, where its direct calls lead.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.direct_calls import call_targets
from kinst.targets.elf.symbols import Symbols, nm_columns
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

Addresses = NDArray[np.uint64]
_DIGITS: Final = b"".join(b"%d\0" % digit for digit in range(10))
_FIRST_DIGIT: Final = 0x30
_TOKENS: Final = 256
_LONGEST_TOKEN: Final = 64
_STEP: Final = 256  # symbols from marker to marker
_BLOCK: Final = (_STEP * 2, _STEP * 512)  # bytes that their names take
_FEWEST_MARKERS: Final = 4
_DISTANCES: Final = (1 << 21, 1 << 25)  # bytes from the markers to the tokens: another table may be between
_FITTING: Final = 0.9  # share of code symbols that must be in code
_CODE_START: Final = (b"_text", b"_stext")  # what code begins with, if they are named
_CONFIRMING: Final = 1 << 20  # bytes of code whose calls are examined
_CONFIRMED: Final = 0.5  # share of them that must lead to a symbol; in kernels nearly all do, and by chance one in 100
_FEWEST_CALLS: Final = 16
_INDEX_SIZE: Final = 2 * _TOKENS
_WORD: Final = (1 << 64) - 1
_ODD: Final = re.compile(rb"[^\x21-\x7e]")  # in a name: damage


@dataclass(frozen=True, slots=True)
class KernelSymbols:
    """Symbols in the order of their addresses, with nm's letters for their types."""

    addresses: Addresses
    letters: bytes
    names: tuple[bytes, ...]

    @property
    def symbols(self) -> Symbols:
        """The same as a symbol table; sizes are unknown."""
        names = self.names
        if _ODD.search(b"".join(names)):
            names = tuple(text_of(name).encode() for name in names)
        return nm_columns(self.addresses, np.zeros(len(names), np.uint64), self.letters, names)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's bytes, and what its addresses mean."""

    data: bytes
    facts: ArchFacts
    bases: Callable[[int], Sequence[int]]  # what the 64 bits at an offset can be: a relocation may write them
    address: Callable[[int], int | None]  # of the byte at an offset; None: it is not loaded
    offset: Callable[[int], int | None]  # of the byte at an address; None: the data does not have it
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
        for addresses in _addresses(kernel, tables):
            found = KernelSymbols(addresses, letters, names)
            if _fits(kernel, found):
                return found
    return None


def _fits(kernel: Kernel, found: KernelSymbols) -> bool:
    """Whether these are the kernel's symbols, judging by their order, their places and the kernel's calls."""
    addresses = found.addresses
    # The writer sorts by address, so offsets that were read in the wrong way are soon out of order.
    is_text = np.isin(np.frombuffer(found.letters, np.uint8), np.frombuffer(b"tT", np.uint8))
    if not is_text.any() or (addresses[1:] < addresses[:-1]).any():
        return False
    starts = [place for place, name in enumerate(found.names) if name in _CODE_START]
    return bool(
        np.mean(kernel.is_code(addresses[is_text])) > _FITTING
        and kernel.is_code(addresses[starts]).all()
        and _is_confirmed(kernel, addresses[is_text], int(addresses[(starts or np.flatnonzero(is_text).tolist())[-1]]))
    )


def _is_confirmed(kernel: Kernel, functions: Addresses, start: int) -> bool:
    """Whether calls in the code from `start` on lead to functions, if there are enough calls."""
    at = kernel.offset(start)
    if at is None:
        return False
    code = np.frombuffer(kernel.data, np.uint8)[at : at + _CONFIRMING]
    targets = call_targets(code, start, kernel.facts)
    inside = targets[(targets >= functions[0]) & (targets <= functions[-1])]
    inside = inside[kernel.is_code(inside)]
    place = np.minimum(np.searchsorted(functions, inside), len(functions) - 1)
    return len(inside) < _FEWEST_CALLS or bool(np.mean(functions[place] == inside) > _CONFIRMED)


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
    """The start of the table whose token "0" is at an offset, the end of its index, and the tokens."""
    end = digits
    for _ in range(_TOKENS - _FIRST_DIGIT):
        end = data.find(b"\0", end, end + _LONGEST_TOKEN) + 1
        if not end:
            return None
    for alignment in (8, 4):
        at = -(-end // alignment) * alignment
        if at + _INDEX_SIZE > len(data):
            continue
        # The index of token 0 is 0 and all others ascend; it must be the sums of the tokens' lengths, which chance does
        # not hit.
        index = np.frombuffer(data, "<u2", _TOKENS, at).astype(np.int64)
        if index[0] or (np.diff(index) <= 0).any():
            continue
        start = digits - int(index[_FIRST_DIGIT])
        tokens = data[max(start, 0) : end].split(b"\0")[:_TOKENS]
        if np.array_equal(np.cumsum([0, *(len(token) + 1 for token in tokens[:-1])]), index):
            return start, at + _INDEX_SIZE, tuple(tokens)
    return None


def _marker_tables(data: bytes, end: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Where words before `end` could be the markers, the nearest first."""
    for distance in _DISTANCES:
        yield from _markers_within(data, end, distance)


def _markers_within(data: bytes, end: int, distance: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The same, no farther away than `distance`: 0, then steps of the size of 256 names."""
    low = max(0, end - distance) & -4
    words = np.frombuffer(data[low : end & -4], "<u4").astype(np.int64)
    steps = np.diff(words)
    fits = (steps >= _BLOCK[0]) & (steps <= _BLOCK[1])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], fits, [False]]).astype(np.int8)))
    for first, last in edges.reshape(-1, 2)[::-1].tolist():
        zero = first + np.flatnonzero(words[first:last] == 0)
        if len(zero) and last - zero[0] + 1 >= _FEWEST_MARKERS:
            yield low + 4 * int(zero[0]), words[zero[0] : last + 1]


def _counts(data: bytes, markers: int, marks: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Where num_syms and names could be if the names end at these markers, and how many symbols there are."""
    last, blocks = int(marks[-1]), len(marks)
    for names in range(markers - last & -4, max(markers - last - _BLOCK[1], 8), -4):
        for count_at in (names - 8, names - 4):
            count = int.from_bytes(data[count_at : count_at + 4], "little")
            is_padded = count_at == names - 4 or not any(data[names - 4 : names])
            if is_padded and -(-count // _STEP) == blocks and _ends_there(data, names + last, count, markers):
                yield count_at, names, count


def _ends_there(data: bytes, at: int, count: int, end: int) -> bool:
    """Whether the names after the last marker, one of which begins at an offset, end with the table."""
    for _ in range((count - 1) % _STEP + 1):
        size, width = _length(data, at)
        at += size + width
    return end - 8 < at <= end and not any(data[at:end])


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A name's length in tokens, and the bytes of that number."""
    first, second = (data[at : at + 2] + b"\0\0")[:2]
    return (first & 0x7F | second << 7, 2) if first & 0x80 else (first, 1)


def _texts(data: bytes, tables: _Tables) -> list[bytes] | None:
    """What each symbol's tokens spell, its type first; None: one is empty, or they run past the data."""
    starts, sizes = _spelled(data, tables)
    if starts[-1] + sizes[-1] > len(data):
        return None
    ends = np.cumsum(sizes)
    tokens = np.frombuffer(data, np.uint8)[np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes)]
    lengths = np.array([len(token) for token in tables.tokens], np.int64)
    cuts = np.append(0, np.cumsum(lengths[tokens]))[np.append(0, ends)].tolist()
    whole = b"".join(map(tables.tokens.__getitem__, tokens.tolist()))
    found = [whole[first:last] for first, last in pairwise(cuts)]
    return found if all(found) else None


def _spelled(data: bytes, tables: _Tables) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each symbol's tokens begin, and how many there are."""
    starts, sizes, at = [], [], tables.names
    for _ in range(tables.count):
        size, width = _length(data, at)
        starts.append(at + width)
        sizes.append(size)
        at += width + size
    return np.array(starts, np.int64), np.array(sizes, np.int64)


def _addresses(kernel: Kernel, tables: _Tables) -> Iterator[Addresses]:
    """What the offsets could mean."""
    size = 4 * tables.count
    padded = -(-size // 8) * 8
    for at, base_at in (
        (tables.end, tables.end + padded),
        (tables.count_at - 8 - padded, tables.count_at - 8),
    ):
        if at < 0 or base_at + 8 > len(kernel.data):
            continue
        offsets = np.frombuffer(kernel.data[at : at + size], "<i4").astype(np.int64)
        # Relative to the base; or, with per-CPU symbols, positive ones absolute and negative ones below the base; or
        # each relative to its own place (7.0).
        for base in kernel.bases(base_at):
            yield np.uint64(base) + offsets.astype(np.uint32).astype(np.uint64)
            below = np.uint64(base - 1 & _WORD) - offsets.astype(np.uint64)
            yield np.where(offsets < 0, below, offsets.astype(np.uint64))
        place = kernel.address(at)
        if place is not None:
            own = np.uint64(place) + np.arange(tables.count, dtype=np.uint64) * np.uint64(4)
            yield own + offsets.astype(np.uint64)

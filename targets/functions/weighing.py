"""Starts of functions, some with weak evidence -> those that nothing contradicts.

Bytes that merely decode are no code where better evidence (symbols, FDEs) covers the rest: there a prologue alone
counts only if nothing between its neighbours remains unexplained. And weak evidence gives way to what contradicts it:
an instruction that reads there, one that no program has, a jump to nowhere, text, a body that never ends. Where nothing
covers the code, as in stripped firmware, a function with nothing but its looks or a label gives way to a read alone;
the other signs are found in assembly, too. Some files are built without FDEs and linked with others that have them.
Data that decodes contradicts itself within a few dozen bytes; 16 KB that never do are such a file's code (measured: 600
KB of busybox, 960 KB of dav1d without one contradiction; 150 KB of a table in libcrypto with 17,000, 1.4 KB of tables
for riscv64 with 3).
"""

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import is_in, is_one_of
from kinst.targets.elf.header import FileKind
from kinst.targets.functions.evidence import Evidence
from kinst.targets.functions.sweeping import Swept
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image
from kinst.targets.instruction import Flow
from kinst.targets.patterns import matches
from kinst.targets.spans import Spans, covered, inside, less
from kinst.targets.values import dataclass

_DIRECT: Final = (Flow.JUMP, Flow.BRANCH, Flow.CALL)
_CALLS: Final = (Flow.CALL, Flow.INDIRECT_CALL)
# Words of a text that ends. Vector code for arm64 is printable as well, but has no words.
_TEXT: Final = re.compile(rb"[A-Za-z]{3,}[ ,.:/-][\x20-\x7e]{4,}[a-z]{3,}[\n\x20-\x7e]*\0")
_ENOUGH: Final = 2  # if half of a region or more is described
_LARGE: Final = 0x4000  # bytes without a contradiction that are code


def described_regions(image: Image, described: Spans) -> Spans:
    """The code regions of an image that symbols and FDEs cover: at least half of their bytes are in `described`.
    Regions are executable sections, so a .plt speaks for itself."""
    spans = described
    found: list[tuple[int, int]] = []
    if image.kind is FileKind.REL:  # the linker writes what it calls
        return np.array(found, np.uint64).reshape(-1, 2)
    for region in image.code_regions:
        first, end = np.uint64(region.address), np.uint64(region.address + region.size)
        inside = np.minimum(spans[:, 1], end) - np.minimum(np.maximum(spans[:, 0], first), end)
        inside = np.where(spans[:, 1] > first, inside, np.uint64(0))
        if int(inside.sum()) * _ENOUGH >= region.size:
            found.append((region.address, region.address + region.size))
    return np.array(found, np.uint64).reshape(-1, 2)


def strict_spans(image: Image, swept: Swept, regions: Spans, described: Spans) -> Spans:
    """`regions` less what is large, not `described`, and decodes without a contradiction."""
    gaps = less(regions, described)
    large = gaps[gaps[:, 1] - gaps[:, 0] >= _LARGE]
    if not len(large):
        return regions
    part = swept.take(np.flatnonzero(inside(large, swept.address)))
    count = np.append(0, np.cumsum(_is_lost(image, swept, part) & ~part.is_padding | part.is_junk))
    first, last = (np.searchsorted(part.address, large[:, side]) for side in (0, 1))
    return less(regions, large[count[last] == count[first]])


def _is_lost(image: Image, swept: Swept, part: Swept) -> NDArray[np.bool_]:
    """Rows of a part that no code has: they lead to nowhere, or are privileged in a user program."""
    lost = _goes_astray(image, swept, part)
    if is_hosted(image):
        lost |= matches(part.heads, image.facts.code_shape.absurd) & ~part.is_junk
    return lost


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns: a start in address order, its end, its evidence."""

    address: NDArray[np.uint64]
    end: NDArray[np.uint64]
    evidence: NDArray[np.uint8]

    def take(self, rows: NDArray[np.bool_]) -> "Candidates":
        """The rows of a mask."""
        return Candidates(self.address[rows], self.end[rows], self.evidence[rows])


def weighed(
    image: Image, swept: Swept, part: Swept, found: Candidates, strict: Spans, read: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """The addresses of those starts that count.

    Args:
        image: the image.
        swept: the instructions of its code, or of parts of it.
        part: those in `strict` spans that no symbol or FDE covers.
        found: all starts, and where their code ends.
        strict: where symbols and FDEs cover nearly all code.
        read: addresses that code reads as data, ascending.
    """
    is_strict = covered(strict, found.address)
    # POINTER and all weaker: a word of data may look like a pointer by chance.
    is_weak = (found.evidence >= Evidence.POINTER) & is_strict
    good = is_strict | (found.evidence < Evidence.LABEL) | ~_is_read(swept, found, read)
    good &= is_strict | (found.evidence < Evidence.PROLOGUE) | ~_is_in_data(found.take(good), found.address, read)
    if not is_weak.any() or not len(part):
        return found.address[good]
    good[is_weak] = ~_contradicted(image, swept, part, found, is_weak, read)
    is_likely = good & is_weak & (found.evidence >= Evidence.PROLOGUE)
    rest = good & ~is_likely
    if is_likely.any():
        # What only looks like a function counts if it makes a gap whole; a lone prologue in a table does not.
        rest[is_likely] = _leaves_nothing(part, found.take(good), found.address[is_likely])
    return found.address[rest]


def _contradicted(
    image: Image, swept: Swept, part: Swept, found: Candidates, weak: NDArray[np.bool_], read: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Which of the weak starts something contradicts."""
    bodies = found.take(weak)
    last = np.searchsorted(part.address, bodies.end)
    first = np.searchsorted(part.address, bodies.address)
    bad = _is_read(part, bodies, read)
    count = np.append(0, np.cumsum(_is_lost(image, swept, part)))
    named = bodies.evidence == Evidence.LABEL
    bad |= (count[last] > count[first]) & ~(named & (not is_hosted(image)))
    bad |= _is_open(part, found.address, bodies.end, last) & ~named
    left = np.flatnonzero(~bad).tolist()
    spans = zip(bodies.address[left].tolist(), bodies.end[left].tolist(), strict=True)
    # Last, since it reads the bytes one body at a time.
    bad[left] = [_TEXT.search(image.read(start, end - start)) is not None for start, end in spans]
    return bad


def _is_read(swept: Swept, bodies: Candidates, read: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which bodies code reads as data before control first leaves them: a table after that may be their own."""
    if not len(swept):
        return np.zeros(len(bodies.address), np.bool_)
    stops = np.append(np.flatnonzero(swept.is_terminator), len(swept) - 1)
    run = swept.end[stops[np.searchsorted(stops[:-1], np.searchsorted(swept.address, bodies.address))]]
    ends = np.minimum(run, bodies.end)
    found: NDArray[np.bool_] = np.searchsorted(read, ends) > np.searchsorted(read, bodies.address)
    return found


def _is_in_data(good: Candidates, address: NDArray[np.uint64], read: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which addresses are in data that code reads: it begins at the address read, between functions, and ends where
    something better than looks vouches for a function."""
    data = read[~covered(np.stack([good.address, good.end], axis=1), read)]
    sure = good.address[good.evidence < Evidence.PROLOGUE]
    latest = (np.append(np.uint64(0), one)[np.searchsorted(one, address, "right")] for one in (data, sure))
    found: NDArray[np.bool_] = np.greater(*latest)
    return found


def _goes_astray(image: Image, swept: Swept, part: Swept) -> NDArray[np.bool_]:
    """Direct jumps and calls of a part that lead outside the code, or into the middle of an instruction."""
    astray = np.zeros(len(part), np.bool_)
    if image.kind is FileKind.REL:
        return astray  # the linker writes where they lead
    rows = np.flatnonzero(is_one_of(part.instructions.flow, _DIRECT) & ~part.is_junk)
    target = part.instructions.target[rows]
    before = np.searchsorted(swept.address, target, "right") - 1
    within = (before >= 0) & (target > swept.address[before]) & (target < swept.end[before])
    # A weak symbol that is defined nowhere is at 0, and a call of it is guarded.
    astray[rows[within | ~image.is_code(target) & (target != 0)]] = True
    return astray


def _is_open(
    swept: Swept, starts: NDArray[np.uint64], end: NDArray[np.uint64], last: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Which bodies control would leave at their end for what is no function: they neither stop nor end in a call."""
    final = np.maximum(last - 1, 0)
    closed = swept.is_terminator[final] & ~swept.is_junk[final] | is_one_of(swept.instructions.flow[final], _CALLS)
    found: NDArray[np.bool_] = ~closed & ~is_in(end, starts)
    return found


def _leaves_nothing(part: Swept, good: Candidates, likely: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which likely starts are in a gap between better ones that good bodies and padding fill completely."""
    row = np.searchsorted(good.address, part.address, "right") - 1
    explained = (row >= 0) & (part.address < good.end[row])
    missing = ~explained & (~part.is_padding | part.is_junk)
    sure = good.address[good.evidence < Evidence.PROLOGUE]
    edges = np.append(True, (part.end[:-1] != part.address[1:]) | is_in(part.address[1:], sure))
    gap = np.cumsum(edges)
    # One row that no body and no padding explains spoils the whole gap.
    spoilt = np.bincount(gap[missing], minlength=int(gap[-1]) + 1) > 0
    place = np.searchsorted(part.address, likely)
    clean: NDArray[np.bool_] = ~spoilt[gap[np.minimum(place, len(gap) - 1)]]
    return clean


def evidence_of(address: NDArray[np.uint64], starts: Mapping[Evidence, NDArray[np.uint64]]) -> NDArray[np.uint8]:
    """The best evidence of each address."""
    evidence = np.zeros(len(address), np.uint8)
    for kind in sorted(starts, reverse=True):  # the best last: it overwrites
        evidence[is_in(address, np.sort(starts[kind]))] = kind
    return evidence

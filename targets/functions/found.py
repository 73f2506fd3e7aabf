"""An image -> its functions: names and bounds from symbols, FDEs, or discovery where the image is stripped."""

from collections.abc import Mapping
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import is_in
from kinst.targets.elf.symbols import Symbols
from kinst.targets.functions.address_uses import UsesOf
from kinst.targets.functions.discovery import Discovered, Known, discover, reachable_ends
from kinst.targets.functions.evidence import Evidence
from kinst.targets.functions.frames import FrameRanges, frame_ranges
from kinst.targets.functions.named_functions import NamedFunctions, data_in_code, named_data, named_functions
from kinst.targets.functions.startup import startup32
from kinst.targets.functions.sweeping import Sweep, sweep_spans, without_fill
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image
from kinst.targets.spans import Spans, covered, length, less
from kinst.targets.values import dataclass

__all__ = ["Evidence", "Functions", "Sweep", "find_functions"]

_SPARSE: Final = 8  # symbols that leave more than an eighth of the code unnamed do not cover it


@dataclass(frozen=True, slots=True)
class Functions:
    """Columns in address order, one row a function; ranges do not overlap and lie inside executable regions.

    `names` holds the primary name. `aliases` maps a row to its other names. A name may stand in several rows:
    statics of different files.
    """

    address: NDArray[np.uint64]
    size: NDArray[np.uint64]
    evidence: NDArray[np.uint8]
    names: tuple[str, ...]
    aliases: Mapping[int, tuple[str, ...]]
    # Where symbols and FDEs cover nearly all code: anything else there is most likely data.
    strict: Spans = field(default_factory=lambda: np.zeros((0, 2), np.uint64))

    def __len__(self) -> int:
        return len(self.address)

    def row_at(self, address: int) -> int | None:
        """The row of the function that holds an address."""
        row = int(np.searchsorted(self.address, np.uint64(address), "right")) - 1
        return row if row >= 0 and address - int(self.address[row]) < int(self.size[row]) else None


def invented_name(address: int) -> str:
    """The name of a function without one: by its address."""
    return f"sub_{address:x}"


def find_functions(image: Image, *, sweep: Sweep, uses_of: UsesOf, symbols: Symbols | None = None) -> Functions:
    """The functions of an image, named by its symbols; what they do not cover is discovered and named by its address.

    Args:
        image: the image.
        sweep: the machine's `Dissector.dissect`.
        uses_of: what its code does with addresses (`kinst.rewriter.addresses`).
        symbols: instead of the image's own, when a System.map or a debug file adds to them.
    """
    symbols = image.symbols if symbols is None else symbols
    labels = named_functions(image, symbols)
    frames = frame_ranges(image)
    # Labels that are not certain are only hints to the discovery: one may name a table.
    named = _trimmed(image, labels.take(np.flatnonzero(labels.is_certain)), frames.functions, sweep)
    found = _discovered(image, labels, named, frames, symbols, sweep, uses_of)
    return _merged(labels, named, found)


def _trimmed(image: Image, named: NamedFunctions, frames: NDArray[np.uint64], sweep: Sweep) -> NamedFunctions:
    """Functions whose symbol has no size end with their FDE, else where their code cannot be reached any further."""
    rows = np.flatnonzero(~named.is_sized)
    if not len(rows):
        return named
    end = named.end.copy()
    spans = np.stack([named.address[rows], named.end[rows]], axis=1)
    swept = sweep_spans(image, spans, sweep)
    end[rows] = np.minimum(reachable_ends(swept, spans[:, 0]), end[rows])
    place = np.minimum(np.searchsorted(named.address, frames[:, 0]), len(end) - 1)
    known = (named.address[place] == frames[:, 0]) & ~named.is_sized[place]
    end[place[known]] = np.minimum(frames[known].sum(axis=1), named.end[place[known]])
    return named.ending(end)


def _discovered(
    image: Image,
    labels: NamedFunctions,
    named: NamedFunctions,
    frames: FrameRanges,
    symbols: Symbols,
    sweep: Sweep,
    uses_of: UsesOf,
) -> Discovered:
    functions = np.stack([named.address, named.end], axis=1)
    objects = _bounds(data_in_code(image, symbols))
    everything = less(_without_data(_spans_of_code(image), functions, _bounds(named_data(image, symbols))), objects)
    gaps = less(everything, functions)
    hints = labels.address[~labels.is_certain]
    unnamed = without_fill(image, gaps)
    described = np.concatenate([functions, _bounds(frames.functions)])
    # Symbols cover the code: only the gaps are searched, which are small. Else all of it is swept, since calls from
    # named functions lead to unnamed ones.
    if length(unnamed) * _SPARSE <= length(everything):
        known = Known(frames.functions, frames.signals, named.address[:0], hints, described)
        found = discover(image, unnamed, sweep, uses_of, known)
        # Weak evidence in a program is weighed against what its code does, which the gaps alone do not show.
        if not (is_hosted(image) and _is_doubtful(found)):
            return found
    known = Known(frames.functions, frames.signals, named.address, hints, described)
    return discover(image, without_fill(image, everything), sweep, uses_of, known)


def _is_doubtful(found: Discovered) -> bool:
    """Whether the code around functions must be examined for what contradicts them."""
    return bool(((found.evidence >= Evidence.POINTER) & covered(found.strict, found.address)).any())


def _bounds(ranges: NDArray[np.uint64]) -> Spans:
    """Address and size -> address and end."""
    return np.stack([ranges[:, 0], ranges.sum(axis=1)], axis=1)


def _spans_of_code(image: Image) -> Spans:
    """The code regions, without that of a 32-bit start if there is another."""
    start32, found = startup32(image), image.code_regions
    if len(found) > 1:
        found = tuple(region for region in found if region != start32)
    return np.array([(region.address, region.address + region.size) for region in found], np.uint64)


def _without_data(code: Spans, functions: Spans, objects: Spans) -> Spans:
    """`code` without regions that are mostly data by their symbols (.data of Linux, executable because of one page):
    these have no code but what is named."""
    return code[_within(code, objects) <= _within(code, functions)]


def _within(regions: Spans, spans: Spans) -> NDArray[np.uint64]:
    """The size of what begins in each region; both ascending."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(spans[:, 1] - spans[:, 0], dtype=np.uint64)])
    first, last = (total[np.searchsorted(spans[:, 0], regions[:, side])] for side in (0, 1))
    size: NDArray[np.uint64] = last - first
    return size


def _merged(labels: NamedFunctions, named: NamedFunctions, found: Discovered) -> Functions:
    """Named functions first: what was discovered at one's start, or inside one, is that one."""
    spans = np.stack([named.address, named.end], axis=1)
    inside = covered(spans, found.address) | is_in(found.address, named.address)
    extra = np.flatnonzero(~inside)
    address = np.concatenate([named.address, found.address[extra]])
    end = np.concatenate([named.end, found.end[extra]])
    symbol = np.full(len(named.address), Evidence.SYMBOL, np.uint8)
    evidence = np.concatenate([symbol, found.evidence[extra]])
    order = np.argsort(address, kind="stable")
    address, end, evidence = address[order], end[order], evidence[order]
    # A discovered function may end where a named one has begun already.
    end = np.minimum(end, np.append(address[1:], np.uint64(2**64 - 1)))
    kept = end > address
    address, end, evidence = address[kept], end[kept], evidence[kept]
    names, aliases = _named(labels, address)
    return Functions(address, end - address, evidence, names, aliases, found.strict)


def _named(labels: NamedFunctions, address: NDArray[np.uint64]) -> tuple[tuple[str, ...], dict[int, tuple[str, ...]]]:
    rows = np.searchsorted(labels.address, address)
    has_name = is_in(address, labels.address)
    names, aliases = [], {}
    for at, (row, is_known, place) in enumerate(zip(rows.tolist(), has_name.tolist(), address.tolist(), strict=True)):
        names.append(labels.names[row] if is_known else invented_name(place))
        if is_known and row in labels.aliases:
            aliases[at] = labels.aliases[row]
    return tuple(names), aliases

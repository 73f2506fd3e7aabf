"""An image -> what of it is mapped only for alignment: gaps that nobody uses.

A kernel maps itself and nothing after it, so what is added must be inside. Linux for amd64 has such gaps: its entry
code begins at a multiple of 2 MiB and is followed by another, and so does a part of .bss. Linux for arm64 has less: its
code and its memory are padded to a multiple of 64 KiB. Linux for riscv64 pads its code to a multiple of 2 MiB, and its
memory to a page.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from kinst.rewriter.planning.slots import CHUNK
from kinst.targets.elf.header import PF_X, PT_LOAD, SHF_ALLOC, SHF_WRITE, SHT_NOBITS
from kinst.targets.functions.found import Functions
from kinst.targets.image import Image
from kinst.targets.module_code import code_of
from kinst.targets.values import dataclass

LEAST: Final = 1 << 16  # bytes: shorter gaps are not taken for alignment of a kernel's parts
_ALIGNMENT: Final = 64  # of data: a cache line
_CLOSING: Final = ("_end", "_stop", "_stack")  # how labels after something end
# Up to where Linux maps code for good: on arm64; on riscv64, where the first label is right after the code.
_CODE_ENDS: Final = ("_etext", "__init_text_begin")
_PAGE: Final = 1 << 12
_MARGIN: Final = 512  # bytes at both ends: the long jump of a relayed site may be there

Gap = tuple[int, int]  # its first address, and the first one after it


@dataclass(frozen=True, slots=True)
class SpareSpace:
    """Gaps for code that are in the file, in address order; the one that is mapped with the code but not in the file;
    and gaps for data, the largest first."""

    code: tuple[Gap, ...]
    unfiled: Gap | None
    data: tuple[Gap, ...]

    def data_place(self, size: int) -> int | None:
        """Where `size` bytes of data fit; None if nowhere."""
        places = ((start + -start % _ALIGNMENT, end) for start, end in self.data)
        return next((start for start, end in places if start + size <= end), None)

    def has(self, address: int, size: int) -> bool:
        """Whether these bytes are in a gap for data."""
        return any(start <= address and address + size <= end for start, end in self.data)


def code_gaps(image: Image, functions: Functions) -> tuple[Gap, ...]:
    """The gaps in the file, between functions and after the last of them, in address order."""
    gap = _gap_after_code(image)
    is_zero = gap is not None and _is_loaded(image, gap) and not any(image.read(gap[0], gap[1] - gap[0]))
    return tuple(sorted({*_filled(image, functions), *([gap] if gap and is_zero else ())}))


def unfiled_gap(image: Image) -> Gap | None:
    """The gap after the last function, if it is mapped but not in the file."""
    gap = _gap_after_code(image)
    return gap if gap and not _is_loaded(image, gap) else None


def _is_loaded(image: Image, gap: Gap) -> bool:
    """Whether a segment's bytes in the file overlap it."""
    return any(
        one.address < gap[1] and gap[0] < one.address + one.file_size for one in image.segments if one.kind == PT_LOAD
    )


def _filled(image: Image, functions: Functions) -> tuple[Gap, ...]:
    """Long runs of one-byte breakpoints, with which linkers fill code; machines without such a breakpoint have none."""
    breakpoint_ = image.facts.breakpoints.get(1)
    if breakpoint_ is None:
        return ()
    found = []
    for region in image.code_regions:
        is_filler = code_of(image, region) == breakpoint_[0]
        edges = np.flatnonzero(np.diff(is_filler, prepend=False, append=False))
        for start, end in edges.reshape(-1, 2).tolist():
            gap = region.address + start + _MARGIN, region.address + end - _MARGIN
            if end - start >= LEAST and not _is_entered(functions, gap):
                found.append(gap)
    return tuple(found)


def _is_entered(functions: Functions, gap: Gap) -> bool:
    """Whether a function begins in it: then it is code, if only of breakpoints. One may end in it, by the size of its
    symbol."""
    first, last = np.searchsorted(functions.address, np.array(gap, np.uint64)).tolist()
    return bool(first < last)


def _gap_after_code(image: Image) -> Gap | None:
    """From the last section of code to a label up to which kernels map code: it is in no section, so nothing refers to
    it except by that label."""
    labels = (image.symbols.address_of(name) for name in _CODE_ENDS)
    end = next((label for label in labels if label is not None and label % LEAST == 0), None)
    if end is None:
        return None
    ends = [one.address + one.size for one in image.sections if one.flags & SHF_ALLOC and one.address < end]
    last = max(ends, default=end)
    start = last + -last % CHUNK
    is_code = any(
        one.flags & PF_X and one.address < last <= one.address + one.size
        for one in image.segments
        if one.kind == PT_LOAD
    )
    return (start, end) if is_code and start < end else None


def data_gaps(image: Image) -> tuple[Gap, ...]:
    """Writable memory that belongs to nothing; the largest first."""
    return tuple(sorted({*_paddings(image), *_gap_after_data(image)}, key=lambda one: one[0] - one[1]))


def _gap_after_data(image: Image) -> Iterator[Gap]:
    """From the last label of a kernel to ``_end``, up to which it maps and keeps memory. The label must end a range, or
    a stack, which grows away from it: after one that begins a range, the gap would be that range."""
    symbols, end = image.symbols, image.symbols.address_of("_end")
    if end is None or end % _PAGE or not len(image.segments):
        return
    below = symbols.address[symbols.address < np.uint64(end)]
    last = int(below.max(initial=0))
    names = symbols.names(np.flatnonzero(symbols.address == np.uint64(last)))
    if end - last < LEAST and any(name.endswith(_CLOSING) for name in names):
        yield last, end


def _paddings(image: Image) -> Iterator[Gap]:
    """Between an object of .bss and a multiple of `LEAST`. Not after a label: a name without a size begins a range of
    somebody's."""
    symbols = image.symbols
    if not len(symbols.address):
        return
    order = np.lexsort((symbols.size, symbols.address))
    start, size = symbols.address[order], symbols.size[order]
    end = np.maximum.accumulate(start + size)
    # `end` is the furthest end so far: objects may lie inside others.
    for row in np.flatnonzero((start[1:] > end[:-1]) & (start[1:] - end[:-1] >= np.uint64(LEAST))).tolist():
        first, last = int(end[row]), int(start[row + 1])
        owner = int(np.flatnonzero((start + size)[: row + 1] == end[row])[-1])
        is_padding = last % LEAST == 0 and size[owner] > 0
        if is_padding and any(
            one.kind == SHT_NOBITS and one.flags & SHF_WRITE and one.address <= first and last <= one.address + one.size
            for one in image.sections
        ):
            yield first, last


def from_address(gaps: Sequence[Gap], address: int) -> tuple[Gap, ...]:
    """The parts of gaps from an address on, which must be in one of them; else none."""
    if not any(start <= address < end for start, end in gaps):
        return ()
    return tuple((max(start, address), end) for start, end in gaps if address < end)

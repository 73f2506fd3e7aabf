"""A program -> the addresses to which control may come other than from the instruction before.

No jump may cover them. Whatever looks like an address of code counts: a missed jump costs a trap, a wrong one crashes
the guest. Only computed jumps whose destination is added up in an unknown way escape: `Landings.unknown` lists them.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.references import references
from kinst.rewriter.jumps.switches import where_jumps_go
from kinst.rewriter.program import Program
from kinst.targets.arch.linux import JUMP_LABEL_LAYOUTS, JUMP_LABELS
from kinst.targets.columns import is_one_of
from kinst.targets.elf.header import PT_LOAD, FileKind
from kinst.targets.functions.sweeping import Swept
from kinst.targets.image import Image
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.kernels.exception_table import expected_faults
from kinst.targets.kernels.kernel_tables import record_addresses, records_of, table_place
from kinst.targets.module_code import code_of
from kinst.targets.values import dataclass

Addresses = NDArray[np.uint64]
_DIRECT: Final = (Flow.JUMP, Flow.BRANCH, Flow.CALL)
_HIGHEST_HALF: Final = 0xFFFF_FFFF_8000_0000  # above it 4 bytes, sign-extended, hold an address


@dataclass(frozen=True, slots=True)
class Landings:
    """Addresses in code, ascending, without duplicates; and the rows of indirect jumps that may go anywhere in their
    function."""

    addresses: Addresses
    unknown: NDArray[np.intp]


def landings(program: Program, found: Instructions, between: Swept) -> Landings:
    """The addresses that control may come to.

    Args:
        program: the image.
        found: all instructions of its functions.
        between: what stands between its functions.
    """
    image = program.image
    parts = [
        program.functions.address,
        image.symbols.address,
        *(one.target[is_one_of(one.flow, _DIRECT)] for one in (found, between.instructions)),
        *_in_tables(image),
        *_in_data(image),
    ]
    for region in image.code_regions if image.facts.jump.joins else ():
        first, end = np.searchsorted(found.address, (region.address, region.address + region.size))
        places = found.address[first:end], found.size[first:end]
        parts += references(image.facts)(code_of(image, region), region.address, *places)
    addresses = _in_code(image, parts)
    unknown, entries = where_jumps_go(program, found, addresses)
    # A table's entries are branch targets, too. One may lie between the instructions by which a jump was understood,
    # and then that jump is not understood any more: so the second look.
    if entries:
        addresses = _in_code(image, [addresses, *entries])
        unknown, _ = where_jumps_go(program, found, addresses)
    return Landings(addresses, unknown)


def _in_code(image: Image, parts: Sequence[Addresses]) -> Addresses:
    """Those of the addresses that are in code, ascending, without duplicates."""
    found, regions = [], image.code_regions
    low = min((one.address for one in regions), default=0)
    size = np.uint64(max((one.address + one.size for one in regions), default=0) - low)
    # Most of an image's words are no addresses in it: they are sorted out once, and not for each region.
    parts = [part[part - np.uint64(low) < size] for part in parts]
    for region in regions:
        is_one = np.zeros(region.size, np.bool_)
        for part in parts:
            offset = part - np.uint64(region.address)
            is_one[offset[offset < np.uint64(region.size)]] = True  # below the start it wraps round
        found.append(np.flatnonzero(is_one).astype(np.uint64) + np.uint64(region.address))
    every = np.concatenate([np.zeros(0, np.uint64), *found])
    aligned: Addresses = every[every % np.uint64(image.facts.instruction_alignment) == 0]
    return aligned


def _in_tables(image: Image) -> Iterator[Addresses]:
    """What is stored as a distance: where the kernel resumes after a fault, and where static keys jump."""
    yield expected_faults(image).fixup
    place = None if image.kind is FileKind.REL else table_place(image, *JUMP_LABELS)
    for layout in JUMP_LABEL_LAYOUTS if place is not None else ():
        if place is not None and place[1] % layout.size == 0:
            yield record_addresses(image, *records_of(image, place, layout.size), layout.target)


def _in_data(image: Image) -> Iterator[Addresses]:
    """What relocations store, which in a position-independent image is every pointer; else every word of what is
    loaded.

    A program linked to a fixed address has such relocations for its IFUNCs only.
    """
    yield image.relocations.pointers
    if image.kind is FileKind.DYN and image.relocations.relative.any():
        return
    is_high = all(region.address >= _HIGHEST_HALF for region in image.code_regions)
    for segment in image.segments:
        if segment.kind != PT_LOAD:
            continue
        start = segment.offset + -segment.address % 8
        content = image.data[start : segment.offset + segment.file_size]
        yield content[: len(content) // 8 * 8].view("<u8")
        if is_high:
            yield content[: len(content) // 4 * 4].view("<i4").astype(np.int64).view(np.uint64)

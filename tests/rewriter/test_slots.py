"""Where trampolines go and which slot each site gets."""

import numpy as np
import pytest

from kinst.rewriter.slots import CHUNK, GRANULE, Placement, bytes_needed, place, trampoline_alloc
from kinst.targets.arch.registry import ARCHES
from kinst.targets.errors import PlacementError
from kinst.targets.image import Segment

GIB = 1 << 30


def load(address: int, size: int, load_address: int | None = None, index: int = 0) -> Segment:
    return Segment(index, 1, 5, 0, address, address if load_address is None else load_address, size, size, CHUNK)


@pytest.mark.parametrize("facts", ARCHES, ids=lambda facts: facts.name)
def test_slots_fill_whole_chunks_without_straddling_one(facts: object) -> None:
    size = facts.slot_size  # type: ignore[attr-defined]
    assert CHUNK % size == 0, "the segment is an array of slots"
    placement = Placement(0x1_0000, 0x1_0000, bytes_needed(1000, size))
    slots = trampoline_alloc(placement, size, 1000)
    assert len(np.unique(slots)) == 1000
    assert (slots % size == 0).all() and ((slots % CHUNK) + size <= CHUNK).all()
    assert slots[0] == placement.address and slots[-1] + size <= placement.end
    assert placement.end - int(slots[-1]) <= CHUNK


def test_taken_slots_stay_and_the_lowest_free_ones_are_given() -> None:
    placement = Placement(0x1000, 0x1000, 2 * CHUNK)
    taken = np.array([0x1000, 0x1020, 0x1060], np.uint64)
    assert trampoline_alloc(placement, 32, 2, taken).tolist() == [0x1040, 0x1080]
    with pytest.raises(PlacementError, match="256 slots needed, 253 free"):
        trampoline_alloc(placement, 32, 256, taken)


def test_the_default_is_the_end_of_the_window_but_for_its_last_pages() -> None:
    assert place([load(0x8000_0000, 0x1000)], 0x8000_0000, 0x3000, 2 * GIB) == Placement(
        0xFFFE_0000, 0xFFFE_0000, 0x3000
    )
    assert place([load(0, 0x1000)], 0, 1, 2 * GIB) == Placement(0x7FFE_0000, 0x7FFE_0000, CHUNK)


def test_it_does_not_wrap_at_the_top_of_the_address_space() -> None:
    kernel = load(0xFFFF_FFFF_8000_0000, 0x100_0000, 0x20_0000)
    placed = place([kernel], kernel.address, 0x5000, 2 * GIB)
    assert placed.end <= 2**64 - GRANULE and placed.address == 0xFFFF_FFFF_FFFE_0000
    assert placed.address - placed.load_address == kernel.address - kernel.load_address


def test_a_segment_at_the_end_of_the_window_moves_it_down() -> None:
    code, last = load(0x8000_0000, 0x1000), load(0xFFF0_0000, 0x10_0000, index=1)
    assert place([code, last], 0x8000_0000, 0x3000, 2 * GIB).address == 0xFFEF_0000


def test_a_load_address_in_use_moves_it_too() -> None:
    """Linked 0xffffffff00000000 above where it is loaded, and something else is loaded where that leads."""
    code = load(0xFFFF_FFFF_8000_0000, 0x1000, 0x8000_0000)
    other = load(0x10_0000, 0x10_0000, 0xFFF0_0000, index=1)
    placed = place([code, other], code.address, 0x3000, 2 * GIB)
    assert placed.load_address + placed.size <= 0xFFF0_0000


def test_a_full_window_says_so() -> None:
    with pytest.raises(PlacementError, match="--trampoline-base"):
        place([load(0x8000_0000, 2 * GIB - GRANULE)], 0x8000_0000, 0x3000, 2 * GIB)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (0x8000_0800, "not a multiple"),
        (0x8000_1000, "overlap segment 0"),
        (0x7FFF_F000, "overlap segment 0"),
        (0x9000_1000, "over segment 1"),
        (2**64 - 0x1000, "end of the address space"),
        (-0x1000, "end of the address space"),
    ],
)
def test_a_base_that_cannot_be_is_refused(base: int, message: str) -> None:
    segments = [load(0x8000_0000, 0x2000), load(0x1000, 0x2000, 0x9000_0000, index=1)]
    with pytest.raises(PlacementError, match=message):
        place(segments, 0x8000_0000, 0x2000, 2 * GIB, base)


def test_a_base_of_the_users_is_taken_as_it_is() -> None:
    segments = [load(0x8000_0000, 0x2000, 0x1000)]
    assert place(segments, 0x8000_0000, 0x2000, 2 * GIB, 0x8000_2000) == Placement(0x8000_2000, 0x3000, 0x2000)

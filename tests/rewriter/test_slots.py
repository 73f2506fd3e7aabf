"""Where trampolines go and which slot each site gets."""

import numpy as np
import pytest

from kinst.rewriter.planning.slots import CHUNK, GRANULE, Placement, place, trampoline_alloc
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
    offsets, whole = trampoline_alloc(np.ones(1000, np.uint8), size)
    assert np.array_equal(offsets, np.arange(1000) * size)
    assert whole % CHUNK == 0 and 0 <= whole - 1000 * size < CHUNK
    assert trampoline_alloc(np.ones(0, np.uint8), size)[1] == 0


@pytest.mark.parametrize("seed", range(4))
def test_trampolines_of_several_slots_are_in_one_chunk_each(seed: int) -> None:
    counts = np.random.default_rng(seed).choice(np.array([1, 2], np.uint8), 3000, p=(0.8, 0.2))
    offsets, whole = trampoline_alloc(counts, 16)
    ends = offsets.astype(np.int64) + 16 * counts
    assert (offsets // CHUNK == (ends - 1) // CHUNK).all()
    between = offsets[1:].astype(np.int64) - ends[:-1]
    assert set(between.tolist()) == {0, 16}, "a slot is left free only at the end of a chunk"
    assert (ends[:-1][between > 0] % CHUNK == CHUNK - 16).all() and (counts[1:][between > 0] == 2).all()
    assert whole % CHUNK == 0 and 0 <= whole - ends[-1] < CHUNK


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

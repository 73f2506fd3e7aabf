"""Relocation tables: RELR against an entry-by-entry reading of the specification, sizes, pointers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kinst.targets.elf.relocations import relr_table
from kinst.targets.image import open_image
from tests.images import real_image


def one_by_one(words: list[int]) -> list[int]:
    """gABI, "Relative Relocation Table", as it is told there."""
    places, base = [], 0
    for word in words:
        if word & 1 == 0:
            places.append(word)
            base = word + 8
            continue
        places += [base + 8 * (bit - 1) for bit in range(1, 64) if word >> bit & 1]
        base += 63 * 8
    return places


WORDS = st.lists(
    st.one_of(st.integers(0, 1 << 48).map(lambda n: n * 8), st.integers(0, (1 << 63) - 1).map(lambda n: n * 2 + 1))
)


@given(WORDS)
def test_relr(tail: list[int]) -> None:
    words = [0x1000, *tail]
    found = relr_table(np.array(words, "<u8").view(np.uint8))
    assert sorted(found.address.tolist()) == sorted(place & (1 << 64) - 1 for place in one_by_one(words))
    assert set(found.size.tolist()) == {8}


def test_an_empty_relr_table() -> None:
    assert len(relr_table(np.zeros(0, np.uint8)).address) == 0


def test_pointers_of_a_position_independent_firmware_are_its_own_addresses() -> None:
    image = open_image(real_image("opensbi-1.6"))
    pointers = image.relocations.pointers
    end = max(segment.address + segment.size for segment in image.segments)
    assert len(pointers) > 200
    assert int(pointers.max()) < end
    places = image.relocated
    assert (places[1:, 0] >= places[:-1, 0] + places[:-1, 1]).all()
    assert set(places[:, 1].tolist()) == {8}

"""Stack pointers -> stacks: by unmapped pages, by the size the image tells, by how far frames reach."""

import random

import numpy as np
import pytest

from kinst.runtime.unwinding.stack_regions import StackRegions, stack_size
from kinst.targets.elf.symbols import Symbols
from kinst.targets.image import open_image
from tests.images import at_hand, real_image

BASE = 0xFFFF_C900_0000_0000


def never() -> int:
    raise AssertionError("frames are followed only where nothing else tells")


def symbols(*rows: tuple[str, int, int]) -> Symbols:
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in rows)
    count = len(rows)
    return Symbols(
        address=np.array([address for _, address, _ in rows], np.uint64),
        size=np.array([size for _, _, size in rows], np.uint64),
        kind=np.zeros(count, np.uint8),
        binding=np.ones(count, np.uint8),
        section=np.ones(count, np.uint16),
        name=np.array([names.index(name.encode() + b"\0") for name, _, _ in rows], np.uint64),
        strings=names,
    )


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        ((("__start_init_stack", 0x10000, 0), ("init_stack", 0x10000, 0), ("__end_init_stack", 0x14000, 0)), 0x4000),
        (
            (("init_stack", 0x10000, 0), ("__top_init_kernel_stack", 0x13F58, 0), ("__end_init_stack", 0x14000, 0)),
            0x4000,
        ),
        ((("init_thread_union", 0x10000, 0x2000), ("init_task", 0x10100, 64)), 0x2000),
        ((("init_stack", 0x11000, 0), ("next", 0x13000, 0)), None),  # not at a multiple of its size
        ((("init_stack", 0x10000, 0), ("next", 0x13000, 0)), None),  # no power of two
        ((("boot_stack", 0x10000, 0x4000),), None),
        ((), None),
    ],
)
def test_what_an_image_says_of_its_stacks(rows: tuple[tuple[str, int, int], ...], size: int | None) -> None:
    assert stack_size(symbols(*rows)) == size


@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-arm64", "linux-riscv64", "xen-arm64"))
def test_linux_says_it(name: str) -> None:
    assert stack_size(open_image(real_image(name)).symbols) == (16384 if name.startswith("linux") else None)


@pytest.mark.parametrize("size", [None, 0x4000])
def test_between_unmapped_pages(size: int | None) -> None:
    """Stacks of four pages with one between, not at multiples of their size."""
    stacks = [range(BASE + 0x1000 + 0x5000 * number, BASE + 0x5000 + 0x5000 * number) for number in range(3)]
    regions = StackRegions(lambda address: any(address in stack for stack in stacks), size)
    for stack in stacks:
        for sp in (stack.stop, stack.stop - 8, stack.start + 0x1008, stack.start + 8):
            assert regions.of(sp, never) == stack.start


def test_where_all_is_mapped_the_size_counts() -> None:
    regions = StackRegions(lambda _address: True, 0x4000)
    assert [regions.of(BASE + sp, never) - BASE for sp in (8, 0x4000, 0x4008, 0x7FF8, 0x8000)] == [
        0,
        0,
        0x4000,
        0x4000,
        0x4000,
    ]


def test_a_page_is_looked_at_once() -> None:
    """Each look walks the guest's tables: a probe that fires a million times cannot afford it."""
    looks: list[int] = []

    def is_mapped(address: int) -> bool:
        looks.append(address)
        return True

    regions = StackRegions(is_mapped, None)
    for depth in range(8, 0x1000, 8):
        regions.of(BASE + 0x1000 - depth, lambda: BASE + 0x1000)
    assert 0 < len(looks) < 100


def test_frames_tell_the_rest() -> None:
    """Two stacks of 2 KiB side by side, whose extent nobody told."""
    regions = StackRegions(lambda _address: True, None)
    upper, lower = BASE + 0x1000, BASE + 0x800
    first = regions.of(upper - 0x100, lambda: upper)
    assert regions.of(upper - 8, never) == first
    assert regions.of(upper - 0x200, lambda: upper) == first
    second = regions.of(lower - 0x400, lambda: lower)
    assert second != first
    assert regions.of(lower - 0x10, never) == second
    # An exception's frames end at what it interrupted: right below what is known of the stack.
    assert regions.of(upper - 0x500, lambda: upper - 0x400) == first


def test_what_is_known_is_what_would_be_answered() -> None:
    """Parts of a stack turn out to be one when its frames are followed further."""
    draw, regions = random.Random(1), StackRegions(lambda _address: True, None)
    for _ in range(300):
        sp = BASE + 8 * draw.randrange(0x8000)
        regions.of(sp, lambda sp=sp: sp + 8 * draw.randrange(0x400))  # type: ignore[misc]
        assert sp in regions.known
        assert all(regions.of(known, never) == stack for known, stack in list(regions.known.items()))


def test_around_a_stack_pointer_the_answer_is_the_same() -> None:
    pages = StackRegions(lambda address: BASE <= address < BASE + 0x4000, None)
    assert pages.around(BASE + 0x1800) is None  # nobody asked
    pages.of(BASE + 0x1800, never)
    assert pages.around(BASE + 0x1001) == pages.around(BASE + 0x2000) == (BASE + 0x1000, BASE + 0x2000)
    assert pages.around(BASE + 0x2001) is None

    frames, changes = StackRegions(lambda _address: True, None), list[str]()
    frames.on_change(lambda: changes.append("changed"))
    upper = frames.of(0x1F80, lambda: 0x2F00)
    assert (frames.around(0x1F80), frames.around(0x2F00)) == ((0x1F7F, 0x2000), None)
    assert frames.of(0x1E80, lambda: 0x1F90) == upper  # it is deeper now
    assert frames.around(0x1F80) == (0x1E7F, 0x2000)
    other = frames.of(0x1200, lambda: 0x1300)
    assert other != upper
    assert changes == []

    assert frames.of(0x1100, lambda: 0x1F00) == upper  # what seemed to be another stack is not
    assert (changes, frames.around(0x1250)) == (["changed"], (0x10FF, 0x2000))
    assert frames.around(0) is None

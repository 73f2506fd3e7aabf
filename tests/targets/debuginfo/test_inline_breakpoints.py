"""Entries of inlined copies against the breakpoints that gdb sets in them."""

import random
from collections.abc import Collection
from pathlib import Path

import pytest

from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.elf.file import open_elf
from tests.images import at_hand, real_image
from tests.samples.machines import MACHINES
from tests.targets.debuginfo.breakpoints import debugger, outside_of_copies, unlike
from tests.targets.debuginfo.whole_dump import copy_counts

SEED, DRAWN = 4, 20
KERNELS = at_hand("linux-amd64", "linux-arm64", "linux-riscv64")


def compare(image: Path, functions: Collection[str]) -> tuple[int, int]:
    """How many copies were compared, and how many of them gdb enters where we do; all else must be equal."""
    search, gdb = InlineSearch(open_elf(image)), debugger()
    found, outside = gdb.locations(image, functions), outside_of_copies(image, functions)
    compared = agreed = 0
    for function in functions:
        copies = [copy for one in search.find(function) for copy in one.copies]
        assert not unlike(found[function], {gdb.entry(copy) for copy in copies}, outside[function]), function
        compared += len(copies)
        agreed += sum(copy.entry in found[function] for copy in copies)
    return compared, agreed


@pytest.mark.long  # the gate has the samples
def test_every_function_of_gnu_mach() -> None:
    image = real_image("gnumach")
    compared, agreed = compare(image, copy_counts(image).keys())
    assert compared > 1500
    assert agreed > compared * 0.6


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_every_function_of_the_sample(machine: str) -> None:
    image = MACHINES[machine].image
    compared, agreed = compare(image, InlineSearch(open_elf(image)).names("*"))
    assert agreed == compared > 100


@pytest.mark.long
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_draw_of_functions(kernel: str) -> None:
    """gdb reads only the units that have them; `tests.rewriter.test_inline_kernels` asks it for the most common."""
    image = real_image(kernel)
    functions = random.Random(SEED).sample(sorted(copy_counts(image)), DRAWN)
    compared, _ = compare(image, functions)
    assert compared >= DRAWN

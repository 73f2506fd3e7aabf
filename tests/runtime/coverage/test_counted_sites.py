"""Counts at some instructions -> what is said of all: never anything wrong, and all of it where all are counted."""

import random
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime.coverage.counted_sites import counted_at_sites
from kinst.runtime.coverage.document import CoveredImage, Granularity
from kinst.targets.arch.registry import NAMES
from tests.runtime.coverage.test_what_ran import CALL, counts, run

SAMPLES = Path(__file__).parents[3] / "samples"


def listed(image: CoveredImage) -> dict[int, int]:
    """Runs by the address of the instruction: of what is listed by instructions."""
    return {one.address + block.offset: block.runs for one in image.ran for block in one.blocks if block.runs}


@pytest.mark.turns
@pytest.mark.parametrize("arch", NAMES)
def test_what_is_said_is_what_ran(arch: str, tmp_path: Path) -> None:
    compare(arch, counts(run(arch, tmp_path / "a.json", "--call", CALL, "--coverage-of", "instructions")))


@pytest.mark.long
@pytest.mark.parametrize("arch", NAMES)
def test_what_is_said_of_a_whole_run_is_what_ran(arch: str, tmp_path: Path) -> None:
    compare(arch, counts(run(arch, tmp_path / "a.json", "--coverage-of", "instructions")))


def compare(arch: str, truth: dict[int, int]) -> None:
    """Some of the instructions are counted."""
    program = open_source(Source(SAMPLES / f"kernel-{arch}.elf")).program
    draw = random.Random(3)
    # Of amd64's repeated string instructions our machine counts each iteration: no site does.
    repeated = {at for at in truth if arch == "amd64" and program.image.read(at, 1)[0] in (0xF2, 0xF3)}
    truth = {at: runs for at, runs in truth.items() if at not in repeated}
    functions = zip(program.functions.address.tolist(), program.functions.size.tolist(), strict=True)
    parts = [range(start, start + size) for start, size in functions]
    everywhere = sorted({*truth, *(at for part in parts if any(at in part for at in truth) for at in part)} - repeated)
    for part in (1.0, 0.6, 0.1):
        sites = np.array([at for at in everywhere if draw.random() < part], np.uint64)
        runs = np.array([truth.get(at, 0) for at in sites.tolist()], np.int64)
        found = counted_at_sites(program, sites, runs, Granularity.INSTRUCTIONS)
        unknown = {at for start, size in found.unknown for at in range(start, start + size)}
        said = {at: runs for at, runs in listed(found).items() if at not in repeated}
        assert {at: runs for at, runs in said.items() if truth.get(at) != runs} == {}
        assert {at for at in truth if at not in said} <= unknown
        if part == 1.0:
            assert said == truth


def test_functions_without_a_site_are_unknown() -> None:
    program = open_source(Source(SAMPLES / "kernel-arm64.elf")).program
    functions = program.functions
    starts = functions.address[1:4].astype(np.uint64)
    image = counted_at_sites(program, starts, np.array([5, 0, 2]), Granularity.FUNCTIONS)
    assert [(one.name, one.runs, one.rank) for one in image.ran] == [
        (functions.names[1], 5, 1),
        (functions.names[3], 2, 2),
    ]
    assert len(image.unknown) == len(functions) - 3
    assert not {int(at) for at in starts} & {start for start, _ in image.unknown}

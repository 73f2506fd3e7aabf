"""Every probe fires exactly as often as its instruction is executed, by the count of a hook in raw Unicorn on the plain
image; a return probe as often as control leaves the function, by the steps that the hook saw and capstone's decoding,
but for tail calls that have not returned when the run ends.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.targets.manifest.packed import Manifest
from tests.system.cases import Case, each_sample_and
from tests.system.control import Way, repetitions, steps, way_at
from tests.system.plain import Plain, drawn_probes, manifest_of, plain_run
from tests.system.runs import Run, run


def on(*images: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", each_sample_and(*images), ids=lambda case: case.image)


@on()  # each instruction of the samples, and entries of an image that we did not make
def test_every_instruction_of_drawn_functions(case: Case) -> None:
    plain = plain_run(case)
    patched = run(case, drawn_probes(case))
    addresses = np.ascontiguousarray(patched.manifest.sites["address"])
    executions = plain.executed(addresses) - repetitions(case, addresses)
    assert_equal(patched, hits(patched, plain), executions, [])


@on("gnumach")
@pytest.mark.each_machine
def test_entry_of_all_functions(case: Case) -> None:
    plain = plain_run(case)
    patched = run(case, ["fbt:::entry"])
    manifest = patched.manifest
    addresses = np.ascontiguousarray(manifest.sites["address"])
    found = hits(patched, plain)
    assert_equal(patched, found, plain.executed(addresses), [])
    # Behind a landing pad the probe is not at the function's first instruction, but as often.
    starts = np.ascontiguousarray(manifest.functions["address"][manifest.sites["function"]])
    assert_equal(patched, found, plain.executed(starts), [])


@on()  # of larger images the gate has which sites there are, below
def test_return_of_all_functions(case: Case) -> None:
    plain = plain_run(case)
    patched = run(case, ["fbt:::return"])
    leaving, unsure = departures(case, plain, patched.manifest)
    assert patched.guest.code is not None
    patched.hits.update((site, 0) for site in patched.guest.code.pending_returns.sites())
    assert_equal(patched, hits(patched, plain), leaving, unsure)


def hits(patched: Run, plain: Plain) -> NDArray[np.int64]:
    """Firings at each site, in the image and in copies of it; none may be anywhere else."""
    links = {address: row for row, address in enumerate(patched.manifest.sites["address"].tolist())}
    found = np.zeros(len(links), np.int64)
    for (address, _), count in patched.hits.items():
        rows = [links[address - distance] for distance in plain.distances if address - distance in links]
        assert len(rows) == 1, f"a probe fired at {address:#x}, where there is none"
        found[rows[0]] += count
    return found


def assert_equal(patched: Run, found: NDArray[np.int64], wanted: NDArray[np.int64], unsure: Sequence[int]) -> None:
    """Equal at each site, but for the rows in `unsure`."""
    manifest = patched.manifest
    wrong = np.setdiff1d(np.flatnonzero(found != wanted), np.array(unsure, np.int64))
    assert [
        f"{manifest.function_name(int(site['function']))} at {int(site['address']):#x}: {found[row]} hits, "
        f"{wanted[row]} executions"
        for row, site in zip(wrong.tolist(), manifest.sites[wrong], strict=True)
    ] == []
    assert found.sum() > 1000
    assert len(unsure) <= len(found) // 100


# -- where control leaves a function ----------------------------------------------------------------------------------


def departures(case: Case, plain: Plain, manifest: Manifest) -> tuple[NDArray[np.int64], list[int]]:
    """How often control left the function at each site; and the rows of sites where that is not sure, because an
    interrupt came between a jump that need not leave and where it leads."""
    seen = steps(case)
    addresses = np.ascontiguousarray(manifest.sites["address"])
    leaving, unsure = plain.executed(addresses), []
    for row, address in enumerate(addresses.tolist()):
        if way_at(case, address) is not Way.MAYBE:
            continue
        function = manifest.functions[manifest.sites["function"][row]]
        mine = seen.before == address
        outside = mine & (seen.after - function["address"] >= function["size"])
        leaving[row] = seen.count[outside & ~seen.is_interrupted].sum()
        if (mine & seen.is_interrupted).any():
            unsure.append(row)
    return leaving, unsure


@on("opensbi-1.6", "gnumach")
def test_control_leaves_a_function_only_where_it_has_return_sites(case: Case) -> None:
    """Of those that have any: but by calls and into interrupts."""
    manifest = manifest_of(case, "fbt:::return")
    seen = steps(case)
    returning = np.unique(manifest.sites["function"])
    functions = manifest.functions[returning]
    order = np.argsort(functions["address"])
    starts = functions["address"][order]
    ends = starts + functions["size"][order]
    at = np.searchsorted(starts, seen.before, "right") - 1
    inside = (at >= 0) & (seen.before < ends[at])
    leaves = inside & ((seen.after < starts[at]) | (seen.after >= ends[at]) | (seen.ways == Way.RETURN))
    by_itself = ((seen.ways == Way.RETURN) | (seen.ways == Way.JUMP) | (seen.ways == Way.MAYBE)) & ~seen.is_interrupted
    missed = leaves & by_itself & ~np.isin(seen.before, manifest.sites["address"])
    assert [
        f"{int(seen.before[row]):#x} {seen.texts[row]} -> {int(seen.after[row]):#x}, {seen.count[row]} times"
        for row in np.flatnonzero(missed).tolist()
    ] == []

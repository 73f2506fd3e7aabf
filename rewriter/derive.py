"""An unpatched image and a manifest -> the instructions at the manifest's sites, decoded again from the original."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.dissector import Dissector
from kinst.targets.image import CodeRegion, Image
from kinst.targets.instruction import Instructions
from kinst.targets.manifest.packed import Manifest
from kinst.targets.module_code import code_of

_BATCH = 1 << 26  # as in `program`


def site_instructions(image: Image, dissector: Dissector, manifest: Manifest) -> Instructions:
    """One row per site; `function` is a row of the manifest. A site that is no instruction has size 0. Sites are
    deferred if the manifest says so: nothing was patched there."""
    sites = manifest.sites
    found = Instructions(
        address=sites["address"].copy(),
        target=np.zeros(len(sites), np.uint64),
        function=sites["function"].astype(np.int32),
        **{name: np.zeros(len(sites), np.uint8) for name in ("size", "kind", "flow", "verdict", "reason")},
    )
    for region in image.code_regions:
        for rows in _passes(manifest, region):
            for batch in _batches(manifest, region, rows):
                _fill(found, manifest, batch, _dissect(image, dissector, manifest, region, batch))
    for name in ("verdict", "flow"):
        getattr(found, name)[manifest.is_deferred] = sites[name][manifest.is_deferred]
    return found


def _passes(manifest: Manifest, region: CodeRegion) -> Iterator[NDArray[np.intp]]:
    """The functions of a region in address order, in sets within which no two overlap.

    Aliases have the same bounds; a rewriting with other symbols may have had other bounds.
    """
    functions = manifest.functions
    inside = np.flatnonzero(functions["address"] - np.uint64(region.address) < np.uint64(region.size))
    return (inside[rows] for rows in disjoint(functions["address"][inside], functions["size"][inside]))


def disjoint(address: NDArray[np.uint64], size: NDArray[np.uint64]) -> Iterator[NDArray[np.intp]]:
    """Rows of ranges in address order, in sets within which no two overlap."""
    order = np.lexsort((size, address))
    while len(order):
        starts, ends = address[order].tolist(), (address[order] + size[order]).tolist()
        taken, end = np.zeros(len(order), np.bool_), 0
        for index, start in enumerate(starts):
            if start >= end:
                taken[index], end = True, ends[index]
        yield order[taken]
        order = order[~taken]


def _batches(manifest: Manifest, region: CodeRegion, rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    number = (manifest.functions["address"][rows] - np.uint64(region.address)) // np.uint64(_BATCH)
    return iter(np.split(rows, np.flatnonzero(np.diff(number)) + 1))


def _dissect(
    image: Image, dissector: Dissector, manifest: Manifest, region: CodeRegion, rows: NDArray[np.intp]
) -> Instructions:
    start = manifest.functions["address"][rows]
    low = (start - start[0]).astype(np.int64)
    ranges = np.stack([low, low + manifest.functions["size"][rows].astype(np.int64)], axis=1)
    at = int(start[0]) - region.address
    return dissector.dissect(code_of(image, region)[at : at + int(ranges[-1, 1])], int(start[0]), ranges)


def _fill(found: Instructions, manifest: Manifest, rows: NDArray[np.intp], decoded: Instructions) -> None:
    """Copy what was decoded of the functions `rows` to the sites that belong to them."""
    first, last = np.searchsorted(
        found.address, (manifest.functions["address"][rows[0]], decoded.address[-1] + np.uint64(1))
    )
    sites = np.arange(first, last)
    sites = sites[np.isin(found.function[sites], rows)]
    at = np.searchsorted(decoded.address, found.address[sites])
    at = np.minimum(at, len(decoded) - 1)
    exact = decoded.address[at] == found.address[sites]
    sites, at = sites[exact], at[exact]
    for name in ("target", "size", "kind", "flow", "verdict", "reason"):
        getattr(found, name)[sites] = getattr(decoded, name)[at]

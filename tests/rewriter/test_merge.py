"""The union of two manifests, at the size of a kernel."""

import time
from dataclasses import replace

import numpy as np

from kinst.rewriter.planning.merge import merge
from kinst.targets.manifest.packed import Manifest, pack_manifest, unpack_manifest
from tests.targets.test_manifest import manifest_of


def test_a_manifest_merged_with_itself_is_itself() -> None:
    manifest = manifest_of(1000)
    assert pack_manifest(_numbered(merge(manifest, manifest), manifest)) == pack_manifest(manifest)


def test_half_and_half_make_the_whole_whatever_their_order() -> None:
    whole = manifest_of(100_000)
    even, odd = (_every_other(whole, start) for start in (0, 1))
    start = time.perf_counter()
    for one, other in ((even, odd), (odd, even)):
        both = unpack_manifest(pack_manifest(_numbered(merge(one, other), whole)))
        assert np.array_equal(both.sites["address"], whole.sites["address"])
        assert np.array_equal(both.sites["original"], whole.sites["original"])
        names = [both.function_name(int(row)) for row in both.sites["function"][:4]]
        assert names == [whole.function_name(int(row)) for row in whole.sites["function"][:4]]
        offsets = both.probes["offset"][both.enablings["probe"]]
        assert np.array_equal(offsets, whole.probes["offset"][whole.enablings["probe"]])
    assert time.perf_counter() - start < 5


def _numbered(merged: Manifest, like: Manifest) -> Manifest:
    """With the identifiers that `kinst.rewriter.naming.numbering` gives a union."""
    return replace(merged, numbers=like.numbers, static_numbers=like.static_numbers)


def _every_other(manifest: Manifest, start: int) -> Manifest:
    sites = manifest.sites[start::2]
    return replace(
        manifest, sites=sites, probes=manifest.probes[start::2], enablings=manifest.enablings[: len(sites)].copy()
    )

"""Two manifests of one image -> their union: what a second rewriting adds to the first."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kinst.targets.errors import ProbeError
from kinst.targets.manifest.inlined_names import joined
from kinst.targets.manifest.packed import ENABLING, FUNCTION, NOT_NUMBERED, PROBE, SITE, Manifest, ProbeKind, probe_keys
from kinst.targets.static_probes import StaticProbe


def merge(earlier: Manifest, fresh: Manifest) -> Manifest:
    """Sites and probes of both, not numbered yet; those of `earlier` come first.

    Raises:
        ProbeError: a new site lies inside an instruction that was patched earlier (other symbols give other bounds).
    """
    functions, names, function_of = _merge_functions(earlier, fresh)
    static, static_of = _merge_static(earlier.static, fresh.static)
    probes, probe_of = _merge_probes(earlier.probes, _renumbered(fresh.probes, function_of, static_of))
    sites, site_of_earlier, site_of_fresh = _merge_sites(earlier.sites, fresh.sites, function_of)
    pairs = np.unique(
        np.concatenate(
            [
                site_of_earlier[earlier.enablings["site"]] << 32 | earlier.enablings["probe"],
                site_of_fresh[fresh.enablings["site"]] << 32 | probe_of[fresh.enablings["probe"]],
            ]
        )
    )
    enablings = np.zeros(len(pairs), ENABLING)
    enablings["site"], enablings["probe"] = pairs >> 32, pairs & 0xFFFF_FFFF
    options = tuple(dict.fromkeys((*earlier.options, *fresh.options)))
    return replace(
        fresh, options=options, sites=sites, probes=probes, enablings=enablings, functions=functions, names=names,
        static=static, numbers=NOT_NUMBERED, static_numbers=(), inlined=joined(earlier.inlined, fresh.inlined),
    )  # fmt: skip


def _merge_static(
    earlier: tuple[StaticProbe, ...], fresh: tuple[StaticProbe, ...]
) -> tuple[tuple[StaticProbe, ...], NDArray[np.int64]]:
    """The static probes of both, and the row that each fresh one has now."""
    rows = {probe.key: row for row, probe in enumerate(earlier)}
    for probe in fresh:
        rows.setdefault(probe.key, len(rows))
    joined = {probe.key: probe for probe in (*earlier, *fresh)}  # both are of one image: fresh ones say the same
    return tuple(joined.values()), np.array([rows[probe.key] for probe in fresh], np.int64)


def _renumbered(
    fresh: NDArray[np.void], function_of: NDArray[np.int64], static_of: NDArray[np.int64]
) -> NDArray[np.void]:
    """Fresh probes, with the rows of functions and static probes that they have now."""
    moved = fresh.copy()
    moved["function"] = function_of[fresh["function"]]
    is_static = fresh["kind"] == ProbeKind.SDT
    static = fresh["offset"][is_static]
    moved["offset"][is_static] = static_of[static]
    return moved


def _merge_functions(earlier: Manifest, fresh: Manifest) -> tuple[NDArray[np.void], bytes, NDArray[np.int64]]:
    """The functions of both, their string table, and the row that each fresh function has now."""
    rows = {_function(earlier, row): row for row in range(len(earlier.functions))}
    names, function_of = [earlier.names], []
    added: list[tuple[int, int, int]] = []
    size = len(earlier.names)
    for row in range(len(fresh.functions)):
        key = _function(fresh, row)
        if key not in rows:
            rows[key] = len(earlier.functions) + len(added)
            added.append((key[0], key[1], size))
            names.append(key[2].encode() + b"\0")
            size += len(names[-1])
        function_of.append(rows[key])
    functions = np.concatenate([earlier.functions, np.array(added, FUNCTION)])
    return functions, b"".join(names), np.array(function_of, np.int64)


def _function(manifest: Manifest, row: int) -> tuple[int, int, str]:
    address, size, _ = manifest.functions[row].tolist()
    return address, size, manifest.function_name(row)


def _merge_probes(earlier: NDArray[np.void], fresh: NDArray[np.void]) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """The probes of both, and the row that each fresh probe has now."""
    known, wanted = _keys(earlier), _keys(fresh)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known, wanted, sorter=order), max(len(known) - 1, 0))
    exists = known[order[at]] == wanted if len(known) else np.zeros(len(wanted), np.bool_)
    probe_of = np.empty(len(fresh), np.int64)
    probe_of[exists] = order[at[exists]]
    probe_of[~exists] = len(earlier) + np.arange(int((~exists).sum()))
    return np.concatenate([earlier, fresh[~exists]]).astype(PROBE), probe_of


def _keys(probes: NDArray[np.void]) -> NDArray[np.uint64]:
    return probe_keys(probes["function"], probes["kind"], probes["offset"])


def _merge_sites(
    earlier: NDArray[np.void], fresh: NDArray[np.void], function_of: NDArray[np.int64]
) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.int64]]:
    """The sites of both in address order, and the rows that those of each have now."""
    moved = fresh.copy()
    moved["function"] = function_of[fresh["function"]]
    new = moved[~np.isin(fresh["address"], earlier["address"])]
    sites = np.concatenate([earlier, new]).astype(SITE)
    sites = sites[np.argsort(sites["address"])]
    address = sites["address"]
    inside = np.flatnonzero(address[:-1] + sites["size"][:-1] > address[1:])
    if len(inside):
        first, second = (int(address[row]) for row in (inside[0], inside[0] + 1))
        raise ProbeError(
            f"{second:#x}: inside the instruction at {first:#x}, patched earlier under other function bounds: "
            "restore the image first, or give the same --symbols"
        )
    return sites, np.searchsorted(address, earlier["address"]), np.searchsorted(address, fresh["address"])

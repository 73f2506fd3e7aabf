"""What a manifest says about itself and about its image must be consistent, which is checked before any of it is used.

A record that points outside its table, a site without a slot, or header bytes that the original did not have would be
trusted, and crash or be written, later and far away. Each check is one pass over columns: there may be millions of
rows.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import ManifestError
from kinst.targets.image import Image
from kinst.targets.instruction import Flow, Verdict
from kinst.targets.manifest.probe_ids import FIRST_PROBE_ID
from kinst.targets.manifest.records import Manifest, ProbeKind, probe_keys
from kinst.targets.patch import LONGEST
from kinst.targets.standalone import MOST_FIELDS, MOST_FORMS, WORD, Action, Standalone

Tables = Mapping[str, NDArray[np.void]]
_REFERENCES = (
    ("sites", "function", "functions"),
    ("probes", "function", "functions"),
    ("enablings", "site", "sites"),
    ("enablings", "probe", "probes"),
    ("functions", "name", "names"),
    ("symbols", "name", "strings"),
)
_TEXTS = ("names", "strings")
_MOST = np.uint64((1 << 64) - 1)


def check_tables(tables: Tables) -> None:
    """Records that refer to others, string tables, and the order of records.

    Raises:
        ManifestError: what is wrong.
    """
    for table, column, target in _REFERENCES:
        _require(_below(tables[table][column], len(tables[target])), f"{table} refer to {target} that do not exist")
    for name in _TEXTS:
        _require(_is_text(tables[name]), "a string table does not end, or has characters that no name has")
    starts = tables["functions"]["name"]
    _require((tables["names"][starts[starts > 0] - 1] == 0).all(), "functions refer to parts of names")
    addresses, enablings = tables["sites"]["address"], tables["enablings"]
    pairs = enablings["site"].astype(np.uint64) << np.uint64(32) | enablings["probe"]
    in_order = _ascends(addresses) and (enablings["site"][:-1] <= enablings["site"][1:]).all()
    _require(in_order, "its records are out of order")
    _require(_differ(pairs), "a probe that is twice at one site")


def check_manifest(manifest: Manifest) -> None:
    """Check everything that it says by itself.

    Raises:
        ManifestError: what is wrong.
    """
    _check_restored(manifest)
    _check_patches(manifest)
    _check_jumps(manifest)
    _check_standalone(manifest)
    _check_functions(manifest)
    _check_sites(manifest)
    _check_probes(manifest)
    _check_enablings(manifest)
    _check_identifiers(manifest)


def check_image(manifest: Manifest, image: Image) -> None:
    """Check that it is of the machine of the image that carries it, and refers to nothing outside of that.

    Raises:
        ManifestError: what is wrong.
    """
    if manifest.arch != image.facts.name:
        raise ManifestError(f"its manifest is for {manifest.arch}, the image is {image.facts.name}")
    _require(
        manifest.original_size <= len(image.data), "the original was longer: was it stripped after it was patched?"
    )
    address, size = manifest.trampolines
    loads = image.in_file
    has_trampolines = any(start == address and in_file >= size for start, _, in_file in loads)
    if manifest.standalone is not None:
        has_trampolines |= any(start <= address <= start + in_file - size for start, _, in_file in loads)
    _require(not size or has_trampolines, "trampolines that no segment holds")
    bounds = [(start, start + in_file) for start, _, in_file in loads if start + in_file < 1 << 64]
    functions = manifest.functions
    _require(_within(functions["address"], functions["size"], bounds), "a function outside of the image")
    _require(_all_within(manifest.sites, bounds), "a site outside of the image")
    places = [(one.address, one.end) for one in manifest.patches]
    inside = all(any(start <= first and last <= end for start, end in bounds) for first, last in places)
    inside &= _within(manifest.jumps["address"], manifest.jumps["size"], bounds)
    _require(inside, "a patch outside of the image")


def _require(holds: object, why: str) -> None:
    if not holds:
        raise ManifestError(f"manifest: damaged: {why}")


def _below(column: NDArray[Any], end: int) -> bool:
    return not len(column) or int(column.max()) < end


def _is_text(table: NDArray[np.void]) -> bool:
    """NUL-terminated texts of UTF-8 without control characters."""
    data = table.tobytes()
    try:
        return not data or (data[-1] == 0 and data.replace(b"\0", b"").decode().isprintable())
    except UnicodeDecodeError:
        return False


def _ascends(column: NDArray[np.uint64]) -> bool:
    return bool((column[:-1] < column[1:]).all())


def _differ(values: NDArray[np.uint64]) -> bool:
    # Sorting is needed only if the column does not ascend by itself.
    return _ascends(values) or _ascends(np.sort(values))


def _check_restored(manifest: Manifest) -> None:
    for offset, data in manifest.restore:
        _require(offset + len(data) <= manifest.original_size, "it restores bytes that the original did not have")


def _check_patches(manifest: Manifest) -> None:
    patches = manifest.patches
    _require(
        all(0 < len(one.original) == len(one.code) <= LONGEST for one in patches),
        "a patch of another size than its place",
    )
    _require(all(first.end <= second.address for first, second in pairwise(patches)), "patches that overlap")


def _check_jumps(manifest: Manifest) -> None:
    address, size = manifest.jumps["address"], manifest.jumps["size"]
    total = int(size.sum(dtype=np.uint64))
    # By subtraction: a sum could wrap round.
    _require(size.all() and (size <= _MOST - address).all(), "jumps that pass the end of the address space")
    _require(total == len(manifest.jump_originals) == len(manifest.jump_code), "jumps of another size than their place")
    in_order = _ascends(address) and (address[1:] - address[:-1] >= size[:-1]).all()
    _require(in_order, "jumps that overlap")


def _check_standalone(manifest: Manifest) -> None:
    found = manifest.standalone
    if found is None:
        _require(not (len(manifest.jumps) or manifest.forms), "jumps in an image that is not standalone")
        return
    if found.action is Action.COUNT:
        is_right = not (found.capacity or found.fields or found.waits) and found.size == WORD * len(manifest.sites)
    else:
        is_right = found.capacity.bit_count() == 1 and found.size == found.kept_size
    is_right &= all(len(form) <= MOST_FIELDS for form in found.record_forms)
    _require(is_right, "counters or a ring of another size than it says")
    _check_forms(manifest.forms, found, len(manifest.sites))
    _require(max(found.address, found.load_address) + found.size < 1 << 64, "counters past the address space")


def _check_forms(forms: bytes, found: Standalone, sites: int) -> None:
    """Check what each site of a mix keeps."""
    is_mix = found.action is Action.MIX
    is_right = len(forms) == sites * is_mix and found.counters == forms.count(0)
    is_right &= max(forms, default=0) <= len(found.forms) <= MOST_FORMS * is_mix
    _require(is_right, "sites whose records have a form that there is not")


def _check_functions(manifest: Manifest) -> None:
    address, size = manifest.functions["address"], manifest.functions["size"]
    _require((size <= _MOST - address).all(), "a function that passes the end of the address space")


def _check_sites(manifest: Manifest) -> None:
    sites, facts = manifest.sites, arch_by_name(manifest.arch)
    if not len(sites):
        return
    slots, (address, size) = sites["trampoline"], manifest.trampolines
    offsets = slots - np.uint64(address)
    # A standalone image has trampolines of any size, aligned as instructions are; several sites may share one.
    least = facts.slot_size if manifest.standalone is None else facts.instruction_alignment
    _require(size >= least and (offsets <= np.uint64(size - least)).all(), "a trampoline outside its segment")
    if manifest.standalone is None:
        _require(not (offsets % np.uint64(least)).any() and _ascends(slots), "trampolines that are no slots")
    _require((slots[:-1] <= slots[1:]).all(), "trampolines out of order")
    possible = (
        ("size", tuple(facts.breakpoints)),
        ("kind", tuple(facts.kinds)),
        ("flow", tuple(Flow)),
        ("verdict", (Verdict.COPY, Verdict.EMULATE, Verdict.DEFER)),
    )
    for name, values in possible:
        _require(_are_of(sites[name], values), "a site that cannot be")
    is_emulated = sites["verdict"] == Verdict.EMULATE
    # OTHER is what the table of the machine does not name: the runtime has no emulation of it.
    _require((sites["kind"][is_emulated] != facts.kinds["OTHER"]).all(), "a site that nothing can emulate")
    apart = sites["address"][1:] - sites["address"][:-1] >= sites["size"][:-1]
    _require(apart.all() and (sites["size"] <= _MOST - sites["address"]).all(), "sites that overlap")


def _are_of(column: NDArray[np.uint8], values: tuple[int, ...]) -> bool:
    # Deleting the allowed bytes leaves nothing if all are allowed: faster than a comparison with each.
    return not column.tobytes().translate(None, bytes(values))


def _check_probes(manifest: Manifest) -> None:
    kind, offset = manifest.probes["kind"], manifest.probes["offset"]
    _require(_below(kind, len(ProbeKind)), "a kind of probe that does not exist")
    is_static, is_fbt = kind == ProbeKind.SDT, (kind == ProbeKind.FBT_ENTRY) | (kind == ProbeKind.FBT_RETURN)
    _require(_below(offset[is_static], len(manifest.static)), "probes refer to static probes that do not exist")
    _require(not offset[is_fbt].any(), "a probe of a function that has an offset")
    keys = probe_keys(manifest.probes["function"], kind, offset)
    _require(_differ(keys), "a probe that is there twice")


def _check_enablings(manifest: Manifest) -> None:
    """Check that each site is of a probe, and each probe has a site, which for all but static ones is where its name
    says."""
    site, probe = (np.ascontiguousarray(manifest.enablings[name]) for name in ("site", "probe"))
    for name, rows, count in (("site", site, len(manifest.sites)), ("probe", probe, len(manifest.probes))):
        used = np.zeros(count, np.bool_)
        used[rows] = True
        _require(used.all(), f"a {name} that nothing enables")
    function, kind, offset = (manifest.probes[name][probe] for name in ("function", "kind", "offset"))
    # A site is decoded again from its function: one of its probes must say which that is.
    has_own = np.zeros(len(manifest.sites), np.bool_)
    has_own[site[(function == manifest.sites["function"][site]) | (kind == ProbeKind.SDT)]] = True
    _require(has_own.all(), "a site in a function that none of its probes has")
    start, size = (np.ascontiguousarray(manifest.functions[name])[function] for name in ("address", "size"))
    distance = manifest.sites["address"][site] - start
    _require(((distance < size) | (kind == ProbeKind.SDT)).all(), "a probe outside of its function")
    is_there = (distance == offset) | (kind != ProbeKind.KINST)
    _require(is_there.all(), "a probe at another offset than its name says")


def _check_identifiers(manifest: Manifest) -> None:
    _require(len(manifest.numbers) == len(manifest.functions), "identifiers of other functions")
    _require(len(manifest.static_numbers) == len(manifest.static), "identifiers of other static probes")
    numbers = manifest.numbers
    # Of two identifiers per function the second is the first + 1: both ends are compared, and a sum that wraps shows.
    known = (*_extremes(numbers["fbt"]), *_extremes(numbers["fbt"] + np.uint64(1)), *_extremes(numbers["kinst"]))
    is_known = all(FIRST_PROBE_ID <= one < manifest.next_identifier for one in (*known, *manifest.static_numbers))
    _require(is_known and manifest.next_identifier >= FIRST_PROBE_ID, "identifiers that cannot be")


def _extremes(column: NDArray[Any]) -> tuple[int, ...]:
    return (int(column.min()), int(column.max())) if len(column) else ()


def _within(address: NDArray[np.uint64], size: NDArray[np.uint64], bounds: list[tuple[int, int]]) -> bool:
    inside = np.zeros(len(address), np.bool_)
    for start, end in bounds:
        inside |= (address >= np.uint64(start)) & (address <= np.uint64(end)) & (size <= np.uint64(end) - address)
    return bool(inside.all())


def _all_within(sites: NDArray[np.void], bounds: list[tuple[int, int]]) -> bool:
    """The sites ascend, and segments do not overlap: only the last one of each can pass its end."""
    inside, address = 0, sites["address"]
    for start, end in bounds:
        first, last = np.searchsorted(address, np.array([start, end], np.uint64)).tolist()
        if first < last and int(address[last - 1]) + int(sites["size"][last - 1]) > end:
            return False
        inside += last - first
    return inside == len(sites)

"""Resolved probe names -> everything that a patched image has besides the original, as a value to show or to write."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.dissector import Dissector
from kinst.rewriter.derive import site_instructions
from kinst.rewriter.frames.encoding import Frames
from kinst.rewriter.naming.numbering import numbered
from kinst.rewriter.naming.refusals import Refusals, summary
from kinst.rewriter.naming.remembered import memory_of
from kinst.rewriter.naming.resolve import Resolution
from kinst.rewriter.naming.static_sites import used_static
from kinst.rewriter.planning.merge import merge
from kinst.rewriter.planning.slots import CHUNK, NOWHERE, Placement, place, trampoline_alloc
from kinst.rewriter.program import Program
from kinst.rewriter.shell.progress import Progress, silent
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.columns import unique
from kinst.targets.elf.header import FileKind
from kinst.targets.errors import PlacementError, ProbeError
from kinst.targets.image import Image
from kinst.targets.instruction import KEPT, KEPT_BYTES, Instructions, Reason, Verdict
from kinst.targets.manifest.packed import ENABLING, FUNCTION, PROBE, SITE, Manifest, Method, ProbeKind, probe_keys
from kinst.targets.values import dataclass

_BATCH: Final = 1 << 18  # sites handled at a time, to bound temporaries


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write. The manifest lacks only what depends on the file: its SHA-256, and the header bytes to restore.

    `image` has the user's patches, `original` has not. `trampolines` are the bytes of their segment, without the zeros
    of a standalone image's data after them. `lost` are resolved sites that cannot have a trampoline at this place, with
    rows of the program's functions; `no_jumps` are the addresses of sites that a standalone image cannot have, with the
    reason. `frames` is how to unwind from trampolines; None: it is not told.
    """

    image: Image
    original: Image
    manifest: Manifest
    placement: Placement
    trampolines: NDArray[np.uint8]
    lost: Refusals
    no_jumps: Mapping[int, str] = field(default_factory=dict)
    frames: Frames | None = None

    @property
    def data_size(self) -> int:
        """Bytes of the counters or the ring that are placed after the trampolines."""
        return self.placement.size - len(self.trampolines)


def make_plan(
    resolution: Resolution,
    *,
    trampoline_base: int | None = None,
    earlier: Manifest | None = None,
    method: Method | None = None,
    progress: Progress = silent,
) -> Plan:
    """Decide the patches, the trampolines and the manifest.

    Args:
        resolution: of the probe names, none of them with an error.
        trampoline_base: where the user wants the trampolines.
        earlier: the manifest of the patched image that this rewriting adds to.
        method: how displaced instructions are run, those of `earlier`, too; None: as before, or AUTO. It is for the
            runtime; trampolines are made in any case.
        progress: notified while trampolines are made.

    Raises:
        PlacementError: no room for the trampolines within reach.
        ProbeError: an addition that contradicts what was patched earlier.
    """
    program = resolution.program
    manifest, rows = manifest_of(resolution)
    sites = resolution.code.instructions.take(rows)
    if earlier is not None:
        manifest = numbered(merge(earlier, manifest), resolution.numbering)
        sites = site_instructions(program.image, program.dissector, manifest)
    facts = program.image.facts
    code = probed_code(manifest.sites["address"], facts.trampoline_window)
    # Slots are counted before the segment is placed, since its place depends on its size: so the count must hold for
    # any address in `span`.
    span = _span(program.original, code, len(sites), trampoline_base)
    slots, size = trampoline_alloc(program.dissector.slot_counts(sites, span), facts.slot_size)
    placement = NOWHERE
    if size:
        if program.image.kind is FileKind.REL:
            placement = _after_module(program.original, size, trampoline_base)
        else:
            placement = place(program.image.segments, code, size, facts.trampoline_window, trampoline_base)
    manifest.sites["trampoline"] = slots + np.uint64(placement.address)
    trampolines, reason = make_trampolines(program.dissector, manifest, sites, placement, progress)
    # Refused sites come only from an earlier rewriting: what is added now shows them to be data.
    reason[sites.verdict == Verdict.REFUSE] = sites.reason[sites.verdict == Verdict.REFUSE]
    lost = _lost(program, sites, reason)
    if len(lost):
        _check_reach(lost, len(sites), trampoline_base)
        manifest = without_sites(manifest, reason != 0)
    kept = Method.AUTO.value if earlier is None else earlier.method
    chosen = kept if method is None else method.value
    manifest = replace(manifest, method=chosen, trampolines=(placement.address, placement.size))
    return Plan(program.image, program.original, manifest, placement, trampolines, lost)


def _after_module(module: Image, size: int, base: int | None) -> Placement:
    """After the end of a module: its sections have their file offsets as addresses."""
    if base is not None:
        raise PlacementError(
            f"{module.path}: a module's trampolines are one of its sections, which its loader places: there is nothing "
            "to say with --trampoline-base"
        )
    start = len(module.data) + -len(module.data) % CHUNK
    return Placement(start, start, size)


def _span(image: Image, code: int, count: int, base: int | None) -> tuple[int, int]:
    """The addresses between which the trampolines of `count` sites will be."""
    facts = image.facts
    if base is None and image.kind is not FileKind.REL:
        low = code - code % facts.trampoline_window
        return low, low + facts.trampoline_window - 1
    first = len(image.data) if base is None else base
    most = min(first + count * facts.longest_trampoline + CHUNK, (1 << 64) - 1)
    return max(0, min(first, most)), most


def tool_version() -> str:
    """The version of this package; a source tree that is not installed has none."""
    from importlib.metadata import PackageNotFoundError, version  # of which a run with a kept plan needs nothing

    try:
        return version("kinst-rewrite")
    except PackageNotFoundError:
        return "0+source"


def probed_code(addresses: NDArray[np.uint64], window: int) -> int:
    """The first site in the window that holds most sites."""
    windows, first, counts = np.unique(addresses // np.uint64(window), return_index=True, return_counts=True)
    return int(addresses[first[int(np.argmax(counts))]]) if len(windows) else 0


def _lost(program: Program, sites: Instructions, reason: NDArray[np.uint8]) -> Refusals:
    bad = np.flatnonzero(reason)
    address = sites.address[bad]
    function = np.maximum(np.searchsorted(program.functions.address, address, "right") - 1, 0).astype(np.int32)
    return Refusals(address, function, reason[bad], np.zeros(len(bad), np.uint8))


def _check_reach(lost: Refusals, count: int, base: int | None) -> None:
    """Sites whose operands do not reach a place of our own choice are lost; with a place that the user chose it is an
    error."""
    out = lost.reason == Reason.OUT_OF_REACH
    if len(lost) == count and not out.all():
        raise ProbeError(f"nothing left: {summary(lost, count)}")
    if out.any() and (base is not None or len(lost) == count):
        where = "the end of the window" if base is None else f"{base:#x}"
        raise PlacementError(
            f"trampolines: {where} is out of reach of {int(out.sum())} sites, the first at "
            f"{int(lost.address[out][0]):#x}: their operands are PC-relative and reach 2 GiB"
        )


def manifest_of(resolution: Resolution) -> tuple[Manifest, NDArray[np.intp]]:
    """The manifest without trampolines, and the row of the instruction of each of its sites."""
    program, names = resolution.program, resolution.names
    pairs = _pairs(resolution)
    # The packing of `_pairs`: instruction, name, kind.
    at, name, kind = (
        (pairs >> np.uint64(34)).astype(np.intp),
        pairs >> np.uint64(2) & np.uint64(0xFFFF_FFFF),
        pairs & np.uint64(3),
    )
    del pairs
    fresh = np.ones(len(at), np.bool_)
    fresh[1:] = at[1:] != at[:-1]
    found = resolution.code.instructions
    is_static = kind == ProbeKind.SDT
    static, static_row = used_static(resolution.static, name[is_static])
    _, first = np.unique(static_row, return_index=True)  # one function a probe, wherever its places are
    holding = name.copy()  # the function of the site, whose code is decoded to find it again
    holding[is_static] = found.function[at[is_static]].astype(np.uint64)  # its primary name
    name[is_static] = holding[is_static][first][static_row]
    row_of = names.row_of()
    # A table indexed by name: to sort those of three million sites takes a second.
    is_used = np.zeros(len(row_of), np.bool_)
    is_used[name] = is_used[holding] = True
    used = np.flatnonzero(is_used)
    rows = row_of[used]
    order = np.argsort(program.functions.address[rows], kind="stable")
    numbers = used[order].tolist()
    place = np.zeros(len(row_of), np.uint64)
    place[numbers] = np.arange(len(used))
    function, holding = place[name], place[holding]
    offset = found.address[at] - program.functions.address[found.function[at]]
    offset[kind != ProbeKind.KINST] = 0
    offset[is_static] = static_row
    probes, probe = _number(probe_keys(function, kind, offset))
    enablings = np.zeros(len(at), ENABLING)
    enablings["site"], enablings["probe"] = np.cumsum(fresh) - 1, probe
    expansions = (outcome.expansion for outcome in resolution.outcomes)
    table, strings = _functions(resolution, numbers, rows[order])
    sites = at[fresh]
    manifest = Manifest(
        tool_version=tool_version(),
        original_sha256="",
        original_size=len(program.image.data),
        arch=program.image.facts.name,
        module=program.image.module,
        method=Method.AUTO.value,
        options=tuple(str(outcome.name) for outcome in resolution.outcomes),
        trampolines=(0, 0),
        restore=(),
        sites=_site_records(resolution, sites, holding[fresh]),
        probes=probes,
        enablings=enablings,
        functions=table,
        names=strings,
        static=static,
        symbols=program.given.records(),
        strings=program.given.strings,
        inlined=tuple(memory_of(one, program.functions, names) for one in expansions if one is not None),
        patches=program.patches,
    )
    return numbered(manifest, resolution.numbering), sites


def _pairs(resolution: Resolution) -> NDArray[np.uint64]:
    """Every (instruction, name, kind) once, ascending, packed into one 64-bit word: 30 + 32 + 2 bits."""
    parts = [
        choice.instructions.astype(np.uint64) << np.uint64(34)
        | choice.names.astype(np.uint64) << np.uint64(2)
        | choice.kinds
        for choice in (outcome.choice for outcome in resolution.outcomes)
    ]
    # One kinst name yields them in order already, and to look costs less than to sort.
    pairs = np.concatenate([np.zeros(0, np.uint64), *parts])
    return pairs if (pairs[:-1] < pairs[1:]).all() else unique(pairs)


def _number(keys: NDArray[np.uint64]) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Probe keys (see `probe_keys`) -> the PROBE records in their order, and the row of each key."""
    if (keys[:-1] <= keys[1:]).all():  # as with kinst probes alone: 6 million are not sorted again
        fresh = np.ones(len(keys), np.bool_)
        fresh[1:] = keys[1:] != keys[:-1]
        unique, number = keys[fresh], np.cumsum(fresh) - 1
    else:
        unique, number = np.unique(keys, return_inverse=True)
    probes = np.zeros(len(unique), PROBE)
    probes["function"] = unique >> np.uint64(34)
    probes["kind"] = unique >> np.uint64(32) & np.uint64(3)
    probes["offset"] = unique & np.uint64(0xFFFF_FFFF)
    return probes, number


def _functions(
    resolution: Resolution, numbers: Sequence[int], rows: NDArray[np.int64]
) -> tuple[NDArray[np.void], bytes]:
    functions = resolution.program.functions
    texts = [resolution.names.text_of(number).encode() + b"\0" for number in numbers]
    table = np.zeros(len(rows), FUNCTION)
    table["address"], table["size"] = functions.address[rows], functions.size[rows]
    lengths = np.array([len(text) for text in texts], np.uint64)
    table["name"] = np.cumsum(lengths) - lengths
    return table, b"".join(texts)


def _site_records(resolution: Resolution, at: NDArray[np.intp], function: NDArray[np.uint64]) -> NDArray[np.void]:
    found = resolution.code.instructions
    sites = np.zeros(len(at), SITE)
    for name in ("address", "size", "kind", "verdict", "flow"):
        sites[name] = getattr(found, name)[at]
    sites["function"] = function
    for start in range(0, len(at), _BATCH):
        rows = slice(start, start + _BATCH)
        code = instruction_bytes(resolution.program.image, sites["address"][rows], sites["size"][rows])
        sites["original"][rows] = code.view("V16")[:, 0]
    return sites


def instruction_bytes(image: Image, addresses: NDArray[np.uint64], sizes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(n, 16): the bytes of instructions, zero-padded."""
    offsets = image.offsets_of(addresses)
    # A view of 16 bytes at every offset of the file gathers all in one pass. The last 15 offsets have no such view:
    # they are copied one by one.
    last_whole = len(image.data) - KEPT
    from_each_byte: NDArray[np.void] = np.ndarray((last_whole + 1,), f"V{KEPT}", image.data, strides=(1,))
    code = from_each_byte[np.minimum(offsets, last_whole)].view(np.uint8).reshape(-1, KEPT)
    for row in np.flatnonzero(offsets > last_whole).tolist():
        last = image.data[offsets[row] :]
        code[row, : len(last)] = last
    code.view("<u8")[:] &= KEPT_BYTES[np.minimum(sizes, KEPT)]
    return code


def make_trampolines(
    dissector: Dissector,
    manifest: Manifest,
    sites: Instructions,
    placement: Placement,
    progress: Progress = silent,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The bytes of the segment, and for each site the `Reason` why it cannot have its trampoline there, or 0.

    `sites` are the instructions of the manifest's sites, whose slots and original bytes are set.
    """
    facts = dissector.facts
    segment = filled(facts, placement.size)
    reason = np.zeros(len(sites), np.uint8)
    with progress("trampolines", len(sites)) as done:
        for start in range(0, len(sites), _BATCH):
            rows = slice(start, start + _BATCH)
            slots = manifest.sites["trampoline"][rows]
            original = np.ascontiguousarray(manifest.sites["original"][rows]).view(np.uint8).reshape(-1, 16)
            made = dissector.trampolines(take_rows(sites, rows), original, slots)
            good = made.reason == 0
            put_slots(segment, slots[good] - np.uint64(placement.address), made.code[good], facts.slot_size)
            reason[rows] = made.reason
            done(len(slots))
    return segment, reason


def put_slots(segment: NDArray[np.uint8], offsets: NDArray[np.uint64], code: NDArray[np.uint8], slot_size: int) -> None:
    """Write trampolines: of each the slots that are not all filler, and at least one. What a damaged manifest would put
    after the end is left out."""
    table = segment.reshape(-1, slot_size)
    at = offsets // np.uint64(slot_size)
    table[at] = code[:, :slot_size]
    for start in range(slot_size, code.shape[1], slot_size):
        at = at + np.uint64(1)
        part = code[:, start : start + slot_size]
        # A slot of one repeated byte is filler: the next site's trampoline may be there.
        rows = (part != part[:, -1:]).any(axis=1) & (at < len(table))
        table[at[rows]] = part[rows]


def take_rows(sites: Instructions, rows: slice) -> Instructions:
    """Rows as views, without a copy."""
    return Instructions(*(getattr(sites, name)[rows] for name in Instructions.__slots__))


def filled(facts: ArchFacts, size: int) -> NDArray[np.uint8]:
    """`size` bytes of the machine's widest breakpoint: a stray branch stops at once."""
    widest = np.frombuffer(facts.breakpoints[max(facts.breakpoints)], np.uint8)
    return np.tile(widest, size // len(widest))


def without_sites(manifest: Manifest, gone: NDArray[np.bool_]) -> Manifest:
    """The manifest without some sites, and without the probes that had no other sites."""
    kept = ~gone[manifest.enablings["site"]]
    enablings = manifest.enablings[kept]
    alive = np.zeros(len(manifest.probes), np.bool_)
    alive[enablings["probe"]] = True
    site, probe = np.cumsum(~gone) - 1, np.cumsum(alive) - 1
    renumbered = np.zeros(len(enablings), ENABLING)
    renumbered["site"], renumbered["probe"] = site[enablings["site"]], probe[enablings["probe"]]
    forms = np.frombuffer(manifest.forms, np.uint8)[~gone].tobytes() if manifest.forms else b""
    left = replace(manifest, sites=manifest.sites[~gone], probes=manifest.probes[alive], enablings=renumbered)
    return replace(left, forms=forms)

"""The sites of a difference -> the instructions around each in the original and in the patched file, and its
trampoline."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from kinst.rewriter.diffing.diff import Diff
from kinst.rewriter.diffing.diff_report import standalone_code
from kinst.rewriter.disassemble import Line, differing, disassemble
from kinst.targets.errors import ImageError
from kinst.targets.instruction import Verdict
from kinst.targets.manifest.packed import Manifest
from kinst.targets.values import dataclass

_BEFORE: Final = 3  # instructions before a site that are shown
_AFTER: Final = 4  # from the site on
_LONGEST: Final = 4096  # bytes from the start of a function that are decoded to know where instructions begin
_REACH: Final = 64  # bytes from a site on that are decoded


@dataclass(frozen=True, slots=True)
class Beside:
    """An instruction of the original, and what is at its place in the patched file."""

    address: int
    before: bytes
    before_text: str
    after: bytes
    after_text: str


@dataclass(frozen=True, slots=True)
class SiteListing:
    """A site. `lines[place]` is its own instruction."""

    function: int  # the row in the manifest
    address: int
    verdict: Verdict
    lines: tuple[Beside, ...]
    place: int
    trampoline: int  # its address; 0: nothing of this site runs elsewhere
    trampoline_lines: tuple[Line, ...]


def listings(diff: Diff, manifest: Manifest) -> Iterator[SiteListing]:
    """All sites, ascending by address."""
    sites = manifest.sites
    functions, addresses = sites["function"], sites["address"]
    order = np.lexsort((addresses, functions))
    cuts = np.flatnonzero(np.diff(functions[order])) + 1
    found = [rows.tolist() for rows in np.split(order, cuts)] if len(order) else []
    for rows in sorted(found, key=lambda rows: int(addresses[rows[0]])):
        yield from _of_function(diff, manifest, rows)


def _of_function(diff: Diff, manifest: Manifest, rows: list[int]) -> Iterator[SiteListing]:
    sites, facts = manifest.sites, diff.original.facts
    start = int(manifest.functions["address"][sites["function"][rows[0]]])
    near = [address for row in rows if 0 <= (address := int(sites["address"][row])) - start <= _LONGEST]
    own = disassemble(facts, _code(diff, start, max(near) - start + _REACH), start) if near else []
    at = {line.address: place for place, line in enumerate(own)}
    for row in rows:
        address = int(sites["address"][row])
        lines, place = own, at.get(address)
        if place is None:
            lines, place = disassemble(facts, _code(diff, address, _REACH), address), 0
        first = max(0, place - _BEFORE)
        shown = tuple(_beside(diff, line) for line in lines[first : place + _AFTER])
        verdict, slot = Verdict(int(sites["verdict"][row])), _trampoline(diff, manifest, row)
        yield SiteListing(int(sites["function"][row]), address, verdict, shown, place - first, *slot)


def _trampoline(diff: Diff, manifest: Manifest, row: int) -> tuple[int, tuple[Line, ...]]:
    """Where the trampoline of a site is, and what it does: all of it in a standalone image, else the displaced
    instruction, after which the tracer takes over."""
    site, facts = manifest.sites[row], diff.original.facts
    slot = int(site["trampoline"])
    if manifest.standalone is not None:
        return slot, tuple(disassemble(facts, standalone_code(diff, manifest, slot), slot))
    if site["verdict"] != Verdict.COPY:
        return 0, ()
    return slot, tuple(disassemble(facts, diff.patched.read(slot, facts.slot_size), slot)[:1])


def _code(diff: Diff, address: int, size: int) -> bytes:
    """Bytes of the original, up to the end of its segment. Raises ImageError: it has none there."""
    ends = [one.address + one.file_size for one in diff.original.segments if 0 <= address - one.address < one.file_size]
    return diff.original.read(address, min(size, ends[0] - address) if ends else 1)


def _beside(diff: Diff, line: Line) -> Beside:
    facts, address, size = diff.original.facts, line.address, line.size
    before = diff.original.read(address, size)
    try:
        after = diff.patched.read(address, size)
    except ImageError:  # of a damaged file
        after = b""
    if after == before:
        return Beside(address, before, line.text, after, line.text)
    changed = max(place for place, byte in enumerate(after) if byte != before[place]) if after else 0
    lines = (one.text for one in disassemble(facts, after, address) if one.address <= address + changed)
    before_text, after_text = differing(line.text, before, "; ".join(lines), after)
    return Beside(address, before, before_text, after, after_text)

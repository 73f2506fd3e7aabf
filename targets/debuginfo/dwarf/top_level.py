"""The bytes of a unit -> where its top-level entries begin: what C declares outside of functions."""

from collections.abc import Iterator

from kinst.targets.debuginfo.dwarf.abbreviations import Plan, key_of
from kinst.targets.debuginfo.dwarf.forms import skip
from kinst.targets.debuginfo.dwarf.units import UnitEntries
from kinst.targets.leb128 import leb


def top_level(entries: UnitEntries, end: int | None = None) -> Iterator[tuple[int, Plan]]:
    """The offsets into the unit of top-level entries that begin before `end`, and their plans.

    Raises what reading damaged bytes raises: `DAMAGE`, ImageError.
    """
    data, plans, sizes = entries.data, entries.plans, entries.unit.sizes
    at, depth = entries.unit.first - entries.unit.offset, 0
    end = len(data) if end is None else min(end, len(data))
    while at < end:
        code = code_at(data, at)
        plan = plans[code]
        if not code:
            depth -= 1
            if depth <= 0:
                return
            at += 1
            continue
        if depth == 1:
            yield at, plan
        size, sibling, steps, declaration = plan
        if sibling and depth:
            following = int.from_bytes(data[at + sibling : at + sibling + 4], "little")
            if following > at:
                at = following
                continue
        at += size
        for step in steps:
            at = skip(data, at, step, sizes)
        depth += declaration.has_children


def code_at(data: bytes, at: int) -> int | bytes:
    """The code of an entry, as `Plans` has it."""
    return data[at] if data[at] < 0x80 else key_of(leb(data, at)[0])


def top_level_at(entries: UnitEntries, place: int) -> int | None:
    """Where the top-level entry begins that holds a place. Raises as `top_level` does."""
    found = None
    for at, _ in top_level(entries, place + 1):
        found = at
    return found

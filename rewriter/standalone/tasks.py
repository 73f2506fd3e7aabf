"""A manifest and what its image shall do by itself -> the task of each site, or why it can have none."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.code.parts import CELL, FIRST, RING, SITE
from kinst.rewriter.standalone.code.trampoline import Clock, Constant, Count, Record, Register, Tasks, Varying, Word
from kinst.rewriter.standalone.request import argument_fields
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.instruction import Flow
from kinst.targets.manifest.packed import Manifest, ProbeKind
from kinst.targets.standalone import RING_HEAD, TIME, WORD, Action, Standalone

_STATIC: Final = "a static probe, which the image turns on and off"
_TAIL_CALL: Final = "a tail call: the function returns when its callee does"
_SEVERAL: Final = "an entry and a return: they have different arguments"
_OFFSET: Final = "offset"  # the column with a return's offset in its function
_NO_ARGUMENTS: Final = "an instruction within a function: only its registers are known, not its arguments"


def obstacles(manifest: Manifest, standalone: Standalone, facts: ArchFacts) -> dict[int, str]:
    """Rows of sites that can have no task, with the reason."""
    kinds, flow = _kinds(manifest), manifest.sites["flow"]
    found = dict.fromkeys(np.flatnonzero(kinds[:, ProbeKind.SDT]).tolist(), _STATIC)
    leaves = kinds[:, ProbeKind.FBT_RETURN] & (flow != Flow.RETURN)
    # The callee of a tail call returns to the caller's caller: the function's own return value is not known at the
    # jump.
    found |= dict.fromkeys(np.flatnonzero(leaves).tolist(), _TAIL_CALL)
    if not set(argument_fields(facts)).isdisjoint(standalone.fields):
        # Arguments are in registers at an entry, the return value at a return; one site that is both would have to be
        # two.
        is_both = kinds[:, ProbeKind.FBT_RETURN] & kinds[:, ProbeKind.FBT_ENTRY]
        found |= dict.fromkeys(np.flatnonzero(is_both).tolist(), _SEVERAL)
        is_neither = ~(kinds[:, ProbeKind.FBT_RETURN] | kinds[:, ProbeKind.FBT_ENTRY])
        found |= dict.fromkeys(np.flatnonzero(is_neither & ~_begins(manifest)).tolist(), _NO_ARGUMENTS)
    return found


def tasks(manifest: Manifest, standalone: Standalone, facts: ArchFacts) -> Tasks:
    """The task of each site, and the values that differ between sites."""
    count, address = len(manifest.sites), np.uint64(standalone.address)
    numbers = np.arange(count, dtype=np.uint64)
    if standalone.action is Action.COUNT:
        # Counters are numbered by site, in the order of the manifest: readers find them without a table.
        return Tasks((Count(),), np.zeros(count, np.int64), {CELL: address + np.uint64(WORD) * numbers})
    starts = manifest.functions["address"][manifest.sites["function"]]
    several = tuple(
        # One task for entries and one for returns: they differ in where arguments come from.
        Record(
            standalone.capacity - 1,
            standalone.stride,
            tuple(_word(field, facts, is_return=is_return) for field in standalone.fields),
        )
        for is_return in (False, True)
    )
    values = {
        RING: np.full(count, address),
        FIRST: np.full(count, address + np.uint64(RING_HEAD)),
        SITE: numbers,
        _OFFSET: manifest.sites["address"] - starts,
    }
    return Tasks(several, _kinds(manifest)[:, ProbeKind.FBT_RETURN].astype(np.int64), values)


def _kinds(manifest: Manifest) -> NDArray[np.bool_]:
    """(sites, kinds): whether a site has a probe of a kind."""
    found = np.zeros((len(manifest.sites), len(ProbeKind)), np.bool_)
    found[manifest.enablings["site"], manifest.probes["kind"][manifest.enablings["probe"]]] = True
    return found


def _begins(manifest: Manifest) -> NDArray[np.bool_]:
    """Which sites are the first instruction of their function, where its arguments are still in place, whatever probe
    is there."""
    starts: NDArray[np.uint64] = manifest.functions["address"][manifest.sites["function"]]
    result: NDArray[np.bool_] = manifest.sites["address"] == starts
    return result


def _word(field: str, facts: ArchFacts, *, is_return: bool) -> Word:
    """Where a field's value comes from. Of a return, arg0 is the offset and arg1 the value, as of an fbt probe in
    DTrace."""
    if field == TIME:
        return Clock()
    arguments = argument_fields(facts)
    if field not in arguments:
        return Register(facts.registers.index(field))
    number = arguments.index(field)
    if not is_return:
        return Register(facts.arguments[number])
    return (Varying(_OFFSET), Register(facts.return_value))[number] if number < 2 else Constant(0)

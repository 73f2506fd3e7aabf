"""Probes of inlined copies fire exactly when a hook of raw Unicorn, on the plain image, sees control enter and leave
them: at entries as often as the instruction is executed, at ways out as often as control goes elsewhere from there.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from kinst.rewriter.naming.inline_probes import InlineSite
from kinst.runtime import Machine, Options
from kinst.runtime.api import open_image
from kinst.runtime.tracing.hits import Hit
from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.image import open_image as image_of
from kinst.targets.probe import ProbeName
from tests.system.cases import CASES, SAMPLES, Case
from tests.system.control import Way, size_at, steps, way_at
from tests.system.plain import plain_run
from tests.system.runs import let_go

# Functions that the sources mark as inline, of which some copy is executed.
FUNCTIONS = {
    "kernel-amd64": (
        *("critical_enter", "critical_exit", "spin_lock", "spin_unlock", "list_first", "list_insert", "list_remove"),
        *("v2_limits", "curcpu", "atomic_add", "atomic_cas", "extable_address", "put", "put16", "irq_save", "m_get"),
        *("component_length", "block_split", "next_random", "ether_input", "reply_hash", "irq_restore", "in8"),
    ),
    "gnumach": (
        *("vm_map_unlock", "list_remove", "list_insert_head", "rbtree_parent", "rbtree_color", "rbtree_set_color"),
        *("valid_page", "kd_senddata", "vm_page_seg_get", "rdxtree_lookup", "vm_page_seg_index", "pmap_ptp"),
        *("kd_scrollup", "rbtree_check_alignment", "list_first", "list_empty", "rdxtree_entry_addr"),
    ),
}
BY_NAME = {case.image: case for case in CASES}
EXECUTED = (*SAMPLES, BY_NAME["gnumach"])
each_case = pytest.mark.parametrize("case", EXECUTED, ids=lambda case: case.image)


@dataclass(frozen=True)
class Traced:
    """Firings of clauses, by (description, link address)."""

    hits: Counter[tuple[str, int]]
    sites: dict[str, tuple[InlineSite, ...]]
    refused: dict[str, int]


def functions_of(case: Case) -> tuple[str, ...]:
    return FUNCTIONS["kernel-amd64" if case.is_sample else case.image]


@cache
def traced(case: Case) -> Traced:
    """A run with one clause for each function's entry and one for its return."""
    search = InlineSearch(image_of(case.path))
    names = [
        ProbeName("kinst", "", function, name)
        for function in functions_of(case)
        for name in ("entry", "return")
        if any(one.copies for one in search.find(function))
    ]
    hits: Counter[tuple[str, int]] = Counter()

    def counting(description: str) -> Callable[[Hit], None]:
        def count(hit: Hit) -> None:
            hits[description, hit.address - bias] += 1

        return count

    with open_image(case.path) as image:
        actions = {str(name): counting(str(name)) for name in names}
        trace = image.trace(
            actions=actions, machine=Machine(board=case.machine, clock="icount"), options=Options(d={"zdefs": True})
        )
    bias, planned = trace.guest.loaded.bias, trace.guest.prepared.planned
    let_go(trace, case.until, case.asks)
    expansions = {str(name): one for name, one in planned.expansions.items()}
    return Traced(
        hits,
        {text: one.sites for text, one in expansions.items()},
        {text: len(one.refusals) for text, one in expansions.items()},
    )


@each_case
def test_entries_fire_as_often_as_their_instruction_is_executed(case: Case) -> None:
    found = traced(case)
    for text, sites in found.sites.items():
        if text.endswith(":entry"):
            executed = plain_run(case).executed(np.array([site.address for site in sites], np.uint64))
            assert [found.hits[text, site.address] for site in sites] == executed.tolist(), text
    assert sum(found.hits.values()) > 1000


@each_case
def test_ways_out_fire_as_often_as_control_goes_elsewhere_from_there(case: Case) -> None:
    found = traced(case)
    conditional = 0
    for text, sites in found.sites.items():
        for site in sites if text.endswith(":return") else ():
            conditional += bool(site.staying)
            expected = departures(case, site)
            assert expected is None or found.hits[text, site.address] == expected, f"{text} at {site.address:#x}"
    assert conditional or not case.is_sample


def departures(case: Case, site: InlineSite) -> int | None:
    """How often the trace goes from a site to where control does not stay; None where an interrupt came between."""
    seen = steps(case)
    mine = seen.before == site.address
    total = int(plain_run(case).executed(np.array([site.address], np.uint64))[0])
    if not site.staying:
        return total
    if (mine & seen.is_interrupted).any():
        return None
    elsewhere = zip(seen.after[mine].tolist(), seen.count[mine].tolist(), strict=True)
    jumped: int = sum(count for address, count in elsewhere if not stays(site, address))
    behind = 0 if stays(site, site.address + size_at(case, site.address)) else total - int(seen.count[mine].sum())
    return jumped + behind


def stays(site: InlineSite, address: int) -> bool:
    return any(low <= address < high for low, high in site.staying)


@each_case
def test_no_way_out_of_a_copy_in_one_piece_is_missed(case: Case) -> None:
    """Steps from inside to outside, but for calls, exceptions and what comes back from them, are firings."""
    found, seen, checked = traced(case), steps(case), 0
    itself = ((seen.ways == Way.RETURN) | (seen.ways == Way.JUMP) | (seen.ways == Way.MAYBE)) & ~seen.is_interrupted
    for text, sites in found.sites.items():
        for site in sites if text.endswith(":return") else ():
            copy = site.copies[0]
            if len(copy.ranges) > 1 or len(site.copies) > 1 or found.refused[text]:
                continue
            low, high = copy.ranges[0]
            leaves = (seen.before >= low) & (seen.before < high) & ((seen.after < low) | (seen.after >= high))
            fired = sum(found.hits[text, one.address] for one in sites if one.copies[0] == copy)
            assert fired == int(seen.count[leaves & itself].sum()) + fallen_out(case, low, high), f"{text} {low:#x}"
            checked += fired > 0
    assert checked >= 3


def fallen_out(case: Case, low: int, high: int) -> int:
    """How often control went on behind the last instruction of a range."""
    last = low
    while last + size_at(case, last) < high:
        last += size_at(case, last)
    executed = int(plain_run(case).executed(np.array([last], np.uint64))[0])
    if way_at(case, last) is Way.CALL:
        return executed  # it comes back behind the range
    return executed - int(steps(case).count[steps(case).before == last].sum())


@pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)
def test_what_returns_is_left_as_often_as_it_is_entered(case: Case) -> None:
    """Of functions that the compiler neither took apart nor entered too early."""
    found = traced(case)
    for function in ("critical_enter", "critical_exit", "list_first", "v2_limits", "curcpu", "spin_lock", "m_get"):
        entered, left = (total(found, f"kinst::{function}:{name}") for name in ("entry", "return"))
        assert entered == left > 0, function


def total(found: Traced, text: str) -> int:
    return sum(count for (description, _), count in found.hits.items() if description == text)

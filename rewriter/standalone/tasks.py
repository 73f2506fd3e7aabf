"""A manifest and what its image shall do by itself -> the task of each site, or why it can have none."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.code.parts import CELL, CURRENT, FIRST, PATIENCE, PER_CPU, RING, ROOM, SITE
from kinst.rewriter.standalone.code.trampoline import (
    Behind,
    Clock,
    Constant,
    Count,
    Cpu,
    Current,
    Member,
    Record,
    Register,
    Stack,
    Tasks,
    Varying,
    Word,
)
from kinst.rewriter.standalone.current_task import Variable, variable_of
from kinst.rewriter.standalone.request import argument_fields
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.columns import unique
from kinst.targets.image import Image
from kinst.targets.instruction import Flow, Reason
from kinst.targets.kernels.labelled_code import labelled_code
from kinst.targets.manifest.packed import Manifest, ProbeKind
from kinst.targets.spans import covered
from kinst.targets.standalone import (
    CPU,
    RING_HEAD,
    TASK,
    TIME,
    WORD,
    Standalone,
    asks_for_task,
    behind_of,
    member_of,
    stack_of,
)
from kinst.targets.standalone import PATIENCE as PATIENCE_OFFSET
from kinst.targets.standalone import ROOM as ROOM_OFFSET
from kinst.targets.static_probes import PlaceKind

_STATIC: Final = "a static probe, which the image turns on and off"
_TAIL_CALL: Final = "a tail call: the function returns when its callee does, which is only counted (--action count)"
_UNSEEN: Final = Reason.UNSEEN_TAIL_CALL.text
_SEVERAL: Final = "an entry and a return: they have different arguments"
_OFFSET: Final = "offset"  # the column with a return's offset in its function
_NO_TASKS: Final = "the image does not say where Linux's current task is"
_ELSEWHERE: Final = "runs elsewhere, or by page tables that lack the trampolines"
_NO_ARGUMENTS: Final = "an instruction within a function: only its registers are known, not its arguments"


def obstacles(manifest: Manifest, standalone: Standalone, image: Image) -> dict[int, str]:
    """Rows of sites that can have no task, with the reason."""
    facts, form = image.facts, standalone.forms_at(len(manifest.sites), manifest.forms)
    asks = _has_form(form, standalone, lambda one: any(map(asks_for_task, one)))
    if asks.any() and variable_of(image) is None:
        return dict.fromkeys(np.flatnonzero(asks).tolist(), _NO_TASKS)
    kinds, flow = _kinds(manifest), manifest.sites["flow"]
    elsewhere = dict.fromkeys(np.flatnonzero(_is_elsewhere(manifest.sites["address"], image)).tolist(), _ELSEWHERE)
    found = dict.fromkeys(_switched(manifest).tolist(), _STATIC)
    leaves = kinds[:, ProbeKind.FBT_RETURN] & (flow != Flow.RETURN)
    # The callee of a tail call returns to the caller's caller, where nothing of ours is: neither when nor what it
    # returns is known. That it does can be counted at the jump.
    counts = form < 0
    found |= dict.fromkeys(np.flatnonzero(leaves & counts & (flow != Flow.JUMP)).tolist(), _UNSEEN)
    found |= dict.fromkeys(np.flatnonzero(leaves & ~counts).tolist(), _TAIL_CALL)
    arguments = set(argument_fields(facts))
    has_arguments = _has_form(form, standalone, lambda one: not arguments.isdisjoint(one))
    # Arguments are in registers at an entry, the return value at a return; one site that is both would have to be two.
    is_both = kinds[:, ProbeKind.FBT_RETURN] & kinds[:, ProbeKind.FBT_ENTRY]
    found |= dict.fromkeys(np.flatnonzero(is_both & has_arguments).tolist(), _SEVERAL)
    is_neither = ~(kinds[:, ProbeKind.FBT_RETURN] | kinds[:, ProbeKind.FBT_ENTRY])
    is_neither &= ~_begins(manifest) | kinds[:, ProbeKind.SDT]  # a static probe's are where its record says
    found |= dict.fromkeys(np.flatnonzero(is_neither & has_arguments).tolist(), _NO_ARGUMENTS)
    return found | elsewhere


def _has_form(
    form: NDArray[np.intp], standalone: Standalone, holds: Callable[[tuple[str, ...]], bool]
) -> NDArray[np.bool_]:
    """Which sites record a form of which something holds; `form` as `Standalone.forms_at`."""
    # The last one, which -1 leads to, is that of sites that count.
    return np.array([*map(holds, standalone.record_forms), False])[form]


def _is_elsewhere(sites: NDArray[np.uint64], image: Image) -> NDArray[np.bool_]:
    """Which sites are in code of a Linux kernel's that does not run where it is linked."""
    facts = image.facts.linux
    return covered(labelled_code(image, (*facts.identity, *facts.elsewhere)), sites)


def _switched(manifest: Manifest) -> NDArray[np.intp]:
    """The sites of static probes that are more than a nop that is always executed: something has to be stored, or a
    handler to look, for them to fire."""
    is_plain = [
        not (one.semaphores or one.id_word or one.callees) and all(place.kind is PlaceKind.NOP for place in one.places)
        for one in manifest.static
    ]
    probe = manifest.probes[manifest.enablings["probe"]]
    static = np.flatnonzero(probe["kind"] == ProbeKind.SDT)
    switched = static[~np.array(is_plain, np.bool_)[probe["offset"][static]]]
    return unique(manifest.enablings["site"][switched]).astype(np.intp)


def tasks(manifest: Manifest, standalone: Standalone, image: Image) -> Tasks:
    """The task of each site, and the values that differ between sites."""
    facts, variable = image.facts, variable_of(image) or Variable()
    count, address = len(manifest.sites), np.uint64(standalone.address)
    numbers = np.arange(count, dtype=np.uint64)
    form = standalone.forms_at(count, manifest.forms)
    # Counters are numbered by the sites that count, in the order of the manifest: readers find them without a table.
    cells = {CELL: address + np.uint64(WORD) * (np.cumsum(form < 0) - (form < 0)).astype(np.uint64)}
    if not standalone.has_ring:
        return Tasks((Count(),), np.zeros(count, np.int64), cells)
    starts = manifest.functions["address"][manifest.sites["function"]]
    records = (
        # One task for entries and one for returns: they differ in where arguments come from.
        Record(
            standalone.capacity - 1,
            standalone.stride,
            tuple(_word(field, facts, variable.current, is_return=is_return) for field in fields),
            standalone.waits,
        )
        for fields in standalone.record_forms
        for is_return in (False, True)
    )
    ring = np.uint64(standalone.ring)
    values = {
        RING: np.full(count, ring),
        ROOM: np.full(count, ring + np.uint64(ROOM_OFFSET)),
        PATIENCE: np.full(count, ring + np.uint64(PATIENCE_OFFSET)),
        FIRST: np.full(count, ring + np.uint64(RING_HEAD)),
        SITE: numbers,
        PER_CPU: np.full(count, variable.table, np.uint64),
        CURRENT: np.full(count, variable.address, np.uint64),
        _OFFSET: manifest.sites["address"] - starts,
    }
    number = np.where(form < 0, 0, 1 + 2 * form + _kinds(manifest)[:, ProbeKind.FBT_RETURN])
    return Tasks((Count(), *records), number, cells | values)


def _kinds(manifest: Manifest) -> NDArray[np.bool_]:
    """(sites, kinds): whether a site has a probe of a kind."""
    found = np.zeros((len(manifest.sites), len(ProbeKind)), np.bool_)
    site, kind = manifest.enablings["site"], manifest.probes["kind"][manifest.enablings["probe"]]
    found[site, kind] = True
    return found


def _begins(manifest: Manifest) -> NDArray[np.bool_]:
    """Which sites are the first instruction of their function, where its arguments are still in place, whatever probe
    is there."""
    starts: NDArray[np.uint64] = manifest.functions["address"][manifest.sites["function"]]
    result: NDArray[np.bool_] = manifest.sites["address"] == starts
    return result


def _word(field: str, facts: ArchFacts, current: Current, *, is_return: bool) -> Word:
    """Where a field's value comes from."""
    if field in (TIME, CPU):
        return Clock() if field == TIME else Cpu()
    return _of_memory(field, current) or _of_registers(field, facts, is_return=is_return)


def _of_memory(field: str, current: Current) -> Word | None:
    if field == TASK:
        return current
    if (offset := member_of(field)) is not None:
        return Member(current, offset)
    if (behind := behind_of(field)) is not None:
        return Behind(Member(current, behind[0]), behind[1])
    stack = stack_of(field)
    if stack is None:
        return None
    return Stack(stack.words, Member(current, stack.offset) if stack.size else None, stack.size)


def _of_registers(field: str, facts: ArchFacts, *, is_return: bool) -> Word:
    """Of a return, arg0 is the offset and arg1 the value, as of an fbt probe in DTrace."""
    arguments = argument_fields(facts)
    if field not in arguments:
        return Register(facts.registers.index(field))
    number = arguments.index(field)
    if not is_return:
        return Register(facts.arguments[number])
    return (Varying(_OFFSET), Register(facts.return_value))[number] if number < 2 else Constant(0)

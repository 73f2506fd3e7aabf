"""The records of an image's static probes -> probes with functions, and the instructions at which they fire."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.refusals import Refusals, join_refusals, no_refusals
from kinst.rewriter.sites import Decoded, Rows, Sites
from kinst.targets.functions import Functions
from kinst.targets.image import Image
from kinst.targets.instruction import Reason, Verdict
from kinst.targets.probe import PROVIDERS, ProbeName, matcher
from kinst.targets.static_probes import StaticNote, StaticProbe, static_notes

SDT: Final = "sdt"


def provider_names(image: Image) -> tuple[str, ...]:
    """Names of the providers that probes of an image may have: those there always are, and those of its static
    probes."""
    return tuple(dict.fromkeys((*PROVIDERS, *(note.provider for note in static_notes(image)))))


def static_probes(notes: Iterable[StaticNote], functions: Functions) -> tuple[StaticProbe, ...]:
    """The probes of an image: notes of one provider and name in one function are places of one probe.

    Notes whose address is in no function are left out.
    """
    found: dict[tuple[str, str, str], list[StaticNote]] = {}
    for note in notes:
        row = functions.row_at(note.place.address)
        if row is not None:
            found.setdefault((note.provider, functions.names[row], note.name), []).append(note)
    return tuple(
        StaticProbe(
            *key,
            tuple({note.place.address: note.place for note in group}.values()),
            tuple(sorted({note.semaphore for note in group if note.semaphore})),
        )
        for key, group in found.items()
    )


def matching_static(probes: Sequence[StaticProbe], name: ProbeName) -> Rows:
    """Rows of the probes that a name stands for. The module field was looked at already. Provider `sdt` stands for all
    static probes, whatever provider each of them names."""
    address = name.address
    is_provider = matcher("" if name.provider == SDT else name.provider)
    is_function, is_name = matcher(name.function), matcher(name.name)
    rows = [
        row
        for row, probe in enumerate(probes)
        if is_provider(probe.provider)
        and is_name(probe.name)
        and (is_function(probe.function) if address is None else address in {place.address for place in probe.places})
    ]
    return np.array(rows, np.intp)


def static_functions(functions: Functions, probes: Sequence[StaticProbe], chosen: Rows) -> Rows:
    """Rows of the functions in which chosen probes are."""
    places = [place for row in chosen.tolist() for place in probes[row].places]
    rows = (functions.row_at(place.address) for place in places)
    return np.array(sorted({row for row in rows if row is not None}), np.intp)


def static_sites(code: Decoded, image: Image, probes: Sequence[StaticProbe], chosen: Rows) -> Sites:
    """The nops of chosen probes; `position` is the row of the probe. Where there is no nop, the record is wrong."""
    good: list[tuple[int, int]] = []
    refused = []
    for row in chosen.tolist():
        for place in probes[row].places:
            at, reason = _look(code, image, place.address)
            if reason is Reason.NONE:
                good.append((at, row))
            else:
                refused.append(_refusal(code.functions, place.address, reason))
    pairs = np.array(good, np.int64).reshape(-1, 2)
    return Sites(pairs[:, 0].astype(np.intp), pairs[:, 1], join_refusals(refused) if refused else no_refusals())


def _look(code: Decoded, image: Image, address: int) -> tuple[int, Reason]:
    """The instruction at an address, and why it cannot be probed."""
    function = code.functions.row_at(address)
    assert function is not None, "static_probes left such places out"
    found = code.instructions
    first, last = int(code.first[function]), int(code.last[function])
    at = first + int(np.searchsorted(found.address[first:last], np.uint64(address)))
    if at >= last or int(found.address[at]) != address:
        return at, Reason.NO_NOP
    if found.verdict[at] == Verdict.REFUSE:
        return at, Reason(int(found.reason[at]))
    is_nop = image.read(address, int(found.size[at])).startswith(image.facts.nops)
    return at, Reason.NONE if is_nop else Reason.NO_NOP


def _refusal(functions: Functions, address: int, reason: Reason) -> Refusals:
    return Refusals(
        np.array([address], np.uint64),
        np.array([functions.row_at(address)], np.int32),
        np.array([reason], np.uint8),
        np.zeros(1, np.uint8),
    )


def used_static(
    probes: Sequence[StaticProbe], rows: NDArray[np.uint64]
) -> tuple[tuple[StaticProbe, ...], NDArray[np.int64]]:
    """The probes that `rows` name, and the place of each row among them."""
    used, place = np.unique(rows, return_inverse=True)
    return tuple(probes[int(row)] for row in used.tolist()), place.astype(np.int64)

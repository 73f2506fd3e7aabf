"""The records of an image's static probes -> probes with functions, and the instructions at which they fire."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.naming.refusals import Refusals, join_refusals, no_refusals
from kinst.rewriter.naming.sites import Decoded, Rows, Sites
from kinst.targets.functions.found import Functions
from kinst.targets.image import Image
from kinst.targets.instruction import Reason, Verdict
from kinst.targets.probe import PROVIDERS, ProbeName, matcher
from kinst.targets.sdt_sets import SdtRecord, sdt_records
from kinst.targets.static_probes import PlaceKind, StaticNote, StaticPlace, StaticProbe, dashed, static_notes
from kinst.targets.tracepoints import Tracepoint, tracepoints
from kinst.targets.values import dataclass

SDT: Final = "sdt"


@dataclass(frozen=True, slots=True)
class StaticRecords:
    """All that an image says about its static probes: systemtap's notes, FreeBSD's linker sets, Linux's tracepoints."""

    image: Image
    notes: tuple[StaticNote, ...]
    sets: tuple[SdtRecord, ...]
    tracepoints: tuple[Tracepoint, ...]

    @property
    def providers(self) -> tuple[str, ...]:
        """The names of their providers."""
        own = [*(note.provider for note in self.notes), *(one.provider for one in self.sets)]
        return tuple(dict.fromkeys((*own, SDT) if self.tracepoints else own))

    @property
    def addresses(self) -> tuple[int, ...]:
        """The addresses of code that may have to be patched."""
        called = (self._called(has_tracepoints=form) for form in (False, True))
        branches = (nop for record in self.sets for nop, _ in record.branches)
        asked = (nop for one in self.tracepoints for nop, _ in one.places)
        return (
            *(note.place.address for note in self.notes),
            *branches,
            *(one for one in called if one is not None),
            *asked,
        )

    def probes(self, functions: Functions) -> tuple[StaticProbe, ...]:
        """The probes. Notes of one provider and name in one function are places of one probe; what a set says of the
        same provider and name applies to it. Notes whose address is in no function are left out."""
        # Notes give places and operands, sets the types and the module: of one probe both are used.
        by_name = {(record.provider, dashed(record.name)): record for record in self.sets}
        found: dict[tuple[str, str, str], list[StaticNote]] = {}
        for note in self.notes:
            row = functions.row_at(note.place.address)
            if row is not None:
                found.setdefault((note.provider, functions.names[row], note.name), []).append(note)
        # A probe with notes fires at them; to let it fire at its probe function as well would count it twice.
        noted = {(provider, name) for provider, _, name in found}
        probes = [_noted(*key, group, by_name.get((key[0], key[2]))) for key, group in found.items()]
        made = (self._from_set(record) for key, record in by_name.items() if key not in noted)
        return (*probes, *(probe for probe in made if probe is not None), *map(_asked_for, self.tracepoints))

    def _from_set(self, record: SdtRecord) -> StaticProbe | None:
        """A probe without a note fires where the kernel calls its probe function; None if there is no such function."""
        called = self._called(has_tracepoints=record.has_tracepoints)
        if called is None:
            return None
        branches = (StaticPlace(nop, (), PlaceKind.BRANCH, target) for nop, target in record.branches)
        return StaticProbe(
            *(record.provider, record.module, record.function or "none", dashed(record.name)),
            (StaticPlace(called, (), PlaceKind.CALL), *branches),
            declared=record.types,
            id_word=record.id_word,
            switch=self.image.symbols.address_of("sdt_probes_enabled") or 0,
        )

    def _called(self, *, has_tracepoints: bool) -> int | None:
        if not self.sets:
            return None
        return self.image.symbols.address_of("sdt_probe" if has_tracepoints else "sdt_probe_stub")


def static_records(image: Image) -> StaticRecords:
    """What an image says about its static probes."""
    return StaticRecords(image, static_notes(image), sdt_records(image), tracepoints(image))


def provider_names(image: Image) -> tuple[str, ...]:
    """The providers that probes of an image may name: the usual ones, and those of its static probes."""
    return tuple(dict.fromkeys((*PROVIDERS, *static_records(image).providers)))


def _noted(
    provider: str, function: str, name: str, notes: Sequence[StaticNote], record: SdtRecord | None
) -> StaticProbe:
    module = "" if record is None else record.module
    function = (record.function if record is not None else "") or function
    declared = () if record is None else record.types
    places = {note.place.address: note.place for note in notes}
    semaphores = sorted({note.semaphore for note in notes if note.semaphore})
    return StaticProbe(provider, module, function, name, tuple(places.values()), tuple(semaphores), declared)


def _asked_for(tracepoint: Tracepoint) -> StaticProbe:
    """The probe of a tracepoint. It has no function: its places may be in many."""
    places = tuple(StaticPlace(nop, (), PlaceKind.BLOCK, block) for nop, block in tracepoint.places)
    return StaticProbe(SDT, tracepoint.system, "", tracepoint.name, places, callees=tracepoint.callees)


def matching_static(probes: Sequence[StaticProbe], name: ProbeName, module: str) -> Rows:
    """Rows of the probes that a name matches. Provider `sdt` matches all static probes, whatever provider each of
    them names; `module` is the image's own."""
    address, is_image = name.address, name.matches_image(module)
    is_provider = matcher("" if name.provider == SDT else name.provider)
    is_function, is_name = matcher(name.function), matcher(name.name)
    rows = [
        row
        for row, probe in enumerate(probes)
        if is_provider(probe.provider)
        and (name.matches_module(probe.module) if probe.module else is_image)
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
            at, reason = _look(code, image, place)
            if reason is Reason.NONE:
                good.append((at, row))
            else:
                refused.append(_refusal(code.functions, place.address, reason))
    pairs = np.array(good, np.int64).reshape(-1, 2)
    return Sites(pairs[:, 0].astype(np.intp), pairs[:, 1], join_refusals(refused) if refused else no_refusals())


def _look(code: Decoded, image: Image, place: StaticPlace) -> tuple[int, Reason]:
    """The instruction at a place, and why it cannot be probed."""
    found = code.instructions
    function = code.functions.row_at(place.address)
    if function is None:
        return 0, Reason.NO_NOP
    first, last = int(code.first[function]), int(code.last[function])
    at = first + int(np.searchsorted(found.address[first:last], np.uint64(place.address)))
    if at >= last or int(found.address[at]) != place.address:
        return at, Reason.NO_NOP
    if place.kind is PlaceKind.CALL:
        # Hardware checks that the landing pad is there, so the probe is on the instruction after it.
        at += bool(found.reason[at] == Reason.LANDING_PAD) and at + 1 < last
        return at, Reason(int(found.reason[at]))
    if place.kind is PlaceKind.BLOCK:  # a nop, or a jump by now: the kernel writes here
        is_refused = found.verdict[at] == Verdict.REFUSE
        return at, Reason(int(found.reason[at])) if is_refused else Reason.NONE
    # systemtap's macro leaves one nop. Anything else there means that the note is of another build.
    is_nop = image.read(place.address, int(found.size[at])).startswith(image.facts.nops)
    return at, Reason(int(found.reason[at])) or (Reason.NONE if is_nop else Reason.NO_NOP)


def _refusal(functions: Functions, address: int, reason: Reason) -> Refusals:
    return Refusals(
        np.array([address], np.uint64),
        np.array([functions.row_at(address) or 0], np.int32),
        np.array([reason], np.uint8),
        np.zeros(1, np.uint8),
    )


def used_static(
    probes: Sequence[StaticProbe], rows: NDArray[np.uint64]
) -> tuple[tuple[StaticProbe, ...], NDArray[np.int64]]:
    """The probes that `rows` name, and the place of each row among them."""
    used, place = np.unique(rows, return_inverse=True)
    return tuple(probes[int(row)] for row in used.tolist()), place.astype(np.int64)

"""Resolved probe names and what they shall do -> the plan of an image that does it by itself, and needs no handler."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.plan import Plan, filled, manifest_of, without_sites
from kinst.rewriter.program import Program
from kinst.rewriter.progress import Progress, silent
from kinst.rewriter.refusals import no_refusals
from kinst.rewriter.resolve import Resolution
from kinst.rewriter.slots import CHUNK, Placement
from kinst.rewriter.standalone.building import NO_ROOM
from kinst.rewriter.standalone.factory import Factory, Made
from kinst.rewriter.standalone.placing import Places, placed
from kinst.rewriter.standalone.report import no_jump_summary
from kinst.rewriter.standalone.request import Request
from kinst.rewriter.standalone.rooms import from_address
from kinst.targets.elf.header import FileKind
from kinst.targets.errors import ProbeError
from kinst.targets.manifest import Manifest
from kinst.targets.patch import LONGEST, Patch

_IN_PART: Final = "another site of its probe cannot be one"
_NO_TEXT: Final = np.zeros(0, np.uint8)
_EACH: Final = 48  # bytes of a trampoline, as a first guess


def plan_standalone(
    resolution: Resolution, request: Request, *, trampoline_base: int | None = None, progress: Progress = silent
) -> Plan:
    """Decide the jumps, the trampolines, and where counters or the ring are.

    Raises:
        ProbeError: no site can be a jump.
        PlacementError: no room, or something is in the way.
    """
    program, (manifest, _) = resolution.program, manifest_of(resolution)
    if program.image.kind is FileKind.REL:
        raise ProbeError(f"{program.image.path}: --standalone is for linked images, and this is a module")
    no_jumps: dict[int, str] = {}
    factory, room = Factory(program, manifest, progress), _EACH * len(manifest.sites)
    inside = factory.inside
    while True:
        if not len(manifest.sites):
            raise ProbeError(f"nothing left: {no_jump_summary(no_jumps, 0)}")
        room += -room % CHUNK
        places = placed(program, inside, manifest, request, room, trampoline_base)
        made = factory.made(manifest, places.standalone, places.rooms)
        if not made.refused:
            return _plan(program, manifest, made, places, dict(sorted(no_jumps.items())))
        if places.placement.size >= room and NO_ROOM in made.refused.values():
            room = max(room + CHUNK, made.needed)  # where other sites may be in reach: nothing is refused yet
            continue
        manifest, whys = _without(manifest, made.refused)
        no_jumps |= whys


def plan_again(program: Program, manifest: Manifest, placement: Placement, progress: Progress) -> tuple[Plan, Made]:
    """The plan that the manifest of a standalone image claims, and what its program gives. Rows of sites that cannot be
    as it says are in `Made.refused`."""
    assert manifest.standalone is not None
    factory, (address, size) = Factory(program, manifest, progress), manifest.trampolines
    rooms = ((address, address + size),) if placement.size else from_address(factory.inside.code, address)
    made = factory.made(manifest, manifest.standalone, rooms)
    text = _text(program, made, size) if placement.size else _NO_TEXT
    return Plan(program.image, program.original, manifest, placement, text, no_refusals()), made


def _plan(program: Program, manifest: Manifest, made: Made, places: Places, no_jumps: Mapping[int, str]) -> Plan:
    sites, has_segment = manifest.sites.copy(), places.placement.size > 0
    sites["trampoline"] = made.trampolines
    manifest = replace(
        manifest,
        sites=sites,
        trampolines=places.trampolines,
        standalone=places.standalone,
        jumps=written(program, made, is_inside=not has_segment),
    )
    text = _text(program, made, places.trampolines[1]) if has_segment else _NO_TEXT
    return Plan(program.image, program.original, manifest, places.placement, text, no_refusals(), no_jumps)


def written(program: Program, made: Made, *, is_inside: bool) -> tuple[Patch, ...]:
    """What is written over the image's own bytes: jumps, and trampolines that are inside of it."""
    patches = list(made.jumps)
    for start, code in made.code if is_inside else ():
        for at in range(0, len(code), LONGEST):
            part = code[at : at + LONGEST]
            patches.append(Patch(start + at, program.image.read(start + at, len(part)), part, ""))
    return tuple(sorted(patches, key=lambda one: one.address))


def _text(program: Program, made: Made, room: int) -> NDArray[np.uint8]:
    text = filled(program.image.facts, room)
    for _, code in made.code:
        text[: len(code)] = np.frombuffer(code, np.uint8)
    return text


def _without(manifest: Manifest, refused: Mapping[int, str]) -> tuple[Manifest, dict[int, str]]:
    """The manifest without some sites, and without all probes of these: what fires at some of its sites only would be
    counted wrongly."""
    site, probe = manifest.enablings["site"], manifest.enablings["probe"]
    kept = ~np.isin(probe, probe[np.isin(site, list(refused))])
    gone = np.ones(len(manifest.sites), np.bool_)
    gone[site[kept]] = False
    addresses = manifest.sites["address"].tolist()
    found = {addresses[row]: refused.get(row, _IN_PART) for row in np.flatnonzero(gone).tolist()}
    return without_sites(replace(manifest, enablings=manifest.enablings[kept]), gone), found

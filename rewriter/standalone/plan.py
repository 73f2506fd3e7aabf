"""Resolved probe names and what they shall do -> the plan of an image that does it by itself, and needs no handler."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.patching.placing import place_name
from kinst.rewriter.plan import Plan, check_linked, filled, manifest_of, without_sites
from kinst.rewriter.program import Program
from kinst.rewriter.progress import Progress, silent
from kinst.rewriter.refusals import NoJump, no_refusals
from kinst.rewriter.resolve import Resolution
from kinst.rewriter.slots import CHUNK, Placement
from kinst.rewriter.standalone.factory import Factory, Made
from kinst.rewriter.standalone.placing import Places, placed
from kinst.rewriter.standalone.report import no_jump_summary
from kinst.rewriter.standalone.request import Request
from kinst.targets.errors import ProbeError
from kinst.targets.manifest import Manifest

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
    check_linked(program.image)
    no_jumps: list[NoJump] = []
    factory, room = Factory(program, manifest, progress), _whole(_EACH * len(manifest.sites))
    while True:
        if not len(manifest.sites):
            raise ProbeError(f"nothing left: {no_jump_summary(no_jumps, 0)}")
        places = placed(program.image, manifest, request, room, trampoline_base)
        made = factory.made(manifest, places.standalone, places.placement.address)
        if len(made.code) > room:  # elsewhere other sites are in reach
            room = _whole(len(made.code))
        elif not made.refused:
            return _plan(program, manifest, made, places, tuple(sorted(no_jumps, key=lambda one: one.address)))
        else:
            no_jumps += _no_jumps(program, manifest, made.refused)
            manifest = without_sites(manifest, np.isin(np.arange(len(manifest.sites)), list(made.refused)))


def plan_again(program: Program, manifest: Manifest, placement: Placement, progress: Progress) -> tuple[Plan, Made]:
    """The plan that the manifest of a standalone image claims, and what its program gives. Rows of sites that cannot be
    as it says are in `Made.refused`."""
    assert manifest.standalone is not None
    made = Factory(program, manifest, progress).made(manifest, manifest.standalone, placement.address)
    room = manifest.trampolines[1]
    plan = Plan(program.image, program.original, manifest, placement, _text(program, made, room), no_refusals())
    return plan, made


def _whole(size: int) -> int:
    return size + -size % CHUNK


def _plan(program: Program, manifest: Manifest, made: Made, places: Places, no_jumps: tuple[NoJump, ...]) -> Plan:
    sites = manifest.sites.copy()
    sites["trampoline"] = made.trampolines
    trampolines = places.placement.address, places.room
    manifest = replace(manifest, sites=sites, trampolines=trampolines, standalone=places.standalone, jumps=made.jumps)
    text = _text(program, made, places.room)
    return Plan(program.image, program.original, manifest, places.placement, text, no_refusals(), no_jumps)


def _text(program: Program, made: Made, room: int) -> NDArray[np.uint8]:
    text = filled(program.image.facts, room)
    code = np.frombuffer(made.code, np.uint8)[:room]
    text[: len(code)] = code
    return text


def _no_jumps(program: Program, manifest: Manifest, whys: Mapping[int, str]) -> list[NoJump]:
    places = [(int(manifest.sites["address"][row]), whys[row]) for row in sorted(whys)]
    return [NoJump(address, place_name(program, address), why) for address, why in places]

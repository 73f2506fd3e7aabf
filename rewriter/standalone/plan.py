"""Resolved probe names and what they shall do -> the plan of an image that does it by itself, without a handler."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.frames.building import frames_of
from kinst.rewriter.frames.encoding import Frames
from kinst.rewriter.naming.refusals import no_refusals
from kinst.rewriter.naming.resolve import Resolution, with_functions_at
from kinst.rewriter.planning.plan import Plan, filled, manifest_of, without_sites
from kinst.rewriter.planning.slots import CHUNK, Placement
from kinst.rewriter.program import Program, instructions_of
from kinst.rewriter.shell.progress import Progress, silent
from kinst.rewriter.standalone.building import NO_SPACE
from kinst.rewriter.standalone.code.parts import ranges
from kinst.rewriter.standalone.factory import Factory, Generated
from kinst.rewriter.standalone.jumping import Jumps, joined_jumps
from kinst.rewriter.standalone.places.placing import Places, placed
from kinst.rewriter.standalone.places.spare import code_gaps, from_address
from kinst.rewriter.standalone.report import no_jump_summary
from kinst.rewriter.standalone.request import Request
from kinst.targets.elf.header import FileKind
from kinst.targets.errors import ProbeError
from kinst.targets.manifest.packed import JUMPS, Manifest

_IN_PART: Final = "another site of its probe cannot be a jump"
_NO_TEXT: Final = np.zeros(0, np.uint8)
_EACH: Final = 48  # bytes of a trampoline: the first guess
_SPARE: Final = 32  # the second guess adds 1/32 of the size that was needed


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
    in_text = not request.has_room and (trampoline_base is None or _is_inside(program, trampoline_base))
    factory = Factory(program, resolution.all_instructions(progress), progress, in_text=in_text)
    assert len(request.of_sites) in (0, len(manifest.sites)), "the request is for these sites"
    manifest = replace(manifest, forms=request.of_sites)
    manifest, no_jumps = factory.endless.left_out(manifest)
    inside, size = factory.inside, _EACH * len(manifest.sites)
    # Each round fits, or asks for a larger segment until there is no place for one, or drops sites: the loop ends.
    while True:
        if not len(manifest.sites):
            raise ProbeError(f"nothing left: {no_jump_summary(no_jumps, 0)}")
        size += -size % CHUNK
        places = placed(program, inside, manifest, request, size, trampoline_base)
        generated = factory.generate(manifest, places.standalone, places.gaps)
        if not generated.refused:
            plan = _plan(program, manifest, generated, places, dict(sorted(no_jumps.items())))
            return replace(plan, frames=_frames(program, generated)) if request.has_frames else plan
        if places.placement.size >= size and NO_SPACE in generated.refused.values():
            # A larger segment starts elsewhere, where other sites may be in reach: nothing is refused before its size
            # is right.
            size = max(size + CHUNK, generated.needed)
            continue
        manifest, whys = _without(manifest, generated.refused)
        no_jumps |= whys
        # The segment shrinks to what the sites that are left need.
        if generated.needed:
            size = min(size, generated.needed + generated.needed // _SPARE)


def plan_again(
    program: Program, manifest: Manifest, placement: Placement, progress: Progress
) -> tuple[Plan, Generated]:
    """The plan that the manifest of a standalone image claims, and the code that its program gives. Rows of sites that
    cannot be as it claims are in `Generated.refused`."""
    assert manifest.standalone is not None
    program = with_functions_at(program, manifest.functions["address"].tolist())  # those that only an address named
    found = instructions_of(program, np.arange(len(program.functions)), progress)
    factory, (address, size) = Factory(program, found, progress, in_text=not placement.size), manifest.trampolines
    gaps = ((address, address + size),) if placement.size else from_address(factory.inside.code, address)
    generated = factory.generate(manifest, manifest.standalone, gaps)
    text = _text(program, generated, size) if placement.size else _NO_TEXT
    frames = _frames(program, generated)
    return Plan(program.image, program.original, manifest, placement, text, no_refusals(), frames=frames), generated


def _is_inside(program: Program, address: int) -> bool:
    return bool(from_address(code_gaps(program.image, program.functions), address))


def _plan(
    program: Program, manifest: Manifest, generated: Generated, places: Places, no_jumps: Mapping[int, str]
) -> Plan:
    sites, has_segment = manifest.sites.copy(), places.placement.size > 0
    sites["trampoline"] = generated.trampolines
    manifest = replace(
        manifest,
        sites=sites,
        trampolines=places.trampolines,
        standalone=places.standalone,
        **written(program, generated, is_inside=not has_segment),
    )
    text = _text(program, generated, places.trampolines[1]) if has_segment else _NO_TEXT
    return Plan(program.image, program.original, manifest, places.placement, text, no_refusals(), no_jumps)


def _frames(program: Program, generated: Generated) -> Frames | None:
    """How to unwind from the trampolines."""
    return None if generated.refused else frames_of(program.original, generated.spans, generated.read)


def written(program: Program, generated: Generated, *, is_inside: bool) -> dict[str, Any]:
    """What is written over the image's own bytes, as fields of a manifest: jumps, and trampolines that lie inside the
    image."""
    inside = (Jumps(*_place(start, code)) for start, code in generated.code if is_inside and code)
    jumps = joined_jumps([generated.jumps, *inside])
    places = np.zeros(len(jumps.at), JUMPS)
    places["address"], places["size"] = jumps.at, jumps.size
    originals = program.image.data[ranges(program.image.offsets_of(jumps.at), jumps.size)]
    return {"jumps": places, "jump_originals": originals.tobytes(), "jump_code": jumps.code.tobytes()}


def _place(start: int, code: bytes) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint8]]:
    return np.array([start], np.uint64), np.array([len(code)], np.int64), np.frombuffer(code, np.uint8)


def _text(program: Program, generated: Generated, size: int) -> NDArray[np.uint8]:
    text = filled(program.image.facts, size)
    for _, code in generated.code:
        text[: len(code)] = np.frombuffer(code, np.uint8)
    return text


def _without(manifest: Manifest, refused: Mapping[int, str]) -> tuple[Manifest, dict[int, str]]:
    """The manifest without some sites, without all probes of these, and without sites that only such probes had: a
    probe that fires at some of its sites would count wrongly."""
    site, probe = manifest.enablings["site"], manifest.enablings["probe"]
    is_refused, is_lost = np.zeros(len(manifest.sites), np.bool_), np.zeros(len(manifest.probes), np.bool_)
    is_refused[list(refused)] = True
    is_lost[probe[is_refused[site]]] = True
    kept = ~is_lost[probe]
    gone = np.ones(len(manifest.sites), np.bool_)
    gone[site[kept]] = False
    addresses = manifest.sites["address"].tolist()
    found = {addresses[row]: refused.get(row, _IN_PART) for row in np.flatnonzero(gone).tolist()}
    return without_sites(replace(manifest, enablings=manifest.enablings[kept]), gone), found

"""A program and a manifest -> the code that makes its sites standalone, for any place; or why a site cannot be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.decide import Ground, decide_on
from kinst.rewriter.jumps.methods import Hindrance, JumpMethod
from kinst.rewriter.liveness.dead import dead_before
from kinst.rewriter.program import Program
from kinst.rewriter.shell.progress import Progress
from kinst.rewriter.standalone.building import Todo, build
from kinst.rewriter.standalone.code.groups import groups
from kinst.rewriter.standalone.code.material import Material
from kinst.rewriter.standalone.code.stacks import without_stack
from kinst.rewriter.standalone.code.templates import Templates
from kinst.rewriter.standalone.code.trampoline import maker
from kinst.rewriter.standalone.jumping import Jumps, joined_jumps
from kinst.rewriter.standalone.places.gaps import slacks
from kinst.rewriter.standalone.places.rooms import Inside, Room, code_gap, code_rooms, data_rooms
from kinst.rewriter.standalone.tasks import obstacles, tasks
from kinst.targets.instruction import Instructions
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import Standalone

_OVERLAPS = "its function overlaps another one"


@dataclass(frozen=True, slots=True)
class Made:
    """Trampolines one behind the other in each room, with its address; jumps by address; the trampoline of each site;
    rows of sites that have none, with the reason; and how many bytes the last room must have, if that is one."""

    code: tuple[tuple[int, bytes], ...]
    jumps: Jumps
    trampolines: NDArray[np.uint64]
    refused: Mapping[int, str] = field(default_factory=dict)
    needed: int = 0


class Factory:
    """What is known of a program, whatever the place. It sees all code: what leads to a site may be anywhere."""

    def __init__(self, program: Program, found: Instructions, progress: Progress) -> None:
        """`found`: the instructions of all functions."""
        self._templates, self._progress = Templates(maker(program.image.facts)), progress
        self._ground = Ground.of(program, found)
        no_stack = without_stack(program, found, self._templates.maker)
        self._material = Material(program, found, dead_before(program, found), no_stack)

    @property
    def inside(self) -> Inside:
        """Room inside the image."""
        program = self._material.program
        image = program.image
        data = data_rooms(image) or tuple(slacks(image))
        return Inside(code_rooms(image, program.functions), code_gap(image), data)

    def made(self, manifest: Manifest, standalone: Standalone, rooms: Sequence[Room]) -> Made:
        """The code for the sites of a manifest.

        Args:
            manifest: its sites, probes and enablings count.
            standalone: what they do, and where the data are.
            rooms: where trampolines may be, ascending.
        """
        material, image = self._material, self._material.program.image
        found, sites = material.found, manifest.sites["address"]
        rows = np.minimum(np.searchsorted(found.address, sites), len(found) - 1)
        refused = dict.fromkeys(np.flatnonzero(found.address[rows] != sites).tolist(), _OVERLAPS)
        refused |= obstacles(manifest, standalone, image)
        if refused:
            return _nothing(refused)
        decisions, is_near = decide_on(self._ground, rows, rooms), self._is_near(sites, rooms)
        traps = np.flatnonzero(decisions.method == JumpMethod.TRAP)
        refused = dict(zip(traps.tolist(), _texts(decisions.hindrance[traps]), strict=True))
        if refused and not is_near:
            return _nothing(refused)
        wanted = groups(found, rows, decisions, image.facts.jump)
        todo = Todo(rows, tasks(manifest, standalone, image), refused)
        built = build(self._templates, material, wanted, todo, rooms, self._progress, is_near=is_near)
        if built.refused:
            return Made((), built.jumps, built.trampolines, built.refused, built.needed)
        return Made(tuple((start, bytes(code)) for start, code in built.code), built.jumps, built.trampolines)

    def _is_near(self, sites: NDArray[np.uint64], rooms: Sequence[Room]) -> bool:
        """Whether jumps lead from each site to the ends of all rooms."""
        ends = [address for room in rooms for address in room]
        first, last = min(*ends, int(sites[0])), max(*ends, int(sites[-1]))
        return last - first < self._material.program.image.facts.jump.reach


def _texts(hindrances: NDArray[np.uint8]) -> list[str]:
    texts = {one.value: one.text for one in Hindrance}
    return [texts[one] for one in hindrances.tolist()]


def _nothing(refused: Mapping[int, str]) -> Made:
    return Made((), joined_jumps(()), np.zeros(0, np.uint64), refused)

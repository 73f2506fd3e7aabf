"""A program and a manifest -> the code that makes its sites standalone, in given gaps; or why a site cannot be."""

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.frames.kept import kept_for_unwinders
from kinst.rewriter.frames.spans import Spans, joined_spans
from kinst.rewriter.jumps.decide import Analysis, decide_with
from kinst.rewriter.jumps.methods import Hindrance, JumpMethod
from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.liveness.dead import dead_before
from kinst.rewriter.program import Program
from kinst.rewriter.shell.progress import Progress
from kinst.rewriter.standalone.building import Work, build
from kinst.rewriter.standalone.code.groups import groups
from kinst.rewriter.standalone.code.material import Material
from kinst.rewriter.standalone.code.stacks import without_stack
from kinst.rewriter.standalone.code.templates import Templates
from kinst.rewriter.standalone.code.trampoline import code_generator
from kinst.rewriter.standalone.endless import Endless
from kinst.rewriter.standalone.jumping import Jumps, joined_jumps
from kinst.rewriter.standalone.places.gaps import slacks
from kinst.rewriter.standalone.places.spare import Gap, SpareSpace, code_gaps, data_gaps, unfiled_gap
from kinst.rewriter.standalone.tasks import obstacles, tasks
from kinst.targets.hosted import is_hosted
from kinst.targets.instruction import Instructions
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import Standalone
from kinst.targets.values import dataclass

_OVERLAPS = "its function overlaps another one"


@dataclass(frozen=True, slots=True)
class Generated:
    """Trampolines back to back in each gap, with its address; jumps by address; the trampoline of each site; sites
    without one, by row, with the reason; how many bytes the last gap would need, if sites did not fit; and where the
    parts of trampolines are."""

    code: tuple[tuple[int, bytes], ...]
    jumps: Jumps
    trampolines: NDArray[np.uint64]
    refused: Mapping[int, str] = field(default_factory=dict)
    needed: int = 0
    spans: Spans = field(default_factory=lambda: joined_spans(()))

    def read(self, start: int, end: int) -> bytes:
        """The code between two addresses of a trampoline."""
        at, code = next((at, code) for at, code in self.code if at <= start < at + len(code))
        return code[start - at : end - at]


class Factory:
    """What is known of a program wherever its trampolines go. It reads all of its code: a branch to a site may be
    anywhere."""

    def __init__(self, program: Program, found: Instructions, progress: Progress, *, in_text: bool) -> None:
        """`found`: the instructions of all functions. `in_text`: whether trampolines will be within a kernel's
        text."""
        self._templates, self._progress = Templates(code_generator(program.image.facts)), progress
        self._analysis = Analysis.of(program, found, in_text=in_text)
        flow, rules = Dataflow.of(program, found), self._templates.generator.rules
        no_stack, dead = without_stack(flow, self._templates.generator), dead_before(flow)
        # Programs unwind themselves. A debugger of kernels and firmware may see less for an instruction or two: to look
        # at all frames of Linux takes longer than to plan its jumps.
        if is_hosted(program.image):
            dead &= ~kept_for_unwinders(program.original, found.address)
        self.endless = Endless(program, found)
        self._leaps = dead & np.uint32(rules.jumps_by) != 0
        self._material = Material(program, found, dead, no_stack, self._analysis.led)

    @property
    def inside(self) -> SpareSpace:
        """The space in the image that nothing uses."""
        program = self._material.program
        image = program.image
        data = data_gaps(image) or tuple(slacks(image))
        return SpareSpace(code_gaps(image, program.functions), unfiled_gap(image), data)

    def generate(self, manifest: Manifest, standalone: Standalone, gaps: Sequence[Gap]) -> Generated:
        """The code for the sites of a manifest.

        Args:
            manifest: its sites, probes and enablings count.
            standalone: what the sites do, and where their data is.
            gaps: where trampolines may be, ascending.
        """
        material, image = self._material, self._material.program.image
        found, sites = material.found, manifest.sites["address"]
        rows = np.minimum(np.searchsorted(found.address, sites), len(found) - 1)
        refused = dict.fromkeys(np.flatnonzero(found.address[rows] != sites).tolist(), _OVERLAPS)
        refused |= obstacles(manifest, standalone, image)
        if refused:
            return _nothing(refused)
        # A site that cannot be a jump is refused here, before any code is made, unless everything is near: then the
        # size of the rest is still needed, so that the next attempt asks for a segment that fits.
        decisions, is_near = decide_with(self._analysis, rows, gaps, self._leaps), self._is_near(sites, gaps)
        traps = np.flatnonzero(decisions.method == JumpMethod.TRAP)
        refused = dict(zip(traps.tolist(), _texts(decisions.hindrance[traps]), strict=True))
        if refused and not is_near:
            return _nothing(refused)
        wanted = groups(found, rows, decisions, image.facts.jump)
        work = Work(rows, tasks(manifest, standalone, image), refused)
        built = build(self._templates, material, wanted, work, gaps, self._progress, is_near=is_near)
        if built.refused:
            return Generated((), built.jumps, built.trampolines, built.refused, built.needed)
        code = tuple((start, bytes(code)) for start, code in built.code)
        return Generated(code, built.jumps, built.trampolines, spans=built.spans)

    def _is_near(self, sites: NDArray[np.uint64], gaps: Sequence[Gap]) -> bool:
        """Whether jumps from each site reach the ends of all gaps, and so everything between."""
        ends = [address for gap in gaps for address in gap]
        first, last = min(*ends, int(sites[0])), max(*ends, int(sites[-1]))
        return last - first < self._material.program.image.facts.jump.reach


def _texts(hindrances: NDArray[np.uint8]) -> list[str]:
    texts = {one.value: one.text for one in Hindrance}
    return [texts[one] for one in hindrances.tolist()]


def _nothing(refused: Mapping[int, str]) -> Generated:
    return Generated((), joined_jumps(()), np.zeros(0, np.uint64), refused)

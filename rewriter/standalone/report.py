"""A standalone image's plan -> what commands report of it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kinst.rewriter.naming.resolve import Resolution
from kinst.rewriter.patching.placing import place_name
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.program import Program
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest
from kinst.targets.probe import ProbeName
from kinst.targets.standalone import Standalone


def data_text(found: Standalone) -> str:
    """``counters at 0x80100000, 512 bytes``."""
    parts = ["counters"] * found.has_counters + [f"a ring of {found.capacity:,} records"] * found.has_ring
    return f"{' and '.join(parts)} at {found.address:#x}, {found.size:,} bytes"


def no_jump_summary(no_jumps: Mapping[int, str], kept: int) -> str:
    """``12 of 340 sites cannot be jumps: 9 it is shorter than a jump; ...``; empty if all can."""
    if not no_jumps:
        return ""
    counts = Counter(no_jumps.values())
    reasons = "; ".join(f"{number:,} {why}" for why, number in counts.most_common())
    return f"{len(no_jumps):,} of {len(no_jumps) + kept:,} sites cannot be jumps: {reasons}"


def without_jumps(resolution: Resolution, plan: Plan) -> Iterator[tuple[ProbeName, str]]:
    """The names none of whose sites can be a jump, and why."""
    for name, sites in resolution.wholly_among(np.array([*plan.no_jumps], np.uint64)):
        yield name, no_jump_summary({site: plan.no_jumps[site] for site in sites.tolist()}, 0)


def moving_text(plan: Plan) -> str:
    """A warning for an image that can relocate itself; empty for others."""
    if plan.manifest.standalone is None or not may_move(plan.image, plan.manifest):
        return ""
    return (
        f"{plan.manifest.module} has relocations: if it copies itself elsewhere and goes on there, as U-Boot does, its "
        "trampolines are not there; kinst-run reports it"
    )


def may_move(image: Image, manifest: Manifest) -> bool:
    """Whether an image can copy itself elsewhere and leave its trampolines behind: those in the middle of it move
    along. What an operating system maps does not do that."""
    if is_hosted(image):
        return False
    start = manifest.trampolines[0]
    own = (one for one in image.segments if one.kind == PT_LOAD and one.address != start)
    return bool(image.relocations.relative.any()) and start >= max((one.address + one.size for one in own), default=0)


def no_jump_lines(program: Program, plan: Plan) -> Iterator[str]:
    """Each site that is no jump."""
    for address, why in plan.no_jumps.items():
        yield f"{address:#x} {place_name(program, address)} cannot be a jump: {why}"


def standalone_value(program: Program, plan: Plan) -> dict[str, Any]:
    """The same for `json.dumps`; empty for other images."""
    found = plan.manifest.standalone
    if found is None:
        return {}
    return {
        "standalone": {
            "action": found.action.value,
            "fields": list(found.fields),
            **({"forms": [*map(list, found.forms)], "counters": found.counters} if found.forms else {}),
            "address": found.address,
            "load_address": found.load_address,
            "size": found.size,
            "capacity": found.capacity,
            "no_jumps": [
                {"address": address, "site": place_name(program, address), "text": why}
                for address, why in plan.no_jumps.items()
            ],
        }
    }

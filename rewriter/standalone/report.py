"""A standalone image's plan -> what commands report of it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kinst.rewriter.naming.resolve import Resolution
from kinst.rewriter.patching.placing import place_name
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.program import Program
from kinst.rewriter.standalone.copies import is_behind, may_copy_itself
from kinst.targets.errors import ProbeError
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
    if not _may_move(plan):
        return ""
    return (
        f"{plan.manifest.module} has relocations: if it copies itself elsewhere and goes on there, as U-Boot does, its "
        "trampolines are not there; kinst-run reports it"
    )


def refuse_to_move(plan: Plan) -> None:
    """Raise ProbeError for an image that can relocate itself: nobody would report it where that runs."""
    if _may_move(plan):
        raise ProbeError(
            f"{plan.image.path}: has relocations, and may copy itself elsewhere and go on there without its "
            "trampolines, as U-Boot does: kinst-run --on follows it; if it stays where it is loaded, say --stays"
        )


def _may_move(plan: Plan) -> bool:
    return plan.manifest.standalone is not None and may_move(plan.image, plan.manifest)


def may_move(image: Image, manifest: Manifest) -> bool:
    """Whether an image can copy itself elsewhere and leave its trampolines behind: those in the middle of it move
    along. What an operating system maps does not do that."""
    return may_copy_itself(image) and is_behind(image, manifest)


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

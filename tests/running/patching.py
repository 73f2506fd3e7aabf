"""A file and a way to probe it -> a standalone image of it, and what could be patched."""

import shutil
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.naming.resolve import Outcome, Resolution, resolve
from kinst.rewriter.rewriting import Opened, Source, open_source, plan_of
from kinst.rewriter.standalone.request import parse_request
from kinst.rewriter.writing.write import write_image
from kinst.targets.manifest.packed import Manifest
from kinst.targets.probe import parse_probe_names


@dataclass(frozen=True, slots=True)
class Way:
    """Probes, as a specification, and what they do."""

    name: str
    probes: str
    action: str = "count"


WAYS: Final = (
    Way("entries", "fbt:::entry"),
    Way("instructions", "kinst:::"),
    Way("records", "fbt:::", "record:arg0,arg1,time"),
)
Addresses = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Patched:
    """The image, its manifest, and why others are no sites, with how many."""

    path: Path
    manifest: Manifest
    refused: Counter[str]
    seconds: float


def patched(original: Path, out: Path, way: Way, only: Addresses | None = None) -> Patched:
    """Write the image, in which only the sites at some addresses are jumps, if they are given.

    Raises:
        KinstError: nothing of it can be patched.
    """
    start = time.perf_counter()
    opened = open_source(Source(original))
    resolution = _resolved(opened, way)
    if only is not None:
        resolution = _limited(resolution, only)
    plan = plan_of(opened, resolution, alone=parse_request(way.action, None, None, opened.image.facts))
    manifest = write_image(plan, out)
    shutil.copymode(original, out)
    return Patched(out, manifest, Counter(plan.no_jumps.values()), time.perf_counter() - start)


def _resolved(opened: Opened, way: Way) -> Resolution:
    found = resolve(opened.program, parse_probe_names(way.probes), inlines=opened.inlines())
    for outcome in found.outcomes:
        if outcome.error is not None:
            raise outcome.error
    return found


def _limited(resolution: Resolution, only: Addresses) -> Resolution:
    """What was resolved, as far as it is at some addresses. All code is decoded, as it was for the whole."""
    address = resolution.code.instructions.address

    def limited(outcome: Outcome) -> Outcome:
        choice = outcome.choice
        kept = np.isin(address[choice.instructions], only)
        return replace(
            outcome,
            choice=replace(
                choice,
                instructions=choice.instructions[kept],
                names=choice.names[kept],
                kinds=choice.kinds[kept],
            ),
        )

    return replace(resolution, outcomes=tuple(limited(outcome) for outcome in resolution.outcomes))


def site_name(manifest: Manifest, address: int) -> str:
    """``f+0x12 (0x1234: 48 89 e5)`` of a site."""
    row = int(np.searchsorted(manifest.sites["address"], np.uint64(address)))
    site = manifest.sites[row]
    function = manifest.functions[int(site["function"])]
    probe = int(manifest.enablings["probe"][np.searchsorted(manifest.enablings["site"], row)])
    code = bytes(site["original"])[: int(site["size"])].hex(" ")
    offset = address - int(function["address"])
    return f"{manifest.probe_fields(probe)[2]}+{offset:#x} ({address:#x}: {code})"

"""The sites of enabled probes -> how many hits are counted by the engine, and why others are told one by one."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.trap.arch.registry import jump
from kinst.targets.instruction import Flow, Verdict
from kinst.targets.manifest import ProbeKind

_CALLS: Final = (Flow.CALL, Flow.INDIRECT_CALL)
_WHY: Final = (
    "the clauses of a probe there look at each hit",
    "a function is left there by a jump, or may be",
    "a static probe is there",
    "what is displaced there depends on its own address",
    "an argument there is not in a register",
)


def explained(sites: SiteTable, at_blocks: NDArray[np.bool_] | None) -> list[str]:
    """A line for the sites that are counted, and for those that are not one for each reason. `at_blocks`: those that
    are counted where blocks begin, whatever is displaced elsewhere; None: none are."""
    if at_blocks is None:
        at_blocks = np.zeros(len(sites.manifest.sites), np.bool_)
    reasons = np.where(at_blocks, 0, _reasons(sites))[sites.is_wanted]
    counts = np.bincount(reasons, minlength=len(_WHY) + 1).tolist()
    lines = [f"the emulator counts or records at {counts[0]:,} of {len(reasons):,} sites"]
    without = int(np.count_nonzero(at_blocks & sites.is_wanted))
    if without:
        lines.append(f"without a breakpoint at {without:,} of these, unless code before them goes on to them")
    lines += [f"each hit is told at {count:,}: {why}" for count, why in zip(counts[1:], _WHY, strict=True) if count]
    deferred = int(np.count_nonzero(sites.is_wanted & sites.manifest.is_deferred))
    if deferred:
        lines.append(f"of all these, {deferred:,} depend on what the guest writes there")
    return lines


def _reasons(sites: SiteTable) -> NDArray[np.intp]:
    """For each site 0 if it is counted, else the place of the reason in `_WHY`, from 1."""
    manifest, arch = sites.manifest, sites.arch
    found = np.zeros(len(manifest.sites), np.intp)
    record = manifest.sites
    kinds = [int(kind) for kind in (*arch.onward, *arch.movable, *arch.aside)]
    stays = np.isin(record["flow"], _CALLS) & (arch.return_breakpoint is not None)
    if not _reaches(sites):
        stays |= np.isin(record["kind"], [int(kind) for kind in arch.aside]) & (record["flow"] == Flow.BRANCH)
    goes_aside = np.isin(record["kind"], kinds) & ~stays
    found[(record["verdict"] == Verdict.EMULATE) & ~goes_aside] = 4
    enablings = manifest.enablings[sites.active[manifest.enablings["probe"]]]
    kind, flow = manifest.probes["kind"][enablings["probe"]], record["flow"][enablings["site"]]
    found[enablings["site"][kind == ProbeKind.SDT]] = 3
    found[enablings["site"][(kind == ProbeKind.FBT_RETURN) & (flow != Flow.RETURN)]] = 2
    found[enablings["site"][sites.out_of_registers[enablings["probe"]]]] = 5
    found[enablings["site"][~sites.counting[enablings["probe"]]]] = 1
    return found


def _reaches(sites: SiteTable) -> bool:
    """Whether a jump reaches from the trampolines to the code."""
    make, found = jump(sites.arch), sites.manifest.sites["address"]
    return make is not None and len(found) > 0 and make(sites.manifest.trampolines[0], int(found[0])) is not None

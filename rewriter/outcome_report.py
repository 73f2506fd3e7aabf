"""A resolution and a plan -> what `kinst-rewrite` says about them, as text and as JSON values."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from kinst.rewriter.naming.inline_probes import Expansion, InlineSite
from kinst.rewriter.naming.refusals import Refusals, summary
from kinst.rewriter.naming.resolve import Outcome, Resolution
from kinst.rewriter.patching.report import patches_text
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.shell.wording import counted
from kinst.rewriter.standalone.report import data_text
from kinst.targets.columns import unique
from kinst.targets.functions.found import Functions
from kinst.targets.instruction import Reason
from kinst.targets.probe import ProbeName

_ONE_PLACE: Final = ("entry", "return")  # where a name means all instructions, the neighbours are in it


def plan_line(plan: Plan, target: Path, *, is_written: bool) -> str:
    """One line: what the patched image has."""
    manifest, place = plan.manifest, plan.placement
    verb = "" if is_written else "would have "
    count = 0 if manifest.standalone is not None else int(manifest.is_deferred.sum())
    deferred = f" ({count:,} deferred: the guest writes there)" if count else ""
    sites = f"{counted(len(manifest.sites), 'site')}{deferred}"
    functions = counted(len(unique(manifest.probes["function"])), "function")
    probes = (
        f"{counted(len(manifest.probes), 'probe')} at {sites} of {functions}; "
        f"trampolines at {manifest.trampolines[0]:#x}"
    )
    if place.size:
        probes += f", {len(plan.trampolines):,} bytes"
    if manifest.standalone is not None:
        probes += f"; {data_text(manifest.standalone)}"
    parts = [patches_text(manifest)] if manifest.patches else []
    return f"{target}: {verb}{'; '.join([*parts, probes] if len(manifest.probes) else parts)}"


def lost_lines(resolution: Resolution, lost: Refusals) -> Iterator[str]:
    """Each site that cannot have its trampoline where the trampolines are."""
    for row in range(len(lost)):
        place, address = _place(resolution.program.functions, lost, row)
        yield f"{address:#x} {place} is refused: {lost.text(row)}"


def summary_lines(resolution: Resolution, lost: Refusals, kept: int) -> Iterator[str]:
    """What every command reports of refusals: a line for each name with refused sites, with counts by reason, and one
    for the sites that were lost because of where the trampolines are: `lost`, of which `kept` others remain."""
    yield from filter(None, (outcome.summary() for outcome in resolution.outcomes if outcome.error is None))
    if len(lost):
        yield f"trampolines: {summary(lost, kept + len(lost))}"


def without_trampolines(resolution: Resolution, plan: Plan) -> Iterator[tuple[ProbeName, str]]:
    """The names of which no site can have its trampoline where the trampolines are, and why."""
    for name, sites in resolution.wholly_among(plan.lost.address):
        reasons = plan.lost.take(np.isin(plan.lost.address, sites)).counts()
        why, place = " or ".join(reason.text for reason in reasons), plan.placement.address
        yield name, f"{why}, at {place:#x} near most of the sites: probe what is far in a run of its own"


def refusal_lines(resolution: Resolution, lost: Refusals, kept: int, *, is_each: bool) -> Iterator[str]:
    """What a command remarks on refusals: a summary, or each of them."""
    if is_each:
        return outcome_lines(resolution, lost_lines(resolution, lost))
    return summary_lines(resolution, lost, kept)


def outcome_lines(resolution: Resolution, lost: Iterable[str]) -> Iterator[str]:
    """What a dry run shows: each name, each refusal of it, and what else can be probed there; then lines about lost
    sites."""
    functions = resolution.program.functions
    for outcome in resolution.outcomes:
        if outcome.expansion is None:
            yield f"{outcome.name}: {counted(len(outcome.choice), 'site')}, {len(outcome.refusals):,} refused"
        else:
            yield outcome.summary()
        for row in range(len(outcome.refusals)):
            place, address = _place(functions, outcome.refusals, row)
            near = resolution.code.around(address) if outcome.name.name in _ONE_PLACE else ""
            yield f"  {address:#x} {place}: {outcome.refusals.text(row)}{near}"
    yield from lost


def plan_value(resolution: Resolution, plan: Plan, target: Path | None) -> dict[str, Any]:
    """The same for `json.dumps`; `target` is None for a dry run."""
    manifest, place = plan.manifest, plan.placement
    return {
        "image": str(plan.image.path),
        "output": None if target is None else str(target),
        "machine": plan.image.facts.name,
        "module": manifest.module,
        "probes": len(manifest.probes),
        "sites": len(manifest.sites),
        "deferred": int(manifest.is_deferred.sum()),
        "functions": len(manifest.functions),
        "trampolines": {"address": place.address, "load_address": place.load_address, "size": place.size},
        "lost": [_refusal_value(resolution.program.functions, plan.lost, row) for row in range(len(plan.lost))],
        "specs": [_outcome_value(resolution.program.functions, outcome) for outcome in resolution.outcomes],
    }


def _outcome_value(functions: Functions, outcome: Outcome) -> dict[str, Any]:
    refusals = outcome.refusals
    inlined = None if outcome.expansion is None else _inlined_value(functions, outcome.expansion)
    return {
        "spec": str(outcome.name),
        "sites": len(outcome.choice),
        "refused": len(refusals),
        "reasons": {reason.name.lower(): count for reason, count in refusals.counts().items()},
        "refusals": [_refusal_value(functions, refusals, row) for row in range(len(refusals))],
        **({} if inlined is None else {"inlined": inlined}),
    }


def _inlined_value(functions: Functions, expansion: Expansion) -> dict[str, Any]:
    return {
        "copies": expansion.copies,
        "functions": expansion.functions,
        "sites": [_inline_site_value(functions, site) for site in expansion.sites],
    }


def _inline_site_value(functions: Functions, site: InlineSite) -> dict[str, Any]:
    function = functions.row_at(site.address)
    assert function is not None, "it was decoded as part of one"
    place = f"{functions.names[function]}+{site.address - int(functions.address[function])}"
    return {
        "address": site.address,
        "site": place,
        "function": site.function,
        "calls": [{"file": copy.call.file, "line": copy.call.line} for copy in site.copies],
    }


def _refusal_value(functions: Functions, refusals: Refusals, row: int) -> dict[str, Any]:
    place, address = _place(functions, refusals, row)
    reason = Reason(int(refusals.reason[row])).name.lower()
    return {"address": address, "site": place, "reason": reason, "text": refusals.text(row)}


def _place(functions: Functions, refusals: Refusals, row: int) -> tuple[str, int]:
    """``function+offset`` and the address of a refusal."""
    address, function = int(refusals.address[row]), int(refusals.function[row])
    return f"{functions.names[function]}+{address - int(functions.address[function])}", address

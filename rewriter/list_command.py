"""The options of kinst-list, checked -> the probes or instructions of an image on stdout."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.report import JumpReport, jump_report
from kinst.rewriter.listing import (
    Notes,
    disassembly_lines,
    evidence_texts,
    inlined_copies,
    instruction_rows,
    probe_lines,
    probe_values,
)
from kinst.rewriter.naming.probe_choice import check_outcomes, default_specs, probe_names
from kinst.rewriter.naming.resolve import Resolution, resolve
from kinst.rewriter.outcome_report import refusal_lines
from kinst.rewriter.rewriting import Opened, Source, listed_probes, open_source
from kinst.rewriter.shell.command_output import json_array, remark, write_lines
from kinst.rewriter.shell.progress import Progress
from kinst.targets.columns import unique
from kinst.targets.errors import ProbeError
from kinst.targets.functions.found import Evidence, Functions
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """What is listed of probes, or of instructions."""

    disassemble: bool  # instructions
    jumps: bool  # and how each could be a jump
    as_json: bool
    include_excluded: bool
    quiet: bool
    verbose: bool


def list_image(source: Source, specs: Sequence[str], options: ListOptions, progress: Progress) -> None:
    """List what probe names stand for. Without names: what a patched image has, or else all fbt and static probes.

    Raises:
        KinstError: the image cannot be read, or a name matches nothing.
    """
    opened = open_source(source, progress=progress)
    if opened.manifest is not None and len(opened.manifest.probes) and not specs and not options.jumps:
        evidence = _evidence(opened.program.functions, options)
        values, lines = probe_values(opened.manifest, None, evidence), probe_lines(opened.manifest, None, evidence)
        write_lines(json_array(values) if options.as_json else lines)
        return
    image = opened.image
    names = probe_names(specs or default_specs(image, disassemble=options.disassemble), image)
    resolution = resolve(
        opened.program, names, include_excluded=options.include_excluded, inlines=opened.inlines(), progress=progress
    )
    if options.disassemble:
        functions = _functions(resolution)
        report = _report(opened, _addresses(resolution, functions), options, progress)
        values = (_function_value(resolution, row, report) for row in functions)
        write_lines(json_array(values) if options.as_json else disassembly_lines(resolution, functions, report))
    else:
        check_outcomes(resolution, strict=False)
        manifest, rows, lost = listed_probes(opened, resolution, progress)
        if not options.quiet:
            remark(refusal_lines(resolution, lost, len(manifest.sites), is_each=options.verbose))
        report = _report(opened, manifest.sites["address"], options, progress)
        evidence = _evidence(resolution.program.functions, options)
        notes = Notes(inlined_copies(resolution), report, evidence.evidence)
        values, lines = probe_values(manifest, rows, notes), probe_lines(manifest, rows, notes)
        write_lines(json_array(values) if options.as_json else lines)


def _evidence(functions: Functions, options: ListOptions) -> Notes:
    return Notes({}, None, evidence_texts(functions) if options.as_json or options.verbose else {})


def _report(
    opened: Opened, addresses: NDArray[np.uint64], options: ListOptions, progress: Progress
) -> JumpReport | None:
    if not options.jumps:
        return None
    report = jump_report(opened.program, addresses, progress)
    if not options.quiet:
        remark([report.summary()])
    return report


def _addresses(resolution: Resolution, functions: list[int]) -> NDArray[np.uint64]:
    """Those of the instructions of some functions."""
    found = resolution.code.instructions
    return found.address[np.isin(found.function, functions)]


def _functions(resolution: Resolution) -> list[int]:
    """Rows of the functions that the names chose, refused or not; ProbeError if a name chose none."""
    rows = [outcome.functions for outcome in resolution.outcomes]
    errors = [str(one.error) for one in resolution.outcomes if one.error is not None and not len(one.functions)]
    if errors:
        raise ProbeError("\n".join(errors))
    return [int(row) for row in unique(np.concatenate(rows))]


def _function_value(resolution: Resolution, row: int, report: JumpReport | None) -> dict[str, Any]:
    functions, image = resolution.program.functions, resolution.program.image
    return {
        "function": functions.names[row],
        "address": int(functions.address[row]),
        "size": int(functions.size[row]),
        "evidence": Evidence(int(functions.evidence[row])).text,
        "instructions": list(instruction_rows(image, resolution.code, row, report)),
    }

"""The options of kinst-list, checked -> the probes or instructions of an image on stdout."""

from collections.abc import Iterator, Sequence

import numpy as np

from kinst.rewriter.command_output import json_array, remark, write_lines
from kinst.rewriter.listing import disassembly_lines, inlined_copies, instruction_rows, probe_lines, probe_values
from kinst.rewriter.outcome_report import summary_lines
from kinst.rewriter.probe_choice import check_outcomes, default_specs, probe_names
from kinst.rewriter.progress import Progress
from kinst.rewriter.resolve import Resolution, resolve
from kinst.rewriter.rewriting import Opened, Source, listed_probes, open_source
from kinst.targets.errors import ProbeError


def list_image(
    source: Source,
    specs: Sequence[str],
    progress: Progress,
    *,
    disassemble: bool,
    as_json: bool,
    include_excluded: bool,
    quiet: bool,
) -> None:
    """List what probe names stand for. Without names: what a patched image has, or else all fbt and static probes.

    Raises:
        KinstError: the image cannot be read, or a name stands for nothing.
    """
    opened = open_source(source, progress=progress)
    if opened.manifest is not None and len(opened.manifest.probes) and not specs:
        write_lines(json_array(probe_values(opened.manifest)) if as_json else probe_lines(opened.manifest))
        return
    image = opened.program.image
    names = probe_names(specs or default_specs(image, disassemble=disassemble), image)
    resolution = resolve(
        opened.program, names, include_excluded=include_excluded, inlines=opened.inlines(), progress=progress
    )
    if disassemble:
        write_lines(_json_disassembly(resolution) if as_json else disassembly_lines(resolution, _functions(resolution)))
    else:
        check_outcomes(resolution, strict=False)
        _list_probes(opened, resolution, progress, as_json=as_json, quiet=quiet)


def _list_probes(opened: Opened, resolution: Resolution, progress: Progress, *, as_json: bool, quiet: bool) -> None:
    manifest, rows, lost = listed_probes(opened, resolution, progress)
    if not quiet:
        remark(summary_lines(resolution, lost, len(manifest.sites)))
    copies = inlined_copies(resolution)
    write_lines(json_array(probe_values(manifest, rows, copies)) if as_json else probe_lines(manifest, rows, copies))


def _functions(resolution: Resolution) -> list[int]:
    """Rows of the functions that the names chose, refused or not; ProbeError if a name chose none."""
    rows = [outcome.functions for outcome in resolution.outcomes]
    errors = [str(one.error) for one in resolution.outcomes if one.error is not None and not len(one.functions)]
    if errors:
        raise ProbeError("\n".join(errors))
    return [int(row) for row in np.unique(np.concatenate(rows))]


def _json_disassembly(resolution: Resolution) -> Iterator[str]:
    functions, image = resolution.program.functions, resolution.program.image
    return json_array(
        {
            "function": functions.names[row],
            "address": int(functions.address[row]),
            "size": int(functions.size[row]),
            "instructions": list(instruction_rows(image, resolution.code, row)),
        }
        for row in _functions(resolution)
    )

"""The options of kinst-rewrite, checked -> a patched image, or the original of one, written and reported."""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import click

from kinst.rewriter.naming.probe_choice import check_outcomes, probe_names
from kinst.rewriter.naming.resolve import Resolution, resolve
from kinst.rewriter.outcome_report import lost_lines, outcome_lines, plan_line, plan_value, refusal_lines
from kinst.rewriter.patching.report import patch_line, patch_values
from kinst.rewriter.patching.request import parse_patch
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.rewriting import Opened, Source, check_mixed, open_source, plan_of, with_requests
from kinst.rewriter.shell.command_output import remark, write_lines
from kinst.rewriter.shell.progress import Progress
from kinst.rewriter.standalone.report import no_jump_lines, no_jump_summary, refuse_to_move, standalone_value
from kinst.rewriter.standalone.request import parse_request
from kinst.rewriter.writing.as_read import Written, trampoline_place, write_as_read
from kinst.rewriter.writing.restore import restore
from kinst.targets.errors import ManifestError, ProbeError, UsageError
from kinst.targets.image import Image, open_image
from kinst.targets.kernels.module_signature import is_signed
from kinst.targets.manifest.packed import find_manifest
from kinst.targets.method import Method
from kinst.targets.patch import Patch
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions:
    """What to write, and what to report about it."""

    probes: Sequence[str]
    patches: Sequence[str]
    force: bool  # whether a patch may extend beyond the end of its function
    trampoline_base: int | None
    trampoline_symbols: bool
    alone: Mapping[str, Any] | None  # arguments of `parse_request`; None: with breakpoints
    stays: bool  # whether the image is known not to copy itself
    method: str | None
    strict: bool
    dry_run: bool  # only report
    as_json: bool
    include_excluded: bool
    quiet: bool
    verbose: bool


@dataclass(frozen=True, slots=True)
class _Planned:
    """What to write."""

    opened: Opened
    added: Sequence[Patch]
    resolution: Resolution
    plan: Plan


def rewrite_image(source: Source, target: Path, options: RewriteOptions, progress: Progress) -> None:
    """Patch an image and report what was done.

    Raises:
        KinstError: the image cannot be read, a name matches nothing, or there is no room for the trampolines.
        OSError: `target` cannot be written.
    """
    planned = _planned(source, options, progress)
    plan, resolution, program = planned.plan, planned.resolution, planned.opened.program
    lost = chain(lost_lines(resolution, plan.lost), no_jump_lines(program, plan))
    if options.strict and (lines := [*lost]):
        raise ProbeError("\n".join(lines))
    if not options.as_json and not options.quiet:
        is_each = options.verbose and not options.dry_run  # which tells of each anyway
        remark(refusal_lines(resolution, plan.lost, len(plan.manifest.sites), is_each=is_each))
        remark(filter(None, [no_jump_summary(plan.no_jumps, len(plan.manifest.sites))]))
    if not options.as_json and options.dry_run:
        write_lines(map(patch_line, patch_values(program, planned.added)))
        write_lines(outcome_lines(resolution, lost))
    if not options.dry_run:
        is_apart, symbols = options.trampoline_base is not None, options.trampoline_symbols
        others = write_as_read(plan, target, is_apart=is_apart, trampoline_symbols=symbols, progress=progress)
        remark(_changed(program.original, others))
    if options.as_json:
        click.echo(json.dumps(_value(planned, None if options.dry_run else target), indent=2))
    else:
        click.echo(plan_line(plan, target, is_written=not options.dry_run))


def _planned(source: Source, options: RewriteOptions, progress: Progress) -> _Planned:
    requests = [parse_patch(text) for text in options.patches]
    opened = open_source(source, progress=progress)
    alone = None if options.alone is None else parse_request(**options.alone, facts=opened.image.facts)
    check_mixed(opened, is_standalone=alone is not None)
    known = set(opened.program.patches)
    if requests:
        opened = with_requests(opened, requests, force=options.force)
    names = probe_names(options.probes, opened.image)
    excluded = options.include_excluded
    resolution = resolve(opened.program, names, include_excluded=excluded, inlines=opened.inlines(), progress=progress)
    check_outcomes(resolution, strict=options.strict)
    method, base = None if options.method is None else Method(options.method), options.trampoline_base
    base = trampoline_place(opened.program.original) if base is None else base
    plan = plan_of(opened, resolution, alone=alone, trampoline_base=base, method=method, progress=progress)
    if not options.stays:
        refuse_to_move(plan)
    return _Planned(opened, [one for one in opened.program.patches if one not in known], resolution, plan)


def _value(planned: _Planned, target: Path | None) -> dict[str, Any]:
    """What was done, for JSON."""
    program, plan = planned.opened.program, planned.plan
    value = plan_value(planned.resolution, plan, target) | standalone_value(program, plan)
    return value | {"patches": list(patch_values(program, planned.added))}


def _changed(image: Image, others: Written | None) -> Iterator[str]:
    """What the patched file no longer is, and what is beside it."""
    if others is not None:
        yield f"{image.path.name}: {image.packing}: its manifest is {others.manifest.name}: keep it beside the image"
        if others.trampolines is not None:
            yield f"{others.trampolines.name}: has to be loaded at {others.address:#x}"
    elif image.packing:
        yield f"{image.path.name}: {image.packing}: the ELF file in it was patched, and is written"
    if is_signed(image):
        yield f"{image.path.name}: was signed: a kernel that insists on signatures will not load it any more"


def restore_image(path: Path, output: Path | None, progress: Progress) -> None:
    """Write the original of a patched image to `output`, or by default to the image's name without .kinst.

    Raises:
        KinstError: the image is not patched or was changed since, or the file without .kinst already exists.
        OSError: it cannot be written.
    """
    image = open_image(path)
    manifest = find_manifest(image)
    if manifest is None:
        raise ManifestError(f"{path}: is not patched: there is nothing to restore")
    target = output or path.with_name(path.name.replace(".kinst", "", 1))
    if output is None and (target == path or target.exists()):
        raise UsageError(f"{target}: exists already: name the output with -o")
    restore(image, manifest, target, progress=progress)
    container = image.container
    digest = manifest.original_sha256 if container is None else sha256(container.original.data).hexdigest()
    click.echo(f"{target}: restored, SHA-256 {digest}")

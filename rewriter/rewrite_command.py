"""The options of kinst-rewrite, checked -> a patched image, or the original of one, written and told of."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from kinst.rewriter.command_output import remark, write_lines
from kinst.rewriter.outcome_report import lost_lines, outcome_lines, plan_line, plan_value, refusal_lines
from kinst.rewriter.patching.report import patch_line, patch_values
from kinst.rewriter.patching.request import parse_patch
from kinst.rewriter.probe_choice import check_outcomes, probe_names
from kinst.rewriter.progress import Progress
from kinst.rewriter.resolve import resolve
from kinst.rewriter.restore import restore
from kinst.rewriter.rewriting import Source, check_mixed, open_source, plan_of, with_requests
from kinst.rewriter.standalone.report import moving_text, no_jump_lines, no_jump_summary, standalone_value
from kinst.rewriter.standalone.request import parse_request
from kinst.rewriter.write import write_image
from kinst.targets.errors import ManifestError, ProbeError, UsageError
from kinst.targets.image import Image, open_image
from kinst.targets.manifest import find_manifest
from kinst.targets.method import Method
from kinst.targets.module_signature import is_signed


def rewrite_image(
    source: Source,
    target: Path,
    progress: Progress,
    *,
    probes: Sequence[str],
    patches: Sequence[str],
    force: bool,
    trampoline_base: int | None,
    trampoline_symbols: bool,
    alone: Mapping[str, Any] | None,
    method: str | None,
    strict: bool,
    dry_run: bool,
    as_json: bool,
    include_excluded: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Patch an image and report what was done; with `dry_run` only report it. `alone`: arguments of `parse_request`.

    Raises:
        KinstError: the image cannot be read, a name stands for nothing, or there is no room for the trampolines.
        OSError: `target` cannot be written.
    """
    requests = [parse_patch(text) for text in patches]
    opened = open_source(source, progress=progress)
    request = None if alone is None else parse_request(**alone, facts=opened.program.image.facts)
    check_mixed(opened, is_standalone=request is not None)
    known = set(opened.program.patches)
    if requests:
        opened = with_requests(opened, requests, force=force)
    names = probe_names(probes, opened.program.image)
    resolution = resolve(
        opened.program, names, include_excluded=include_excluded, inlines=opened.inlines(), progress=progress
    )
    check_outcomes(resolution, strict=strict)
    chosen = None if method is None else Method(method)
    plan = plan_of(opened, resolution, alone=request, trampoline_base=trampoline_base, method=chosen, progress=progress)
    lost = chain(lost_lines(resolution, plan.lost), no_jump_lines(opened.program, plan))
    if strict and (lines := [*lost]):
        raise ProbeError("\n".join(lines))
    if not as_json and not quiet:
        is_each = verbose and not dry_run  # which tells of each anyway
        remark(refusal_lines(resolution, plan.lost, len(plan.manifest.sites), is_each=is_each))
        remark(filter(None, [no_jump_summary(plan.no_jumps, len(plan.manifest.sites)), moving_text(plan)]))
    added = [patch for patch in opened.program.patches if patch not in known]
    if not as_json and dry_run:
        write_lines(map(patch_line, patch_values(opened.program, added)))
        write_lines(outcome_lines(resolution, lost))
    if not dry_run:
        write_image(plan, target, trampoline_symbols=trampoline_symbols, progress=progress)
        remark(_changed(opened.program.original))
    if as_json:
        value = plan_value(resolution, plan, None if dry_run else target)
        value |= standalone_value(opened.program, plan) | {"patches": list(patch_values(opened.program, added))}
        click.echo(json.dumps(value, indent=2))
    else:
        click.echo(plan_line(plan, target, is_written=not dry_run))


def _changed(image: Image) -> Iterator[str]:
    """What the patched file is not any more."""
    if image.packing:
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
        raise UsageError(f"{target}: is there already: name the output with -o")
    restore(image, manifest, target, progress=progress)
    click.echo(f"{target}: restored, SHA-256 {manifest.original_sha256}")

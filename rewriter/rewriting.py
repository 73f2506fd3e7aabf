"""A file, names for its code and probe names -> a plan: the whole way from a command line to what to write."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.inline_lookup import DebugInlines
from kinst.rewriter.plan import Plan, make_plan, manifest_of
from kinst.rewriter.program import Program, open_program
from kinst.rewriter.progress import Progress, silent
from kinst.rewriter.resolve import Resolution, resolve
from kinst.rewriter.restore import open_original
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf_header import FileKind
from kinst.targets.image import Image, open_debug_symbols
from kinst.targets.manifest import Manifest
from kinst.targets.probe import ProbeName
from kinst.targets.symbols import Symbols, read_symbol_file


@dataclass(frozen=True, slots=True)
class Source:
    """An image file and where names for its code come from, beside its own symbols."""

    path: Path
    module: str | None = None
    symbols: Path | None = None  # System.map or the output of nm
    debug_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The original program of a file, and the manifest if the file is patched."""

    program: Program
    manifest: Manifest | None
    debug_file: Path | None = None

    def inlines(self, *, with_parameters: bool = False, types: ImageTypes | None = None) -> DebugInlines:
        """What debug information says of inlined functions, in the image or in the debug file that the user named."""
        return DebugInlines(self.program.image, self.debug_file, with_parameters=with_parameters, types=types)


def open_source(source: Source, *, progress: Progress = silent) -> Opened:
    """Read an image, patched or not.

    Raises:
        ImageError, ManifestError: it cannot be used.
    """
    image, manifest = open_original(source.path, source.module, progress)
    return Opened(open_program(image, symbols=_symbols(image, source)), manifest, source.debug_file)


def _symbols(image: Image, source: Source) -> Symbols:
    symbols = image.symbols
    if source.debug_file is not None:
        symbols = symbols.joined(open_debug_symbols(source.debug_file, image))
    if source.symbols is not None:
        symbols = symbols.joined(read_symbol_file(source.symbols, regions=image.code_regions))
    return symbols


def listed_probes(
    opened: Opened, resolution: Resolution, progress: Progress = silent
) -> tuple[Manifest, NDArray[np.intp]]:
    """A manifest and the rows of those of its probes that the names stand for, with ids as a rewriting would give them.

    A module that is not linked cannot be patched; its probes are numbered all the same.
    """
    fresh, _ = manifest_of(resolution)
    if resolution.program.image.kind is FileKind.REL:
        return fresh, np.arange(len(fresh.probes))
    planned = make_plan(resolution, earlier=opened.manifest, progress=progress).manifest
    if opened.manifest is None:
        return planned, np.arange(len(planned.probes))
    wanted = {fresh.probe_name(row) for row in range(len(fresh.probes))}
    rows = [row for row in range(len(planned.probes)) if planned.probe_name(row) in wanted]
    return planned, np.array(rows, np.intp)


def plan_probes(
    opened: Opened,
    names: Sequence[ProbeName],
    *,
    trampoline_base: int | None = None,
    include_excluded: bool = False,
    progress: Progress = silent,
) -> tuple[Resolution, Plan]:
    """Resolve probe names and plan the rewriting.

    Raises:
        KinstError: the error of the first name that comes to nothing, or no room for the trampolines.
    """
    resolution = resolve(
        opened.program, names, include_excluded=include_excluded, inlines=opened.inlines(), progress=progress
    )
    for outcome in resolution.outcomes:
        if outcome.error is not None:
            raise outcome.error
    plan = make_plan(resolution, trampoline_base=trampoline_base, earlier=opened.manifest, progress=progress)
    return resolution, plan

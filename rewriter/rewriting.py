"""A file, names for its code and probe names -> a plan: everything between a command line and writing."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.kept_functions import Finder, keeping
from kinst.rewriter.naming.inline_lookup import DebugInlines
from kinst.rewriter.naming.refusals import Refusals
from kinst.rewriter.naming.resolve import Resolution, resolve
from kinst.rewriter.naming.static_sites import StaticRecords, static_records
from kinst.rewriter.patching.request import PatchRequest
from kinst.rewriter.planning.plan import Plan, make_plan, manifest_of
from kinst.rewriter.program import Program, functions_of, open_program, with_names
from kinst.rewriter.shell.progress import Progress, silent
from kinst.rewriter.standalone.request import COUNT, Request
from kinst.rewriter.writing.restore import Reader, open_original
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.file import is_elf
from kinst.targets.elf.symbols import STT_FUNC, Symbols, no_symbols
from kinst.targets.errors import ProbeError
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image, open_debug_symbols, open_image
from kinst.targets.kernels.kernel_names import own_names
from kinst.targets.manifest.packed import SITE, Manifest
from kinst.targets.method import Method
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.probe import ProbeName
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """An image file, and where names for its code come from besides its own symbols."""

    path: Path
    module: str | None = None
    symbols: Path | None = None  # System.map, the output of nm, or an ELF file
    debug_file: Path | None = None
    code: tuple[tuple[int, int], ...] = ()  # start and end of what is code, whatever it looks like
    own_names: Symbols | None = None  # what `kernel_names.own_names` finds in it, if it was asked already
    reading: Reading = AS_IT_SAYS  # what the user says of a file that does not say it itself


class Opened:
    """The image of a file without breakpoints, and the manifest if the file is a patched one.

    Its program is made when it is asked for: who knows already what a plan has needs no functions, and to find those of
    Linux takes half a second.
    """

    def __init__(
        self, image: Image, analyse: Callable[[], Program], manifest: Manifest | None, debug_file: Path | None
    ) -> None:
        """`image` is that of the program, which `analyse` makes."""
        self.image, self.manifest, self.debug_file = image, manifest, debug_file
        self._analyse = analyse

    @cached_property
    def program(self) -> Program:
        """The image with its functions."""
        return self._analyse()

    @cached_property
    def static(self) -> StaticRecords:
        """What the image says about its static probes. To read those of Linux takes a tenth of a second."""
        return static_records(self.image)

    def inlines(self, *, with_parameters: bool = False, types: ImageTypes | None = None) -> DebugInlines:
        """What debug information says of inlined functions, in the image or in the debug file that the user named."""
        remembered = () if self.manifest is None else self.manifest.inlined
        return DebugInlines(
            self.image, self.debug_file, with_parameters=with_parameters, types=types, remembered=remembered
        )


def open_source(
    source: Source, *, progress: Progress = silent, read: Reader = open_image, keeps: bool = False
) -> Opened:
    """Read an image, patched or not. `read` reads the file: `open_to_run` if nothing is to be written. `keeps`: its
    functions are kept for the next run.

    Raises:
        ImageError, ManifestError: it cannot be used.
    """
    image, manifest = open_original(source.path, source.module, progress, read, source.reading)
    given = _given(image, source, manifest)
    if manifest is not None and manifest.patches:
        return _of(open_program(image, given, manifest.patches, source.code), manifest, source.debug_file)
    named = with_names(image, given)
    find = _keeping(source) if keeps else functions_of
    analyse = lambda: open_program(image, given, forced=source.code, named=named, find=find)  # noqa: E731
    return Opened(named, analyse, manifest, source.debug_file)


def _keeping(source: Source) -> Finder:
    how = source.path.name, source.module, source.own_names is None, source.reading
    return keeping(functions_of, (source.path, source.symbols, source.debug_file), how)


def _of(program: Program, manifest: Manifest | None, debug_file: Path | None) -> Opened:
    return Opened(program.image, lambda: program, manifest, debug_file)


def with_requests(opened: Opened, requests: Sequence[PatchRequest], *, force: bool) -> Opened:
    """What was opened, with more patches. Raises KinstError: as `add_patches`."""
    from kinst.rewriter.patching.assembly import assembled  # with keystone, and few need it
    from kinst.rewriter.patching.placing import add_patches

    sites = np.zeros(0, SITE) if opened.manifest is None else opened.manifest.sites
    program = add_patches(opened.program, requests, sites, assembled, force=force)
    return _of(program, opened.manifest, opened.debug_file)


def _given(image: Image, source: Source, manifest: Manifest | None) -> Symbols:
    """The names in a patched image, then those of the debug file and of the symbol file; if none of these, nor the
    image's symbols, names a function, those that a Linux kernel keeps for itself."""
    found = no_symbols() if manifest is None else manifest.given
    if source.debug_file is not None:
        found = found.joined(open_debug_symbols(source.debug_file, image).beside(image.symbols.joined(found)))
    if source.symbols is not None:
        found = found.joined(_symbol_file(source.symbols, image).beside(image.symbols.joined(found)))
    if not np.isin(STT_FUNC, np.concatenate([image.symbols.kind, found.kind])):
        return found.joined(own_names(image) if source.own_names is None else source.own_names)
    return found


def _symbol_file(path: Path, image: Image) -> Symbols:
    """The symbols of a System.map, the output of nm, or an ELF file."""
    if is_elf(path):
        return open_debug_symbols(path, image)
    from kinst.targets.names.symbol_file import read_symbol_file

    return read_symbol_file(path, regions=image.code_regions, is_hosted=is_hosted(image))


def listed_probes(
    opened: Opened, resolution: Resolution, progress: Progress = silent
) -> tuple[Manifest, NDArray[np.intp], Refusals]:
    """A manifest, the rows of those of its probes that the names match, and the sites that have no trampoline."""
    fresh, _ = manifest_of(resolution)
    plan = make_plan(resolution, earlier=opened.manifest, progress=progress)
    planned = plan.manifest
    if opened.manifest is None:
        return planned, np.arange(len(planned.probes)), plan.lost
    wanted = {fresh.probe_name(row) for row in range(len(fresh.probes))}
    rows = [row for row in range(len(planned.probes)) if planned.probe_name(row) in wanted]
    return planned, np.array(rows, np.intp), plan.lost


def plan_probes(
    opened: Opened,
    names: Sequence[ProbeName],
    *,
    trampoline_base: int | None = None,
    include_excluded: bool = False,
    method: Method | None = None,
    progress: Progress = silent,
) -> tuple[Resolution, Plan]:
    """Resolve probe names and plan the rewriting.

    Raises:
        KinstError: the error of the first name that matches nothing, or no room for the trampolines.
    """
    resolution = resolve(
        opened.program, names, include_excluded=include_excluded, inlines=opened.inlines(), progress=progress
    )
    for outcome in resolution.outcomes:
        if outcome.error is not None:
            raise outcome.error
    return resolution, plan_of(opened, resolution, trampoline_base=trampoline_base, method=method, progress=progress)


def plan_of(
    opened: Opened,
    resolution: Resolution,
    *,
    alone: Request | None = None,
    trampoline_base: int | None = None,
    method: Method | None = None,
    progress: Progress = silent,
) -> Plan:
    """Plan what was resolved, with breakpoints; or with jumps to code that does what `alone` says, or that counts if
    the method is `Method.JUMP`.

    Raises:
        KinstError: no room for the trampolines, no site can be a jump, or the image has the other kind of probes.
    """
    alone = COUNT if alone is None and method is Method.JUMP else alone
    check_mixed(opened, is_standalone=alone is not None)
    if alone is not None:
        from kinst.rewriter.standalone.plan import plan_standalone  # a tenth of all imports, and few need it

        return plan_standalone(resolution, alone, trampoline_base=trampoline_base, progress=progress)
    return make_plan(
        resolution, trampoline_base=trampoline_base, earlier=opened.manifest, method=method, progress=progress
    )


def check_mixed(opened: Opened, *, is_standalone: bool) -> None:
    """An image has breakpoints or jumps, not both. Raises ProbeError."""
    manifest = opened.manifest
    if manifest is not None and (manifest.standalone is not None or (is_standalone and len(manifest.sites))):
        kind = "is standalone" if manifest.standalone is not None else "has probes"
        raise ProbeError(f"{opened.image.path}: {kind} already: take the original, or --restore it first")

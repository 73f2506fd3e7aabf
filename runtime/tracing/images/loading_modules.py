"""Modules that the guest will load as they are in their files -> what is to be patched in each, once it is there."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from kinst.rewriter.naming.inline_probes import is_inline
from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.outcome_report import summary_lines, without_trampolines
from kinst.rewriter.planning.plan import make_plan
from kinst.rewriter.program import as_loaded
from kinst.runtime.tracing.images.modules import PatchedModule, renamed
from kinst.targets.errors import ProbeError, UsageError
from kinst.targets.manifest.probe_ids import FIRST_PROBE_ID
from kinst.targets.method import Method
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.tracing.images.module_files import ModuleFile
    from kinst.runtime.tracing.request import Request
    from kinst.targets.manifest.packed import Manifest
    from kinst.targets.probe import ProbeName

_KEPT: Final = frozenset({Method.AUTO, Method.EMULATE, Method.TRAP})  # methods for sites that are dispatched


@dataclass(frozen=True, slots=True)
class LoadingModule:
    """A module and its probes. Addresses are those in the file."""

    file: "ModuleFile"
    manifest: "Manifest"
    trampolines: bytes


@dataclass(frozen=True, slots=True)
class PreparedModules:
    """All modules of which probes can fire."""

    patched: tuple[PatchedModule, ...] = ()  # with breakpoints in their files
    loading: tuple[LoadingModule, ...] = ()  # without
    reasons: Mapping["ProbeName", str] = field(default_factory=dict)  # for names without a single site, why
    refusals: tuple[str, ...] = ()

    @property
    def next_identifier(self) -> int | None:
        """The first identifier after those of their probes; None: they have none."""
        manifests = [*(one.manifest for one in self.patched), *(one.manifest for one in self.loading)]
        return manifests[-1].next_identifier if manifests else None


def prepare_modules(
    patched: Sequence[PatchedModule],
    files: Sequence["ModuleFile"],
    names: Sequence["ProbeName"],
    request: "Request",
    first: int,
) -> PreparedModules:
    """What to patch in each.

    Args:
        patched: those of --module that were patched.
        files: all modules that names mean.
        names: of probes.
        request: what the user asks for.
        first: the first identifier that their probes may have, after those of `patched`.

    Raises:
        UsageError: their probes cannot fire.
    """
    found = PreparedModules(tuple(patched))
    for file in files:
        if any(one.image.module == file.name for one in patched):
            continue
        if request.method is Method.JUMP:
            raise UsageError(f"--method jump: has no handler, and the probes of {file.name} need one")
        start = first if found.next_identifier is None else found.next_identifier
        found = _with(found, file, names, request, start)
    return found


def _with(
    found: PreparedModules, file: "ModuleFile", names: Sequence["ProbeName"], request: "Request", start: int
) -> PreparedModules:
    if file.manifest is not None:
        if file.manifest.standalone is not None:
            raise UsageError(f"{file.where}: is standalone, and has no handler: take the original, or --restore it")
        manifest = renamed(file.manifest, file.name, start - FIRST_PROBE_ID)
        return replace(found, patched=(*found.patched, PatchedModule(file.in_file, manifest)))
    module, reasons, refusals = _planned(file, names, request, start)
    return replace(
        found,
        loading=(*found.loading, *([] if module is None else [module])),
        reasons={**found.reasons, **reasons},
        refusals=(*found.refusals, *refusals, *([] if module is None else [_waiting(file)])),
    )


def _waiting(file: "ModuleFile") -> str:
    return f"{file.name}: its probes wait until the guest loads {file.where}"


def _planned(
    file: "ModuleFile", names: Sequence["ProbeName"], request: "Request", start: int
) -> tuple[LoadingModule | None, dict["ProbeName", str], list[str]]:
    """The module, None if it has no sites; why names have none; and what was refused."""
    program = as_loaded(file.opened.program)
    own = [name for name in names if name.names_module(file.name)]
    inlined = f"inlined copies can be probed in the image, and {file.name} is a module"
    reasons = {name: inlined for name in own if is_inline(name)}
    resolution = resolve(program, [name for name in own if not is_inline(name)], progress=request.progress)
    failed = [(one.name, one.error) for one in resolution.outcomes if one.error is not None]
    reasons |= {name: str(error).removeprefix(f"{name}: ") for name, error in failed}
    resolution = replace(resolution, outcomes=tuple(one for one in resolution.outcomes if one.error is None))
    if not resolution.outcomes:
        return None, reasons, []
    try:
        plan = make_plan(resolution, method=request.method if request.method in _KEPT else None)
    except ProbeError as error:
        return None, {**reasons, **{one.name: str(error) for one in resolution.outcomes}}, []
    reasons |= without_trampolines(resolution, plan)
    lines = summary_lines(resolution, plan.lost, len(plan.manifest.sites))
    manifest = renamed(plan.manifest, file.name, start - FIRST_PROBE_ID)
    return LoadingModule(file, manifest, plan.trampolines.tobytes()), reasons, [f"{file.name}: {one}" for one in lines]

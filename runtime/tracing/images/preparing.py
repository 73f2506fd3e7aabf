"""A request and its image -> everything that is decided before there is a machine. No state; nothing is loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from kinst.rewriter.naming.inline_lookup import DebugInlines
from kinst.rewriter.naming.inline_probes import Expansion, is_inline
from kinst.rewriter.naming.refusals import no_refusals
from kinst.rewriter.naming.resolve import Resolution, numbering_of, resolve
from kinst.rewriter.outcome_report import summary_lines, without_trampolines
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.program import Program, with_names
from kinst.rewriter.rewriting import Opened, Source, open_source, plan_of
from kinst.rewriter.standalone.in_memory import with_segment
from kinst.rewriter.standalone.report import moving_text, no_jump_summary, without_jumps
from kinst.rewriter.standalone.request import IN_OUR_MACHINE
from kinst.runtime.machine.calling.template import Call, parse_call, parse_template
from kinst.runtime.tracing.images.beside_images import (
    BesideImage,
    PreparedBeside,
    check_rewriting,
    is_for,
    prepare_beside,
)
from kinst.runtime.tracing.images.late_plan import LatePlan, digest_of, kept_plan, new_plan
from kinst.runtime.tracing.images.loading_modules import LoadingModule, PreparedModules, prepare_modules
from kinst.runtime.tracing.images.modules import PatchedModule, has_sites, patched_modules
from kinst.runtime.tracing.images.nearby import nearby
from kinst.runtime.tracing.programs.inline_clauses import OwnCode
from kinst.runtime.tracing.request import Request
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.header import FileKind
from kinst.targets.errors import PlacementError, UsageError
from kinst.targets.image import Image, open_to_run
from kinst.targets.machines.machine import MachineFacts
from kinst.targets.machines.registry import default_machine, machine_facts
from kinst.targets.manifest.packed import Manifest, find_manifest
from kinst.targets.manifest.probe_ids import FIRST_PROBE_ID
from kinst.targets.method import Method
from kinst.targets.probe import ProbeName
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.tracing.images.module_files import ModuleFile


class LateOpened:
    """An analysed image: it is analysed at once if its names are needed, otherwise at the first use."""

    def __init__(self, source: Source, opened: Opened | None, inlines: DebugInlines | None) -> None:
        self.path = source.path
        self._source = source
        self._opened = opened
        self._inlines = inlines

    def __call__(self) -> Opened:
        """The analysed image. Raises KinstError if it cannot be read."""
        if self._opened is None:
            self._opened = open_source(self._source, read=open_to_run, keeps=True)
        return self._opened

    def inlines(self) -> DebugInlines:
        """What debug information says about inlined functions and calls. Raises KinstError if it cannot be read."""
        if self._inlines is None:
            self._inlines = self().inlines()
        return self._inlines


@dataclass(frozen=True, slots=True)
class Planned:
    """The result of planning patches in memory for some names."""

    plan: Plan | None = None  # None: there is nothing to patch, or it is planned later
    late: LatePlan | None = None  # what is planned later (`Request.is_planned_late`)
    reasons: Mapping[ProbeName, str] = field(default_factory=dict)  # for names without a single site, why
    refusals: tuple[str, ...] = ()  # for names of which some sites were refused: a line each
    expansions: Mapping[ProbeName, Expansion] = field(default_factory=dict)  # of names that mean inlined copies
    own_code: Mapping[ProbeName, tuple[OwnCode, ...]] = field(default_factory=dict)  # functions that those also mean


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to load into which machine, and what is known about its probes."""

    request: Request
    image: Image  # the image that is loaded
    manifest: Manifest | None  # None: it has no probes
    planned: Planned
    facts: MachineFacts
    call: Call | None
    opened: LateOpened
    original: Image  # the image without patches, if it was analysed; else the one that is loaded
    modules: tuple[PatchedModule, ...] = ()  # that the guest may load, with breakpoints in their files
    loading: tuple[LoadingModule, ...] = ()  # that it may load, and that are patched then
    beside: tuple[PreparedBeside, ...] = ()  # other images in the machine

    @property
    def path(self) -> Path:
        """The path of the image."""
        return self.opened.path

    def program(self) -> Program:
        """The original, analysed. Raises KinstError if it cannot be read."""
        return self.opened().program


def prepare(
    request: Request,
    opened: Opened | None,
    names: Sequence[ProbeName],
    types: ImageTypes,
    beside: Sequence[BesideImage] = (),
    files: Sequence["ModuleFile"] = (),
) -> Prepared:
    """Decide what to patch, and for which machine.

    Args:
        request: what the user asks for; it has an image.
        opened: the analysed image, if programs need its names; None if it runs as it is.
        names: what programs, actions and other packages' providers may enable. A name that matches nothing is not an
            error here: the checker reports it, with its place in the program.
        types: prototypes of functions, for args[].
        beside: other images in the machine.
        files: modules that the names mean, and that the guest may load.

    Raises:
        KinstError: the image cannot be used, or not in this way.
    """
    planned, inlines = Planned(), None
    # Modules first: their probes are numbered after the kernel's, which is analysed and planned even where programs
    # name none of its probes.
    opened, modules = _with_modules(request, opened, names, files)
    has_modules = bool(modules.patched or modules.loading)
    is_finished = opened is not None and opened.manifest is not None and opened.manifest.standalone is not None
    if opened is not None and (names or has_modules) and not is_finished:
        inlines = opened.inlines(with_parameters=True, types=types)
        own = [name for name in names if is_for(name, opened.image, beside)]
        planned = _planned(opened, own, inlines, request, has_modules=has_modules)
    first = FIRST_PROBE_ID if opened is None or not beside else _after(opened, modules)
    others = prepare_beside(beside, names, request, first)
    planned = replace(
        planned,
        reasons={
            **dict(chain.from_iterable(one.reasons.items() for one in others)),
            **planned.reasons,
            **modules.reasons,
        },
        refusals=(*planned.refusals, *modules.refusals, *chain.from_iterable(one.refusals for one in others)),
    )
    late = LateOpened(source_of(request), opened, inlines)
    image, manifest = _loaded(request, planned)
    check_rewriting(image.module, manifest, others)
    facts = machine_facts(request.machine or default_machine(image.facts.name))
    if facts.arch != image.facts.name:
        raise UsageError(f"{request.image}: is for {image.facts.name}, and {facts.name} is not")
    if image.kind is FileKind.REL:
        raise UsageError(f"{request.image}: is a module: give the kernel that loads it, and the module with --module")
    _check_call(request)
    call = _call_of(request)
    if manifest is not None and request.method is not None:
        manifest = replace(manifest, method=request.method.value)
    if manifest is not None and beside and manifest.method == Method.BLOCK:  # others may take its places
        manifest = replace(manifest, method=Method.AUTO.value)
    if manifest is not None and manifest.standalone is not None and any(one.manifest is not None for one in others):
        raise UsageError(f"{request.image}: is standalone, and has no handler: probes of other images need one")
    original = image if opened is None else opened.image
    return Prepared(
        request=request,
        image=image,
        manifest=manifest,
        planned=planned,
        facts=facts,
        call=call,
        opened=late,
        original=original,
        modules=modules.patched,
        loading=modules.loading,
        beside=others,
    )


def _with_modules(
    request: Request, opened: Opened | None, names: Sequence[ProbeName], files: Sequence["ModuleFile"]
) -> tuple[Opened | None, PreparedModules]:
    """The modules that the guest may load. If one can have probes, the image is analysed."""
    if not files and not any(has_sites(path) for _, path in request.modules):
        return opened, PreparedModules()
    opened = opened or open_source(source_of(request), progress=request.progress, read=open_to_run, keeps=True)
    if opened.manifest is not None and opened.manifest.standalone is not None:
        raise UsageError(f"{request.image}: is standalone, and has no handler: its modules' probes need one")
    if request.method is Method.JUMP:
        raise UsageError("--method jump: has no handler, and the probes of modules need one")
    first = numbering_of(opened.program).end
    patched = tuple(patched_modules(request.modules, opened.image.facts.name, first))
    return opened, prepare_modules(patched, files, names, request, first)


def _after(opened: Opened, modules: PreparedModules) -> int:
    """The first identifier after those of an image and of its modules."""
    following = modules.next_identifier
    return numbering_of(opened.program).end if following is None else following


def _call_of(request: Request) -> Call | None:
    """The function that the image is loaded for; None: it boots, or has booted. Raises UsageError."""
    if request.call is None:
        return None
    if request.is_called_each:
        template = parse_template(request.call)
        call = Call(template.function, (), template.text)
    else:
        call = parse_call(request.call)
    return call if request.start is None else None


def _check_call(request: Request) -> None:
    if request.start is not None:
        return
    if request.call is not None and request.configuration.cpus > 1:
        raise UsageError("--call runs a function on one CPU: --cpus is for an image that boots")
    if request.call is not None and (
        request.configuration.files or request.beside or request.configuration.device_tree is not None
    ):
        raise UsageError("--call runs a function by itself: --load, --stage and --dtb are for an image that boots")


def source_of(request: Request) -> Source:
    """The image, and the files that have names for it."""
    assert request.image is not None, "there is an image"
    names = request.symbols, request.debug_file, request.code, request.own_names
    return Source(request.image, request.name, *names, request.reading)


def _loaded(request: Request, planned: Planned) -> tuple[Image, Manifest | None]:
    """The image that is loaded, and the manifest of its probes."""
    if planned.plan is not None:
        return _as_planned(planned.plan)
    if planned.late is not None:
        return planned.late.image, planned.late.manifest
    return _as_it_is(request)


def _as_it_is(request: Request) -> tuple[Image, Manifest | None]:
    """The image in the file, with the module and the names that it was patched with."""
    assert request.image is not None
    image = open_to_run(request.image, module=request.name, reading=request.reading)
    manifest = find_manifest(image)
    if manifest is not None:
        image = replace(with_names(image, manifest.given), module=request.name or manifest.module)
    return image, manifest


def _as_planned(plan: Plan) -> tuple[Image, Manifest]:
    """The image that is loaded: the original, since breakpoints are written into memory. A standalone one gets a
    segment for its trampolines, as it would have in a file."""
    return plan.image if plan.manifest.standalone is None else with_segment(plan), plan.manifest


def _planned(
    opened: Opened, names: Sequence[ProbeName], inlines: DebugInlines, request: Request, *, has_modules: bool
) -> Planned:
    digest = digest_of(source_of(request), names) if request.is_planned_late and not has_modules else ""

    def resolution_of() -> Resolution:
        return resolve(opened.program, names, inlines=inlines, records=opened.static, progress=request.progress)

    late = kept_plan(opened.image, digest, cache(resolution_of)) if digest else None
    if late is not None:
        return Planned(late=late, reasons=late.reasons, refusals=late.refusals)
    resolution = resolution_of()
    reasons = {
        outcome.name: str(outcome.error).removeprefix(f"{outcome.name}: ")
        for outcome in resolution.outcomes
        if outcome.error is not None
    }
    useful = tuple(outcome for outcome in resolution.outcomes if outcome.error is None)
    if not useful and not has_modules:  # modules need the kernel's plan: their identifiers follow its own
        return Planned(reasons=reasons)
    resolution = replace(resolution, outcomes=useful)
    if request.is_planned_late:
        return _planned_late(opened.image, digest, names, resolution, reasons)
    is_far = opened.manifest is not None or request.method is Method.JUMP
    base = None if is_far else nearby(opened.image)
    try:
        plan = plan_of(
            *(opened, resolution),
            alone=IN_OUR_MACHINE if request.method is Method.JUMP else None,
            trampoline_base=base,
            method=request.method,
            progress=request.progress,
        )
    except PlacementError as error:
        if request.method is Method.JUMP:  # the error suggests options that kinst-run does not have
            raise PlacementError(f"{error}, of kinst-rewrite --standalone") from None
        raise
    reasons |= without_trampolines(resolution, plan)
    reasons |= without_jumps(resolution, plan)
    kept = len(plan.manifest.sites)
    lines = (*summary_lines(resolution, plan.lost, kept), no_jump_summary(plan.no_jumps, kept), moving_text(plan))
    refusals = tuple(filter(None, lines))
    expansions = {one.name: one.expansion for one in useful if one.expansion is not None}
    own = {name: _own_code(expansion, resolution) for name, expansion in expansions.items()}
    return Planned(plan, None, reasons, refusals, expansions, own)


def _planned_late(
    image: Image, digest: str, names: Sequence[ProbeName], resolution: Resolution, reasons: Mapping[ProbeName, str]
) -> Planned:
    """What the resolution is planned for later. Nothing is kept of names that mean inlined copies: these may follow
    from debug information in other files."""
    digest = "" if any(map(is_inline, names)) else digest
    lines = tuple(summary_lines(resolution, no_refusals(), 0))
    late = new_plan(image, digest, resolution, lines, reasons)
    return Planned(late=late, reasons=reasons, refusals=late.refusals)


def _own_code(expansion: Expansion, resolution: Resolution) -> tuple[OwnCode, ...]:
    address, fbt = resolution.program.functions.address, expansion.fbt
    pairs = zip(fbt.rows.tolist(), fbt.names.tolist(), strict=True)
    return tuple(OwnCode(int(address[row]), resolution.names.text_of(number)) for row, number in pairs)

"""Files with images beside the first one -> these images, and what is to be patched in each of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kinst.rewriter.naming.inline_probes import is_inline
from kinst.rewriter.naming.resolve import numbering_of, resolve
from kinst.rewriter.outcome_report import summary_lines, without_trampolines
from kinst.rewriter.rewriting import Opened, Source, open_source, plan_of
from kinst.runtime.tracing.images.modules import renamed
from kinst.runtime.tracing.images.nearby import nearby
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.elf.header import PT_LOAD, FileKind
from kinst.targets.errors import ImageError, KinstError, UsageError
from kinst.targets.image import Image, open_to_run
from kinst.targets.manifest.probe_ids import FIRST_PROBE_ID
from kinst.targets.method import Method
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.rewriter.naming.resolve import Resolution
    from kinst.runtime.tracing.beside_file import BesideFile
    from kinst.runtime.tracing.request import Request
    from kinst.targets.arch.facts import ArchFacts
    from kinst.targets.c_types import ImageTypes
    from kinst.targets.manifest.packed import Manifest
    from kinst.targets.probe import ProbeName

_ELF: Final = b"\x7fELF"
_KEPT: Final = frozenset({Method.AUTO, Method.EMULATE, Method.TRAP})  # methods that serve an image which comes later


class BesideImage:
    """One image that was opened."""

    def __init__(self, file: "BesideFile", opened: Opened, in_file: Image) -> None:
        """`in_file`: the image with the breakpoints that its file may have."""
        self.file, self.opened, self.in_file = file, opened, in_file

    @property
    def module(self) -> str:
        """Its name in probes."""
        return self.opened.image.module

    @cached_property
    def types(self) -> "ImageTypes":
        """What its debug information says."""
        return image_types(self.opened.image)

    @property
    def expected(self) -> int | None:
        """How far it is from its load addresses, in bytes, as we load it; None: the guest decides that."""
        segments = [one for one in self.opened.image.segments if one.kind == PT_LOAD and one.size]
        if self.file.loaded is None or not segments:
            return None
        return self.file.loaded.address - min(one.load_address for one in segments)


@dataclass(frozen=True, slots=True)
class PreparedBeside:
    """An image, and its probes."""

    image: BesideImage
    manifest: "Manifest | None"  # None: it has none
    trampolines: bytes
    reasons: Mapping["ProbeName", str]  # for names without a single site, why
    refusals: tuple[str, ...]


def open_beside(request: "Request", first: Image) -> tuple[BesideImage, ...]:
    """The images that are in the machine beside the first one.

    Raises:
        ImageError, ManifestError: one cannot be read.
        UsageError: two images have one name, or one is for another machine.
    """
    # Under QEMU the others are bytes that it loads, unless the user gives one a name: then it is refused there.
    files = (file for file in request.beside if file.is_image or request.on is None)
    found = tuple(filter(None, (_opened(file, first.facts) for file in files)))
    names = [first.module, *(name for name, _ in request.modules)]
    for one in found:
        if one.module in names:
            raise UsageError(
                f"{one.file.option}: another image is called {one.module}: give this one a name, NAME={one.file.path}"
            )
        names.append(one.module)
    return found


def _opened(file: "BesideFile", arch: "ArchFacts") -> BesideImage | None:
    """The image in a file; None if the file may be anything and is none."""
    try:
        image, reading = _read(file, arch)
        opened = open_source(Source(file.path, file.module, reading=reading), read=open_to_run)
    except KinstError as error:
        if file.is_image:
            raise type(error)(f"{file.option.split()[0]} {error}") from None
        return None
    if image.facts.name == arch.name and image.kind is not FileKind.REL:
        is_patched = opened.manifest is not None and file.loaded is None  # what we load is as it was before
        return BesideImage(file, opened, image if is_patched else opened.image)
    if not file.is_image:
        return None
    if image.kind is FileKind.REL:
        raise UsageError(f"{file.option}: is not linked: a kernel's module is for --module")
    raise UsageError(f"{file.option}: is for {image.facts.name}, the first image is for {arch.name}")


def _read(file: "BesideFile", arch: "ArchFacts") -> tuple[Image, Reading]:
    """The image, and how it was read: a file without headers is code from its address on."""
    try:
        return open_to_run(file.path, module=file.module), AS_IT_SAYS
    except ImageError:
        with file.path.open("rb") as stream:
            is_elf = stream.read(len(_ELF)) == _ELF
        if is_elf or file.address is None or not file.is_image:
            raise
    reading = Reading(arch.name, file.address)
    return open_to_run(file.path, module=file.module, reading=reading), reading


def is_for(name: "ProbeName", first: Image, images: Sequence[BesideImage]) -> bool:
    """Whether a name means the first image, or none at all, so that the first one's error is the right one."""
    return name.matches_image(first.module) or not any(name.names_module(one.module) for one in images)


def prepare_beside(
    images: Sequence[BesideImage], names: Sequence["ProbeName"], request: "Request", first: int
) -> tuple[PreparedBeside, ...]:
    """What to patch in each. `first`: the first identifier that their probes may have. Raises KinstError."""
    return tuple(_prepared(images, names, request, first))


def _prepared(
    images: Sequence[BesideImage], names: Sequence["ProbeName"], request: "Request", first: int
) -> Iterator[PreparedBeside]:
    for one, start in zip(images, starts(images, first) if names else [first] * len(images), strict=True):
        own = [name for name in names if name.names_module(one.module)]
        yield _planned(one, own, request, start) if own else PreparedBeside(one, None, b"", {}, ())


def check_rewriting(first: str, manifest: "Manifest | None", others: Sequence[PreparedBeside]) -> None:
    """Raise UsageError if two images have probes in code that they write themselves: one at a time can be watched."""
    found = [first] if manifest is not None and manifest.is_deferred.any() else []
    found += [one.image.module for one in others if one.manifest is not None and one.manifest.is_deferred.any()]
    if len(found) > 1:
        raise UsageError(
            f"{found[0]} and {found[1]} are kernels that rewrite their own code: one of them can have probes there: "
            "name the module"
        )


def starts(images: Sequence[BesideImage], first: int) -> list[int]:
    """The first identifier of each image's probes: those of the next image follow."""
    found = []
    for one in images:
        found.append(first)
        first += numbering_of(one.opened.program).end - FIRST_PROBE_ID
    return found


def named_beside(images: Sequence[BesideImage], first: int, identifier: int) -> "ProbeName | None":
    """The probe with an identifier, if one of the images has it. `first`: as for `prepare_beside`."""
    for one, start in zip(images, starts(images, first), strict=True):
        numbers, own = numbering_of(one.opened.program), identifier - start + FIRST_PROBE_ID
        name = numbers.name(own) if FIRST_PROBE_ID <= own < numbers.end else None
        if name is not None:
            return replace(name, module=one.module)
    return None


def _planned(image: BesideImage, names: Sequence["ProbeName"], request: "Request", start: int) -> PreparedBeside:
    opened = image.opened
    if opened.manifest is not None and opened.manifest.standalone is not None:
        raise UsageError(f"{image.file.option}: is standalone, and has no handler: take the original, or --restore it")
    if request.method is Method.JUMP:
        raise UsageError(f"--method jump: has no handler, and the probes of {image.module} need one")
    wanted = [name for name in names if not is_inline(name)]
    inlined = f"inlined copies can be probed in the first image, and {image.module} is another"
    resolution, reasons = _resolved(image, wanted, request)
    reasons |= {name: inlined for name in names if is_inline(name)}
    if resolution is None:
        return PreparedBeside(image, None, b"", reasons, ())
    method = request.method if request.method in _KEPT else None
    base = None if opened.manifest is not None else nearby(opened.image)
    plan = plan_of(opened, resolution, trampoline_base=base, method=method, progress=request.progress)
    reasons |= without_trampolines(resolution, plan)
    lines = summary_lines(resolution, plan.lost, len(plan.manifest.sites))
    manifest = renamed(plan.manifest, image.module, start - FIRST_PROBE_ID)
    if manifest.method not in {one.value for one in _KEPT}:
        manifest = replace(manifest, method=Method.AUTO.value)
    refusals = tuple(f"{image.module}: {line}" for line in lines if line)
    return PreparedBeside(image, manifest, plan.trampolines.tobytes(), reasons, refusals)


def _resolved(
    image: BesideImage, names: Sequence["ProbeName"], request: "Request"
) -> "tuple[Resolution | None, dict[ProbeName, str]]":
    """What names choose in an image, None if it is nothing; and why some choose nothing."""
    inlines = image.opened.inlines(with_parameters=True, types=image.types)
    found = resolve(image.opened.program, names, inlines=inlines, progress=request.progress)
    reasons = {
        one.name: str(one.error).removeprefix(f"{one.name}: ") for one in found.outcomes if one.error is not None
    }
    useful = tuple(one for one in found.outcomes if one.error is None)
    return (replace(found, outcomes=useful) if useful else None), reasons

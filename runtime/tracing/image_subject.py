"""A request with an image -> the types and names that programs are compiled against, and the guest, patched with what
they describe."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kinst.rewriter.naming.inline_probes import is_inline
from kinst.rewriter.naming.resolve import numbering_of
from kinst.rewriter.rewriting import Opened, open_source
from kinst.runtime.coverage.document import Granularity
from kinst.runtime.dlang.builtins import FREEBSD
from kinst.runtime.providers.plugged import asks_for
from kinst.runtime.systems.registry import constants_of, variables_of
from kinst.runtime.tracing.guests.built import Build, Built, CountsCode, MakesProviders
from kinst.runtime.tracing.images.beside_images import BesideImage, named_beside, open_beside
from kinst.runtime.tracing.images.plug_ins import PlugIns
from kinst.runtime.tracing.images.preparing import prepare, source_of
from kinst.runtime.tracing.programs.inline_clauses import InlineClauses
from kinst.runtime.tracing.programs.program_text import Origin, ProgramText
from kinst.runtime.tracing.programs.programs import site_names
from kinst.runtime.tracing.request import Request
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import NO_IMAGE_ARCH
from kinst.targets.c_types import ImageTypes, NoImageTypes
from kinst.targets.debuginfo.beside_types import BesideTypes
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.elf.file import ElfLike
from kinst.targets.image import Image, open_to_run
from kinst.targets.manifest.packed import find_manifest
from kinst.targets.probe import PROVIDERS, ProbeName

if TYPE_CHECKING:
    from kinst.runtime.tracing.guests.built import Covered
    from kinst.runtime.tracing.guests.guest import Guest
    from kinst.runtime.tracing.images.module_files import ModuleFile
    from kinst.runtime.tracing.images.plug_ins import MakeProviders
    from kinst.runtime.typed.image_objects import Objects

_WITH_SITES: Final = ("fbt", "kinst")  # their probes are addresses in code, as an image's static probes are
# A line for each probe that was hit, those with the most hits first.
_SUMMARY: Final = """
#pragma D option quiet
#pragma D option aggsortrev
::: { @hits[probeprov, probemod, probefunc, probename] = count(); }
END { printa("%@12d %s:%s:%s:%s\\n", @hits); }
"""
# Under QEMU the image itself counts. `WithCoverage` lets nothing of it be printed.
_COUNTED: Final = {
    Granularity.FUNCTIONS: "fbt:::entry { @ = count(); }",
    Granularity.BLOCKS: "kinst::: { @ = count(); }",
    Granularity.INSTRUCTIONS: "kinst::: { @ = count(); }",
}
_LONGEST_IDENTIFIER: Final = 19  # digits of an identifier


def _own_machine() -> Build:
    """What builds the guest in our machine. QEMU's has no use for the emulator, which takes long to import."""
    from kinst.runtime.tracing.guests.building import build

    return build


class ImageSubject:
    """An image that programs are compiled against; implements `kinst.runtime.tracing.subject.Subject`."""

    def __init__(self, request: Request, opened: Opened | None, build: Build | None = None) -> None:
        """Analyse the image if programs or actions may need its names. Merely running it needs none of that, unless it
        was patched in inlined copies: what those descriptions mean is in the debug information. `build` makes the
        guest; None: our own machine."""
        self._request = request
        self._build = build or _own_machine()
        self._beside = _beside(request)
        self.programs = _programs(request, self._beside)
        self._opened: Opened | None = None
        self._given, self._objects = opened, cache(self._made_objects)
        self.types: ImageTypes = NoImageTypes()
        self.constants: Mapping[str, int] = FREEBSD
        self.arch: ArchFacts = NO_IMAGE_ARCH
        self.providers: tuple[str, ...] = ()
        self._placed: tuple[str, ...] = ()
        self._identified: dict[str, ProbeName] = {}
        self._built: Built | None = None
        is_named = any(map(_is_inlined, self.programs)) or any(map(_own_probes, self._beside))
        if request.programs or request.actions or is_named or request.counts_by_itself:
            opened = self._opened = opened or open_source(
                source_of(request), progress=request.progress, read=open_to_run, keeps=True
            )
            image = opened.image
            self.types = self._types_of(image, {})
            self.constants = constants_of(image, request.system)
            self.arch, own = image.facts, opened.static.providers
            self.providers = tuple(dict.fromkeys((*PROVIDERS, *own)))
            self._placed = tuple(dict.fromkeys((*_WITH_SITES, *own)))

    def load(self, descriptions: Sequence[str], warn: Callable[[str], None]) -> Built:
        """See `Subject`."""
        opened = self._opened
        image = None if opened is None else opened.image
        self._identified = {} if opened is None else _identified(opened, self._beside, descriptions)
        plug_ins = PlugIns(image, self.types, asks_for(descriptions, self._identified), self._own(descriptions))
        names = (*self._names([str(self._identified.get(text, text)) for text in descriptions]), *plug_ins.names)
        files = () if image is None else self._module_files(image, names)
        prepared = prepare(self._request, opened, names, self.types, self._beside, files)
        self._built = self._build(prepared, self.types, plug_ins, warn)
        return self._built

    def _module_files(self, image: Image, names: Sequence[ProbeName]) -> "Sequence[ModuleFile]":
        """The modules that names mean, of which types are known from now on."""
        from kinst.runtime.tracing.images.module_files import module_files, named  # few runs have any

        files = module_files(self._request, image, names)
        found = {name: one for name, one in named(files).items() if name not in dict(self._request.modules)}
        if found:
            self.types = self._types_of(image, found)
        return files

    def _types_of(self, image: Image, found: Mapping[str, Image]) -> ImageTypes:
        """The types of the image, of the modules of --module and in `found`, and of the images beside it."""
        request = self._request
        modules: dict[str, Path | ElfLike] = {**dict(request.modules), **found}
        types = image_types(image, debug_file=request.debug_file, modules=modules)
        return BesideTypes(types, {one.module: one.types for one in self._beside}) if self._beside else types

    def _own(self, descriptions: Sequence[str]) -> "MakeProviders | None":
        """What makes the providers of what builds the guest, if it has its own."""
        build = self._build
        if not isinstance(build, MakesProviders):
            return None
        return lambda host, is_wanted: build.providers(host, is_wanted, descriptions)

    def objects(self) -> "Objects":
        """See `Subject`. Types are read even if no program needs them."""
        return self._objects()

    def _made_objects(self) -> "Objects":
        from kinst.runtime.tracing.typed_values import objects_of  # few runs have any

        assert self._built is not None, "load() comes first"
        request, around = self._request, self._built.surroundings
        opened = self._opened or self._given or open_source(source_of(request), read=open_to_run, keeps=True)
        image, types = opened.image, self.types
        if self._opened is None:
            types = image_types(image, debug_file=request.debug_file, modules=dict(request.modules))
        describe, variables = around.symbols.describe, variables_of(image, request.system)
        places = around.locate, around.locate_beside
        return objects_of(image.facts, types, around.memory, describe, *places, variables)

    @property
    def guest(self) -> "Guest | None":
        """See `Subject`."""
        from kinst.runtime.tracing.guests.guest import Guest

        return self._built if isinstance(self._built, Guest) else None

    @property
    def covered(self) -> "Covered | None":
        """See `Subject`."""
        built = self._built
        if not isinstance(built, CountsCode) or built.covering is None:
            return None
        return built.covering, built.prepared.original

    @property
    def inlines(self) -> InlineClauses | None:
        """See `Subject`."""
        return None if self._built is None else self._built.inlines

    @property
    def refusals(self) -> Sequence[str]:
        """See `Subject`."""
        return () if self._built is None else self._built.prepared.planned.refusals

    def reason(self, description: str) -> str:
        """See `Subject`."""
        assert self._built is not None, "load() comes first"
        text, reasons = str(self._identified.get(description, description)), self._built.prepared.planned.reasons
        provider, *where, _ = text.split(":") if ":" in text else ("", "")
        names = self._names([text]) if provider or any(where) else []
        return next((reasons[name] for name in names if name in reasons), "")

    def _names(self, descriptions: Sequence[str]) -> list[ProbeName]:
        return site_names(descriptions, self._placed)


def _beside(request: Request) -> tuple[BesideImage, ...]:
    """The other images in the machine."""
    if not request.beside:
        return ()
    return open_beside(request, open_to_run(source_of(request).path, module=request.name, reading=request.reading))


def _programs(request: Request, beside: Sequence[BesideImage]) -> Sequence[ProgramText]:
    """The user's programs; if there are none, and no actions, the probes that a patched image was patched with. A
    standalone image may have counted many hits before it is read, so that these get a summary, not a line each."""
    if request.programs or request.actions:
        return request.programs
    if request.coverage is not None and request.counts_by_itself:
        text = _COUNTED[request.coverage.granularity]
        return [ProgramText(Origin.NAME, text, text)]
    manifest = find_manifest(open_to_run(source_of(request).path, reading=request.reading))
    if manifest is not None and manifest.standalone is not None:
        return [ProgramText(Origin.SCRIPT, "summary", _SUMMARY)]
    options = () if manifest is None else manifest.options
    kept = [text for one in beside for text in _own_probes(one)]
    return [ProgramText(Origin.NAME, text, text) for text in (*options, *kept)]


def _own_probes(image: BesideImage) -> list[str]:
    """What another image in the machine was patched with, as names of its own probes."""
    manifest = image.opened.manifest
    options = () if manifest is None or manifest.standalone is not None else manifest.options
    parts = (text.split(":") for text in options)
    return [":".join((provider, image.module, *rest)) for provider, _, *rest in parts]


def _is_inlined(program: ProgramText) -> bool:
    """Whether a program that is a description with four fields, as manifests have them, means inlined copies."""
    fields = program.text.split(":")
    return len(fields) == len(ProbeName.__slots__) and is_inline(ProbeName(*fields))


def _identified(opened: Opened, beside: Sequence[BesideImage], descriptions: Sequence[str]) -> dict[str, ProbeName]:
    """The descriptions that are probe identifiers (-i), and the probes that they name."""
    texts = [text for text in descriptions if text.isdigit() and len(text) < _LONGEST_IDENTIFIER]
    if not texts:
        return {}
    numbers = numbering_of(opened.program)
    found = {text: numbers.name(int(text)) or named_beside(beside, numbers.end, int(text)) for text in texts}
    return {text: name for text, name in found.items() if name is not None}

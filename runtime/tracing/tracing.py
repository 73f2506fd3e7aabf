"""What the command line asks for -> programs compiled against an image (or none), probes enabled, ready to run."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final, TextIO

import numpy as np

from kinst.rewriter.inline_probes import is_inline
from kinst.rewriter.resolve import numbering_of
from kinst.rewriter.rewriting import Opened, open_source
from kinst.rewriter.static_sites import provider_names
from kinst.runtime.consumer.json_output import JsonOutput
from kinst.runtime.consumer.output import TextOutput
from kinst.runtime.dlang.check.checker import Checker
from kinst.runtime.dlang.context import CheckContext, EveryProbe
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.program import Program
from kinst.runtime.dlang.syntax import tree, unparse
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.providers.plugged import asks_for
from kinst.runtime.tracing import library_files
from kinst.runtime.tracing.ending import Ending, Outcome
from kinst.runtime.tracing.listing import report
from kinst.runtime.tracing.matching import Matching
from kinst.runtime.tracing.programs import Origin, ParsedProgram, ProgramReader, ProgramText, site_names
from kinst.runtime.tracing.session import Wanted, interruptible
from kinst.runtime.tracing.surroundings import NO_IMAGE_ARCH, Surroundings, with_guest, without_guest
from kinst.runtime.tracing.tracer import DrainTimer, Tracer
from kinst.runtime.tracing.type_texts import TypeTexts
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.c_types import ImageTypes, NoImageTypes
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.errors import KinstError, MachineError
from kinst.targets.image import open_image
from kinst.targets.manifest import find_manifest
from kinst.targets.probe import ProbeName

_WITHOUT_PLACES: Final = ("dtrace", "profile", "sdt")  # providers whose probes are no places in code, or others'
_LONGEST_IDENTIFIER: Final = 19  # digits
_EVERYTHING: Final = ("dtrace:::", "profile:::", "fbt:::", "sdt:::")  # what -l lists


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for. `wanted` is None for programs that need no image."""

    wanted: Wanted | None
    clock: ClockKind
    programs: tuple[ProgramText, ...]
    arguments: tuple[str, ...]  # $1, $2, ...
    options: Options
    timeout: float | None = None  # seconds of the machine's time
    wall_timeout: float | None = None  # seconds of the host's


@dataclass(frozen=True, slots=True)
class Streams:
    """Where things are written. `console` is None where the guest's console goes to `output` too."""

    output: BinaryIO
    errors: TextIO
    console: BinaryIO | None = None
    is_json: bool = False

    def warn(self, line: str) -> None:
        """Say something now, whatever is still to be printed."""
        self.errors.write(f"kinst-run: {line}\n")
        self.errors.flush()


class TracedRun:
    """A run of an image, or of none, with D programs."""

    def __init__(self, request: Request, *, records_time: bool = False) -> None:
        """Read the programs, load the image, patched with what they need. Raises KinstError."""
        self.options = request.options
        programs = _programs(request)
        opened = _opened(request, programs)
        types = _types(request, opened)
        scope = TypeScope(types)
        self._types = types
        # Whose types and registers programs have that are still being read.
        self._arch = arch_by_name(NO_IMAGE_ARCH) if opened is None else opened.program.image.facts
        self._reader = ProgramReader(request.options, request.arguments, scope.is_type, self._declare)
        self._libraries = self._read_libraries()
        self.parsed = [self._reader.read(program) for program in programs]
        self._identified = {} if opened is None else _identified(opened, self._descriptions())
        self._known_providers = () if opened is None else provider_names(opened.program.image)
        described = [str(self._identified.get(text, text)) for text in self._descriptions()]
        names = site_names(described, _with_places(self._known_providers))
        asks = asks_for(self._descriptions(), self._identified)
        self.surroundings = _surroundings(request, opened, types, names, asks)
        self.matching = Matching(
            self.surroundings.providers,
            self.options,
            self._reason,
            TypeTexts(scope).resolve,
            self.surroundings.inlines,
            self._known_providers,
        )
        self.ending: Ending | None = None  # of a run that is over
        self._checker = Checker(CheckContext(self.surroundings.host.arch, types, self.matching, self.options))
        self._clock = request.clock
        self._records_time = records_time
        self.tracer: Tracer | None = None

    def _read_libraries(self) -> list[ParsedProgram]:
        """Those of -L in their order; they declare types that the programs need to be read."""
        if self.options.is_on("nolibs"):
            return []
        try:
            libraries = library_files.in_order(library_files.find(self.options.library_folders))
        except library_files.LibraryError as error:
            raise self._reader.failed(error.program, error.error) from error
        return [self._reader.read(library.program) for library in libraries]

    def _declare(self, read: Sequence[ParsedProgram]) -> None:
        """What is wrong outside of clauses, before probes are known. Raises DError."""
        checker = Checker(CheckContext(self._arch, self._types, EveryProbe(), self.options))
        for parsed in read:
            if parsed.program.is_library:
                _load(checker, parsed)
            else:
                checker.declare(parsed.unit)

    def _reason(self, description: str) -> str:
        """Why the names that a description stands for patch nothing; it has four fields, or is an identifier."""
        text, reasons = str(self._identified.get(description, description)), self.surroundings.reasons
        provider, *where, _ = text.split(":") if ":" in text else ("", "")
        names = site_names([text], _with_places(self._known_providers)) if provider or any(where) else []
        return next((reasons[str(name)] for name in names if str(name) in reasons), "")

    def _descriptions(self) -> list[str]:
        return list(dict.fromkeys(one.text for parsed in self.parsed for one in parsed.descriptions()))

    def check(self) -> list[Program]:
        """Check all programs, libraries first. Raises ProgramError for the first that is wrong."""
        for library in self._libraries:
            with self._failing(library):
                _load(self._checker, library)
        programs = [self._check(parsed) for parsed in self.parsed]
        if self.parsed:
            self._reader.check_arguments(self.parsed[-1].program)
        return programs

    def _check(self, parsed: ParsedProgram) -> Program:
        with self._failing(parsed):
            return self._checker.check(parsed.unit)

    @contextmanager
    def _failing(self, parsed: ParsedProgram) -> Iterator[None]:
        try:
            yield
        except DError as error:
            raise self._reader.failed(parsed.program, error, hint=self._types.obstacle()) from error

    def enable(self) -> Iterator[tuple[ProgramText, int]]:
        """Compile the programs and enable their probes: each program and how many probes it matched."""
        programs = self.check()
        tracer = Tracer(self.surroundings, self.options, self._clock, records_time=self._records_time)
        counts = tracer.enable(programs, self.matching)
        if not any(counts) and not self._needs_no_probes():
            raise KinstError("no probes matched" if any(one.clauses for one in programs) else "no probes specified")
        self.tracer = tracer
        yield from zip((parsed.program for parsed in self.parsed), counts, strict=True)

    def _needs_no_probes(self) -> bool:
        """An image runs without programs, and -Z lets descriptions match nothing."""
        has_guest = self.surroundings.session is not None
        return (has_guest and not self.parsed) or (bool(self.parsed) and self.options.is_on("zdefs"))

    def listed(self) -> list[int]:
        """Identifiers of the probes that the programs describe, each once."""
        found = [self.matching.probes(description)[1] for description in self._descriptions()]
        return np.unique(np.concatenate(found)).tolist() if found else []

    def unmatched(self) -> list[tuple[str, str]]:
        """Descriptions that match nothing, with all four fields, and why where that is known."""
        found = [self.matching.probes(description) for description in self._descriptions()]
        return [(fields, self.matching.reason(fields)) for fields, probes in found if not len(probes)]

    @property
    def refusals(self) -> tuple[str, ...]:
        """What the programs describe and cannot have: a line for each description of which some was refused."""
        session = self.surroundings.session
        return () if session is None else session.refusals

    def report(self, program: ProgramText) -> str:
        """The stability of a program that was enabled: -v."""
        parsed = next(one for one in self.parsed if one.program is program)
        found = [self.matching.probes(description.text)[1] for description in parsed.descriptions()]
        identifiers = np.unique(np.concatenate(found)).tolist() if found else []
        text = report(program.title, parsed.unit, self.surroundings.providers, identifiers)
        if self.tracer is None or not self.tracer.state.variables.has_threads:
            return text
        contexts = self.surroundings.contexts
        key = "the CPU: there is no guest" if contexts is None else contexts.description
        return f"{text}\nself-> is keyed by {key}\n"

    def run(self, streams: Streams) -> int:
        """Run to the end; the exit code. Raises MachineError: the guest stopped for good; everything was printed all
        the same."""
        tracer, surroundings = self.tracer, self.surroundings
        assert tracer is not None, "enable() comes first"
        output = self._output(streams, tracer)
        tracer.warn = streams.warn
        if surroundings.session is not None:
            surroundings.session.warn = streams.warn
        surroundings.arm()
        surroundings.on_turn(lambda: tracer.after_turn(output))
        if self._clock is ClockKind.HOST and surroundings.session is not None:
            surroundings.host.attach(DrainTimer(tracer, output))
        with interruptible(surroundings.host.finish), _without_old_garbage():
            self.ending = self._trace(tracer, output)
        self._print_result(streams)
        return self._status(output, self.ending)

    def _trace(self, tracer: Tracer, output: TextOutput | JsonOutput) -> Ending:
        surroundings, failed = self.surroundings, list[Ending]()

        def ending(outcome: Outcome) -> Ending:
            ending, session = surroundings.ending(outcome), surroundings.session
            failed.append(ending if session is None else replace(ending, passed_over=session.passed_over()))
            return failed[-1]

        try:
            return tracer.run(output, lambda: surroundings.run(tracer.console), ending)
        except MachineError as error:
            told = [line for ending in failed for line in ending.lines(is_verbose=False)]
            raise MachineError("\n".join([str(error), *told])) from error

    def _output(self, streams: Streams, tracer: Tracer) -> TextOutput | JsonOutput:
        if streams.is_json:
            return JsonOutput(
                streams.output,
                tracer.clauses,
                tracer.totals,
                tracer.symbols,
                tracer.probe,
                self.options,
                console=streams.console,
            )
        return TextOutput(
            streams.output,
            streams.errors,
            tracer.clauses,
            tracer.totals,
            tracer.symbols,
            tracer.probe,
            self.options,
            console=streams.console,
            epid=tracer.epid,
        )

    def _print_result(self, streams: Streams) -> None:
        session = self.surroundings.session
        if session is not None and session.result is not None:
            streams.output.write(f"{session.wanted.call} = {session.result:#x}\n".encode())

    def _status(self, output: TextOutput | JsonOutput, ending: Ending) -> int:
        """What exit() said, else 1 for panic(), else what the guest's power-off said."""
        session = self.surroundings.session
        if output.status is not None:
            return output.status & 0xFF
        if ending.end is End.PANIC:
            return 1
        return 0 if session is None else session.system.exit_code


def _load(checker: Checker, library: ParsedProgram) -> None:
    checker.load(Path(library.program.name).name, library.unit)


@contextmanager
def _without_old_garbage() -> Iterator[None]:
    """What was made so far stays as long as the run: Python's full collections, which many records cause, need not look
    through it. A printf() clause costs half a microsecond so instead of four."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _opened(request: Request, programs: Sequence[ProgramText]) -> Opened | None:
    """The image, taken apart, where programs may need its names. To run it alone nothing of that is needed, unless it
    was patched where functions are inlined: debug information tells what that meant."""
    wanted = request.wanted
    if wanted is None or not (request.programs or any(map(_is_inlined, programs))):
        return None
    return open_source(wanted.source)


def _is_inlined(program: ProgramText) -> bool:
    """Of a program that is a description with four fields, as manifests have them."""
    fields = program.text.split(":")
    return len(fields) == len(ProbeName.__slots__) and is_inline(ProbeName(*fields))


def _types(request: Request, opened: Opened | None) -> ImageTypes:
    wanted = request.wanted
    if wanted is None or opened is None:
        return NoImageTypes()
    return image_types(opened.program.image, debug_file=wanted.debug_file, modules=dict(wanted.modules))


def _programs(request: Request) -> Sequence[ProgramText]:
    """Those of the user; without any, the probes that a patched image was patched with."""
    if request.programs or request.wanted is None:
        return request.programs
    manifest = find_manifest(open_image(request.wanted.image))
    options = () if manifest is None else manifest.options
    return [ProgramText(Origin.NAME, text, text) for text in options]


def _surroundings(
    request: Request,
    opened: Opened | None,
    types: ImageTypes,
    names: Sequence[ProbeName],
    asks: Callable[[str], bool],
) -> Surroundings:
    wanted = request.wanted
    if wanted is None:
        return without_guest(request.clock, request.timeout, request.wall_timeout)
    if opened is None:
        return with_guest(wanted, None, types)
    return with_guest(replace(wanted, names=tuple(names), asks_for=asks), opened, types)


def _with_places(providers: Sequence[str]) -> list[str]:
    return [name for name in providers if name not in _WITHOUT_PLACES]


def _identified(opened: Opened, descriptions: Sequence[str]) -> dict[str, ProbeName]:
    """The descriptions that are identifiers, and what they name."""
    texts = [text for text in descriptions if text.isdigit() and len(text) < _LONGEST_IDENTIFIER]
    numbers = numbering_of(opened.program) if texts else None
    found = {text: numbers.name(int(text)) for text in texts} if numbers is not None else {}
    return {text: name for text, name in found.items() if name is not None}


def everything(request: Request) -> Request:
    """What -l lists where no program says otherwise; some of it there may not be."""
    return replace(request, programs=tuple(ProgramText(Origin.NAME, text, text) for text in _EVERYTHING))


def sugared(run: TracedRun) -> str:
    """The programs as they are compiled: -d. Descriptions that mean inlined copies are those of their probes."""
    return "".join(unparse.unparse(_concrete(parsed.unit, run.matching)) for parsed in run.parsed)


def _concrete(unit: tree.Unit, matching: Matching) -> tree.Unit:
    items = (_concrete_clause(item, matching) if isinstance(item, tree.Clause) else item for item in unit.items)
    return replace(unit, items=tuple(items))


def _concrete_clause(clause: tree.Clause, matching: Matching) -> tree.Clause:
    texts = [(one, text) for one in clause.descriptions for text in matching.concrete(one.text)]
    return replace(clause, descriptions=tuple(replace(one, text=text) for one, text in texts))

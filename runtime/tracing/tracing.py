"""A request -> programs compiled against an image (or none), with their probes enabled, ready to run."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from kinst.runtime.dlang.check.checker import Checker
from kinst.runtime.dlang.context import CheckContext, EveryProbe
from kinst.runtime.dlang.program import Program
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.tracing.listing import report
from kinst.runtime.tracing.programs import library_files
from kinst.runtime.tracing.programs.matching import Matching
from kinst.runtime.tracing.programs.program_text import Origin, ProgramText
from kinst.runtime.tracing.programs.programs import ParsedProgram, ProgramReader
from kinst.runtime.tracing.programs.type_texts import TypeTexts
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.running import Running
from kinst.runtime.tracing.subject import Subject, subject_of
from kinst.runtime.tracing.tracer import Output, Tracer
from kinst.targets.columns import unique
from kinst.targets.errors import KinstError

if TYPE_CHECKING:
    from kinst.rewriter.rewriting import Opened
    from kinst.runtime.tracing.guests.built import Covered
    from kinst.runtime.tracing.guests.guest import Guest
    from kinst.runtime.typed.image_objects import Objects

_EVERYTHING: Final = ("dtrace:::", "profile:::", "fbt:::", "sdt:::")  # what -l lists


class Tracing:
    """Programs and actions that were compiled against an image, or none, and the guest that they trace."""

    def __init__(
        self,
        request: Request,
        warn: Callable[[str], None],
        opened: "Opened | None" = None,
        subject: Subject | None = None,
    ) -> None:
        """Read the programs, and load the image with the patches that they need.

        Args:
            request: what the user asks for.
            warn: called at once with warnings that cannot wait for the output.
            opened: the request's image, if it was already analysed.
            subject: what programs are compiled against, if not what the request says.

        Raises:
            KinstError: the image cannot be used, or a program does not parse.
        """
        self.request = request
        self.options = request.options
        self._warn = warn
        self._subject = subject or subject_of(request, opened)
        scope = TypeScope(self._subject.types)
        self._reader = ProgramReader(request.options, request.arguments, request.target, scope.is_type, self._declare)
        self._libraries = self._read_libraries()
        self.parsed = [self._reader.read(program) for program in self._subject.programs]
        self.traced = self._subject.load(self._descriptions(), warn)
        surroundings, subject = self.traced.surroundings, self._subject
        self.matching = Matching(
            surroundings.providers,
            self.options,
            subject.reason,
            TypeTexts(scope).resolve,
            subject.inlines,
            subject.providers,
        )
        arch, constants = surroundings.host.arch, subject.constants
        self._checker = Checker(CheckContext(arch, subject.types, self.matching, self.options, constants))
        self._tracer: Tracer | None = None

    def _read_libraries(self) -> list[ParsedProgram]:
        """The libraries of -L, and ours, each after those that it needs. They come before the programs, since C cannot
        be parsed without knowing which names are types."""
        if self.options.is_on("nolibs"):
            return []
        try:
            found = library_files.own(self._names_provider, self._subject.types)
            libraries = library_files.in_order(found | library_files.find(self.options.library_folders))
        except library_files.LibraryError as error:
            raise self._reader.failed(error.program, error.error) from error
        return [self._reader.read(library.program) for library in libraries]

    def _names_provider(self, name: str) -> bool:
        """Whether the text of a program seems to name a provider: programs are parsed after the libraries."""
        named = re.compile(rf"\b{name}:")
        return any(named.search(program.text) for program in self._subject.programs)

    def _declare(self, read: Sequence[ParsedProgram]) -> None:
        """Check declarations, pragmas and translators, before probes are known. Raises DError."""
        subject = self._subject
        checker = Checker(CheckContext(subject.arch, subject.types, EveryProbe(), self.options, subject.constants))
        for parsed in read:
            if parsed.program.is_library:
                _load(checker, parsed)
            else:
                checker.declare(parsed.unit)

    def _descriptions(self) -> list[str]:
        texts = [one.text for parsed in self.parsed for one in parsed.descriptions()]
        return list(dict.fromkeys([*texts, *(action.description for action in self.request.actions)]))

    def check(self) -> list[Program]:
        """Check all programs, libraries first. Raises ProgramError for the first that is wrong."""
        for library in self._libraries:
            with self._failing(library):
                _load(self._checker, library)
        programs = [self._check(parsed) for parsed in self.parsed]
        if self.parsed:
            self._reader.check_arguments(self.parsed[-1].program)
        return [self._checker.settled(program) for program in programs]

    def _check(self, parsed: ParsedProgram) -> Program:
        with self._failing(parsed):
            return self._checker.check(parsed.unit)

    @contextmanager
    def _failing(self, parsed: ParsedProgram) -> Iterator[None]:
        try:
            yield
        except DError as error:
            raise self._reader.failed(parsed.program, error, hint=self._subject.types.obstacle()) from error

    def enable(self) -> Iterator[tuple[ProgramText, int]]:
        """Compile the programs and enable their probes. Yields each program and how many probes it matched."""
        programs = self.check()
        clock, surroundings = self.request.configuration.clock, self.traced.surroundings
        tracer = Tracer(
            surroundings,
            self.options,
            clock,
            self._warn,
            objects=self._subject.objects,
            records_time=self.request.records_time,
            records_tasks=self.request.records_tasks,
            records_hits=self.request.records_hits,
        )
        counts = tracer.enable(programs, self.matching, self.request.actions)
        if not any(counts) and not self._needs_no_probes():
            raise KinstError("no probes matched" if any(one.clauses for one in programs) else "no probes specified")
        self._tracer = tracer
        yield from zip((parsed.program for parsed in self.parsed), counts, strict=False)  # then those of actions

    def _needs_no_probes(self) -> bool:
        """Whether no probe need be enabled: an image may run without programs, and with -Z descriptions may match
        nothing."""
        return (self.traced.has_guest and not self._descriptions()) or (
            bool(self.parsed) and self.options.is_on("zdefs")
        )

    def listed(self) -> list[int]:
        """The identifiers of the probes that the programs describe, each once."""
        found = [self.matching.probes(description)[1] for description in self._descriptions()]
        return unique(np.concatenate(found)).tolist() if found else []

    def unmatched(self) -> list[tuple[str, str]]:
        """The descriptions that match nothing, with all four fields, and the reason if it is known."""
        found = [self.matching.probes(description) for description in self._descriptions()]
        return [(fields, self.matching.reason(fields)) for fields, probes in found if not len(probes)]

    @property
    def refusals(self) -> tuple[str, ...]:
        """The sites that were refused: a line for each description of which something was."""
        return tuple(self._subject.refusals)

    def type_sources(self) -> list[str]:
        """Where types come from: a line for each file that has any."""
        return list(self._subject.types.sources())

    def explained(self) -> list[str]:
        """How the hits of each clause, and of each site, are delivered: a line each (-x explain)."""
        guest = self.guest
        parts = () if guest is None else (guest.code, guest.beside)
        return [*self.tracer.explained(), *(line for one in parts if one is not None for line in one.explained())]

    def report(self, program: ProgramText) -> str:
        """What -v says about a program that was enabled: its stability."""
        parsed = next(one for one in self.parsed if one.program is program)
        found = [self.matching.probes(description.text)[1] for description in parsed.descriptions()]
        identifiers = unique(np.concatenate(found)).tolist() if found else []
        text = report(program.title, parsed.unit, self.traced.surroundings.providers, identifiers)
        if self._tracer is None or not self._tracer.state.variables.has_threads:
            return text
        return f"{text}\nself-> is keyed by {self._tracer.profile.description}\n"

    @property
    def tracer(self) -> Tracer:
        """The tracer that `enable` made."""
        assert self._tracer is not None, "enable() comes first"
        return self._tracer

    @property
    def guest(self) -> "Guest | None":
        """The guest; None without an image, and in a machine that is not ours."""
        return self._subject.guest

    @property
    def covered(self) -> "Covered | None":
        """What counts what runs of the image, and the image; None: nothing does."""
        return self._subject.covered

    @property
    def objects(self) -> "Objects":
        """The typed values of the image. Raises UsageError: there is none."""
        return self._subject.objects()

    def start(self, output: Output, *, is_live: bool = False) -> Running:
        """A run with this output. Nothing runs yet. Call `enable` before. `is_live`: the guest's console is on a
        terminal, and what it prints must appear at once."""
        return Running(self.traced, self.tracer, output, self.request.configuration.clock, is_live=is_live)


def _load(checker: Checker, library: ParsedProgram) -> None:
    checker.load(Path(library.program.name).name, library.unit)


def everything(request: Request) -> Request:
    """The request for what -l lists without a program. An image may lack some of these."""
    return replace(request, programs=tuple(ProgramText(Origin.NAME, text, text) for text in _EVERYTHING))

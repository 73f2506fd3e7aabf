"""Program texts -> parsed units, and the probe descriptions in them, which say what to patch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kinst.runtime.dlang import versions
from kinst.runtime.dlang.check.declarations.pragmas import set_option
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.syntax import diagnostics, parser, preprocess, sugar, tree
from kinst.runtime.dlang.syntax.cursor import Names
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.macros import Macros, check_used
from kinst.runtime.tracing.programs.bpftrace_names import bpftrace_name
from kinst.runtime.tracing.programs.program_text import ProgramText
from kinst.runtime.userspace.target import Target
from kinst.targets.errors import KinstError, ProbeNameError
from kinst.targets.probe import PROVIDERS, ProbeName, parse_probe_name
from kinst.targets.values import dataclass


class ProgramError(KinstError):
    """A program does not compile. The message is dtrace(1)'s, followed by the place with a caret."""

    def __init__(self, program: ProgramText, error: DError, *, has_tags: bool, hint: str = "") -> None:
        what = "failed to compile script" if program.is_script else "invalid probe specifier"
        what = "failed to compile library" if program.is_library else what
        caret = diagnostics.caret(error)
        is_long = not program.is_script and "\n" in program.text  # then the message has a line number, not the text
        said = diagnostics.describe(error, has_tags=has_tags, has_lines=program.is_script or is_long)
        message = f"{what}: {said}" if is_long else f"{what} {program.name}: {said}"
        super().__init__("\n".join([message, *(f"    {line}" for line in caret.splitlines()), *hint.splitlines()]))
        self.tag = error.tag


@dataclass(frozen=True, slots=True)
class ParsedProgram:
    """A program and its syntax tree, with `if` expanded."""

    program: ProgramText
    unit: tree.Unit

    def descriptions(self) -> Iterator[tree.ProbeDescription]:
        """All probe descriptions in the order of the text, once for every clause that has them."""
        for item in self.unit.items:
            if isinstance(item, tree.Clause):
                yield from item.descriptions


class ProgramReader:
    """Parses programs that share macro arguments and options."""

    def __init__(
        self,
        options: Options,
        arguments: Sequence[str],
        target: Target | None,
        is_type: Callable[[str], bool],
        declare: Callable[[Sequence[ParsedProgram]], None],
    ) -> None:
        """`arguments` are $1, $2, ..., `target` is $target; `is_type` knows the names of D's and the image's types;
        `declare` checks what is outside clauses, and raises DError."""
        self._declare = declare
        self._read: list[ParsedProgram] = []
        self._options = options
        self._arguments, self._target = arguments, target
        self._names = Names(is_type)  # programs see the types that earlier programs declare
        self._macros: list[Macros] = []
        self._has_sugar = False  # whether a program had if: one clause of ERROR serves all of them

    def read(self, program: ProgramText) -> ParsedProgram:
        """Parse one program.

        Raises:
            ProgramError: it is wrong.
        """
        items: list[tree.TopLevel] = []
        try:
            unit = self._parse(program, items)
            expanded = sugar.expand(unit, adds_error_clause=not self._has_sugar)
        except DError as error:
            raise self.failed(
                program, self._first_error(ParsedProgram(program, tree.Unit(tuple(items))), error)
            ) from error
        self._has_sugar = self._has_sugar or len(expanded.items) != len(unit.items)
        self._read.append(ParsedProgram(program, expanded))
        return self._read[-1]

    def _first_error(self, begun: ParsedProgram, error: DError) -> DError:
        """The error to report. libdtrace processes a declaration as soon as yacc has reduced it, so that an error in
        one is reported in place of a syntax error after it."""
        try:
            self._declare([*self._read, begun])
        except DError as earlier:
            return earlier
        return error

    def failed(self, program: ProgramText, error: DError, *, hint: str = "") -> ProgramError:
        """The error as the user sees it. `hint` may give a reason."""
        hint_of_name = bpftrace_name(error.span.text) if error.tag == "D_SYNTAX" and error.span is not None else ""
        if hint_of_name:
            error = DError(error.tag, f"{error.message}: {hint_of_name}", error.span)
        return ProgramError(program, error, has_tags=self._options.is_on("errtags"), hint=hint)

    def check_arguments(self, program: ProgramText) -> None:
        """Refuse macro arguments that no program used, unless -x argref is set."""
        if self._options.is_on("argref") or not self._arguments:
            return
        unused = [{number for number, _ in macros.unused()} for macros in self._macros]
        if unused and set.intersection(*unused):
            least = min(self._macros, key=lambda macros: len(macros.unused()))
            try:
                check_used(least)
            except DError as error:
                raise self.failed(program, error) from error

    def _parse(self, program: ProgramText, items: list[tree.TopLevel]) -> tree.Unit:
        options = self._options
        text = program.text
        if options.is_on("cpp") and not program.is_library:
            text = preprocess.preprocess(text, file=program.name, settings=self._cpp_settings())
        macros = Macros(
            () if program.is_library else self._arguments,
            script=program.name if program.is_script else "",
            target=None if self._target is None else self._target.pid,
            is_live=self._target is not None and self._target.pid is None,
            has_defaults=options.is_on("defaultargs"),
        )
        if not program.is_library:
            self._macros.append(macros)

        def on_pragma(node: tree.Pragma) -> None:
            set_option(node, options)
            macros.default(has_defaults=options.is_on("defaultargs"))

        unit = parser.parse(
            text,
            names=self._names,
            macros=macros,
            is_description=not program.is_script or (options.is_on("pspec") and not program.is_library),
            allows_empty=lambda: program.is_library or options.is_on("empty"),
            on_pragma=on_pragma,
            items=items,
        )
        return _with_all_fields(unit, program.origin.missing_fields)

    def _cpp_settings(self) -> preprocess.CppSettings:
        options = self._options
        flags = tuple(f"{flag}{value}" for flag, value in options.definitions)
        has_names, version = options.is_on("cpphdrs"), versions.wanted(options)
        return preprocess.CppSettings(options.text("cpppath"), flags, prints_includes=has_names, version=version)


def _with_all_fields(unit: tree.Unit, colons: str) -> tree.Unit:
    """Descriptions of -P, -m and -f with the colons of the fields that they omit."""
    return replace(unit, items=tuple(_with_colons(item, colons) for item in unit.items)) if colons else unit


def _with_colons(item: tree.TopLevel, colons: str) -> tree.TopLevel:
    if not isinstance(item, tree.Clause):
        return item
    descriptions = (one if one.text.isdigit() else replace(one, text=one.text + colons) for one in item.descriptions)
    return replace(item, descriptions=tuple(descriptions))


def site_names(descriptions: Sequence[str], providers: Sequence[str]) -> list[ProbeName]:
    """The probes that must be patched into the image for these descriptions, each once. `providers` are those whose
    probes are addresses in code.

    As with kinst's ioctl, kinst probes are created only for descriptions that name that provider: an empty or globbed
    provider matches every instruction of the image otherwise.
    """
    names: dict[ProbeName, None] = {}
    for text in descriptions:
        if text.isdigit():
            continue  # an identifier
        try:
            name = parse_probe_name(text, providers=(*providers, *PROVIDERS))
        except ProbeNameError:
            continue  # the checker reports it, with its place
        meant = [provider for provider in providers if name.matches_provider(provider) and provider != "kinst"]
        for provider in [name.provider] if name.provider in ("kinst", "sdt") else meant:
            names[ProbeName(provider, name.module, name.function, name.name)] = None
    return list(names)

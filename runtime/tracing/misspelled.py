"""A request -> an early error for a probe in a function that the image cannot have, before the image is analysed.

This answers a misspelt name in a fraction of the time that Linux takes to load. Which probes programs describe is
certain only when they are parsed, for which the image's types may be needed. So the texts are searched for what looks
like a probe; only if an unknown function is among these are they parsed, as if there were no types. A program that does
not parse that way, or has another error before this one, is left to the full compilation.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.tracing.programs.program_text import ProgramText
from kinst.runtime.tracing.programs.programs import ProgramError, ProgramReader
from kinst.runtime.tracing.request import Request
from kinst.targets.c_types import NoImageTypes
from kinst.targets.errors import KinstError, ProbeNameError
from kinst.targets.probe import ProbeName, parse_probe_name

_PROBE: Final = re.compile(r"(?<![\w:])(?:fbt|kinst):[\w.-]*:[A-Za-z_][\w.$@]*:\w*")


def checked(request: Request, *, is_lenient: bool) -> Request:
    """The request, with the image's own names if they were read on the way (`Request.own_names`).

    Args:
        request: the request.
        is_lenient: a description that matches nothing is listed (-l) and is not an error.

    Raises:
        ProgramError: a program describes a probe of a function that the image cannot have. It is the error that the
            checker would report.
    """
    if request.image is None or is_lenient or request.symbols is not None or request.debug_file is not None:
        return request
    if request.options.is_on("zdefs") or request.options.is_on("cpp") or request.modules or request.beside:
        return request
    candidates = [name for program in request.programs for name in _candidates(program)]
    if not candidates:
        return request
    from kinst.rewriter.unknown_functions import unknown_functions  # most programs of all functions name none

    seen = unknown_functions(request.image, request.name, candidates, request.reading)
    error = _first(request, seen.unknown) if seen.unknown else None
    if error is not None:
        raise error
    return replace(request, own_names=seen.own_names)


def _candidates(program: ProgramText) -> Iterator[ProbeName]:
    yield from filter(None, map(_named, _PROBE.findall(program.text)))


def _first(request: Request, unknown: Mapping[ProbeName, str]) -> ProgramError | None:
    """The first error of the programs, if it is an unknown function."""
    options: Options = copy.deepcopy(request.options)  # pragmas set some, and the programs are parsed again later
    scope = TypeScope(NoImageTypes())
    reader = ProgramReader(options, request.arguments, request.target, scope.is_type, lambda _read: None)
    try:
        parsed = [reader.read(program) for program in request.programs]
    except KinstError:
        return None
    if options.is_on("zdefs"):
        return None
    for one in parsed:
        for description in one.descriptions():
            name = _named(description.text)
            if name is not None and name in unknown:
                message = f"probe description {name} does not match any probes: {unknown[name]}"
                return reader.failed(one.program, DError("D_PDESC_ZERO", message, description.span))
    return None


def _named(text: str) -> ProbeName | None:
    """The probe name that a description is; None if it is not one."""
    try:
        return parse_probe_name(text)
    except ProbeNameError:
        return None

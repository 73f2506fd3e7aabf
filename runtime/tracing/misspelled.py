"""A request -> the error of a probe whose function its image cannot have, before anything is taken apart or loaded.

Which probes programs describe is certain only when they are parsed, for which the image's types may be needed. So the
texts are searched for what looks like a probe; only if there is an unknown function among these are they parsed, as if
there were no types. A program that cannot be parsed so, or has another error before, is left to those who read all.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from kinst.rewriter.unknown_functions import unknown_functions
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
    """The request, with the names that were looked for on the way, unless it is for a probe of a function that its
    image cannot have. `is_lenient`: what matches nothing is listed, and is no error.

    Raises:
        ProgramError: as the checker would have it.
    """
    if request.image is None or is_lenient or request.symbols is not None or request.debug_file is not None:
        return request
    if request.options.is_on("zdefs") or request.options.is_on("cpp") or request.modules:
        return request
    looked = [name for program in request.programs for name in _candidates(program)]
    seen = unknown_functions(request.image, request.name, looked)
    error = _first(request, seen.unknown) if seen.unknown else None
    if error is not None:
        raise error
    return replace(request, own_names=seen.own_names)


def _candidates(program: ProgramText) -> Iterator[ProbeName]:
    yield from filter(None, map(_named, _PROBE.findall(program.text)))


def _first(request: Request, unknown: Mapping[ProbeName, str]) -> ProgramError | None:
    """The first error of the programs, if it is an unknown function."""
    options: Options = copy.deepcopy(request.options)  # pragmas change them
    scope = TypeScope(NoImageTypes())
    reader = ProgramReader(options, request.arguments, scope.is_type, lambda _read: None)
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
                said = f"probe description {name} does not match any probes: {unknown[name]}"
                return reader.failed(one.program, DError("D_PDESC_ZERO", said, description.span))
    return None


def _named(text: str) -> ProbeName | None:
    """The name of a probe as a description has it; None if it is none."""
    try:
        return parse_probe_name(text)
    except ProbeNameError:
        return None

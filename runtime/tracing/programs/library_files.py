"""-L and -x libdir, and our own for the providers that a program names -> the D libraries to read, in order."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kinst.runtime.dlang.syntax import control_lines, tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.tracing.programs.program_text import ProgramText, read_library
from kinst.targets.c_types import ImageTypes
from kinst.targets.values import dataclass

_SUFFIX: Final = ".d"
# Providers whose arguments our libraries translate, and a type that each needs.
_OF_LINUX: Final = {
    "io": "struct bio",
    "ip": "struct sk_buff",
    "proc": "struct kernel_siginfo",
    "sched": "struct rq",
    "tcp": "struct tcp_sock",
    "udp": "struct udphdr",
}
_MOST_SHOWN: Final = 10  # libraries of a circle
_COMMENT: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/', re.DOTALL)
_CONTROL: Final = re.compile(r"^[\f\t\v ]*#(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Library:
    """One file, and the libraries that it depends on, each with its `#pragma D depends_on library`."""

    program: ProgramText
    needs: tuple[tuple[str, Span], ...]

    @property
    def name(self) -> str:
        """The name by which other libraries refer to it: without the folder."""
        return Path(self.program.name).name


def find(folders: Sequence[str]) -> dict[str, Library]:
    """The libraries of all folders, by name. Of two with the same name the first is used. A folder that does not exist
    is not an error, as in libdtrace.

    Raises:
        KinstError: a library cannot be read.
    """
    found: dict[str, Library] = {}
    for folder in folders:
        path = Path(folder)
        for file in sorted(path.glob(f"*{_SUFFIX}")) if path.is_dir() else ():
            if file.name not in found and file.is_file():
                program = read_library(file)
                found[file.name] = Library(program, _needs(program))
    return found


def own(providers: Callable[[str], bool], types: ImageTypes) -> dict[str, Library]:
    """Our libraries with translators for the arguments of the providers that are wanted, if the image has the types
    that they translate: without these, a library would not compile."""
    named = [name for name, needed in _OF_LINUX.items() if providers(name) and types.type_named(needed) is not None]
    if not named:
        return {}
    every = find([str(Path(__file__).with_name("libraries"))])
    wanted = {f"linux_{name}.d" for name in named}
    needed = {name for one in wanted for name, _ in every[one].needs}
    return {name: library for name, library in every.items() if name in wanted | needed}


def in_order(libraries: Mapping[str, Library]) -> list[Library]:
    """The libraries, each after those that it needs; otherwise in the order in which they were found.

    Raises:
        LibraryError: a library is missing, or libraries need each other in a circle.
    """
    order: dict[str, Library] = {}
    for library in libraries.values():
        _append(library, libraries, order)
    return list(order.values())


class LibraryError(Exception):
    """A library cannot be used, and why."""

    def __init__(self, program: ProgramText, error: DError) -> None:
        super().__init__(error.message)
        self.program, self.error = program, error


def _append(library: Library, libraries: Mapping[str, Library], order: dict[str, Library]) -> None:
    """Add the libraries that this one needs, then this one: a depth-first search without recursion, since a chain of
    libraries may be longer than Python's stack."""
    way = [(library, iter(library.needs))]
    while way:
        current, needs = way[-1]
        name, span = next(needs, ("", None))
        if not name:
            order.setdefault(current.name, current)
            way.pop()
            continue
        needed = libraries.get(name)
        if needed is None:
            raise LibraryError(current.program, DError("D_PRAGMA_DEPEND", f"no library {name} in the folders", span))
        names = [one.name for one, _ in way]
        if name in names:
            circle = _shown([*names[names.index(name) :], name])
            raise LibraryError(current.program, DError("D_PRAGMA_DEPEND", f"libraries in a circle: {circle}", span))
        if needed.name not in order:
            way.append((needed, iter(needed.needs)))


def _shown(circle: list[str]) -> str:
    return " needs ".join(circle if len(circle) <= _MOST_SHOWN else [*circle[: _MOST_SHOWN - 2], "...", circle[-1]])


def _needs(program: ProgramText) -> tuple[tuple[str, Span], ...]:
    """The libraries that `depends_on` pragmas name. They are searched for in the text, since the order must be known
    before anything is parsed; errors in them are reported when the library is."""
    text = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"[^\n]", " ", match[0]), program.text)
    found = []
    for match in _CONTROL.finditer(text):
        span = Span("", text.count("\n", 0, match.start()) + 1, 1, len(match[0]), match[0])
        try:
            pragma = control_lines.read(match[1], span)
        except DError:
            continue
        if isinstance(pragma, tree.Pragma) and pragma.kind == "depends_on" and pragma.words[0] == "library":
            found.append((pragma.words[1], span))
    return tuple(found)

"""What Python code gives -> the parts of a request."""

from collections.abc import Callable, Mapping
from pathlib import Path

from kinst.runtime.dlang.options import OptionError, Options
from kinst.runtime.machine.configuration import FileAt
from kinst.runtime.tracing.hits import Hit, PythonAction
from kinst.runtime.tracing.program_text import Origin, ProgramText, read_script
from kinst.targets.errors import UsageError

Action = Callable[[Hit], object]


def path_of(path: Path | str | None) -> Path | None:
    """A file, if one is given."""
    return None if path is None else Path(path)


def program_of(program: str | Path | ProgramText) -> ProgramText:
    """A program in D: its text, or the file that a path names. Raises KinstError: it cannot be read."""
    if isinstance(program, ProgramText):
        return program
    return read_script(str(program)) if isinstance(program, Path) else ProgramText(Origin.NAME, program, program)


def actions_of(given: Mapping[str, Action] | None) -> tuple[PythonAction, ...]:
    """Functions by the description of the probes that call them."""
    return tuple(PythonAction(description, call) for description, call in (given or {}).items())


def modules_of(given: Mapping[str, Path | str] | None) -> tuple[tuple[str, Path], ...]:
    """Kernel modules by name."""
    return tuple((module, Path(file)) for module, file in (given or {}).items())


def files_of(given: Mapping[int, bytes] | None) -> tuple[FileAt, ...]:
    """Bytes by their physical address."""
    return tuple(FileAt("bytes", address, content) for address, content in (given or {}).items())


def options_of(given: Mapping[str, str | None] | None) -> Options:
    """Options of D by name, as `-x` has them. Raises UsageError: there is none of that name, or not with that value."""
    options = Options()
    for name, value in (given or {}).items():
        try:
            options.set(name, value)
        except OptionError as error:
            raise UsageError(f"option {name}: {error.why}") from error
    return options

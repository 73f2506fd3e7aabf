"""Programs as the user gives them: as text, or as files, which are read here."""

import re
import sys
from enum import Enum
from pathlib import Path
from typing import Final

from kinst.targets.errors import KinstError
from kinst.targets.values import dataclass

_LONGEST: Final = 64 << 20  # bytes of a program: /dev/zero has more
_FIRST_CLAUSE: Final = re.compile(r"[{/;]")


class Origin(Enum):
    """The option that a program came with: its letter, and how many of a probe's four fields its description omits."""

    SCRIPT = "s"
    NAME = "n"
    FUNCTION = "f"
    MODULE = "m"
    PROVIDER = "P"
    IDENTIFIER = "i"

    @property
    def missing_fields(self) -> str:
        """The colons to append, so that the last field that is given is the one that the option means."""
        return {Origin.FUNCTION: ":", Origin.MODULE: "::", Origin.PROVIDER: ":::"}.get(self, "")


@dataclass(frozen=True, slots=True)
class ProgramText:
    """One program as the user gave it. `name` is that of a file, or the text itself."""

    origin: Origin
    name: str
    text: str
    is_library: bool = False

    @property
    def is_script(self) -> bool:
        """Whether it came from a file."""
        return self.origin is Origin.SCRIPT

    @property
    def title(self) -> str:
        """How messages name it: script 'x.d', description 'fbt::f:entry'."""
        if self.is_script:
            return f"script '{self.name}'"
        return f"description '{_FIRST_CLAUSE.split(self.name)[0]}'"


def read_script(path: str) -> ProgramText:
    """A program file; "-" is standard input."""
    return ProgramText(Origin.SCRIPT, path, _content(path))


def read_library(path: Path) -> ProgramText:
    """A file of a library folder."""
    return ProgramText(Origin.SCRIPT, str(path), _content(str(path)), is_library=True)


def _content(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(_LONGEST + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_LONGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise KinstError(f"failed to open {path}: {getattr(error, 'strerror', error)}") from error
    if len(data) > _LONGEST:
        raise KinstError(f"failed to open {path}: it is longer than {_LONGEST} bytes")
    return data.decode("utf-8", "surrogateescape")

"""Macro arguments and variables of a D program: `$1`, `$$1`, `$target`, ... -> their values."""

import os
import re
from collections.abc import Callable, Sequence
from typing import Final

from kinst.runtime.dlang.syntax.errors import DError, Span

_REFERENCE: Final = re.compile(r"\$(\$?)([0-9]+|[A-Za-z_][0-9A-Za-z_]*)?")
LIVE_TARGET: Final = "$target"
_PROJECT = 0  # projects and tasks are Solaris's; here everything is in the first one

_IDENTITY: Final[dict[str, Callable[[], int]]] = {
    "pid": os.getpid,
    "ppid": os.getppid,
    "pgid": os.getpgrp,
    "sid": lambda: os.getsid(0),
    "uid": os.getuid,
    "euid": os.geteuid,
    "gid": os.getgid,
    "egid": os.getegid,
    "projid": lambda: _PROJECT,
    "taskid": lambda: _PROJECT,
}


class Macros:
    """The arguments of a command line, which all its programs share; remembers which of them were referenced."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        script: str = "",
        target: int | None = None,
        is_live: bool = False,
        has_defaults: bool = False,
    ) -> None:
        """`target` is the process that $target is; with `is_live` it is the variable of this name."""
        self._arguments = (script or "dtrace", *arguments)
        self._target, self._is_live = target, is_live
        self._has_defaults = has_defaults  # -x defaultargs: an argument that is not given is 0 or ""
        self._referenced: set[int] = set()

    def default(self, *, has_defaults: bool) -> None:
        """Set whether, from here on in the text, an argument that is not given has a default (-x defaultargs)."""
        self._has_defaults = has_defaults

    def argument(self, number: str, *, written: str, default: str, span: Span | None) -> str:
        """The argument with this decimal number; 0 is the script. Raises D_MACRO_UNDEF."""
        index = int(number) if len(number) < 10 else len(self._arguments)
        if index < len(self._arguments):
            self._referenced.add(index)
            return self._arguments[index]
        if self._has_defaults:
            return default
        raise DError("D_MACRO_UNDEF", f"macro argument {written} is not defined", span)

    def variable(self, name: str, *, written: str, span: Span | None) -> int:
        """A macro variable's value. Raises D_MACRO_UNDEF."""
        if name == "target" and self._target is not None:
            return self._target
        if name == "target" and self._is_live:
            why = f"macro variable {written} is not known before the guest runs: $target can be part of expressions"
            raise DError("D_MACRO_UNDEF", why, span)
        if name not in _IDENTITY:
            raise DError("D_MACRO_UNDEF", f"macro variable {written} is not defined", span)
        return _IDENTITY[name]()

    def is_live(self, written: str) -> bool:
        """Whether a macro variable stands for a variable of D, whose value is found when a probe fires."""
        return self._is_live and written == LIVE_TARGET

    def expand(self, description: str, span: Span | None) -> str:
        """A probe description with its macros replaced. Raises D_PDESC_INVAL for one that is not defined."""
        if "$" not in description:
            return description

        def replace(match: re.Match[str]) -> str:
            name = match[2] or ""
            try:
                if name.isdecimal():
                    return self.argument(name, written=match[0], default="", span=span)
                return str(self.variable(name, written=match[0], span=span))
            except DError as error:
                message = f'invalid probe description "{description}": {error.message}'
                raise DError("D_PDESC_INVAL", message, span) from error

        return _REFERENCE.sub(replace, description)

    def unused(self) -> list[tuple[int, str]]:
        """The arguments that no program referenced, with their numbers."""
        return [(i, text) for i, text in enumerate(self._arguments) if i and i not in self._referenced]


def check_used(macros: Macros) -> None:
    """Raise D_MACRO_UNUSED for the first argument that no program referenced."""
    for index, text in macros.unused():
        raise DError("D_MACRO_UNUSED", f"extraneous argument '{text}' (${index} is not referenced)")

"""A user's regular expression -> whether lines of the guest's console match, in time that no guest can stretch.

The guest chooses the lines. Python's `re` goes back and forth in them: thirty letters are enough for `(a+)+b` to take
minutes, in which nothing else runs and no limit of a run is kept. RE2 looks at each byte once, whatever the expression,
and therefore has no back references and does not look around. What has no operators is text, which is found faster.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from kinst.targets.errors import UsageError

_OPERATORS: Final = re.compile(rb"[\\.^$*+?{}\[\]|()]")


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression; two of the same text are the same."""

    text: bytes
    is_in: Callable[[bytes], bool] = field(compare=False, repr=False)  # whether it matches anywhere in a line


def expression(option: str, text: str) -> Expression:
    """The value of an option. Raises UsageError."""
    expected = text.encode(errors="surrogateescape")
    if not _OPERATORS.search(expected):
        return Expression(expected, partial(_has, expected))
    import re2  # few need it

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes are what they are
    options.log_errors = False
    try:
        return Expression(expected, partial(_matches, re2.compile(expected, options)))
    except re2.error as error:
        raise UsageError(f"{option} {text}: not a regular expression that RE2 knows: {_why(error)}") from error


def _has(text: bytes, line: bytes) -> bool:
    return text in line


def _matches(compiled: Any, line: bytes) -> bool:
    return compiled.search(line) is not None


def _why(error: Exception) -> str:
    why = error.args[0]
    return why.decode(errors="surrogateescape") if isinstance(why, bytes) else str(why)

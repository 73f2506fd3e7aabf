"""A user's regular expression -> whether lines of the guest's console match, in linear time whatever the guest prints.

The guest decides what it prints. Python's `re` backtracks: thirty letters are enough for `(a+)+b` to take
minutes, in which nothing else runs and no limit of a run is kept. RE2 reads each byte once, whatever the expression,
and therefore has neither back references nor lookaround. An expression without operators is searched for as plain text.
"""

import re
from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, Final

from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

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
        raise UsageError(f"{option} {text}: not a regular expression of RE2: {_why(error)}") from error


def _has(text: bytes, line: bytes) -> bool:
    return text in line


def _matches(compiled: Any, line: bytes) -> bool:
    return compiled.search(line) is not None


def _why(error: Exception) -> str:
    why = error.args[0]
    return why.decode(errors="surrogateescape") if isinstance(why, bytes) else str(why)

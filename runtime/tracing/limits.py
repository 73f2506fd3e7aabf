"""How far a machine is to run: one value for each time that it runs."""

import re
from dataclasses import dataclass, replace

from kinst.targets.errors import UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. Times are in ns from its start; `until` is searched for in lines of the guest's
    console."""

    timeout: int | None = None  # of the machine's time
    wall_timeout: int | None = None  # of the host's
    until: re.Pattern[bytes] | None = None

    def later(self, passed: int, wall_passed: int) -> "Limits":
        """What is left of the limits when so many ns of the machine's time and of the host's have passed."""
        return replace(self, timeout=_left(self.timeout, passed), wall_timeout=_left(self.wall_timeout, wall_passed))


def _left(limit: int | None, passed: int) -> int | None:
    return None if limit is None else max(0, limit - passed)


def limits(timeout: float | None = None, wall_timeout: float | None = None, until: str | None = None) -> Limits:
    """Limits from seconds and the text of an expression. Raises UsageError."""
    return Limits(
        _nanoseconds(timeout), _nanoseconds(wall_timeout), None if until is None else pattern("--until", until)
    )


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1e9)


def pattern(option: str, expression: str) -> re.Pattern[bytes]:
    """A regular expression for the guest's console, from the value of an option. Raises UsageError."""
    try:
        return re.compile(expression.encode(errors="surrogateescape"))
    except re.error as error:
        raise UsageError(f"{option} {expression}: not a regular expression: {error}") from error

"""How far a machine may run: one value for each stretch of a run."""

from dataclasses import replace

from kinst.runtime.input.expression import Expression, expression
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. Times are in ns from its start; `until` is searched for in lines of the guest's
    console."""

    timeout: int | None = None  # of the machine's time
    wall_timeout: int | None = None  # of the host's
    until: Expression | None = None

    def later(self, passed: int, wall_passed: int) -> "Limits":
        """What remains of the limits when `passed` ns of the machine's time and `wall_passed` of the host's are
        over."""
        return replace(self, timeout=_left(self.timeout, passed), wall_timeout=_left(self.wall_timeout, wall_passed))


def _left(limit: int | None, passed: int) -> int | None:
    return None if limit is None else max(0, limit - passed)


def limits(timeout: float | None = None, wall_timeout: float | None = None, until: str | None = None) -> Limits:
    """Limits from seconds and the text of an expression. Raises UsageError."""
    return Limits(
        _nanoseconds(timeout), _nanoseconds(wall_timeout), None if until is None else expression("--until", until)
    )


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1e9)

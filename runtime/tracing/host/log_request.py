"""What --log asks for: kinds of events, and where their lines go."""

from enum import Enum
from pathlib import Path

from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass


class LogKind(Enum):
    """A kind of events."""

    UNMODELLED = "unmodelled"  # accesses that no device answers
    EXCEPTIONS = "exceptions"  # what CPUs take, interrupts included
    DEVICES = "devices"  # accesses of a device where it has no register


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The kinds, and the file; None: stderr."""

    kinds: frozenset[LogKind]
    file: Path | None = None


def log_request(kinds: str | None, file: Path | None) -> LogRequest | None:
    """What the two options mean; None: no log. Raises UsageError."""
    if kinds is None:
        if file is not None:
            raise UsageError(f"--log-file {file}: there is nothing to log: give --log")
        return None
    known = {kind.value: kind for kind in LogKind}
    words = [word.strip() for word in kinds.split(",")]
    for word in words:
        if word not in known:
            raise UsageError(f"--log {kinds}: no kind {word!r}: there are {', '.join(known)}")
    return LogRequest(frozenset(known[word] for word in words), file)

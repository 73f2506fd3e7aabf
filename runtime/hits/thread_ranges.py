"""Where the stack pointer is, and what else holds -> the thread that runs, so that the engine can tell it by itself."""

from collections.abc import Callable
from dataclasses import dataclass

from kinst.runtime.trap.trap import Firing


@dataclass(frozen=True, slots=True)
class ThreadRange:
    """While the stack pointer is above `low` and up to `high`, both in one page if the byte below it counts, the thread
    is the one with this key: the same that `GuestProfile.thread` gives. It holds as long as the identifying register
    has a value, and 64-bit words of the guest's memory have theirs."""

    low: int
    high: int
    key: int
    identity: int = 0
    words: tuple[tuple[int, int], ...] = ()  # at most two: virtual address and value


@dataclass(frozen=True, slots=True)
class ThreadRanges:
    """How the engine can tell threads."""

    of: Callable[[Firing], ThreadRange | None]  # for a firing; None: it cannot
    identity: str | None = None  # the register that identifies what runs, besides the stack pointer

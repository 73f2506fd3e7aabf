"""What identifies the running thread by the stack pointer and a few other words, so that the engine finds it without
Python."""

from collections.abc import Callable

from kinst.runtime.trap.trap import Firing
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class ThreadRange:
    """While `low` < stack pointer <= `high`, the thread is the one with this key, the same that `GuestProfile.thread`
    gives. `low` and `high` - 1 are in one page. It holds as long as the identifying register has the value `identity`,
    and 64-bit words of the guest's memory have theirs."""

    low: int
    high: int
    key: int
    identity: int = 0
    words: tuple[tuple[int, int], ...] = ()  # at most two: virtual address and value


@dataclass(frozen=True, slots=True)
class ThreadRanges:
    """How the engine can identify threads."""

    of: Callable[[Firing], ThreadRange | None]  # for a firing; None: it cannot
    identity: str | None = None  # the register that identifies what runs, besides the stack pointer

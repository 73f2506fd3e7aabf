"""Stages of slow work -> a bar on a terminal. Only commands draw; the work takes a `Progress` and reports to it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# progress("decoding", total) as done: done(n) when n more of the total are finished.
Done = Callable[[int], None]
Progress = Callable[[str, int], AbstractContextManager[Done]]


@contextmanager
def silent(stage: str, total: int) -> Iterator[Done]:
    """No bar."""
    del stage, total
    yield lambda _amount: None

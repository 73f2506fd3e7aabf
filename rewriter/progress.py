"""Stages of slow work -> a bar on a terminal. Only commands draw; the work takes a `Progress` and reports to it."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TextIO

# progress("decoding", total) as done: done(n) when n more of the total are finished.
Done = Callable[[int], None]
Progress = Callable[[str, int], AbstractContextManager[Done]]

_PATIENCE: Final = 0.7  # seconds before a bar appears: most images take less
_INTERVAL: Final = 0.1
_WIDTH: Final = 40


@contextmanager
def silent(stage: str, total: int) -> Iterator[Done]:
    """A `Progress` that shows nothing."""
    del stage, total
    yield lambda _amount: None


def bars(stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> Progress:
    """A `Progress` that shows a bar for each stage once the command has run for a while; nothing if `stream` is no
    terminal."""
    if not stream.isatty():
        return silent
    begin = clock()

    @contextmanager
    def stage_bar(stage: str, total: int) -> Iterator[Done]:
        state = _Bar(stream, stage, total, begin + _PATIENCE, clock)
        try:
            yield state.done
        finally:
            state.clear()

    return stage_bar


class _Bar:
    """One line that is drawn over and erased at the end."""

    def __init__(self, stream: TextIO, stage: str, total: int, visible_from: float, clock: Callable[[], float]) -> None:
        self._stream, self._stage, self._total = stream, stage, max(total, 1)
        self._next, self._clock = visible_from, clock
        self._finished, self._drawn = 0, False

    def done(self, amount: int) -> None:
        """Note that `amount` more is finished."""
        self._finished += amount
        now = self._clock()
        if now >= self._next:
            self._next = now + _INTERVAL
            filled = min(_WIDTH, _WIDTH * self._finished // self._total)
            percent = min(100, 100 * self._finished // self._total)
            self._stream.write(f"\r{self._stage:12} [{'#' * filled}{'-' * (_WIDTH - filled)}] {percent:3}%")
            self._stream.flush()
            self._drawn = True

    def clear(self) -> None:
        """Leave an empty line for what is printed next."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

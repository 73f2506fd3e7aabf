"""Stages of slow work -> a bar on a terminal. Only commands draw; the work takes a `Progress` and reports to it."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TextIO

# progress("decoding", total) as done: done(n) when n more of the total are finished. 0: the total is unknown.
Done = Callable[[int], None]
Progress = Callable[[str, int], AbstractContextManager[Done]]

_PATIENCE: Final = 0.7  # seconds before a bar appears: most images take less
_INTERVAL: Final = 0.1
_WIDTH: Final = 30
_OF_BYTES: Final = frozenset({"comparing", "decoding", "downloading", "writing"})  # stages that count bytes
_MEGABYTE: Final = 1_000_000


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
    """A line that is drawn over and erased at the end: a bar, how much is done, how fast, and the time left."""

    def __init__(self, stream: TextIO, stage: str, total: int, visible_from: float, clock: Callable[[], float]) -> None:
        self._stream, self._stage, self._total = stream, stage, total
        self._next, self._clock, self._begin = visible_from, clock, clock()
        self._finished, self._drawn = 0, False

    def done(self, amount: int) -> None:
        """Note that `amount` more is finished."""
        self._finished += amount
        now = self._clock()
        if now >= self._next:
            self._next = now + _INTERVAL
            self._stream.write(f"\r{self._stage:12} {self._text(now - self._begin)}\x1b[K")
            self._stream.flush()
            self._drawn = True

    def _text(self, seconds: float) -> str:
        rate = self._finished / seconds if seconds > 0 else 0.0
        speed = f"{rate / _MEGABYTE:.1f} MB/s" if self._stage in _OF_BYTES else f"{rate:,.0f}/s"
        if not self._total:
            return f"{self._finished / _MEGABYTE:.1f} MB  {speed}"
        part = min(1.0, self._finished / self._total)
        filled = int(_WIDTH * part)
        left = f"  {_time((self._total - self._finished) / rate)} left" if 0 < self._finished < self._total else ""
        return f"[{'#' * filled}{'-' * (_WIDTH - filled)}] {100 * part:3.0f}%  {speed}{left}"

    def clear(self) -> None:
        """Leave an empty line for what is printed next."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def _time(seconds: float) -> str:
    """``7 s``, ``2:05 min``."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02} min" if whole >= 60 else f"{whole} s"

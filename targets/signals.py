"""Signals that are handled without an exception in the middle of something."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def caught(handle: Callable[[int], object], *numbers: signal.Signals) -> Iterator[None]:
    """Call `handle` with the number of each of these signals that arrives meanwhile, in place of its usual handler, if
    this is the main thread; other threads get no signals."""
    before: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, lambda number, _frame: handle(number)) for number in numbers}
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_on_termination() -> None:
    """Let SIGTERM clean up as Ctrl-C does."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))

"""Signals -> the end of a run, in place of an exception in the middle of a callback, so that nothing is lost."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kinst.runtime.machine.configuration import End


@contextmanager
def interruptible(finish: Callable[[End], None], *numbers: signal.Signals) -> Iterator[None]:
    """Let these signals end the run, if this is the main thread; other threads get no signals."""

    def interrupt(_number: int, _frame: object) -> None:
        finish(End.INTERRUPTED)

    before: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, interrupt) for number in numbers}
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

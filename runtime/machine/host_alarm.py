"""A limit of the host's time -> a call when it is over, from another thread."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def host_alarm(left: int | None, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in `left` ns, since a turn of the CPUs may be long under the instruction clock; None: never."""
    if left is None:
        yield
        return
    alarm = threading.Timer(min(left / 1e9, threading.TIMEOUT_MAX), stop)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()

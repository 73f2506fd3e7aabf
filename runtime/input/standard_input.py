"""Standard input, if it is for the guest -> a source of its serial line while it runs."""

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

from kinst.runtime.input.stream import Stream
from kinst.runtime.machine.serial_line import SerialLine

NOTICE: Final = "the guest has the keyboard: Ctrl-A x ends the run, Ctrl-A h shows the other keys"
_STREAMS: Final = (stat.S_ISFIFO, stat.S_ISSOCK, stat.S_ISREG)


class StandardInput(Enum):
    """What standard input is to the guest."""

    TERMINAL = "its keys are the guest's"
    STREAM = "its bytes are the guest's"
    NOTHING = "it is not the guest's"


def standard_input(*, shows_console: bool) -> StandardInput:
    """What standard input is to a guest. `shows_console`: its console is on a terminal. A terminal is left alone
    if the console is not: there, Ctrl-C ends the run. So is /dev/null."""
    descriptor = _descriptor()
    if descriptor is None:
        return StandardInput.NOTHING
    if os.isatty(descriptor):
        return StandardInput.TERMINAL if shows_console else StandardInput.NOTHING
    mode = os.fstat(descriptor).st_mode
    return StandardInput.STREAM if any(is_one(mode) for is_one in _STREAMS) else StandardInput.NOTHING


def _descriptor() -> int | None:
    """The file descriptor of standard input; None if it is closed or has none."""
    try:
        descriptor = sys.stdin.fileno()
        os.fstat(descriptor)
    except (AttributeError, io.UnsupportedOperation, ValueError, OSError):
        return None
    return descriptor


@contextmanager
def connected(
    kind: StandardInput, line: SerialLine, end: Callable[[], None], notify: Callable[[str], None]
) -> Iterator[None]:
    """Connect standard input to a serial line. `end` ends the run, `notify` shows the user of a terminal a text."""
    descriptor = _descriptor()
    if kind is StandardInput.NOTHING or descriptor is None:
        yield
        return
    if kind is StandardInput.STREAM:
        line.attach(Stream(descriptor))
        yield
        return
    from kinst.runtime.input.terminal import Terminal  # not every system has termios

    with Terminal(descriptor, end, notify) as terminal:
        line.attach(terminal)
        yield

"""A terminal -> keys for the guest, each as soon as it is pressed. The terminal gets its settings back at the end."""

import os
import select
import signal
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Final, Self

from kinst.runtime.input.escape_keys import HELP, Command, EscapeKeys

_PIECE: Final = 4096
_INTERRUPT: Final = b"\x03"
_PATIENCE: Final = 1.0  # seconds in which a guest that reads its keys takes one
_INPUT, _OUTPUT, _CONTROL, _LOCAL, _CHARACTERS = 0, 1, 2, 3, 6  # of what tcgetattr returns
_TRANSLATIONS: Final = (
    termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP | termios.INLCR | termios.IGNCR | termios.ICRNL
    | termios.IXON
)  # fmt: skip
_EDITING: Final = termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG


class Terminal:
    """The terminal of standard input; implements `kinst.runtime.machine.serial_line.Source`. It is a context manager:
    inside, the guest has the keyboard whenever we are in the foreground."""

    def __init__(self, descriptor: int, end: Callable[[], None], notify: Callable[[str], None]) -> None:
        """`end` ends the run; `notify` prints a notice."""
        self._descriptor = descriptor
        self._end, self._notify = end, notify
        self._keys = EscapeKeys()
        self._typed = bytearray()
        self._taken_at = 0.0  # when the guest took something last, or had nothing to take
        self._settings: list[Any] | None = None  # the terminal's own while the guest has the keyboard
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number, handler in ((signal.SIGTSTP, self._stopped), (signal.SIGCONT, self._continued)):
            self._handlers[number] = signal.signal(number, handler)
        self._hold()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._release()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    # -- the serial line ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Read the keys that were pressed."""
        if self._settings is None or not select.select([self._descriptor], (), (), 0)[0]:
            return
        try:
            data = os.read(self._descriptor, _PIECE)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._settings = None
            self._end()
            return
        typed, commands = self._keys.split(data)
        if _INTERRUPT in typed and self._is_ignored():
            commands.append(Command.END)
        if not self._typed:
            self._taken_at = time.monotonic()
        self._typed += typed
        for command in commands:
            self._run(command)

    def _is_ignored(self) -> bool:
        """Whether the guest has left keys unread for a while."""
        return bool(self._typed) and time.monotonic() - self._taken_at > _PATIENCE

    def _run(self, command: Command) -> None:
        match command:
            case Command.END:
                self._end()
            case Command.GO_ON:
                os.kill(os.getpid(), signal.SIGCONT)
            case Command.HELP:
                self._notify(HELP)

    def take(self, size: int) -> bytes:
        """See `Source`."""
        taken = bytes(self._typed[:size])
        if taken:
            del self._typed[:size]
            self._taken_at = time.monotonic()
        return taken

    def descriptor(self, *, is_awaited: bool) -> int | None:  # Ctrl-A is always awaited
        """See `Source`."""
        return None if self._settings is None else self._descriptor

    # -- the terminal -------------------------------------------------------------------------------------------------

    def _is_ours(self) -> bool:
        """Whether we are in the foreground: others that read a terminal or change its settings are stopped."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:  # it is not our session's, so it has no foreground
            return True

    def _hold(self) -> None:
        """Set the terminal to one key at a time, without an echo. Output is not changed: a line feed begins a new
        line."""
        if self._settings is not None or not self._is_ours():
            return
        with suppress(termios.error):
            before, raw = termios.tcgetattr(self._descriptor), termios.tcgetattr(self._descriptor)
            raw[_INPUT] &= ~_TRANSLATIONS
            raw[_OUTPUT] |= termios.OPOST | termios.ONLCR  # unlike cfmakeraw(3)
            raw[_CONTROL] |= termios.CS8
            raw[_LOCAL] &= ~_EDITING
            raw[_CHARACTERS][termios.VMIN], raw[_CHARACTERS][termios.VTIME] = 1, 0
            termios.tcsetattr(self._descriptor, termios.TCSANOW, raw)
            self._settings = before

    def _release(self) -> None:
        settings, self._settings = self._settings, None
        # In the background, tcsetattr() would stop us by SIGTTOU, and the settings are the foreground job's.
        if settings is not None and self._is_ours():
            with suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, settings)

    def _stopped(self, number: int, _frame: FrameType | None) -> None:
        """SIGTSTP: restore the terminal, and stop, unless there is no shell that could continue us."""
        self._release()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._stopped)
        self._hold()

    def _continued(self, number: int, frame: FrameType | None) -> None:
        """SIGCONT: we may be in the background now, and the shell has changed the terminal's settings."""
        self._settings = None
        self._hold()
        if callable(before := self._handlers[signal.SIGCONT]):
            before(number, frame)

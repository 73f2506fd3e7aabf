"""kinst-run at a terminal: a pseudo-terminal that is its controlling one, what it shows, and keys to press."""

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.runtime.test_cli import COMMAND, ENVIRONMENT

_PATIENCE = 240.0  # seconds until a test gives up


class TerminalSession:
    """A run on a terminal of its own, in the foreground of a session of its own: kinst-run's, or another command's."""

    def __init__(
        self, *arguments: str | Path, command: Sequence[str] = COMMAND, environment: Mapping[str, str] = ENVIRONMENT
    ) -> None:
        self._master, self._slave = pty.openpty()
        self.before = self.settings()
        self.shown = b""  # and not expected yet
        self.run = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.run.kill()
        self.run.wait()
        os.close(self._master)
        os.close(self._slave)

    def settings(self) -> list[Any]:
        """What stty(1) shows."""
        return termios.tcgetattr(self._slave)

    def await_settings(self, settings: list[Any]) -> None:
        """Wait until stty(1) would show this."""
        end = time.monotonic() + _PATIENCE
        while self.settings() != settings:
            assert time.monotonic() < end, f"{self.settings()} is not {settings}"
            time.sleep(0.1)

    def set(self, settings: list[Any]) -> None:
        """As a shell does when a program has stopped."""
        termios.tcsetattr(self._slave, termios.TCSANOW, settings)

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._master, keys)

    def expect(self, expression: bytes) -> re.Match[bytes]:
        """Wait until it is shown, and forget what is shown up to there."""
        end = time.monotonic() + _PATIENCE
        while (found := re.search(expression, self.shown)) is None:
            assert time.monotonic() < end, f"{expression!r} not in {self.shown[-2000:]!r}"
            self._read(0.2)
        self.shown = self.shown[found.end() :]
        return found

    def ended(self) -> int:
        """Wait for the end. Returns the exit code; `shown` is what was shown last."""
        end = time.monotonic() + _PATIENCE
        while self.run.poll() is None:
            assert time.monotonic() < end, f"it runs: {self.shown[-2000:]!r}"
            self._read(0.1)
        self._read(0)
        return self.run.returncode

    def _read(self, patience: float) -> None:
        if select.select([self._master], (), (), patience)[0]:
            with suppress(OSError):
                self.shown += os.read(self._master, 1 << 16)

"""kinst-run in a terminal of tmux: keys to press, and what its screen shows."""

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.runtime.test_cli import COMMAND, ENVIRONMENT

_PATIENCE = 120.0  # seconds until a test gives up
_NOT_PASSED = ("NO_COLOR", "TMUX", "COLUMNS", "LINES")
_STATUS = re.compile(r"^status (\d+)$", re.MULTILINE)


class TmuxSession:
    """A run in a server of tmux of its own. When it ends, `status N` follows on the screen."""

    def __init__(
        self,
        folder: Path,
        *arguments: str | Path,
        size: tuple[int, int] = (120, 36),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        if shutil.which("tmux") is None:
            assert not os.environ.get("KINST_REQUIRE_TOOLS"), "no tmux"
            pytest.skip("tmux is not installed")
        command = shlex.join([*COMMAND, *map(str, arguments)])
        kept = {name: text for name, text in ENVIRONMENT.items() if name not in _NOT_PASSED}
        self._environment = kept | {"COLORTERM": "truecolor", **(variables or {})}  # of the server, and so of the run
        script = folder / "run.sh"
        script.write_text(f"cd {folder}\n{command}\necho status $?\nexec sleep 1000\n")
        self._socket = folder / "tmux"
        width, height = size
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", str(height), f"sh {script}")

    def _tmux(self, *arguments: str) -> str:
        words = ["tmux", "-S", str(self._socket), *arguments]
        result = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, env=self._environment)
        return result.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tmux("kill-server")

    def press(self, *keys: str) -> None:
        """Press keys, as tmux names them: q, C-c, Enter."""
        self._tmux("send-keys", *keys)

    def text(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def screen(self, *, has_colours: bool = False) -> str:
        """What is shown, with the sequences that colour it or without."""
        return self._tmux("capture-pane", "-p", *(["-e"] if has_colours else []))

    def shows(self, expression: str) -> str:
        """Wait until it is shown. Returns the screen."""
        end = time.monotonic() + _PATIENCE
        while not re.search(expression, shown := self.screen(), re.MULTILINE):
            assert time.monotonic() < end, f"{expression!r} is not in\n{shown}"
            assert expression.startswith("^status") or not _STATUS.search(shown), f"it has ended:\n{shown}"
            time.sleep(0.1)
        return shown

    def process(self) -> int:
        """The run's, which is the only child of the terminal's shell."""
        shell = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def ended(self) -> tuple[int, str]:
        """Wait for the end. Returns the exit code, and all that was printed after the screen had gone."""
        self.shows(r"^status \d+$")
        printed = self._tmux("capture-pane", "-p", "-J", "-S", "-")
        found = _STATUS.search(printed)
        assert found is not None
        return int(found[1]), printed[: found.start()]

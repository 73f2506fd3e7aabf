"""Where output goes: a stream, another file while freopen() says so; what commands of system() print among it.

A file or a pipe gets every byte as it is. A terminal does what control characters in its output say, and a guest's
strings are the guest's choice: there they are shown as escapes. What is written by `write_shown` goes through: the
guest's console, and text of which only the program chose the controls.

Bytes are gathered and written together; before anything else happens to the stream they are written.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from kinst.targets.visible import visible_bytes

_PENDING: Final = 1 << 14  # pieces kept before they are written


class OutputStream:
    """dtrace's standard output, or the file of -o."""

    def __init__(self, output: BinaryIO) -> None:
        """`output` stays the caller's to close."""
        self._output = output
        self._is_terminal = output.isatty()
        self._is_file_terminal = False
        self._file: BinaryIO | None = None  # of freopen()
        self._pieces: list[bytes] = []

    @property
    def shown(self) -> Callable[[bytes], bytes] | None:
        """What makes text fit for `write_shown`; None where nothing has to."""
        return self._visible if self._is_terminal or self._is_file_terminal else None

    def _visible(self, text: bytes) -> bytes:
        return visible_bytes(text) if self._file is None or self._is_file_terminal else text

    def write(self, data: bytes) -> None:
        """Some output."""
        is_shown = self._is_terminal if self._file is None else self._is_file_terminal
        self.write_shown(visible_bytes(data) if is_shown else data)

    def write_shown(self, data: bytes) -> None:
        """Output that a terminal may do anything with."""
        self._pieces.append(data)
        if len(self._pieces) > _PENDING:
            self._write_out()

    def _write_out(self) -> None:
        if self._pieces:
            (self._file or self._output).write(b"".join(self._pieces))
            self._pieces.clear()

    def flush(self) -> None:
        """Let the reader see it."""
        self._write_out()
        (self._file or self._output).flush()

    def reopen(self, path: bytes) -> None:
        """freopen(): what follows is appended to this file. Raises OSError."""
        opened = Path(path.decode("utf-8", "surrogateescape")).open("ab")  # noqa: SIM115  # closed by restore
        self.restore()
        self._file = opened
        self._is_file_terminal = opened.isatty()

    def restore(self) -> None:
        """freopen(""): back to where output went at first."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def truncate(self) -> None:
        """ftruncate(): forget what was written, if it is a file."""
        self.flush()
        file = self._file or self._output
        if file.seekable():
            file.seek(0)
            file.truncate(0)

    def run(self, command: bytes) -> None:
        """system(): what a command of the shell prints goes where dtrace's standard output went at first."""
        import subprocess  # most programs run no command

        self.flush()
        if _is_of_the_system(self._output):
            subprocess.run([b"/bin/sh", b"-c", command], check=False)
            return
        done = subprocess.run([b"/bin/sh", b"-c", command], check=False, stdout=subprocess.PIPE)
        self._output.write(done.stdout)


def _is_of_the_system(output: BinaryIO) -> bool:
    """Whether a child process has it, or its own like us: not so for a buffer in memory."""
    try:
        output.fileno()
    except (io.UnsupportedOperation, AttributeError):
        return False
    return True

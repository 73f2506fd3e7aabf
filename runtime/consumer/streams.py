"""Where output goes: a stream, or another file after freopen(), together with what the commands of system() print.

A file or a pipe gets every byte as it is. A terminal obeys control characters, and the guest decides what its strings
contain, so for a terminal they are escaped. `write_shown` does not escape: it is for the guest's console, and for text
in which all control characters come from the D program.

Bytes are collected and written together, and always before anything else happens to the stream.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from kinst.targets.visible import visible_bytes

_PENDING: Final = 1 << 14  # pieces that are collected before they are written


class OutputStream:
    """dtrace's standard output, or the file of -o."""

    def __init__(self, output: BinaryIO) -> None:
        """`output` is closed by the caller."""
        self._output = output
        self._is_terminal = output.isatty()
        self._is_file_terminal = False
        self._file: BinaryIO | None = None  # the file of freopen()
        self._pieces: list[bytes] = []

    @property
    def is_terminal(self) -> bool:
        """Whether output goes to a terminal now."""
        return self._is_terminal if self._file is None else self._is_file_terminal

    @property
    def shown(self) -> Callable[[bytes], bytes] | None:
        """A function that escapes text for `write_shown`; None if nothing needs to be escaped."""
        return self._visible if self._is_terminal or self._is_file_terminal else None

    def _visible(self, text: bytes) -> bytes:
        return visible_bytes(text) if self._file is None or self._is_file_terminal else text

    def write(self, data: bytes) -> None:
        """Write output; control characters are escaped for a terminal."""
        self.write_shown(visible_bytes(data) if self.is_terminal else data)

    def write_shown(self, data: bytes) -> None:
        """Write output whose control characters a terminal may obey."""
        self._pieces.append(data)
        if len(self._pieces) > _PENDING:
            self._write_out()

    def _write_out(self) -> None:
        if self._pieces:
            (self._file or self._output).write(b"".join(self._pieces))
            self._pieces.clear()

    def flush(self) -> None:
        """Flush what was written so far."""
        self._write_out()
        (self._file or self._output).flush()

    def reopen(self, path: bytes) -> None:
        """freopen(path): further output is appended to this file. Raises OSError."""
        opened = Path(path.decode("utf-8", "surrogateescape")).open("ab")  # noqa: SIM115  # closed by restore
        self.restore()
        self._file = opened
        self._is_file_terminal = opened.isatty()

    def restore(self) -> None:
        """freopen(""): go back to the original output."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def truncate(self) -> None:
        """ftruncate(): discard what was written, if the output is a file."""
        self.flush()
        file = self._file or self._output
        if file.seekable():
            file.seek(0)
            file.truncate(0)

    def run(self, command: bytes) -> None:
        """system(command): what a shell command prints goes to the original output, even after freopen()."""
        import subprocess  # most programs run no command

        self.flush()
        if _is_of_the_system(self._output):
            subprocess.run([b"/bin/sh", b"-c", command], check=False)
            return
        done = subprocess.run([b"/bin/sh", b"-c", command], check=False, stdout=subprocess.PIPE)
        self._output.write(done.stdout)


def _is_of_the_system(output: BinaryIO) -> bool:
    """Whether a child process can inherit the output; it cannot inherit a buffer in memory."""
    try:
        output.fileno()
    except (io.UnsupportedOperation, AttributeError):
        return False
    return True

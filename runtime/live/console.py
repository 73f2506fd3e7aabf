"""QEMU's standard input and output, connected to the guest's first serial line."""

import fcntl
import os
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

_SIZE: Final = 1 << 20  # bytes, the most that Linux grants without privileges (pipe-max-size)
_CHUNK: Final = 1 << 16  # bytes that are read at once
# Connects them with a serial line.
CONSOLE_WORDS: Final = ("-chardev", "stdio,id=kinst-console,signal=off", "-serial", "chardev:kinst-console")


class Console:
    """Two pipes. As a context, it closes QEMU's ends when QEMU has inherited them.

    Pipes, not a socket: some of QEMU's UARTs (`spike`'s, `sifive_u`'s) drop what cannot be written at once, and a
    socket holds some 270 writes of one byte, a pipe as many bytes as its size.
    """

    def __init__(self) -> None:
        """Open the pipes."""
        self.its_input, self._typed = os.pipe2(os.O_CLOEXEC)
        self._printed, self.its_output = os.pipe2(os.O_CLOEXEC)
        with suppress(OSError):  # the user has too many large pipes: it stays at 64 KiB
            fcntl.fcntl(self._printed, fcntl.F_SETPIPE_SZ, _SIZE)
        os.set_blocking(self._typed, False)
        os.set_blocking(self._printed, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.its_input)
        os.close(self.its_output)

    def heard(self) -> bytes:
        """The output since the last time."""
        found = bytearray()
        with suppress(BlockingIOError):
            while data := os.read(self._printed, _CHUNK):
                found += data
        return bytes(found)

    def type(self, data: bytes) -> int:
        """Type. Returns how many bytes were accepted."""
        try:
            return os.write(self._typed, data)
        except (BlockingIOError, BrokenPipeError):
            return 0

    def close(self) -> None:
        """Close our ends. Output that was not read is lost."""
        os.close(self._typed)
        os.close(self._printed)

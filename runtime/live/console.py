"""QEMU's standard input and output -> what the guest prints on its serial line, and what is typed at it."""

import fcntl
import os
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

_ROOM: Final = 1 << 20  # bytes, the most that Linux grants everybody
_CHUNK: Final = 1 << 16  # bytes that are taken at once
# What connects it to a serial line.
CONSOLE_WORDS: Final = ("-chardev", "stdio,id=kinst-console,signal=off", "-serial", "chardev:kinst-console")


class Console:
    """Both ends of two pipes. As a context: QEMU's ends are closed behind it, since QEMU has them then.

    Pipes, not a socket: some UARTs of QEMU's (`spike`'s, `sifive_u`'s) drop what is not taken at once, and a socket
    holds some 270 writes of a byte, a pipe as many bytes as it is large.
    """

    def __init__(self) -> None:
        """Open them."""
        self.its_input, self._typed = os.pipe2(os.O_CLOEXEC)
        self._printed, self.its_output = os.pipe2(os.O_CLOEXEC)
        with suppress(OSError):  # the user has too many large pipes: it stays at 64 KiB
            fcntl.fcntl(self._printed, fcntl.F_SETPIPE_SZ, _ROOM)
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
        """What was printed since the last time."""
        found = bytearray()
        with suppress(BlockingIOError):
            while data := os.read(self._printed, _CHUNK):
                found += data
        return bytes(found)

    def type(self, data: bytes) -> int:
        """Type. Returns how many bytes were taken."""
        try:
            return os.write(self._typed, data)
        except (BlockingIOError, BrokenPipeError):
            return 0

    def close(self) -> None:
        """Close our ends. What was printed is gone then."""
        os.close(self._typed)
        os.close(self._printed)

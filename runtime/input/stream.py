"""A pipe, a socket or a file -> bytes for the guest, read only as it takes them. Their end does not end the run."""

import os
import select


class Stream:
    """Standard input that is not a terminal; implements `kinst.runtime.machine.serial_line.Source`."""

    def __init__(self, descriptor: int) -> None:
        """Nothing is read before the guest takes something."""
        self._descriptor = descriptor
        self._is_over = False

    def look(self) -> None:
        """Do nothing: there are no commands among the bytes."""

    def take(self, size: int) -> bytes:
        """See `Source`."""
        if self._is_over or not select.select([self._descriptor], (), (), 0)[0]:
            return b""
        try:
            data = os.read(self._descriptor, size)
        except OSError:  # a socket that was closed by the other side in disorder
            data = b""
        self._is_over = not data
        return data

    def descriptor(self, *, is_awaited: bool) -> int | None:
        """See `Source`."""
        return self._descriptor if is_awaited and not self._is_over else None

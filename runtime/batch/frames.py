"""Objects <-> bytes in a pipe, between a batch and its own worker processes: a length, then a pickle."""

import os
import pickle
import struct
from typing import Any, Final

_LENGTH: Final = struct.Struct("<Q")
_PIECE: Final = 1 << 20


def send(descriptor: int, value: object) -> None:
    """Write an object. Raises BrokenPipeError: the other end is closed."""
    content = pickle.dumps(value)
    left = memoryview(_LENGTH.pack(len(content)) + content)
    while left:
        left = left[os.write(descriptor, left) :]


def receive(descriptor: int) -> Any:
    """Read an object; None at the end, also if it comes in the middle of one."""
    head = _read(descriptor, _LENGTH.size)
    content = None if head is None else _read(descriptor, _LENGTH.unpack(head)[0])
    return None if content is None else pickle.loads(content)


def _read(descriptor: int, size: int) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        piece = os.read(descriptor, min(size - len(content), _PIECE))
        if not piece:
            return None
        content += piece
    return bytes(content)

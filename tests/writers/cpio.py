"""Files -> a cpio archive in the format that Linux unpacks its initial file system from.

Documentation/driver-api/early-userspace/buffer-format.rst: "070701" and 13 numbers of 8 hexadecimal digits, the name
with a NUL, the content; both are padded to 4 bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

DIRECTORY, FILE, LINK, CHARACTERS = 0o040755, 0o100755, 0o120777, 0o020666


@dataclass(frozen=True, slots=True)
class Entry:
    """A file; `content` of a link is where it leads, `device` is the major and minor number of a device."""

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def archive(entries: Sequence[Entry]) -> bytes:
    """The archive; folders come before what is in them."""
    return b"".join(_row(number, entry) for number, entry in enumerate((*entries, Entry("TRAILER!!!", 0)), 1))


def _row(number: int, entry: Entry) -> bytes:
    name = entry.name.encode() + b"\0"
    numbers = (number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, *entry.device, len(name), 0)
    head = _padded(b"070701" + b"".join(b"%08x" % one for one in numbers) + name)
    return head + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)

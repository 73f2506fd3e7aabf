"""The initial file system of a Linux kernel -> the regular files in it.

Documentation/driver-api/early-userspace/buffer-format.rst: cpio archives (newc), one after the other, each of which may
be compressed, with zeros between them. As in the kernel, what cannot be read ends the reading: what came before it is
there. Of hard links, the last one has the content.
"""

from collections.abc import Callable, Generator, Iterator
from typing import Final

from kinst.targets.compression import compression_of, decompressed
from kinst.targets.errors import ImageError

_MAGICS: Final = (b"070701", b"070702")  # the second has checksums
_HEADER: Final = 110  # bytes: the magic, and 13 numbers of 8 hexadecimal digits
_MODE, _SIZE, _NAME_SIZE = 1, 6, 11  # which of the numbers
_FORMAT, _REGULAR = 0o170000, 0o100000
_MOST: Final = 1 << 31  # bytes that a compressed archive may have
_LAST: Final = b"TRAILER!!!"


def initial_files(data: bytes | memoryview, wants: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """The paths, without a slash at the front, and the contents of those regular files whose path is wanted."""
    view = memoryview(data)
    at = 0
    while at < len(view):
        if view[at] == 0:  # padding
            at += 1
        elif bytes(view[at : at + 6]) in _MAGICS:
            at = yield from _archive(view, at, wants)
        else:
            yield from _compressed(bytes(view[at:]), wants)
            return  # where its end is, only the kernel's decompressor says


def _compressed(data: bytes, wants: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    if compression_of(data) is None:
        return
    try:
        content = decompressed(data, _MOST)
    except ImageError:
        return
    if bytes(content[:6]) in _MAGICS:  # nothing else: compressed bytes might hold compressed bytes for ever
        view, at = memoryview(content), 0
        while at < len(view):
            at = at + 1 if view[at] == 0 else (yield from _archive(view, at, wants))


def _archive(view: memoryview, at: int, wants: Callable[[str], bool]) -> Generator[tuple[str, bytes], None, int]:
    """One archive, from an offset on; returns where it ends."""
    while bytes(view[at : at + 6]) in _MAGICS and at + _HEADER <= len(view):
        try:
            numbers = [int(bytes(view[at + 6 + 8 * one : at + 14 + 8 * one]), 16) for one in range(13)]
        except ValueError:
            return len(view)
        name_end = at + _HEADER + numbers[_NAME_SIZE]
        start = name_end + -name_end % 4
        end = start + numbers[_SIZE]
        if end > len(view):
            return len(view)
        name = bytes(view[at + _HEADER : name_end]).rstrip(b"\0")
        at = end + -end % 4
        if name == _LAST:
            return at
        path = name.decode(errors="surrogateescape").removeprefix("./").lstrip("/")
        if numbers[_MODE] & _FORMAT == _REGULAR and wants(path):
            yield path, bytes(view[start:end])
    return len(view)

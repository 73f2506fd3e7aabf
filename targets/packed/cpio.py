"""An initial file system of Linux -> the files in it.

It is a cpio archive (Documentation/driver-api/early-userspace/buffer-format.rst): "070701" or "070702" and 13 numbers
of 8 hexadecimal digits, the name with a NUL, the content; each padded to 4 bytes. Several archives may follow one
another with zeros in between, and each may be compressed: what is behind a compressed one is not read. As in the
kernel, the last file of a name counts, and names with one inode are one file, whose content the last of them has.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from kinst.targets.compression import compression_of, decompressed
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass

_HEAD: Final = re.compile(rb"07070[12]((?:[0-9A-Fa-f]{8}){13})")
_HEAD_SIZE: Final = 6 + 13 * 8
_END: Final = "TRAILER!!!"
_MOST_BYTES: Final = 1 << 30  # of an archive without its compression
_LONGEST_NAME: Final = 4096  # PATH_MAX
_KIND, _FILE, _LINK = 0o170000, 0o100000, 0o120000
_MOST_LINKS: Final = 40  # that are followed for one path, as in the kernel (MAXSYMLINKS)
_ALIGNED: Final = 4


@dataclass(frozen=True, slots=True)
class _Row:
    """One header of an archive with what belongs to it."""

    inode: tuple[int, ...]  # number, major and minor number of the device; empty: it has only this name
    mode: int
    path: str  # from the root, without a slash before it
    content: memoryview
    end: int  # where the next one begins


@dataclass(frozen=True, slots=True)
class FileSystem:
    """What an archive has. Paths begin at the root, without a slash before it."""

    files: Mapping[str, memoryview]  # of regular files, the content
    links: Mapping[str, str]  # symbolic links, and where they lead

    def resolved(self, path: str) -> str:
        """The absolute path without symbolic links, as far as the archive knows them: `/bin/ls` may be
        `/bin/busybox`. A circle of links stays as it is."""
        rest, followed = list(PurePosixPath("/", path).parts[1:]), 0
        done: list[str] = []
        while rest:
            part = rest.pop(0)
            if part == "..":
                del done[-1:]
                continue
            here = "/".join([*done, part])
            target = self.links.get(here)
            if target is None or followed >= _MOST_LINKS:
                done.append(part)
                continue
            followed += 1
            done = [] if target.startswith("/") else done
            rest = [one for one in target.split("/") if one not in ("", ".")] + rest
        return "/" + "/".join(done)

    def content(self, path: str) -> memoryview | None:
        """The content of the regular file that a path leads to; None: there is none."""
        return self.files.get(self.resolved(path)[1:])


def file_system(data: bytes | memoryview) -> FileSystem:
    """The files of an initial file system, compressed or not.

    Raises:
        ImageError: it is no such archive, or damaged.
    """
    files: dict[str, memoryview] = {}
    links: dict[str, str] = {}
    names: dict[tuple[int, ...], list[str]] = {}
    for row in _rows(memoryview(data)):
        files.pop(row.path, None)
        links.pop(row.path, None)
        kind = row.mode & _KIND
        if kind == _LINK:
            links[row.path] = bytes(row.content).partition(b"\0")[0].decode(errors="surrogateescape")
        elif kind == _FILE:
            files[row.path] = row.content
            own = names.setdefault(row.inode, []) if row.inode else []
            own.append(row.path)
            if len(row.content):
                files.update(dict.fromkeys(own, row.content))
    return FileSystem(files, links)


def _rows(data: memoryview) -> Iterator[_Row]:
    position, count = 0, 0
    while position < len(data):
        if not data[position]:
            position += 1
            continue
        if bytes(data[position : position + 5]) != b"07070":
            begun = bytes(data[position:])
            if compression_of(begun) is None:
                raise ImageError(f"no cpio archive at byte {position}" if count else "no cpio archive")
            yield from _rows(_plain(begun))
            return
        row = _row(data, position)
        position, count = row.end, count + 1
        if row.path != _END:
            yield row


def _plain(data: bytes) -> memoryview:
    """What was compressed: an archive, not compressed again."""
    found = decompressed(data, _MOST_BYTES)
    if compression_of(found) is not None:
        raise ImageError("compressed more than once")
    return memoryview(found)


def _row(data: memoryview, start: int) -> _Row:
    head = _HEAD.fullmatch(data[start : start + _HEAD_SIZE])
    if head is None:
        raise ImageError(f"damaged: no cpio header at byte {start}")
    numbers = [int(head[1][at : at + 8], 16) for at in range(0, 13 * 8, 8)]
    number, mode, _, _, links, _, size, major, minor, _, _, length, _ = numbers
    if not 0 < length <= _LONGEST_NAME:
        raise ImageError(f"damaged: a name of {length} bytes at byte {start}")
    name_at = start + _HEAD_SIZE
    content_at = _aligned(name_at + length)
    if content_at + size > len(data):
        raise ImageError(f"damaged: what is at byte {start} is longer than the archive")
    text = bytes(data[name_at : name_at + length]).partition(b"\0")[0].decode(errors="surrogateescape")
    path = text if text == _END else "/".join(one for one in text.split("/") if one not in ("", "."))
    inode = (number, major, minor) if links > 1 else ()
    content = data[content_at : content_at + size]
    return _Row(inode, mode, path, content, _aligned(content_at + size))


def _aligned(position: int) -> int:
    return -(-position // _ALIGNED) * _ALIGNED

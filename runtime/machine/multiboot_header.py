"""An image -> its Multiboot header: which specification it follows, where it wants to be loaded, where it starts.

Multiboot Specification 0.6.96, 3.1, and Multiboot2 Specification 2.0, 3.1. Loaders look in the first 8 KiB (32 KiB) of
the file; we look in the first 32 KiB of the file and of what is loaded, since large pages put code far behind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image
from kinst.targets.manifest import find_manifest

_SEARCHED: Final = 32768
_HAS_ADDRESSES: Final = 1 << 16  # of version 1's flags
_FROM_THE_START: Final = 0xFFFF_FFFF  # version 2, load_addr: all of the file


class Version(IntEnum):
    """A specification, by its header's magic."""

    ONE = 0x1BAD_B002
    TWO = 0xE852_50D6


class _Tag(IntEnum):
    """Of version 2's header."""

    END = 0
    ADDRESSES = 2
    ENTRY = 3


_CHECKED_WORDS: Final = {Version.ONE: 3, Version.TWO: 4}  # that add up to 0, the magic being the first


@dataclass(frozen=True, slots=True)
class LoadRange:
    """What an image's address fields ask for: file bytes from `offset` on at `address`, and room behind them."""

    offset: int
    address: int
    size: int  # of what the file holds
    room: int  # with what is to be zero


@dataclass(frozen=True, slots=True)
class BootHeader:
    """`load` is None where the ELF program headers count; `entry` where the ELF header's does."""

    version: Version
    load: LoadRange | None = None
    entry: int | None = None


def boot_header(image: Image) -> BootHeader | None:
    """The first header there is, version 1 before version 2: loaders are told which to use, and we are not."""
    found = sorted(_headers(image))
    if not found:
        return None
    version, offset = found[0]
    return _first(image, offset) if version is Version.ONE else _second(image, offset)


def _headers(image: Image) -> Iterator[tuple[Version, int]]:
    """Versions and file offsets of headers; their magic, at a multiple of 4, has the right checksum."""
    for start, end in _searched(image):
        words = image.data[start : start + (end - start & ~3)].view("<u4")
        for at in np.flatnonzero(np.isin(words, list(Version))).tolist():
            version = Version(int(words[at]))
            checked = words[at : at + _CHECKED_WORDS[version]]
            if len(checked) == _CHECKED_WORDS[version] and int(checked.sum(dtype=np.uint64)) & 0xFFFF_FFFF == 0:
                yield version, start + 4 * at


def _searched(image: Image) -> Iterator[tuple[int, int]]:
    """Ranges of the file: its beginning, and what is loaded first."""
    yield 0, min(_SEARCHED, len(image.data))
    loads = [segment for segment in image.segments if segment.kind == PT_LOAD and segment.file_size]
    lowest = min((segment.load_address for segment in loads), default=0)
    for segment in loads:
        left = lowest + _SEARCHED - segment.load_address
        start = segment.offset + (-segment.offset & 3)
        if left > 0:
            yield start, min(segment.offset + min(segment.file_size, left), len(image.data))


def _words(image: Image, offset: int, count: int) -> list[int]:
    words: list[int] = image.data[offset : offset + 4 * count].view("<u4").tolist()
    return words + [0] * (count - len(words))


def _first(image: Image, offset: int) -> BootHeader:
    """magic  flags  checksum  header_addr  load_addr  load_end_addr  bss_end_addr  entry_addr  ..."""
    _, flags, _, *addresses, entry = _words(image, offset, 8)
    if not flags & _HAS_ADDRESSES:
        return BootHeader(Version.ONE)
    return BootHeader(Version.ONE, _load_range(image, offset, addresses), entry)


def _second(image: Image, offset: int) -> BootHeader:
    """magic  architecture  header_length  checksum, then tags: u16 type, u16 flags, u32 size, content; 8-aligned."""
    _, _, length, _ = _words(image, offset, 4)
    load, entry = None, None
    at, end = offset + 16, min(offset + length, len(image.data))
    while at + 8 <= end:
        kind, size = _words(image, at, 2)
        match kind & 0xFFFF:
            case _Tag.END:
                break
            case _Tag.ADDRESSES:
                load = _load_range(image, offset, _words(image, at + 8, 4))
            case _Tag.ENTRY:
                (entry,) = _words(image, at + 8, 1)
        at += max(size, 8) + 7 & ~7
    return BootHeader(Version.TWO, load, entry)


def _load_range(image: Image, offset: int, addresses: list[int]) -> LoadRange:
    """The header tells its own address, so where the file's byte for `load` is; an end of 0 is the file's."""
    header, load, load_end, bss_end = addresses
    if load == _FROM_THE_START:
        load = header - offset
    start = max(0, offset - (header - load))
    manifest = find_manifest(image)
    file_end = len(image.data) if manifest is None else manifest.original_size
    size = load_end - load if load_end else file_end - start
    return LoadRange(start, load, size, max(size, bss_end - load if bss_end else 0))

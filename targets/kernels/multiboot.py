"""An image -> its Multiboot header: which specification it follows, where it is loaded, where it starts.

Multiboot Specification 0.6.96, 3.1, and Multiboot2 Specification 2.0, 3.1. Loaders search the first 8 KiB (version 2:
32 KiB) of the file. Here the first 32 KiB of the file and of what is loaded are searched, since with large pages code
comes late in the file.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import numpy as np

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image
from kinst.targets.manifest.packed import find_manifest
from kinst.targets.values import dataclass

_SEARCHED: Final = 32768
_HAS_ADDRESSES: Final = 1 << 16  # one of version 1's flags
_FROM_THE_START: Final = 0xFFFF_FFFF  # version 2, load_addr: the whole file


class Version(IntEnum):
    """A specification, by its header's magic."""

    ONE = 0x1BAD_B002
    TWO = 0xE852_50D6


class _Tag(IntEnum):
    """Tags of version 2's header."""

    END = 0
    ADDRESSES = 2
    ENTRY = 3


_CHECKED_WORDS: Final = {Version.ONE: 3, Version.TWO: 4}  # words, from the magic on, whose sum is 0


@dataclass(frozen=True, slots=True)
class LoadRange:
    """What an image's address fields ask for: file bytes from `offset` on at `address`, followed by zeros."""

    offset: int
    address: int
    size: int  # bytes from the file
    room: int  # bytes with the zeros


@dataclass(frozen=True, slots=True)
class BootHeader:
    """A Multiboot header. `load` is None if the ELF program headers apply, `entry` is None if the ELF header's
    applies. `flags` are version 1's: what the image asks for."""

    version: Version
    load: LoadRange | None = None
    entry: int | None = None
    flags: int = 0


def boot_header(image: Image) -> BootHeader | None:
    """The image's header, or None. Loaders are given a version to use; here version 1 is preferred."""
    found = sorted(_headers(image))
    if not found:
        return None
    version, offset = found[0]
    return _first(image, offset) if version is Version.ONE else _second(image, offset)


def _headers(image: Image) -> Iterator[tuple[Version, int]]:
    """The versions and file offsets of headers: a magic at a multiple of 4 with the right checksum."""
    for start, end in _searched(image):
        words = image.data[start : start + (end - start & ~3)].view("<u4")
        for at in np.flatnonzero(np.isin(words, list(Version))).tolist():
            version = Version(int(words[at]))
            checked = words[at : at + _CHECKED_WORDS[version]]
            if len(checked) == _CHECKED_WORDS[version] and int(checked.sum(dtype=np.uint64)) & 0xFFFF_FFFF == 0:
                yield version, start + 4 * at


def _searched(image: Image) -> Iterator[tuple[int, int]]:
    """The ranges of the file to search: its beginning, and that of what is loaded."""
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
        return BootHeader(Version.ONE, flags=flags)
    return BootHeader(Version.ONE, _load_range(image, offset, addresses), entry, flags)


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
    """The load range. The header's own address shows which file byte is at `load`; an end of 0 means the file's end."""
    header, load, load_end, bss_end = addresses
    if load == _FROM_THE_START:
        load = header - offset
    start = max(0, offset - (header - load))
    manifest = find_manifest(image)
    file_end = len(image.data) if manifest is None else manifest.original_size
    size = load_end - load if load_end else file_end - start
    return LoadRange(start, load, size, max(size, bss_end - load if bss_end else 0))

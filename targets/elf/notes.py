"""The bytes of notes in an ELF file -> its notes, one by one; and its build-id.

They are read here, also of a file that LIEF reads as well: kinst-inlinecall needs the build-id before it answers from
its cache, in a quarter of the time that importing LIEF takes, and LIEF fails on an owner that is not UTF-8.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.header import SHT_NOTE
from kinst.targets.elf.sections import content

_HEAD: Final = struct.Struct("<III")  # sizes of owner and description, type; both follow, padded to 4
_BUILD_ID: Final = 3  # NT_GNU_BUILD_ID


class Note(NamedTuple):
    """One note; the owner with its NUL."""

    owner: bytes
    kind: int
    description: bytes


def notes_in(data: bytes) -> Iterator[Note]:
    """The notes of a section or segment, up to the first that is cut off."""
    at = 0
    while at + _HEAD.size <= len(data):
        owner_size, size, kind = _HEAD.unpack_from(data, at)
        owner = at + _HEAD.size
        start = owner + owner_size + -owner_size % 4
        if start + size > len(data):
            return
        yield Note(data[owner : owner + owner_size], kind, data[start : start + size])
        at = start + size + -size % 4


def build_id(elf: ElfLike) -> bytes | None:
    """The GNU build-id (a note of type 3, owner "GNU"), if a note section of a file has one."""
    for section in elf.sections:
        if section.kind == SHT_NOTE:
            for note in notes_in(content(elf.data, section).tobytes()):
                if note.kind == _BUILD_ID and note.owner == b"GNU\0":
                    return note.description
    return None

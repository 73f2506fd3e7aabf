"""The note sections of an ELF file -> its build-id.

Read here, also of a file that LIEF has looked at: kinst-inlinecall asks for it before it answers from its cache, in a
quarter of the time that it takes to import LIEF.
"""

import struct
from typing import Final

from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.header import SHT_NOTE
from kinst.targets.elf.sections import content

_HEAD: Final = struct.Struct("<III")  # sizes of name and description, type; both follow, padded to 4
_BUILD_ID: Final = 3  # NT_GNU_BUILD_ID


def build_id(elf: ElfLike) -> bytes | None:
    """The GNU build-id (a note of type 3, owner "GNU"), if a note section of a file has one."""
    for section in elf.sections:
        if section.kind == SHT_NOTE:
            found = _build_id(content(elf.data, section).tobytes())
            if found is not None:
                return found
    return None


def _build_id(notes: bytes) -> bytes | None:
    at = 0
    while at + _HEAD.size <= len(notes):
        name_size, size, kind = _HEAD.unpack_from(notes, at)
        name = at + _HEAD.size
        start = name + name_size + -name_size % 4
        if kind == _BUILD_ID and notes[name : name + 4] == b"GNU\0":
            return notes[start : start + size]
        at = start + size + -size % 4
    return None

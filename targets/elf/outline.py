"""A checked ELF file -> a small one with the same headers and tables and none of the content.

LIEF reads a whole file into memory before it looks at the tables: 1.5 s and 600 MB for a vmlinux. We ask it for the
tables only, so it gets those.
"""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import ELF_HEADER, ElfHeader

_PHOFF, _SHOFF, _PHNUM, _SHNUM, _SHSTRNDX = (
    *(slice(32, 40), slice(40, 48)),
    *(slice(56, 58), slice(60, 62), slice(62, 64)),
)


def outline(
    data: NDArray[np.uint8], header: ElfHeader, segments: NDArray[np.void], sections: NDArray[np.void]
) -> bytes:
    """The ELF header, program headers, names of sections, section headers of a file, one behind the other.

    Offsets of tables and of the names are those in the outline; all others stay as they are, beyond its end.
    """
    head, sections, names = bytearray(data[: ELF_HEADER.size]), sections.copy(), b""
    names_at = len(head) + segments.nbytes
    if len(sections) and header.shstrndx < len(sections):
        row = sections[header.shstrndx]
        names = data[int(row["offset"]) : int(row["offset"]) + int(row["size"])].tobytes()
        row["offset"] = names_at
    head[_PHNUM], head[_SHNUM] = len(segments).to_bytes(2, "little"), len(sections).to_bytes(2, "little")
    head[_SHSTRNDX] = (header.shstrndx if len(sections) else 0).to_bytes(2, "little")
    head[_PHOFF] = (ELF_HEADER.size if len(segments) else 0).to_bytes(8, "little")
    head[_SHOFF] = (names_at + len(names) if len(sections) else 0).to_bytes(8, "little")
    return bytes(head) + segments.tobytes() + names + sections.tobytes()

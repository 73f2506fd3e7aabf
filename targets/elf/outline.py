"""A checked ELF file -> a small one with the same headers, tables and notes, and none of the other content.

LIEF reads a whole file into memory before its tables: 2.2 s and 620 MB for a vmlinux. We need its view of the tables
and the notes only, so it gets just those.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import ELF_HEADER, PT_NOTE, SHT_NOTE, Tables
from kinst.targets.values import dataclass

_PHOFF, _SHOFF, _PHNUM, _SHNUM, _SHSTRNDX = (
    *(slice(32, 40), slice(40, 48)),
    *(slice(56, 58), slice(60, 62), slice(62, 64)),
)
_MOST_NOTES: Final = 1 << 18  # bytes of notes; Linux has 1,000; larger ones stay out, since LIEF makes objects of them


@dataclass(frozen=True, slots=True)
class Outline:
    """The small file, and the tables as they are in it: what has content there has another offset."""

    data: bytes
    tables: Tables


def outline(data: NDArray[np.uint8], tables: Tables, notes_end: int | None = None) -> Outline:
    """The ELF header, program headers, names of sections, notes and section headers of a file, back to back.

    Args:
        data: the file.
        tables: its headers.
        notes_end: where the file ends for notes: those of a patched image cannot be in what was appended to it.

    What has no content in the outline keeps its offset, which may be anywhere in it or beyond its end.
    """
    header, segments, sections = tables.header, tables.segments.copy(), tables.sections.copy()
    body, start = bytearray(), ELF_HEADER.size + segments.nbytes
    if 0 < header.shstrndx < len(sections):
        _move(data, sections[header.shstrndx : header.shstrndx + 1], "size", body, start)
    left = _MOST_NOTES
    for rows, kind, size in ((segments, PT_NOTE, "file_size"), (sections, SHT_NOTE, "size")):
        for index in np.flatnonzero(rows["kind"] == kind).tolist():
            row = rows[index : index + 1]
            if int(row[size][0]) <= left and int(row["offset"][0]) + int(row[size][0]) <= (notes_end or len(data)):
                left -= int(row[size][0])
                _move(data, row, size, body, start)
    head = bytearray(data[: ELF_HEADER.size])
    head[_PHNUM], head[_SHNUM] = len(segments).to_bytes(2, "little"), len(sections).to_bytes(2, "little")
    head[_SHSTRNDX] = (header.shstrndx if len(sections) else 0).to_bytes(2, "little")
    head[_PHOFF] = (ELF_HEADER.size if len(segments) else 0).to_bytes(8, "little")
    head[_SHOFF] = (start + len(body) if len(sections) else 0).to_bytes(8, "little")
    small = bytes(head) + segments.tobytes() + bytes(body) + sections.tobytes()
    return Outline(small, Tables(header, segments, sections))


def _move(data: NDArray[np.uint8], row: NDArray[np.void], size: str, body: bytearray, start: int) -> None:
    """Append the content of a row to the body, which begins at `start`, and let the row say so.

    Notes stay where they are modulo 8: LIEF pads them by their place in the file.
    """
    offset = int(row["offset"][0])
    body += bytes((offset - start - len(body)) % 8)
    row["offset"] = start + len(body)
    body += data[offset : offset + int(row[size][0])].tobytes()

"""The path of an ELF file -> its sections and symbols, without a model of it.

`kinst.targets.image` reads whole images through LIEF, which takes the file into memory: 1 s and 650 MB for a vmlinux.
Debug information needs the section table, the symbols and mapped bytes only, also of files that are no images (objcopy
--only-keep-debug leaves no code in them).
"""

import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import SHF_ALLOC, SHT_NOBITS, ElfHeader, FileKind, read_elf_header, read_section_headers
from kinst.targets.elf.sections import Section
from kinst.targets.elf.symbols import Symbols, read_symbols
from kinst.targets.errors import ImageError
from kinst.targets.visible import text_of

_FIELDS: Final = ("kind", "flags", "address", "offset", "size", "link", "info", "entry_size", "alignment")


@dataclass(frozen=True, slots=True)
class ElfFile:
    """An ELF file as debug information needs it; addresses as `kinst.targets.image.Image` has them."""

    path: Path
    data: NDArray[np.uint8]  # the whole file, mapped read-only
    header: ElfHeader
    sections: tuple[Section, ...]
    symbols: Symbols

    @property
    def kind(self) -> FileKind:
        """EXEC, DYN or REL."""
        return self.header.kind


def open_elf(path: Path) -> ElfFile:
    """Read the tables of a file.

    Raises:
        ImageError: one line that says what is wrong with the file.
    """
    try:
        data = _mapped(path)
        header = read_elf_header(data)
        sections = _sections(data, header)
        return ElfFile(path, data, header, sections, read_symbols(data, header, sections))
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None


def _mapped(path: Path) -> NDArray[np.uint8]:
    if path.exists() and not path.is_file():
        raise ImageError("is a directory" if path.is_dir() else "not a regular file")
    try:
        with path.open("rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except OSError as error:
        raise ImageError(f"cannot be read: {error.strerror}") from None
    except ValueError:  # what mmap says of an empty file
        return np.zeros(0, np.uint8)


def _sections(data: NDArray[np.uint8], header: ElfHeader) -> tuple[Section, ...]:
    rows = read_section_headers(data, header)
    if not len(rows) or not header.shstrndx:
        return ()
    strings = rows[header.shstrndx]
    start = int(strings["offset"])
    names = data[start : start + int(strings["size"])].tobytes() + b"\0"
    end, found = len(data), []
    for index, row in enumerate(rows):
        fields = {field: int(row[field]) for field in _FIELDS}
        if header.kind is FileKind.REL and fields["flags"] & SHF_ALLOC:  # see `Section`
            end = -(-end // 16) * 16
            is_empty = fields["kind"] == SHT_NOBITS
            fields["address"] = end if is_empty else fields["offset"]
            end += fields["size"] if is_empty else 0
        at = int(row["name"])
        name = text_of(names[at : names.index(b"\0", at)])
        found.append(Section(index=index, name=name, **fields))
    return tuple(found)

"""The path of an ELF file -> its bytes, sections and symbols. All parts use this one reading of a file.

An image (`kinst.targets.image`) is such a file whose segments and code are checked as well. Debug information needs no
more than this, also of files that are no images: objcopy --only-keep-debug leaves no code in them.

The tables are read here as arrays and not by LIEF. LIEF reads a whole file into memory before its tables (2.2 s and 620
MB for a vmlinux of 588 MB, which is mapped here), takes 0.4 s to import, twice what kinst-inlinecall takes in all,
skips tables that do not fit, and has no numbers for types that it does not know. It reads an image that is to be
written or compared after us: `kinst.targets.elf.second_reader`.
"""

import mmap
import os
import stat
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import ElfHeader, FileKind, read_elf_header, read_section_headers
from kinst.targets.elf.sections import Section, sections_of
from kinst.targets.elf.shrunk_files import MAPPINGS
from kinst.targets.elf.symbols import Symbols, read_symbols
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass

_MAGIC: Final = b"\x7fELF"


class ElfLike(Protocol):
    """What `ElfFile` and `kinst.targets.image.Image` have in common."""

    @property
    def path(self) -> Path:
        """The path that it was opened by."""

    @property
    def data(self) -> NDArray[np.uint8]:
        """The bytes of the whole file, mapped."""

    @property
    def header(self) -> ElfHeader:
        """The fields of its ELF header."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """Its sections, in the order of their table."""

    @property
    def symbols(self) -> Symbols:
        """The symbols of .symtab, then those of .dynsym."""


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
        data = map_file(path)
        header = read_elf_header(data)
        sections = sections_of(data, header, read_section_headers(data, header))
        return ElfFile(path, data, header, sections, read_symbols(data, header, sections))
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None


def is_elf(path: Path) -> bool:
    """Whether a file begins as ELF files do. Raises ImageError: it cannot be read."""
    try:
        return map_file(path)[: len(_MAGIC)].tobytes() == _MAGIC
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from None


def map_file(path: Path) -> NDArray[np.uint8]:
    """The file as an array, mapped read-only. Only regular files: a device or a FIFO would never end.

    Raises:
        ImageError: it cannot be read, without the file's name.
    """
    try:
        # Not Path.open: opening a FIFO without a writer would wait forever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise ImageError(f"cannot be read: {getattr(error, 'strerror', error)}") from None
    try:
        return map_descriptor(descriptor, path)
    except OSError as error:
        raise ImageError(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def map_descriptor(descriptor: int, path: Path) -> NDArray[np.uint8]:
    """An open file as an array, mapped read-only. If it becomes shorter, the reader gets a KinstError with `path`.

    Raises:
        ImageError: it is not a regular file.
        OSError: it cannot be mapped.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise ImageError("is a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file")
    if status.st_size == 0:
        return np.zeros(0, np.uint8)
    mapping = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    data = np.frombuffer(mapping, np.uint8)
    MAPPINGS.note(path, mapping, data.ctypes.data)
    return data

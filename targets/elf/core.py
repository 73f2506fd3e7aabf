"""An ELF core -> the pieces of memory in it: of a whole machine, as QEMU's dump-guest-memory and kdump write it, or of
a process, as gdb and kernels do.

QEMU gives every piece its physical address, and the virtual one if paging was asked for (-p); else the virtual address
is the physical one, or 0 in old versions. There may be more pieces than e_phnum can say.

A process has virtual addresses only. Its notes say which files were mapped where, and what the kernel told the program.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import PurePosixPath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import (
    ELF_HEADER,
    PN_XNUM,
    PROGRAM_HEADER,
    PT_LOAD,
    PT_NOTE,
    SECTION_HEADER,
    check_magic,
)
from kinst.targets.elf.notes import notes_in
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass

_CORE: Final = 4  # ET_CORE
_INFO: Final = 44  # then the first section header has the number of program headers


_AUXV, _FILE = 6, 0x46494C45  # NT_AUXV, NT_FILE
AT_PHDR, AT_ENTRY = 3, 9
_WORDS: Final = struct.Struct("<QQ")
_RANGE: Final = struct.Struct("<QQQ")


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A part of a file in a process: addresses, and the offset in the file."""

    path: PurePosixPath
    start: int
    end: int
    offset: int


@dataclass(frozen=True, slots=True)
class Core:
    """A core. `loads` are PROGRAM_HEADER rows; the file need not have every byte that they promise. Of a process
    `files` are what it had mapped, and `auxiliary` what its kernel told it, by type; of a machine both are empty."""

    data: NDArray[np.uint8]
    loads: NDArray[np.void]
    files: tuple[MappedFile, ...] = ()
    auxiliary: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_of_process(self) -> bool:
        """Whether it has virtual addresses only."""
        return bool(self.files or self.auxiliary)


def read_core(data: NDArray[np.uint8]) -> Core:
    """The tables of a core.

    Raises:
        ImageError: what is wrong, without the file's name.
    """
    head = data[: ELF_HEADER.size].tobytes()
    check_magic(head)
    _, kind, _, _, _, start, sections, _, _, entry, count, _, _, _ = ELF_HEADER.unpack(head)
    if kind != _CORE:
        raise ImageError(f"no core: e_type is {kind} and not {_CORE}")
    if entry != PROGRAM_HEADER.itemsize:
        raise ImageError(f"damaged: program headers of {entry} bytes")
    if count == PN_XNUM:
        count = _many(data, sections)
    end = start + count * entry
    if end > len(data):
        raise ImageError(f"truncated: its program headers end at {end:#x}, the file at {len(data):#x}")
    rows = np.frombuffer(data[start:end].data, PROGRAM_HEADER) if count else np.zeros(0, PROGRAM_HEADER)
    notes = [note for row in rows[rows["kind"] == PT_NOTE] for note in notes_in(_content(data, row))]
    files = tuple(one for note in notes if note.kind == _FILE for one in _mapped(note.description))
    words = (note.description for note in notes if note.kind == _AUXV and note.owner.rstrip(b"\0") == b"CORE")
    auxiliary = dict(pair for part in words for pair in _WORDS.iter_unpack(part[: len(part) // 16 * 16]))
    return Core(data, rows[rows["kind"] == PT_LOAD], files, auxiliary)


def _content(data: NDArray[np.uint8], row: np.void) -> bytes:
    start = int(row["offset"])
    return data[start : start + int(row["file_size"])].tobytes()


def _mapped(description: bytes) -> Iterator[MappedFile]:
    """count | bytes of a page | start, end and offset in pages, of each | their names, each with its NUL. What is cut
    off is left out."""
    if len(description) < _WORDS.size:
        return
    count, page = _WORDS.unpack_from(description)
    end = _WORDS.size + count * _RANGE.size
    if end > len(description):
        return
    names = description[end:].split(b"\0")
    for number, name in zip(range(count), names, strict=False):
        start, stop, offset = _RANGE.unpack_from(description, _WORDS.size + number * _RANGE.size)
        yield MappedFile(PurePosixPath(name.decode("utf-8", "surrogateescape")), start, stop, offset * page)


def _many(data: NDArray[np.uint8], start: int) -> int:
    """How many program headers there are if e_phnum cannot say it."""
    if start + SECTION_HEADER.itemsize > len(data):
        raise ImageError("truncated: the number of its program headers is not in the file")
    return int.from_bytes(data[start + _INFO : start + _INFO + 4].tobytes(), "little")

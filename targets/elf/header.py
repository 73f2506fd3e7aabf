"""Bytes of a file -> its ELF header and tables, checked: what would lead a reader astray is refused here.

A rewriter must not be lenient: what a loader could understand in another way is refused. LIEF, which reads the tables
after us, is lenient: it skips tables that do not fit, and allocates what a header promises.
"""

import struct
from enum import IntEnum
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass

ELF_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
PROGRAM_HEADER: Final = np.dtype(
    [
        ("kind", "<u4"),
        ("flags", "<u4"),
        ("offset", "<u8"),
        ("address", "<u8"),
        ("load_address", "<u8"),
        ("file_size", "<u8"),
        ("size", "<u8"),
        ("alignment", "<u8"),
    ]
)
SECTION_HEADER: Final = np.dtype(
    [
        ("name", "<u4"),
        ("kind", "<u4"),
        ("flags", "<u8"),
        ("address", "<u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("link", "<u4"),
        ("info", "<u4"),
        ("alignment", "<u8"),
        ("entry_size", "<u8"),
    ]
)
PT_LOAD: Final = 1
PT_DYNAMIC: Final = 2
PT_INTERP: Final = 3
PT_NOTE: Final = 4
PT_GNU_EH_FRAME: Final = 0x6474E550  # the sorted table of call frame information
PT_GNU_RELRO: Final = 0x6474E552
PF_X: Final = 1
PF_W: Final = 2
PF_R: Final = 4
SHT_PROGBITS: Final = 1
SHT_SYMTAB: Final = 2
SHT_STRTAB: Final = 3
SHT_RELA: Final = 4
SHT_NOTE: Final = 7
SHT_NOBITS: Final = 8
SHT_REL: Final = 9
SHT_DYNSYM: Final = 11
SHT_RELR: Final = 19
SHF_WRITE: Final = 1
SHF_ALLOC: Final = 2
SHF_EXECINSTR: Final = 4
SHF_INFO_LINK: Final = 0x40
SHF_COMPRESSED: Final = 0x800
SHF_EXCLUDE: Final = 0x8000_0000
SHN_LORESERVE: Final = 0xFF00
PN_XNUM: Final = 0xFFFF


class FileKind(IntEnum):
    """e_type of the files that can be images."""

    REL = 1
    EXEC = 2
    DYN = 3


@dataclass(frozen=True, slots=True)
class ElfHeader:
    """The ELF header's fields, named as in the ELF specification without the e_."""

    kind: FileKind
    machine: int
    entry: int
    flags: int
    phoff: int
    phentsize: int
    phnum: int
    shoff: int
    shentsize: int
    shnum: int
    shstrndx: int


@dataclass(frozen=True, slots=True)
class Tables:
    """The headers of a file: ELF header, PROGRAM_HEADER rows and SECTION_HEADER rows."""

    header: ElfHeader
    segments: NDArray[np.void]
    sections: NDArray[np.void]


def read_tables(data: NDArray[np.uint8]) -> Tables:
    """All headers of a file, checked.

    Raises:
        ImageError: what is wrong, without the file's name.
    """
    header = read_elf_header(data)
    return Tables(header, read_program_headers(data, header), read_section_headers(data, header))


def read_elf_header(data: NDArray[np.uint8]) -> ElfHeader:
    """The header of a little-endian 64-bit image.

    Raises:
        ImageError: why it is none, without the file's name.
    """
    if len(data) == 0:
        raise ImageError("not an ELF image: the file is empty")
    head = data[: ELF_HEADER.size].tobytes()
    check_magic(head, data)
    _, kind, machine, version, entry, phoff, shoff, flags, _, phentsize, phnum, shentsize, shnum, shstrndx = (
        ELF_HEADER.unpack(head)
    )
    if version != 1:
        raise ImageError(f"damaged: ELF version {version} does not exist (there is only 1)")
    if kind not in FileKind.__members__.values():
        names = {0: "no type", 4: "a core dump"}
        raise ImageError(f"not an image: e_type {kind} ({names.get(kind, 'unknown')}); EXEC, DYN and REL are read")
    return ElfHeader(
        kind=FileKind(kind),
        machine=machine,
        entry=entry,
        flags=flags,
        phoff=phoff,
        phentsize=phentsize,
        phnum=phnum,
        shoff=shoff,
        shentsize=shentsize,
        shnum=shnum,
        shstrndx=shstrndx,
    )


def check_magic(head: bytes, data: NDArray[np.uint8] | None = None) -> None:
    """Check that a file begins as a little-endian 64-bit ELF file.

    Args:
        head: its first `ELF_HEADER.size` bytes.
        data: the file, if that is at hand: more of it says what it is.

    Raises:
        ImageError: it does not.
    """
    if not head.startswith(b"\x7fELF"):
        if b"\x7fELF".startswith(head):
            raise ImageError(f"truncated: {len(head)} bytes are not even an ELF header")
        from kinst.targets.elf.other_files import HEAD, kind_of  # for what is an error

        raise ImageError(f"not an ELF image: {kind_of(head if data is None else data[:HEAD].tobytes())}")
    if len(head) < ELF_HEADER.size:
        raise ImageError(f"truncated: {len(head)} bytes, an ELF header has {ELF_HEADER.size}")
    if head[4] != 2:
        raise ImageError("32-bit ELF: only 64-bit images can be probed" if head[4] == 1 else "damaged: no ELF class")
    if head[5] != 1:
        raise ImageError("big-endian ELF: only little-endian images can be probed")


def read_program_headers(data: NDArray[np.uint8], header: ElfHeader) -> NDArray[np.void]:
    """The program header table as PROGRAM_HEADER rows, checked against the file and against itself."""
    if header.phnum == PN_XNUM:
        raise ImageError("too many program headers: extended numbering (PN_XNUM) is not supported")
    rows = _table(data, "program header", header.phoff, header.phentsize, header.phnum, PROGRAM_HEADER)
    for index in np.flatnonzero(rows["kind"] == PT_LOAD):
        _check_load(rows[index], int(index), len(data))
    _check_overlaps(rows)
    return rows


def _check_load(row: NDArray[np.void], index: int, file_size: int) -> None:
    offset, address, size = int(row["offset"]), int(row["address"]), int(row["size"])
    in_file = int(row["file_size"])
    if in_file and offset + in_file > file_size:  # of .bss alone the offset means nothing: linkers align it
        raise ImageError(
            f"truncated: segment {index} ends at file offset {offset + in_file:#x}, the file at {file_size:#x}"
        )
    if in_file > size:
        raise ImageError(f"damaged: segment {index} has {in_file:#x} bytes in the file but {size:#x} in memory")
    # Sums that wrap round would pass every comparison that follows.
    if address + size > 1 << 64 or int(row["load_address"]) + size > 1 << 64:
        raise ImageError(f"damaged: segment {index} at {address:#x} is {size:#x} bytes long, past the last address")


def _check_overlaps(rows: NDArray[np.void]) -> None:
    """Check that no two segments share an address, nor file bytes of which one is code: a patch would have two
    meanings."""
    loads = [
        (
            int(index),
            int(rows["flags"][index]) & PF_X,
            *(int(rows[name][index]) for name in ("address", "size", "offset", "file_size")),
        )
        for index in np.flatnonzero(rows["kind"] == PT_LOAD)
    ]
    # Neighbours suffice: if none of them overlap, no others do.
    by_address = sorted((address, address + size, index) for index, _, address, size, _, _ in loads if size)
    for (_, end, first), (start, _, second) in pairwise(by_address):
        if start < end:
            raise ImageError(f"damaged: segments {first} and {second} overlap at address {start:#x}")
    by_offset = sorted((offset, offset + size, index, code) for index, code, _, _, offset, size in loads if size)
    for (_, end, first, code), (start, _, second, also) in pairwise(by_offset):
        if start < end and (code or also):
            raise ImageError(f"damaged: segments {first} and {second} share file bytes at offset {start:#x}")


def read_section_headers(data: NDArray[np.uint8], header: ElfHeader) -> NDArray[np.void]:
    """The section header table as SECTION_HEADER rows, checked against the file; empty when there is none."""
    # With e_shnum 0 and a table, section 0 has the number of sections.
    if header.shoff and header.shnum == 0:
        return _without_extended_numbering(data, header)
    rows = _table(data, "section header", header.shoff, header.shentsize, header.shnum, SECTION_HEADER)
    in_file = (rows["kind"] != SHT_NOBITS) & (rows["kind"] != 0)
    # The sum may wrap round: a huge size would seem to end early.
    ends = rows["offset"] + rows["size"]
    beyond = in_file & ((ends > len(data)) | (ends < rows["offset"]))
    if beyond.any():
        index = int(np.argmax(beyond))
        raise ImageError(
            f"truncated: section {index} has {int(rows['size'][index]):#x} bytes at file offset "
            f"{int(rows['offset'][index]):#x}, the file ends at {len(data):#x}"
        )
    _check_names(rows, header)
    return rows


def _without_extended_numbering(data: NDArray[np.uint8], header: ElfHeader) -> NDArray[np.void]:
    """Refuse 0xff00 sections and more, whose count moves to section 0: LIEF does not read such files. 0 there: no
    table."""
    first = _table(data, "section header", header.shoff, header.shentsize, 1, SECTION_HEADER)
    if first["size"][0]:
        raise ImageError(f"too many sections: {int(first['size'][0])}, at most {SHN_LORESERVE - 1} are supported")
    return first[:0]


def _check_names(rows: NDArray[np.void], header: ElfHeader) -> None:
    if header.shstrndx == 0 or not len(rows):
        return
    if header.shstrndx >= len(rows) or rows["kind"][header.shstrndx] != SHT_STRTAB:
        raise ImageError(f"damaged: section names should be in section {header.shstrndx}, which is no string table")
    bad = rows["name"] > rows["size"][header.shstrndx]
    if bad.any():
        raise ImageError(f"damaged: the name of section {int(np.argmax(bad))} lies outside the string table")


def _table(
    data: NDArray[np.uint8], what: str, offset: int, entry_size: int, count: int, row: np.dtype[np.void]
) -> NDArray[np.void]:
    if count == 0 or offset == 0:
        return np.zeros(0, row)
    # A table of entries of another size would be read out of step.
    if entry_size != row.itemsize:
        raise ImageError(f"damaged: a {what} of {entry_size} bytes; in 64-bit ELF it has {row.itemsize}")
    end = offset + count * entry_size
    if end > len(data):
        raise ImageError(f"truncated: the {what} table ends at file offset {end:#x}, the file at {len(data):#x}")
    return np.frombuffer(data[offset:end].tobytes(), row)

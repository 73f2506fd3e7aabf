"""Little ELF files and altered copies of real ones, for the tests of this folder."""

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kinst.rewriter.arch.registry import dissector, uses_of
from kinst.targets.elf.symbols import Symbols
from kinst.targets.functions.found import Functions, find_functions
from kinst.targets.image import Image, open_image
from tests.images import real_image

# Offsets of fields in the ELF header and in section and program headers.
E_TYPE, E_MACHINE, E_ENTRY, E_PHOFF, E_SHOFF = 16, 18, 24, 32, 40
E_PHENTSIZE, E_PHNUM, E_SHENTSIZE, E_SHNUM, E_SHSTRNDX = 54, 56, 58, 60, 62
SH_TYPE, SH_FLAGS, SH_ADDR, SH_OFFSET, SH_SIZE, SH_LINK, SH_ENTSIZE = 4, 8, 16, 24, 32, 40, 56
P_OFFSET, P_VADDR, P_FILESZ, P_MEMSZ = 8, 16, 32, 40


def real_bytes(name: str) -> bytearray:
    """A real image, to be altered."""
    return bytearray(real_image(name).read_bytes())


def section_header(image: Image, name: str) -> int:
    """File offset of the header of a section."""
    section = image.section(name)
    assert section is not None
    return image.header.shoff + 64 * section.index


def stripped(name: str, path: Path, *, keep_frames: bool = True) -> Image:
    """A copy of a real image without symbols: what objcopy --strip-all leaves, as far as a reader can tell."""
    image, data = open_image(real_image(name)), real_bytes(name)
    struct.pack_into("<I", data, section_header(image, ".symtab") + SH_TYPE, 1)
    if not keep_frames:
        section = image.section(".eh_frame")
        assert section is not None
        data[section.offset : section.offset + section.size] = bytes(section.size)
    path.write_bytes(data)
    return open_image(path)


def functions_of(image: Image, symbols: Symbols | None = None) -> Functions:
    """The functions of an image, decoded by the machine's own dissector."""
    sweep = dissector(image.facts).dissect
    return find_functions(image, sweep=sweep, uses_of=uses_of(image.facts), symbols=symbols)


def symbol_table(rows: Mapping[str, tuple[int, int, int, int]]) -> Symbols:
    """Symbols by name: (address, size, STT_, STB_). A name may carry a suffix behind # to tell namesakes apart."""
    strings, names = bytearray(b"\0"), []
    for name in rows:
        names.append(len(strings))
        strings += name.split("#")[0].encode() + b"\0"
    columns = np.array(list(rows.values()), np.uint64).reshape(-1, 4)
    return Symbols(
        columns[:, 0],
        columns[:, 1],
        columns[:, 2].astype(np.uint8),
        columns[:, 3].astype(np.uint8),
        np.ones(len(names), np.uint16),
        np.array(names, np.uint64),
        bytes(strings),
    )

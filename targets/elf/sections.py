"""What an ELF file is made of, as values: segments, sections and regions of code."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Segment:
    """A row of the program header table. `kind` is p_type, `flags` p_flags, `load_address` p_paddr."""

    index: int
    kind: int
    flags: int
    offset: int
    address: int
    load_address: int
    file_size: int
    size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Section:
    """A row of the section header table. `kind` is sh_type.

    The sections of an ET_REL file have no addresses yet; theirs is the file offset here (those without bytes in the
    file follow its end), so that a module's symbols, functions and bytes have one address each, as in a linked image.
    """

    index: int
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class CodeRegion:
    """Machine code in the file: link address, file offset and size."""

    address: int
    offset: int
    size: int


def content(data: NDArray[np.uint8], section: Section) -> NDArray[np.uint8]:
    """The bytes of a section, of the mapped file."""
    return data[section.offset : section.offset + section.size]

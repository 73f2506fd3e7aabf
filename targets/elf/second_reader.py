"""The tables of an ELF file as we read them -> whether LIEF reads the same. The one file that knows LIEF.

A file that two readers understand in different ways has no reliable meaning: such an image is refused, and such a file
of ours is not kept. LIEF is given an outline, which takes a millisecond, and is imported when the first file is opened,
which takes 0.4 s.
"""

import signal
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import Tables
from kinst.targets.elf.outline import Outline, outline
from kinst.targets.elf.sections import section_names
from kinst.targets.errors import ImageError
from kinst.targets.signals import caught
from kinst.targets.visible import text_of, visible

if TYPE_CHECKING:
    import lief

# Our column: LIEF's name for it. Without the types, of which LIEF warns if it does not know one, and the flags of a
# segment, of which it keeps three bits.
_SEGMENT: Final = {
    "offset": "file_offset", "address": "virtual_address", "load_address": "physical_address", "size": "virtual_size",
    "alignment": "alignment",
}  # fmt: skip
_SECTION: Final = {
    "flags": "flags", "address": "virtual_address", "offset": "file_offset", "size": "size", "link": "link",
    "info": "information", "entry_size": "entry_size", "alignment": "alignment",
}  # fmt: skip
Note = tuple[int, bytes]  # type and description; LIEF fails on an owner that is no UTF-8, as that of gnumach-xen's


def read_again(data: NDArray[np.uint8], tables: Tables, *, notes_end: int | None = None) -> tuple[Note, ...]:
    """Let LIEF read a file whose headers are `tables`; the notes that it finds, those before `notes_end` if given.

    Raises:
        ImageError: LIEF cannot read it or sees something else, without the file's name.
    """
    small = outline(data, tables, notes_end)
    binary = _parse(small)
    if (entry := binary.header.entrypoint) != tables.header.entry:
        raise ImageError(f"damaged: its entry is {tables.header.entry:#x}, and {entry:#x} to LIEF")
    _compare("segment", binary.segments, small.tables.segments, _SEGMENT)
    _compare("section", binary.sections, small.tables.sections, _SECTION)
    if tables.header.shstrndx:
        _compare_names(binary.sections, section_names(data, tables.header, tables.sections))
    return tuple((note.original_type, bytes(note.description)) for note in binary.notes)


def _parse(small: Outline) -> "lief.ELF.Binary":
    """LIEF's model of an outline, without what has no content there: relocations, symbols."""
    # LIEF 1.0 makes Python's enums while it is imported, and nanobind, on which its bindings stand, aborts the process
    # if an exception comes out of that: Ctrl-C waits.
    interrupts: list[int] = []
    with caught(interrupts.append, signal.SIGINT):
        import lief  # here, since it takes 0.4 s
    if interrupts:
        signal.raise_signal(signal.SIGINT)

    lief.logging.disable()  # a hostile file makes it write to stderr; our own errors say what is wrong
    config = lief.ELF.ParserConfig()
    config.parse_relocations = config.parse_symtab_symbols = config.parse_dyn_symbols = False
    config.parse_symbol_versions = config.parse_overlay = False
    binary = lief.ELF.parse(small.data, config)
    if binary is None:
        raise ImageError("damaged: LIEF cannot read it")
    segments, sections = len(small.tables.segments), len(small.tables.sections)
    if (segments and len(binary.segments) != segments) or len(binary.sections) != sections:
        raise ImageError(
            f"damaged: of {segments} segments and {sections} sections LIEF reads "
            f"{len(binary.segments)} and {len(binary.sections)}"
        )
    return binary


def _compare(what: str, found: Iterable[object], rows: NDArray[np.void], fields: dict[str, str]) -> None:
    """Raise ImageError for the first field in which LIEF differs from the table."""
    read, expected = attrgetter(*fields.values()), zip(*(rows[field].tolist() for field in fields), strict=True)
    for index, (row, values) in enumerate(zip(found, expected, strict=True)):
        if (seen := read(row)) != values:
            field, ours, other = next(pair for pair in zip(fields, values, seen, strict=True) if pair[1] != pair[2])
            raise ImageError(f"damaged: the {field} of {what} {index} is {ours:#x}, and {other:#x} to LIEF")


def _compare_names(sections: Iterable["lief.ELF.Section"], names: list[str]) -> None:
    for index, (section, ours) in enumerate(zip(sections, names, strict=True)):
        name = section.name  # bytes if they are no UTF-8
        other = text_of(name) if isinstance(name, bytes) else visible(name)
        if other != ours:
            raise ImageError(f"damaged: section {index} is called {ours}, and {other} by LIEF")

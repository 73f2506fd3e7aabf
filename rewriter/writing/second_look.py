"""A file that was just written, before it gets its name -> an error if it is not the one that was planned.

It is read back from disk like any image, by our own code and by LIEF, which knows nothing of how it was made. Entry,
segments, sections and notes must be the original's, and additions must be where the plan has them: a misplaced byte is
found here, and not by a kernel that does not boot.
"""

from io import BufferedRandom

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.planning.layout import (
    DATA_SECTION,
    NAMES_SECTION,
    NOTE_SECTION,
    PT_PHDR,
    RELOCATIONS_SECTION,
    SPARE,
    Layout,
    Piece,
)
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.planning.slots import CHUNK
from kinst.targets.elf.file import map_descriptor
from kinst.targets.elf.header import PF_R, PF_W, PF_X, PT_LOAD, SHT_SYMTAB, FileKind, Tables, read_tables
from kinst.targets.elf.second_reader import read_again
from kinst.targets.elf.sections import section_names
from kinst.targets.errors import ImageError, KinstError
from kinst.targets.manifest.packed import SECTION, TEXT_SECTION


class DefectError(KinstError):
    """What was written is not what was planned, and is not kept. This is always a defect of the tool."""


def check_written(plan: Plan, layout: Layout, file: BufferedRandom) -> None:
    """Check a patched image that is written and has no name yet.

    Raises:
        DefectError: it is not what was planned.
    """
    file.flush()
    data, original = map_descriptor(file.fileno(), plan.image.path), plan.original.data
    try:
        before, after = read_tables(original), read_tables(data)
        if read_again(data, after, notes_end=len(original)) != read_again(original, before):
            raise ImageError("it has other notes")
        pieces = {piece.what: piece for piece in layout.appended}
        _check_header(before, after)
        _check_segments(before.segments, after.segments, plan, pieces)
        _check_old_sections(before.sections, after.sections, pieces)
        _check_names(section_names(original, before.header, before.sections), data, after, plan, pieces)
    except ImageError as error:
        raise DefectError(
            f"{plan.image.path}: the patched image is not as planned and was not kept: {error}: this is a bug of "
            "kinst-rewrite, please report it"
        ) from None


def _check_header(before: Tables, after: Tables) -> None:
    for field in ("kind", "machine", "entry", "flags"):
        was, now = getattr(before.header, field), getattr(after.header, field)
        if was != now:
            raise ImageError(f"the {field} in its ELF header is {now:#x}, planned {was:#x}")


def _check_segments(before: NDArray[np.void], after: NDArray[np.void], plan: Plan, pieces: dict[str, Piece]) -> None:
    """Check the segments: the original's in their order and one more; one spare entry less if the table did not move.

    Patches alone need no segment, and a module has none.
    """
    if not plan.placement.size or plan.image.kind is FileKind.REL:
        if before.tolist() != after.tolist():
            raise ImageError("its segments are not those of the original")
        return
    place, table = plan.placement, pieces.get("program headers")
    parts = [pieces[what].size for what in ("trampolines", "data", "program headers") if what in pieces]
    offset, size, flags = pieces["trampolines"].offset, sum(parts), PF_R | PF_X | (PF_W if "data" in pieces else 0)
    new = (PT_LOAD, flags, offset, place.address, place.load_address, size, size, CHUNK)
    found, kept = after.tolist(), before.tolist()
    if found.count(new) != 1:
        raise ImageError(f"no segment of {size:#x} bytes, planned at {place.address:#x}, file offset {offset:#x}")
    at = found.index(new)
    if table is None:
        if kept[at][0] not in SPARE:
            raise ImageError(f"segment {at} of the original is gone")
        kept[at] = new
    else:  # PT_PHDR says where the table is now
        kept.insert(at, new)
        kept, found = ([row for row in rows if row[0] != PT_PHDR] for rows in (kept, found))
    if kept != found:
        raise ImageError("its segments are not those of the original and one more")


def _check_old_sections(before: NDArray[np.void], after: NDArray[np.void], pieces: dict[str, Piece]) -> None:
    """Check that old sections are unchanged, except the tables of symbols and of their names if they were extended."""
    planned = before.copy()
    symbols = np.flatnonzero(before["kind"] == SHT_SYMTAB)
    if "symbols" in pieces and len(symbols):
        for row, what in ((symbols[0], "symbols"), (before["link"][symbols[0]], "symbol names")):
            planned["offset"][row], planned["size"][row] = pieces[what].offset, pieces[what].size
    if planned.tolist() != after[: len(before)].tolist():
        raise ImageError("its sections are not those of the original and some more")


def _check_names(
    names: list[str], data: NDArray[np.uint8], after: Tables, plan: Plan, pieces: dict[str, Piece]
) -> None:
    """Sections that were there are called as before, if they had names; and the new ones are where they should be."""
    found = section_names(data, after.header, after.sections)
    if any(names) and found[: len(names)] != names:
        raise ImageError("its sections are not called as those of the original")
    wanted = {
        TEXT_SECTION: "trampolines",
        DATA_SECTION: "data",
        SECTION: "manifest",
        RELOCATIONS_SECTION: "relocations",
        NOTE_SECTION: "note",
        NAMES_SECTION: "section names",
    }
    start = 0 if plan.image.kind is FileKind.REL else plan.placement.address
    addresses = {TEXT_SECTION: start, DATA_SECTION: start + len(plan.trampolines)}
    for name, what in wanted.items():
        rows = after.sections[[one == name for one in found]]
        if what not in pieces:
            if len(rows):
                raise ImageError(f"a section {name}, and none was planned")
            continue
        address = addresses.get(name, 0)
        planned = (address, pieces[what].offset, pieces[what].size)
        if [planned] != rows[["address", "offset", "size"]].tolist():
            raise ImageError(f"no section {name} of {planned[2]:#x} bytes, planned at {planned[0]:#x}")

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
    DEBUG_FRAMES,
    FRAMES_SECTION,
    NAMES_SECTION,
    NOTE_SECTION,
    RELOCATIONS_SECTION,
    Layout,
    Piece,
)
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.planning.program_headers import DATA, PT_PHDR, SPARE, TEXT, is_for_unwinders, page_of
from kinst.rewriter.planning.slots import CHUNK
from kinst.targets.elf.file import map_descriptor
from kinst.targets.elf.header import PT_GNU_EH_FRAME, PT_LOAD, SHT_SYMTAB, FileKind, Tables, read_tables
from kinst.targets.elf.second_reader import read_again
from kinst.targets.elf.sections import section_names
from kinst.targets.errors import ImageError, KinstError
from kinst.targets.manifest.packed import SECTION, TEXT_SECTION

_NEW_SEGMENTS = {"trampolines": TEXT, "data": DATA}


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
        _check_segments(before.segments, after.segments, plan, layout)
        _check_old_sections(original, before, after, pieces)
        _check_names(section_names(original, before.header, before.sections), data, after, plan, layout, pieces)
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


def _check_segments(before: NDArray[np.void], after: NDArray[np.void], plan: Plan, layout: Layout) -> None:
    """Check the segments: the original's in their order and the new ones; fewer spare entries if the table did not
    move.

    Patches alone need no segment, and a module has none.
    """
    if not plan.placement.size or plan.image.kind is FileKind.REL:
        if before.tolist() != after.tolist():
            raise ImageError("its segments are not those of the original")
        return
    found, pieces = after.tolist(), {piece.what: piece for piece in layout.appended}
    kept = _with_new(before.tolist(), found, _new_segments(plan, layout, pieces), is_moved="program headers" in pieces)
    _check_frames(after, pieces)
    if "program headers" in pieces:  # PT_PHDR says where the table is now, PT_GNU_EH_FRAME where that of frames is
        moved = (PT_PHDR, PT_GNU_EH_FRAME) if "call frame table" in pieces else (PT_PHDR,)
        kept, found = ([row for row in rows if row[0] not in moved] for rows in (kept, found))
    if kept != found:
        raise ImageError("its segments are not those of the original and one more, or as many as were planned")


def _with_new(
    kept: list[tuple[int, ...]], found: list[tuple[int, ...]], new: list[tuple[int, ...]], *, is_moved: bool
) -> list[tuple[int, ...]]:
    """The original's segments with the new ones, where the file has them: each in a spare entry, or inserted."""
    for one in new:
        if found.count(one) != 1:
            raise ImageError(f"no segment of {one[5]:#x} bytes, planned at {one[3]:#x}, file offset {one[2]:#x}")
        at = found.index(one)
        if is_moved:
            kept.insert(at, one)
        elif kept[at][0] in SPARE:
            kept[at] = one
        else:
            raise ImageError(f"segment {at} of the original is gone")
    return kept


def _check_frames(after: NDArray[np.void], pieces: dict[str, Piece]) -> None:
    """Check that unwinders find the table of call frames, if there is a new one."""
    if "call frame table" not in pieces:
        return
    table, rows = pieces["call frame table"], after[after["kind"] == PT_GNU_EH_FRAME]
    if rows[["offset", "file_size"]].tolist() != [(table.offset, table.size)]:
        raise ImageError(f"no program header of the table of call frames, planned at file offset {table.offset:#x}")


def _new_segments(plan: Plan, layout: Layout, pieces: dict[str, Piece]) -> list[tuple[int, ...]]:
    """The rows of the segments that were planned, in address order: the first is the trampolines', the next the data's,
    none of which is written to and executed."""
    place, page = plan.placement, page_of(plan.original) if is_for_unwinders(plan) else CHUNK
    parts = [(pieces[what].offset, flags) for what, flags in _NEW_SEGMENTS.items() if what in pieces]
    starts = [(one.offset, one.flags) for one in layout.segments]
    first = layout.segments[0]
    if starts[: len(parts)] != parts or (first.address, first.load_address) != (place.address, place.load_address):
        raise ImageError("its trampolines or its data are not at the beginning of their segments")
    rows = [(one.flags, one.offset, one.address, one.load_address, one.size, one.size) for one in layout.segments]
    return sorted(((PT_LOAD, *row, page) for row in rows), key=lambda row: row[3])


def _check_old_sections(original: NDArray[np.uint8], tables: Tables, after: Tables, pieces: dict[str, Piece]) -> None:
    """Check that old sections are unchanged, except the tables of symbols, of their names and of call frames that were
    extended."""
    before, header = tables.sections, tables.header
    planned, names = before.copy(), section_names(original, header, before)
    if "debug frames" in pieces and DEBUG_FRAMES in names:
        row, piece = names.index(DEBUG_FRAMES), pieces["debug frames"]
        planned["offset"][row], planned["size"][row] = piece.offset, piece.size
    symbols = np.flatnonzero(before["kind"] == SHT_SYMTAB)
    if "symbols" in pieces and len(symbols):
        for row, what in ((symbols[0], "symbols"), (before["link"][symbols[0]], "symbol names")):
            planned["offset"][row], planned["size"][row] = pieces[what].offset, pieces[what].size
    if planned.tolist() != after.sections[: len(before)].tolist():
        raise ImageError("its sections are not those of the original and some more")


def _check_names(
    names: list[str], data: NDArray[np.uint8], after: Tables, plan: Plan, layout: Layout, pieces: dict[str, Piece]
) -> None:
    """Sections that were there are called as before, if they had names; and the new ones are where they should be."""
    found = section_names(data, after.header, after.sections)
    if any(names) and found[: len(names)] != names:
        raise ImageError("its sections are not called as those of the original")
    wanted = {
        TEXT_SECTION: "trampolines",
        FRAMES_SECTION: "call frames",
        DATA_SECTION: "data",
        SECTION: "manifest",
        RELOCATIONS_SECTION: "relocations",
        NOTE_SECTION: "note",
        NAMES_SECTION: "section names",
    }
    start = 0 if plan.image.kind is FileKind.REL else plan.placement.address
    addresses = {TEXT_SECTION: start, DATA_SECTION: start + len(plan.trampolines)}
    if "call frames" in pieces:
        addresses[FRAMES_SECTION] = layout.segments[-1].address
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

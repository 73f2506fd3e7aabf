"""A plan -> which header bytes change, and what is appended after the end of the original file.

The appended part, each piece aligned:

    call frames, table     .kinst.eh_frame of a standalone program, and the sorted table that PT_GNU_EH_FRAME leads to
    program headers        of a standalone program here, after these, in a PT_LOAD that is only read; of others after
                           the data, where no spare entry was found
    trampolines            a multiple of a page; the new PT_LOAD
    data                   .kinst.data of a standalone image, in a PT_LOAD of its own
    manifest               .kinst.manifest
    debug frames           .debug_frame of a standalone image: of one that had some, an extended copy
    note                   .note.kinst, of a standalone image
    relocations            .rela.kinst.text of a module, which has no program headers: a section like others
    section names          .kinst.shstrtab: begins with the original's bytes, so that .shstrtab itself never moves
    symbols and names      only with --trampoline-symbols: copies of .symtab and .strtab, extended
    section headers        the original rows, then the new ones

Nothing before the original end moves. LIEF's builder is not used: it moves headers and .bss (docs/facts/lief.md).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.registry import dissector
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.planning.program_headers import (
    DATA,
    TEXT,
    UNWINDING,
    Added,
    is_for_unwinders,
    is_loaded_behind,
    is_moved,
    moved_table,
    page_of,
    place_for_headers,
    table_size,
    taken,
)
from kinst.rewriter.planning.slots import CHUNK
from kinst.rewriter.relocations import References, blanked, rows_of
from kinst.targets.elf.header import (
    ELF_HEADER,
    SECTION_HEADER,
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHF_EXCLUDE,
    SHF_EXECINSTR,
    SHF_INFO_LINK,
    SHF_WRITE,
    SHN_LORESERVE,
    SHT_NOTE,
    SHT_PROGBITS,
    SHT_RELA,
    SHT_STRTAB,
    SHT_SYMTAB,
    FileKind,
    read_elf_header,
    read_section_headers,
)
from kinst.targets.elf.relocations import RELA
from kinst.targets.elf.symbols import STT_FUNC, SYMBOL
from kinst.targets.errors import ImageError
from kinst.targets.manifest.packed import SECTION, TEXT_SECTION, Manifest, manifest_parts
from kinst.targets.standalone import note_of
from kinst.targets.values import dataclass

NAMES_SECTION: Final = ".kinst.shstrtab"
FRAMES_SECTION: Final = ".kinst.eh_frame"
DEBUG_FRAMES: Final = ".debug_frame"
DATA_SECTION: Final = ".kinst.data"  # counters or a ring
NOTE_SECTION: Final = ".note.kinst"
RELOCATIONS_SECTION: Final = f".rela{TEXT_SECTION}"
_MOST_NAMES: Final = 1 << 20  # bytes by which names may lie after their table, if there is one
_STB_GLOBAL_FUNC: Final = 1 << 4 | STT_FUNC


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that belong together: a description, their file offset, and the bytes, in parts."""

    what: str
    offset: int
    parts: tuple[memoryview, ...]

    @property
    def size(self) -> int:
        """Bytes of all parts together."""
        return sum(len(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Layout:
    """What the patched file has besides the original's bytes and the patches at its sites."""

    manifest: Manifest
    changes: tuple[Piece, ...]  # header bytes changed in place
    appended: tuple[Piece, ...]  # in file order, with zeros between them
    segments: tuple[Added, ...] = ()  # of trampolines, of data, and of what unwinders look for


class _Tail:
    """The pieces after the original end, in order."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.pieces: list[Piece] = []

    def add_at(self, what: str, address: int, page: int, *parts: memoryview) -> tuple[int, int]:
        """Append at the next offset that is congruent to an address modulo a page."""
        self.end += (address - self.end) % page
        return self.add(what, 1, *parts)

    def add(self, what: str, alignment: int, *parts: memoryview) -> tuple[int, int]:
        """Append at the next multiple of `alignment`. Returns the file offset and the size."""
        piece = Piece(what, self.end + -self.end % alignment, parts)
        self.pieces.append(piece)
        self.end = piece.offset + piece.size
        return piece.offset, piece.size


def lay_out(
    plan: Plan, original_sha256: str, *, trampoline_symbols: bool = False, like: memoryview | None = None
) -> Layout:
    """Decide every byte outside the sites. `like` is the manifest as a file has it: see `manifest_parts`."""
    data = plan.original.data
    tail = _Tail(len(data))
    parts, headers, entries = _trampolines(plan, tail)
    restore = [(0, data[: ELF_HEADER.size].tobytes())]
    restore += [(piece.offset, data[piece.offset : piece.offset + piece.size].tobytes()) for piece in entries]
    manifest = replace(plan.manifest, original_sha256=original_sha256, restore=tuple(restore))
    packed = manifest_parts(manifest, like)
    sections = _sections(plan, tail, parts, packed, trampoline_symbols=trampoline_symbols)
    header = Piece("ELF header", 0, (memoryview(_elf_header(data, headers, sections)),))
    return Layout(manifest, (header, *entries), tuple(tail.pieces), parts.segments)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The segments that are added, those of trampolines and data first; the trampolines' file offset, of a module,
    too; and address, file offset and size of the call frames that are loaded, 0 where there are none."""

    segments: tuple[Added, ...] = ()
    text: int = 0
    frames: tuple[int, int, int] = (0, 0, 0)


def _trampolines(plan: Plan, tail: _Tail) -> tuple[_Parts, tuple[int, int], tuple[Piece, ...]]:
    """Where the new parts are, then (e_phoff, e_phnum), and the entries that are rewritten in place, if some were
    spare. Without trampolines the loader sees nothing new."""
    header = read_elf_header(plan.original.data)
    if not plan.placement.size:
        return _Parts(), (header.phoff, header.phnum), ()
    if plan.image.kind is FileKind.REL:
        # Fields of references must be 0 in the file: see `kinst.rewriter.relocations`.
        code = blanked(plan.trampolines, plan.placement.address, _references(plan))
        return _Parts(text=tail.add("trampolines", CHUNK, code.data)[0]), (header.phoff, header.phnum), ()
    if is_for_unwinders(plan):
        return _with_unwinding(plan, tail)
    added = _code_and_data(plan, tail, CHUNK)
    if is_moved(plan, len(added)):
        return _moved_behind(plan, tail, added)
    entries = taken(plan, added)
    pieces = (Piece(f"program header {at}", place, (memoryview(row),)) for at, place, row in entries)
    return _Parts(tuple(added), added[0].offset), (header.phoff, header.phnum), tuple(pieces)


def _code_and_data(plan: Plan, tail: _Tail, page: int) -> list[Added]:
    place, size = plan.placement, len(plan.trampolines)
    offset, _ = tail.add_at("trampolines", place.address, page, plan.trampolines.data)
    added = [Added(TEXT, offset, place.address, place.load_address, size, page)]
    if plan.data_size:
        offset, _ = tail.add_at("data", place.address + size, page, memoryview(bytes(plan.data_size)))
        added.append(Added(DATA, offset, place.address + size, place.load_address + size, plan.data_size, page))
    return added


def _moved_behind(plan: Plan, tail: _Tail, added: Sequence[Added]) -> tuple[_Parts, tuple[int, int], tuple[Piece, ...]]:
    """A table that follows the trampolines, or the data, in their segment, so that PT_PHDR, which must lie in a loaded
    one, stays true. Without that entry it is not loaded if something else is there, as after a gap of an image."""
    last, size = added[-1], table_size(plan, len(added))
    place = None
    if is_loaded_behind(plan, last, size):
        end = last.address + last.size, last.load_address + last.size
        place, added = (last.offset + last.size, *end), [*added[:-1], replace(last, size=last.size + size)]
    moved = moved_table(plan, added, place, None)
    phoff, _ = tail.add("program headers", 8, memoryview(moved.tobytes()))
    return _Parts(tuple(added), added[0].offset), (phoff, len(moved)), ()


def _with_unwinding(plan: Plan, tail: _Tail) -> tuple[_Parts, tuple[int, int], tuple[Piece, ...]]:
    """Trampolines, data, and the segment with what unwinders look for and the program headers: in front of them or
    behind, as in memory."""
    page, count = page_of(plan.original), 3 if plan.data_size else 2
    used = 0 if plan.frames is None else plan.frames.loaded_size
    used += -used % 8  # the alignment of the program headers
    size = used + table_size(plan, count)
    address, offset = place_for_headers(plan, size, tail.end)
    load_address = address - plan.placement.address + plan.placement.load_address
    own = Added(UNWINDING, offset, address, load_address, size, page)
    after = _Tail(offset + size)
    is_behind = address >= plan.placement.end
    added = [*_code_and_data(plan, tail if is_behind else after, page), own]
    tail.end = offset
    records, frames = _add_frames(plan, tail, own)
    moved = moved_table(plan, added, (offset + used, address + used, load_address + used), frames)
    phoff, _ = tail.add("program headers", 8, memoryview(moved.tobytes()))
    if not is_behind:
        tail.pieces += after.pieces
        tail.end = after.end
    return _Parts(tuple(added), added[0].offset, (address, offset, records)), (phoff, len(moved)), ()


def _add_frames(plan: Plan, tail: _Tail, own: Added) -> tuple[int, tuple[int, int, int, int] | None]:
    """The call frames at the beginning of their segment. Returns the bytes of the records, and of the table its file
    offset, address, load address and size."""
    if plan.frames is None or not plan.frames.is_loaded:
        return 0, None
    loaded = plan.frames.loaded(own.address)
    tail.add("call frames", 4, memoryview(loaded.records))
    offset, size = tail.add("call frame table", 4, memoryview(loaded.table))
    distance = offset - own.offset
    return len(loaded.records), (offset, own.address + distance, own.load_address + distance, size)


@dataclass(frozen=True, slots=True)
class _SectionTable:
    offset: int
    count: int
    names_index: int


def _sections(
    plan: Plan, tail: _Tail, parts: _Parts, packed: Sequence[memoryview], *, trampoline_symbols: bool
) -> _SectionTable:
    data = plan.original.data
    header = read_elf_header(data)
    rows = read_section_headers(data, header).copy()
    if not len(rows):
        rows = np.zeros(1, SECTION_HEADER)  # row 0 is reserved; an image without sections has not even that
    named, used = _bytes_of(data, rows, header.shstrndx), int(rows["name"].max()) + 1
    if used > len(named) + _MOST_NAMES:
        raise ImageError(f"{plan.image.path}: damaged: a section's name is at {used - 1:#x}, where no names are")
    names = _Names(named, used)
    text_index = len(rows)
    new = _code_sections(plan, tail, rows, names, parts) if plan.placement.size else []
    new += _debug_frames(plan, tail, rows, names)
    manifest = plan.manifest
    if manifest.standalone is not None:
        note = memoryview(note_of(manifest.standalone, len(manifest.sites), manifest.forms))
        new.append(_section(names.add(NOTE_SECTION), SHT_NOTE, *tail.add("note", 4, note), 4))
    new.append(_section(names.add(SECTION), SHT_PROGBITS, *tail.add("manifest", 8, *packed), 8))
    if plan.image.kind is FileKind.REL:
        new[-1]["flags"] = SHF_EXCLUDE  # nothing of it concerns what a linker makes of the module
    # A new .symtab links to its .strtab by index, so both come when all others but the names are there.
    if trampoline_symbols and plan.placement.size:
        new += _symbol_tables(plan, tail, rows, names, text_index, text_index + len(new))
    index = len(rows) + len(new)
    name = names.add(NAMES_SECTION)
    new.append(_section(name, SHT_STRTAB, *tail.add("section names", 1, memoryview(names.data)), 1))
    table = np.concatenate([rows, np.array(new)])
    # SHN_LORESERVE and more would need extended numbering, which LIEF does not read.
    if len(table) >= SHN_LORESERVE:
        raise ImageError(f"{plan.image.path}: {len(rows)} sections leave no room for {len(new)} more")
    offset, _ = tail.add("section headers", 8, memoryview(table.tobytes()))
    return _SectionTable(offset, len(table), index)


def _code_sections(
    plan: Plan, tail: _Tail, rows: NDArray[np.void], names: "_Names", parts: _Parts
) -> list[NDArray[np.void]]:
    new = [_text_section(plan, names, parts.text)]
    if plan.image.kind is FileKind.REL:
        new += _relocations(plan, tail, rows, names)
    address, offset, size = parts.frames
    if size:
        new.append(_section(names.add(FRAMES_SECTION), SHT_PROGBITS, offset, size, 4))
        new[-1]["address"], new[-1]["flags"] = address, SHF_ALLOC
    if plan.data_size:
        new.append(_data_section(plan, names, parts.segments[1].offset))
    return new


def _debug_frames(plan: Plan, tail: _Tail, rows: NDArray[np.void], names: "_Names") -> Sequence[NDArray[np.void]]:
    """The call frames for debuggers, which look at no other section than this, and at one of that name: if there is one
    `rows` then points to an extended copy, unless it is compressed."""
    if plan.frames is None:
        return []
    old = plan.original.section(DEBUG_FRAMES)
    if old is None:
        code = memoryview(plan.frames.debug(0))
        return [_section(names.add(DEBUG_FRAMES), SHT_PROGBITS, *tail.add("debug frames", 8, code), 8)]
    if old.flags & SHF_COMPRESSED:
        return []
    content = _bytes_of(plan.original.data, rows, old.index)
    content += bytes(-len(content) % 8)
    parts = memoryview(content), memoryview(plan.frames.debug(len(content)))
    rows["offset"][old.index], rows["size"][old.index] = tail.add("debug frames", 8, *parts)
    return []


def _text_section(plan: Plan, names: "_Names", offset: int) -> NDArray[np.void]:
    row = _section(names.add(TEXT_SECTION), SHT_PROGBITS, offset, len(plan.trampolines), CHUNK)
    row["flags"] = SHF_ALLOC | SHF_EXECINSTR
    if plan.image.kind is not FileKind.REL:
        row["address"] = plan.placement.address
    return row


def _references(plan: Plan) -> References:
    """What a module's trampolines refer to."""
    return dissector(plan.image.facts).references(plan.manifest.sites)


def _relocations(plan: Plan, tail: _Tail, rows: NDArray[np.void], names: "_Names") -> Sequence[NDArray[np.void]]:
    """The relocations of a module's trampolines, if they refer to anything."""
    found = _references(plan)
    if not len(found):
        return []
    table = rows_of(plan.original, plan.placement.address, found)
    places = tail.add("relocations", 8, memoryview(table.tobytes()))
    row = _section(names.add(RELOCATIONS_SECTION), SHT_RELA, *places, 8)
    row["flags"], row["entry_size"] = SHF_INFO_LINK, RELA.itemsize
    row["link"], row["info"] = np.flatnonzero(rows["kind"] == SHT_SYMTAB)[0], len(rows)
    return [row]


def _data_section(plan: Plan, names: "_Names", offset: int) -> NDArray[np.void]:
    row = _section(names.add(DATA_SECTION), SHT_PROGBITS, offset, plan.data_size, CHUNK)
    row["address"], row["flags"] = plan.placement.address + len(plan.trampolines), SHF_ALLOC | SHF_WRITE
    return row


class _Names:
    """A string table that begins with the original's bytes: the original's offsets into it stay valid."""

    def __init__(self, original: bytes, used: int) -> None:
        """`used`: up to where names of the original point, though there is no table, or one that ends earlier."""
        self.data = (original or b"\0").ljust(used, b"\0")
        if self.data[-1]:
            self.data += b"\0"

    def add(self, name: str) -> int:
        """Append a name. Returns its offset."""
        offset = len(self.data)
        self.data += name.encode() + b"\0"
        return offset


def _section(name: int, kind: int, offset: int, size: int, alignment: int) -> NDArray[np.void]:
    row = np.zeros((), SECTION_HEADER)
    row["name"], row["kind"], row["offset"], row["size"], row["alignment"] = name, kind, offset, size, alignment
    return row


def _bytes_of(data: NDArray[np.uint8], rows: NDArray[np.void], index: int) -> bytes:
    """The content of a section; empty if there is none with that number."""
    if not 0 < index < len(rows):
        return b""
    start, size = int(rows["offset"][index]), int(rows["size"][index])
    return data[start : start + size].tobytes()


def _symbol_tables(
    plan: Plan, tail: _Tail, rows: NDArray[np.void], names: _Names, text_index: int, index: int
) -> Sequence[NDArray[np.void]]:
    """Extended copies of .symtab and .strtab, at which `rows` then points; or new rows, from `index` on, if the image
    has none.

    The new symbols are global: local ones must come before all globals (sh_info), and the originals keep their indexes.
    """
    found = np.flatnonzero(rows["kind"] == SHT_SYMTAB)
    table = int(found[0]) if len(found) else 0
    strings = int(rows["link"][table]) if table else 0
    old = _bytes_of(plan.original.data, rows, table) or bytes(SYMBOL.itemsize)
    symbols, text = trampoline_symbols_of(plan, text_index, _bytes_of(plan.original.data, rows, strings) or b"\0")
    places = tail.add("symbols", 8, memoryview(old), memoryview(symbols.tobytes()))
    string_places = tail.add("symbol names", 1, memoryview(text))
    if table:
        rows["offset"][table], rows["size"][table] = places
        rows["offset"][strings], rows["size"][strings] = string_places
        return []
    symtab = _section(names.add(".symtab"), SHT_SYMTAB, *places, 8)
    # .strtab comes right after it
    symtab["link"], symtab["info"], symtab["entry_size"] = index + 1, 1, SYMBOL.itemsize
    return [symtab, _section(names.add(".strtab"), SHT_STRTAB, *string_places, 1)]


def trampoline_symbols_of(plan: Plan, section: int, strings: bytes) -> tuple[NDArray[np.void], bytes]:
    """Symbols `kinst$<function>+<offset>`, one a trampoline, and the string table with their names."""
    manifest, facts = plan.manifest, plan.image.facts
    sites = manifest.sites
    starts = manifest.functions["address"][sites["function"]]
    names = [manifest.function_name(row) for row in range(len(manifest.functions))]
    offsets = (sites["address"] - starts).tolist()
    functions = sites["function"].tolist()
    encoded = [f"kinst${names[row]}+{offset}\0".encode() for row, offset in zip(functions, offsets, strict=True)]
    symbols = np.zeros(len(sites), SYMBOL)
    lengths = np.fromiter(map(len, encoded), np.uint64, len(encoded))
    symbols["name"] = len(strings) + np.cumsum(lengths) - lengths
    symbols["info"], symbols["section"] = _STB_GLOBAL_FUNC, section
    slots = sites["trampoline"]
    symbols["value"] = slots
    symbols["size"] = np.minimum(np.append(slots[1:], np.uint64(plan.placement.end)) - slots, facts.longest_trampoline)
    # st_value of an ET_REL file is an offset into its section.
    if plan.image.kind is FileKind.REL:
        symbols["value"] -= np.uint64(plan.placement.address)
    return symbols, strings + b"".join(encoded)


def _elf_header(data: NDArray[np.uint8], program_headers: tuple[int, int], sections: _SectionTable) -> bytes:
    """The ELF header with new e_phoff, e_phnum and section table; all else stays."""
    fields = list(ELF_HEADER.unpack(data[: ELF_HEADER.size].tobytes()))
    # By position in ELF_HEADER: phoff 5, shoff 6, phnum 10, shentsize 11, shnum 12, shstrndx 13.
    fields[5], fields[10] = program_headers
    fields[6], fields[12], fields[13] = sections.offset, sections.count, sections.names_index
    fields[11] = SECTION_HEADER.itemsize  # 0 if there was no table
    return ELF_HEADER.pack(*fields)

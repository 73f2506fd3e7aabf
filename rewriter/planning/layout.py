"""A plan -> which header bytes change, and what is appended after the end of the original file.

The appended part, each piece aligned:

    trampolines            a multiple of a page; the new PT_LOAD
    data                   in it, after them: .kinst.data of a standalone image
    program headers        only where no spare entry was found and the table had to move
    manifest               .kinst.manifest
    note                   .note.kinst, of a standalone image
    relocations            .rela.kinst.text of a module, which has no program headers: a section like others
    section names          .kinst.shstrtab: begins with the original's bytes, so that .shstrtab itself never moves
    symbols and names      only with --trampoline-symbols: copies of .symtab and .strtab, extended
    section headers        the original rows, then the new ones

Nothing before the original end moves. LIEF's builder is not used: it moves headers and .bss (docs/facts/lief.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.registry import dissector
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.planning.slots import CHUNK
from kinst.rewriter.relocations import References, blanked, rows_of
from kinst.targets.elf.dynamic import is_library
from kinst.targets.elf.header import (
    ELF_HEADER,
    PF_R,
    PF_W,
    PF_X,
    PN_XNUM,
    PROGRAM_HEADER,
    PT_LOAD,
    SECTION_HEADER,
    SHF_ALLOC,
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
    read_program_headers,
    read_section_headers,
)
from kinst.targets.elf.relocations import RELA
from kinst.targets.elf.symbols import STT_FUNC, SYMBOL
from kinst.targets.errors import ImageError
from kinst.targets.manifest.packed import SECTION, TEXT_SECTION, Manifest, manifest_parts
from kinst.targets.standalone import note_of

NAMES_SECTION: Final = ".kinst.shstrtab"
DATA_SECTION: Final = ".kinst.data"  # counters or a ring
NOTE_SECTION: Final = ".note.kinst"
RELOCATIONS_SECTION: Final = f".rela{TEXT_SECTION}"
_MOST_NAMES: Final = 1 << 20  # bytes by which names may lie after their table, if there is one
PT_NULL: Final = 0
PT_PHDR: Final = 6
PT_GNU_STACK: Final = 0x6474E551
_STB_GLOBAL_FUNC: Final = 1 << 4 | STT_FUNC


# Entries that no loader of kernels or firmware reads, the best first. PT_NOTE is not among them: QEMU and Xen find the
# boot protocol by it.
SPARE: Final = (PT_NULL, PT_GNU_STACK)


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


class _Tail:
    """The pieces after the original end, in order."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.pieces: list[Piece] = []

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
    offset, headers, entries = _trampolines(plan, tail)
    restore = [(0, data[: ELF_HEADER.size].tobytes())]
    restore += [(piece.offset, data[piece.offset : piece.offset + piece.size].tobytes()) for piece in entries]
    manifest = replace(plan.manifest, original_sha256=original_sha256, restore=tuple(restore))
    packed = manifest_parts(manifest, like)
    sections = _sections(plan, tail, offset, packed, trampoline_symbols=trampoline_symbols)
    header = Piece("ELF header", 0, (memoryview(_elf_header(data, headers, sections)),))
    return Layout(manifest, (header, *entries), tuple(tail.pieces))


def _trampolines(plan: Plan, tail: _Tail) -> tuple[int, tuple[int, int], tuple[Piece, ...]]:
    """The file offset of the trampolines, then as `_program_headers`. Without trampolines the loader sees nothing
    new."""
    header = read_elf_header(plan.original.data)
    if not plan.placement.size:
        return 0, (header.phoff, header.phnum), ()
    if plan.image.kind is FileKind.REL:
        # Fields of references must be 0 in the file: see `kinst.rewriter.relocations`.
        code = blanked(plan.trampolines, plan.placement.address, _references(plan))
        return tail.add("trampolines", CHUNK, code.data)[0], (header.phoff, header.phnum), ()
    offset, _ = tail.add("trampolines", CHUNK, plan.trampolines.data)
    if plan.data_size:
        tail.add("data", CHUNK, memoryview(bytes(plan.data_size)))
    return offset, *_program_headers(plan, tail, offset)


def _program_headers(plan: Plan, tail: _Tail, offset: int) -> tuple[tuple[int, int], tuple[Piece, ...]]:
    """((e_phoff, e_phnum), the entry that is rewritten in place, if one was spare).

    A moved table follows the trampolines inside the new segment, so that PT_PHDR, which must lie in a loaded segment,
    stays true. There the new entry is sorted among the PT_LOADs by address, as the ELF specification asks; a spare
    entry stays where it is, which QEMU, U-Boot, GRUB and binutils accept.
    """
    data = plan.original.data
    header = read_elf_header(data)
    rows = read_program_headers(data, header).copy()
    at = _spare(plan, rows)
    place = header.phoff + (at or 0) * PROGRAM_HEADER.itemsize
    if at is not None and _is_its_own(plan, place):
        entry = Piece(f"program header {at}", place, (memoryview(_segment(plan, offset, 0).tobytes()),))
        return (header.phoff, header.phnum), (entry,)
    # PN_XNUM and more move the count to section header 0, which few loaders know.
    if header.phnum + 1 >= PN_XNUM:
        raise ImageError(f"{plan.image.path}: {header.phnum} program headers leave no room for one more")
    moved = _extended_table(plan, rows, offset)
    phoff, _ = tail.add("program headers", 8, memoryview(moved.tobytes()))
    return (phoff, len(moved)), ()


def _extended_table(plan: Plan, rows: NDArray[np.void], offset: int) -> NDArray[np.void]:
    """The program headers with the new one, as they stand after the trampolines at file offset `offset`."""
    size = (len(rows) + 1) * PROGRAM_HEADER.itemsize
    new = _segment(plan, offset, size)
    higher = np.flatnonzero((rows["kind"] == PT_LOAD) & (rows["address"] > new["address"]))
    moved = np.insert(rows, int(higher[0]) if len(higher) else _after_last_load(rows), new)
    # Dynamic linkers compute the load bias from PT_PHDR: it must say where the table is now.
    itself = moved["kind"] == PT_PHDR
    moved["offset"][itself] = offset + plan.placement.size
    moved["size"][itself] = moved["file_size"][itself] = size
    moved["address"][itself] = plan.placement.end
    moved["load_address"][itself] = plan.placement.load_address + plan.placement.size
    return moved


def _spare(plan: Plan, rows: NDArray[np.void]) -> int | None:
    """The entry that is taken. In a library PT_GNU_STACK is not spare: without it glibc assumes that the library wants
    an executable stack, and since 2.41 refuses to dlopen it."""
    kinds = SPARE[:1] if is_library(plan.original.data, plan.original.segments) else SPARE
    places = (np.flatnonzero(rows["kind"] == kind) for kind in kinds)
    return next((int(found[-1]) for found in places if len(found)), None)


def _is_its_own(plan: Plan, place: int) -> bool:
    """Whether the program header at this file offset shares no byte with the ELF header, nor with code that has
    sites."""
    end = place + PROGRAM_HEADER.itemsize
    sites = plan.image.offsets_of(plan.manifest.patched["address"])
    longest = max(map(len, plan.image.facts.breakpoints.values()))
    return place >= ELF_HEADER.size and not ((sites > place - longest) & (sites < end)).any()


def _after_last_load(rows: NDArray[np.void]) -> int:
    loads = np.flatnonzero(rows["kind"] == PT_LOAD)
    return int(loads[-1]) + 1 if len(loads) else len(rows)


def _segment(plan: Plan, offset: int, headers_size: int) -> NDArray[np.void]:
    """The PT_LOAD of the trampolines: readable and executable, its address congruent to its file offset modulo a
    page."""
    place, size = plan.placement, plan.placement.size + headers_size
    row = np.zeros((), PROGRAM_HEADER)
    flags = PF_R | PF_X | (PF_W if plan.data_size else 0)
    values = (PT_LOAD, flags, offset, place.address, place.load_address, size, size, CHUNK)
    for name, value in zip(PROGRAM_HEADER.names or (), values, strict=True):
        row[name] = value
    return row


@dataclass(frozen=True, slots=True)
class _SectionTable:
    offset: int
    count: int
    names_index: int


def _sections(
    plan: Plan, tail: _Tail, text: int, packed: Sequence[memoryview], *, trampoline_symbols: bool
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
    new = _code_sections(plan, tail, rows, names, text) if plan.placement.size else []
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
    plan: Plan, tail: _Tail, rows: NDArray[np.void], names: "_Names", text: int
) -> list[NDArray[np.void]]:
    new = [_text_section(plan, names, text)]
    if plan.image.kind is FileKind.REL:
        new += _relocations(plan, tail, rows, names)
    if plan.data_size:
        new.append(_data_section(plan, names, text + len(plan.trampolines)))
    return new


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

"""A symbol table of an image, or what nm says of one -> columns of symbols.

The tables of a vmlinux hold up to 236,000 symbols: LIEF makes a Python object of each (1.3 s and 200 MB for the riscv64
kernel), so they are read as arrays from the mapped file.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import unique
from kinst.targets.elf.header import SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB, ElfHeader, FileKind
from kinst.targets.elf.sections import Section, content
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
STT_NOTYPE: Final = 0
STT_OBJECT: Final = 1
STT_FUNC: Final = 2
STT_SECTION: Final = 3
STT_FILE: Final = 4
STT_GNU_IFUNC: Final = 10
STB_LOCAL: Final = 0
STB_GLOBAL: Final = 1
STB_WEAK: Final = 2
SHN_UNDEF: Final = 0
SHN_ABS: Final = 0xFFF1
SECTION_UNKNOWN: Final = 0xFFFE  # of a symbol that came from a System.map: it has an address and no section

_WITHOUT_PLACE: Final = (STT_SECTION, STT_FILE)
_NM_WEAK: Final = frozenset("wWvV")
_NM_CODE: Final = frozenset("tTwWi")
_DATA_BOUNDS: Final = (b"_sdata", b"_edata")
_BOUND: Final = re.compile(rb"(|\w*_)__(start|stop)_(__\w+)")  # functions are called __start_tty and __stop_tty, too


@dataclass(frozen=True, slots=True)
class Symbols:
    """Columns of the same length, in the table's order. `name` is an offset into `strings` (NUL-terminated names)."""

    address: NDArray[np.uint64]
    size: NDArray[np.uint64]
    kind: NDArray[np.uint8]  # STT_
    binding: NDArray[np.uint8]  # STB_
    section: NDArray[np.uint16]  # index of the section, or SHN_
    name: NDArray[np.uint64]
    strings: bytes

    def __len__(self) -> int:
        return len(self.address)

    def names(self, rows: NDArray[np.intp]) -> list[str]:
        """The names of some symbols."""
        strings, find = self.strings, self.strings.index
        starts: list[int] = self.name[rows].tolist()
        return [text_of(strings[start : find(b"\0", start)]) for start in starts]

    def rows_named(self, name: str) -> NDArray[np.intp]:
        """Every symbol of that name; statics of different files share one."""
        wanted = name.encode(errors="surrogateescape") + b"\0"
        starts, position = [], self.strings.find(wanted)
        while position >= 0:  # linkers merge tails: "open" may be the end of "vfs_open"
            starts.append(position)
            position = self.strings.find(wanted, position + 1)
        return np.flatnonzero(np.isin(self.name, np.array(starts, np.uint64)))

    def rows_beginning(self, prefix: bytes) -> NDArray[np.intp]:
        """Every symbol whose name begins so."""
        strings = np.frombuffer(self.strings + bytes(len(prefix)), np.uint8)
        starts = self.name.astype(np.intp)
        named = np.ones(len(self), np.bool_)
        for index, letter in enumerate(prefix):
            named &= strings[starts + index] == letter
        return np.flatnonzero(named)

    def address_of(self, name: str) -> int | None:
        """The address of the first defined symbol of that name."""
        rows = self.rows_named(name)
        rows = rows[self.section[rows] != SHN_UNDEF]
        return int(self.address[rows[0]]) if len(rows) else None

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "Symbols":
        """The symbols chosen by an index array or a mask."""
        return Symbols(
            self.address[rows],
            self.size[rows],
            self.kind[rows],
            self.binding[rows],
            self.section[rows],
            self.name[rows],
            self.strings,
        )

    def joined(self, other: "Symbols") -> "Symbols":
        """These symbols, then `other`'s."""
        shifted = other.name + np.uint64(len(self.strings))
        return Symbols(
            np.concatenate([self.address, other.address]),
            np.concatenate([self.size, other.size]),
            np.concatenate([self.kind, other.kind]),
            np.concatenate([self.binding, other.binding]),
            np.concatenate([self.section, other.section]),
            np.concatenate([self.name, shifted]),
            self.strings + other.strings,
        )

    def records(self) -> NDArray[np.void]:
        """The symbols as ELF has them, SYMBOL; their names are offsets into `strings`."""
        rows = np.zeros(len(self), SYMBOL)
        rows["info"] = self.binding << np.uint8(4) | self.kind
        for name, column in (("name", self.name), ("section", self.section), ("value", self.address)):
            rows[name] = column
        rows["size"] = self.size
        return rows

    def beside(self, others: "Symbols") -> "Symbols":
        """Those that give an address and that `others` do not have, with only the strings that they need."""
        defined = np.flatnonzero((self.section != SHN_UNDEF) & ~np.isin(self.kind, _WITHOUT_PLACE))
        names = self.names(defined)
        known = set(zip(others.address.tolist(), others.names(np.arange(len(others))), strict=True))
        pairs = zip(self.address[defined].tolist(), names, strict=True)
        fresh = [at for at, pair in enumerate(pairs) if pair not in known]
        texts = [names[at].encode(errors="surrogateescape") + b"\0" for at in fresh]
        lengths = np.array([len(text) for text in texts], np.uint64)
        starts = np.cumsum(lengths, dtype=np.uint64) - lengths + np.uint64(1)
        return replace(self.take(defined[fresh]), name=starts, strings=b"\0" + b"".join(texts))


def no_symbols() -> Symbols:
    """A table without rows."""
    return symbols_of(np.zeros(0, SYMBOL), b"\0")


def symbols_of(rows: NDArray[np.void], strings: bytes) -> Symbols:
    """The symbols of SYMBOL records."""
    return Symbols(
        rows["value"].astype(np.uint64),
        rows["size"].astype(np.uint64),
        rows["info"] & np.uint8(15),
        rows["info"] >> np.uint8(4),
        rows["section"].astype(np.uint16),
        rows["name"].astype(np.uint64),
        strings,
    )


def read_symbol_table(table: NDArray[np.uint8], strings: NDArray[np.uint8], where: str) -> Symbols:
    """The symbols of a .symtab or .dynsym.

    Args:
        table: the bytes of the symbol table.
        strings: the bytes of the string table it links to.
        where: the section's name, for messages.
    """
    if len(table) % SYMBOL.itemsize:
        raise ImageError(f"damaged: {where} has {len(table)} bytes, no multiple of {SYMBOL.itemsize}")
    rows = np.frombuffer(table.tobytes(), SYMBOL)
    text = strings.tobytes()
    if not text.endswith(b"\0"):
        text += b"\0"
    beyond = rows["name"] >= len(text)
    if beyond.any():
        raise ImageError(f"damaged: the name of symbol {int(np.argmax(beyond))} of {where} lies outside its strings")
    return symbols_of(rows, text)


def read_symbols(data: NDArray[np.uint8], header: ElfHeader, sections: tuple[Section, ...]) -> Symbols:
    """The symbols of an image: .symtab, then .dynsym. Those of an ET_REL file get the addresses of its sections."""
    found = no_symbols()
    for kind in (SHT_SYMTAB, SHT_DYNSYM):
        for section in sections:
            if section.kind == kind and section.size:
                found = found.joined(symbols_in(data, header, section, sections))
    return found


def symbols_in(data: NDArray[np.uint8], header: ElfHeader, section: Section, sections: tuple[Section, ...]) -> Symbols:
    """The symbols of one table, as `read_symbols` has them."""
    found = _symbol_section(data, section, sections)
    return _placed(found, sections) if header.kind is FileKind.REL else found


def _symbol_section(data: NDArray[np.uint8], section: Section, sections: tuple[Section, ...]) -> Symbols:
    if section.entry_size not in (0, SYMBOL.itemsize):
        raise ImageError(f"damaged: a symbol of {section.name} has {section.entry_size} bytes, not {SYMBOL.itemsize}")
    if section.link == 0:  # no strings: the .dynsym of a static U-Boot for amd64, whose only symbol is the null symbol
        return no_symbols()
    if section.link >= len(sections) or sections[section.link].kind != SHT_STRTAB:
        raise ImageError(f"damaged: the names of {section.name} should be in section {section.link}: no string table")
    return read_symbol_table(content(data, section), content(data, sections[section.link]), section.name)


def _placed(symbols: Symbols, sections: tuple[Section, ...]) -> Symbols:
    """The value of an ET_REL symbol is an offset into its section."""
    base = np.array([section.address for section in sections] or [0], np.uint64)
    defined = (symbols.section != SHN_UNDEF) & (symbols.section < len(sections))
    address = symbols.address.copy()
    address[defined] += base[symbols.section[defined]]
    return replace(symbols, address=address)


def nm_symbols(found: Iterable[tuple[int, int, str, str]]) -> Symbols:
    """Symbols by address, size (0: not known), letter and name, as nm has them."""
    addresses, sizes, letters, names = zip(*found, strict=True)
    columns = np.array(addresses, np.uint64), np.array(sizes, np.uint64)
    return nm_columns(*columns, "".join(letters).encode(), [name.encode() for name in names])


def nm_columns(
    address: NDArray[np.uint64], size: NDArray[np.uint64], letters: bytes, names: Sequence[bytes]
) -> Symbols:
    """The same in columns.

    The letter of what is in .data of Linux for amd64 is that of code, since a page of it may be executed. It is data
    nevertheless, up to the next symbol. So is a table that the linker put into .text, such as KVM's exception tables
    for arm64.
    """
    letter = np.frombuffer(letters, np.uint8)
    kind = np.where(_is_letter(letter, _NM_CODE), STT_FUNC, STT_NOTYPE).astype(np.uint8)
    size = size.copy()
    tables, ends = _tables(address, names)
    kind[ends] = STT_NOTYPE  # nothing begins there but what has a name of its own
    inside = unique(np.concatenate([_within_data(address, names), tables]))
    kind[inside] = STT_OBJECT
    size[inside] = np.where(size[inside] > 0, size[inside], to_the_next(address, inside))
    binding = np.where(letter < ord("a"), STB_GLOBAL, STB_LOCAL)
    binding[_is_letter(letter, _NM_WEAK)] = STB_WEAK
    section = np.where(_is_letter(letter, frozenset("aA")), SHN_ABS, SECTION_UNKNOWN)
    strings = b"\0" + b"\0".join(names) + b"\0"
    start = np.cumsum([1, *(len(name) + 1 for name in names[:-1])], dtype=np.uint64)
    return Symbols(address, size, kind, binding.astype(np.uint8), section.astype(np.uint16), start, strings)


def _is_letter(letters: NDArray[np.uint8], which: frozenset[str]) -> NDArray[np.bool_]:
    return np.isin(letters, np.frombuffer("".join(sorted(which)).encode(), np.uint8))


def _within_data(address: NDArray[np.uint64], names: Sequence[bytes]) -> NDArray[np.intp]:
    """The rows of what is in .data, if symbols give its bounds."""
    bounds = {name: row for row, name in enumerate(names) if name in _DATA_BOUNDS}
    if len(bounds) < len(_DATA_BOUNDS):
        return np.zeros(0, np.intp)
    start, end = (address[bounds[name]] for name in _DATA_BOUNDS)
    return np.flatnonzero((address >= start) & (address < end))


def _tables(address: NDArray[np.uint64], names: Sequence[bytes]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows of names for the start of what only __start_X and __stop_X name, and those for its end: ld defines these
    for a section X, for code that walks over its records. KVM's have a prefix (objcopy --prefix-symbols)."""
    likely = ((row, name) for row, name in enumerate(names) if b"__st" in name)  # of Linux's 200,000 names a hundred
    bounds = [(row, *found.groups()) for row, name in likely if (found := _BOUND.fullmatch(name))]
    stops = {(before, section): row for row, before, which, section in bounds if which == b"stop"}
    pairs = [(row, stops.get((before, section), row)) for row, before, which, section in bounds if which == b"start"]
    rows = np.array(pairs, np.intp).reshape(-1, 2)
    named = np.ones(len(names), np.bool_)
    named[rows] = False
    starts, ends = np.sort(address[named]), address[rows]
    first, last = np.searchsorted(starts, ends[:, 0]), np.searchsorted(starts, ends[:, 1])
    rows = rows[(first == last) & (ends[:, 0] < ends[:, 1])]
    return rows[:, 0], rows[:, 1]


def to_the_next(address: NDArray[np.uint64], rows: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Bytes from the address of each of the rows to the next higher one; 0 for the last one."""
    places = unique(address)
    following = np.append(places[1:], places[-1:])
    found: NDArray[np.uint64] = following[np.searchsorted(places, address[rows])] - address[rows]
    return found


def _place_in_name(symbols: Symbols, text: bytes) -> NDArray[np.int64]:
    """Where `text` first occurs in `strings` within each symbol's name; -1 if the name does not have it."""
    strings = np.frombuffer(symbols.strings, np.uint8)
    found = strings[: len(strings) - len(text) + 1] == text[0]
    for index, byte in enumerate(text[1:], 1):
        found = found & (strings[index : len(found) + index] == byte)
    places = np.append(np.flatnonzero(found), len(strings))
    ends = np.flatnonzero(strings == 0)
    starts = symbols.name.astype(np.int64)
    place = places[np.searchsorted(places, starts)]
    return np.where(place < ends[np.searchsorted(ends, starts)], place, -1)


def mapping_letters(symbols: Symbols) -> NDArray[np.uint8]:
    """The letter of mapping symbols, 0 for all others.

    $x, $a, $t and $xrv64... say that code starts here, $d that data does (aaelf64 5.5.4, riscv-elf "Mapping Symbol").
    objcopy --prefix-symbols makes __efistub_$d and __kvm_nvhe_$x of them in an arm64 vmlinux.
    """
    strings = np.frombuffer(symbols.strings + b"\0\0", np.uint8)
    dollar = _place_in_name(symbols, b"$")
    place = np.maximum(dollar, 0)
    leads = (place == symbols.name.astype(np.int64)) | (strings[place - 1] == ord("_"))
    letter, after = strings[place + 1], strings[place + 2]
    known = np.isin(letter, list(b"xdat")) & (
        np.isin(after, list(b"\0.")) | ((letter == ord("x")) & (after == ord("r")))
    )
    return np.where((dollar >= 0) & leads & known & (symbols.kind == STT_NOTYPE), letter, np.uint8(0))


def is_assembler_label(symbols: Symbols) -> NDArray[np.bool_]:
    """Names that only the assembler meant: .L..., with a prefix or not, and the empty name."""
    nameless = np.frombuffer(symbols.strings, np.uint8)[symbols.name] == 0
    label: NDArray[np.bool_] = (_place_in_name(symbols, b".L") >= 0) | nameless
    return label


def marked_data(symbols: Symbols) -> NDArray[np.uint64]:
    """(n, 2) address and size of what mapping symbols mark as data, in address order.

    The last mark has no end: its size is everything after it.
    """
    letters = mapping_letters(symbols)
    rows = np.flatnonzero(letters)
    rows = rows[np.lexsort((letters[rows], symbols.address[rows]))]  # at one address $x wins over $d: it comes last
    address, is_data = symbols.address[rows], letters[rows] == ord("d")
    ends = np.append(address[1:], np.uint64(0))
    spans = np.stack([address, ends - address], axis=1)
    marked: NDArray[np.uint64] = spans[is_data & (spans[:, 1] > 0)]
    return marked

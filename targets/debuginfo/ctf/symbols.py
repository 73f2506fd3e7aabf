"""What one dictionary of CTF says of functions and variables: in the order of a symbol table, or by their names."""

from enum import Enum
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.c_types import CType, Function
from kinst.targets.debuginfo.ctf.dictionary import Dictionary
from kinst.targets.debuginfo.ctf.records import Kind, info_of, numbers
from kinst.targets.elf.symbols import SHN_ABS, SHN_UNDEF, STT_FUNC, STT_OBJECT, Symbols

_OUT_OF_ORDER: Final = ("_START_", "_END_")  # linkers' marks, which have no entry in any of the formats
# GNU ld's, besides: ctf_symtab_skippable of libctf.
_OF_LINKER: Final = (
    *_OUT_OF_ORDER, "_DYNAMIC", "_GLOBAL_OFFSET_TABLE_", "_PROCEDURE_LINKAGE_TABLE_", "_edata", "_end", "_etext",
)  # fmt: skip


class What(Enum):
    """Of which symbols a section of a dictionary is."""

    FUNCTION = STT_FUNC
    OBJECT = STT_OBJECT


class Described:
    """Types of symbols, found when they are asked for."""

    def __init__(self, dictionary: Dictionary, table: Symbols) -> None:
        """`table` is the symbol table that the dictionary belongs to, in the file's order."""
        self.dictionary = dictionary
        self._parts = dictionary.parts
        self._table = table

    @property
    def has_functions(self) -> bool:
        """Whether it says anything of functions."""
        return bool(self._parts.functions or self._parts.variables)

    # -- by the order of symbols --------------------------------------------------------------------------------------

    def ordered(self, what: What, name: str, address: int) -> CType | None:
        """The type of the symbol of that name at an address, if its section is in the order of symbols.

        Raises:
            ValueError: the section was made for another symbol table.
        """
        if self._names(what):
            return None
        rows = self._objects if what is What.OBJECT else self._functions
        here = self._table.rows_named(name)
        here = here[np.isin(here, rows) & (self._table.address[here] == np.uint64(address))]
        for place in np.searchsorted(rows, here).tolist():
            if (found := self._entry(what, place)) is not None:
                return found
        return None

    def _entry(self, what: What, place: int) -> CType | None:
        form = self._parts.format
        if what is What.FUNCTION and not form.has_function_types:
            return self._own_prototype(place)
        found = numbers(self._content(what)[place * form.width : (place + 1) * form.width], form)
        return self.dictionary.type(found[0]) if found and found[0] else None

    def _own_prototype(self, place: int) -> CType | None:
        """An entry of Sun's: kind and count, result, parameters; or one word, of kind 0."""
        if place >= len(self._starts):
            return None
        words = self._function_words
        at = self._starts[place]
        kind, count = info_of(words[at], self._parts.format)
        return self.dictionary.prototype(words[at + 1], words[at + 2 : at + 2 + count]) if kind else None

    @cached_property
    def _objects(self) -> NDArray[np.intp]:
        """Rows of the table that have an entry. Raises ValueError: there are more entries than such symbols."""
        listed, table = self._listed(What.OBJECT), self._table
        is_nothing = (table.section[listed] == SHN_ABS) & (table.address[listed] == 0)
        rows: NDArray[np.intp] = listed[~is_nothing]
        self._check(What.OBJECT, len(rows), len(self._parts.objects) // self._parts.format.width)
        return rows

    @cached_property
    def _functions(self) -> NDArray[np.intp]:
        """As _objects."""
        rows, form = self._listed(What.FUNCTION), self._parts.format
        entries = len(self._parts.functions) // form.width if form.has_function_types else len(self._starts)
        self._check(What.FUNCTION, len(rows), entries)
        return rows

    def _check(self, what: What, symbols: int, entries: int) -> None:
        """libctf leaves out the entries of the last symbols that have no type; ctfconvert and ctfmerge write all. An
        image whose symbols were stripped since has others: no type would be that of its symbol."""
        is_whole = entries <= symbols if self._parts.format.has_function_types else entries in (symbols, 0)
        if not is_whole:
            raise ValueError(f"types of {entries} {what.name.lower()}s, and the symbol table has {symbols} of them")

    @cached_property
    def _function_words(self) -> tuple[int, ...]:
        return numbers(self._parts.functions, self._parts.format)

    @cached_property
    def _starts(self) -> list[int]:
        """Where each entry of Sun's functions begins, in words; what fills up the section is not one."""
        words, form = self._function_words, self._parts.format
        at = 0
        starts: list[int] = []
        while at < len(words):
            kind, count = info_of(words[at], form)
            if kind not in (Kind.UNKNOWN, Kind.FUNCTION):
                raise ValueError(f"damaged: function {len(starts)} is of kind {kind}")
            starts.append(at)
            at += 2 + count if kind or count else 1
        if at > len(words):
            raise ValueError(f"damaged: function {len(starts) - 1} ends beyond the functions")
        has_fill = form.width == 2 and bool(starts) and len(starts) > len(self._listed(What.FUNCTION))
        return starts[:-1] if has_fill and not words[starts[-1]] else starts

    def _listed(self, what: What) -> NDArray[np.intp]:
        table = self._table
        rows = np.flatnonzero((table.kind == what.value) & (table.section != SHN_UNDEF) & _is_named(table))
        skipped = _OF_LINKER if self._parts.format.has_function_types else _OUT_OF_ORDER
        found: NDArray[np.intp] = rows[~np.isin(rows, np.concatenate([table.rows_named(name) for name in skipped]))]
        return found

    # -- by name ------------------------------------------------------------------------------------------------------

    def named(self, what: What, name: str) -> CType | None:
        """The type by the index, or else among variables."""
        return self.indexed(what, name) or self.variable(what, name)

    def indexed(self, what: What, name: str) -> CType | None:
        """The type by the index that compilers write, and linkers where they do not know the order of symbols."""
        names = self._names(what)
        return self._by_name(names, numbers(self._content(what), self._parts.format), name) if names else None

    def variable(self, what: What, name: str) -> CType | None:
        """The type among what GNU ld calls variables (--ctf-variables), which functions are, too."""
        pairs = np.frombuffer(self._parts.variables[: len(self._parts.variables) & ~7], "<u4").reshape(-1, 2)
        found = self._by_name(pairs[:, 0].tobytes(), tuple(pairs[:, 1].tolist()), name)
        return found if isinstance(found, Function) is (what is What.FUNCTION) else None

    def _by_name(self, names: bytes, types: tuple[int, ...], name: str) -> CType | None:
        column = np.frombuffer(names[: len(names) & ~3], "<u4")
        for row in np.flatnonzero(np.isin(column, self.dictionary.places(name))).tolist():
            if row < len(types) and types[row]:
                return self.dictionary.type(types[row])
        return None

    def _names(self, what: What) -> bytes:
        return self._parts.object_names if what is What.OBJECT else self._parts.function_names

    def _content(self, what: What) -> bytes:
        return self._parts.objects if what is What.OBJECT else self._parts.functions


def _is_named(table: Symbols) -> NDArray[np.bool_]:
    """Whether a symbol has a name: those of sections and the null symbol have none."""
    letters = np.frombuffer(table.strings, np.uint8)
    named: NDArray[np.bool_] = letters[table.name.astype(np.intp)] != 0
    return named

"""Tables of encodings with what each reads and writes -> effects of instruction words in bulk."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.patterns import Pattern, PatternTable
from kinst.rewriter.liveness.effects import EVERYTHING, Effects, Masks
from kinst.targets.values import dataclass

_FIELD: Final = re.compile(r"(\w+):(\d+)")
_ALL: Final = "everything"


@dataclass(frozen=True, slots=True)
class Form:
    """One encoding, drawn as in `Pattern`. `reads` and `writes` name its fields, registers, or ``everything``."""

    encoding: str
    reads: str = ""
    writes: str = ""


class FormTable:
    """Forms of one width. The first that matches decides; a word that none matches reads everything."""

    def __init__(
        self,
        forms: Sequence[Form],
        width: int,
        key: Sequence[tuple[int, int]],
        numbers: Mapping[int, Sequence[int]],
        names: Mapping[str, int],
    ) -> None:
        """Args:
        forms: what is known.
        width: of the words, in bits.
        key: see `PatternTable`.
        numbers: for each width of a field, the register's bit for each value of the field; 0: no register.
        names: the bits of registers that forms name.
        """
        forms = (*forms, Form(f"-:{width}", _ALL))
        patterns = [Pattern(f"{row} {form.encoding}", form.encoding, 0) for row, form in enumerate(forms)]
        self._table = PatternTable(patterns, width, key)
        self._numbers = {size: np.array(bits, np.uint32) for size, bits in numbers.items()}
        places = [_places(form.encoding) for form in forms]
        names = {**names, _ALL: EVERYTHING}
        self._reads = _Side([form.reads for form in forms], places, names)
        self._writes = _Side([form.writes for form in forms], places, names)

    def effects(self, words: NDArray[np.uint32]) -> Effects:
        """The effects of each word."""
        rows = self._table.match(words)
        return Effects(self._of(self._reads, words, rows), self._of(self._writes, words, rows))

    def _of(self, side: "_Side", words: NDArray[np.uint32], rows: NDArray[np.uint16]) -> Masks:
        found: Masks = side.fixed[rows]
        for (low, width), has in side.fields.items():
            at = np.flatnonzero(has[rows])
            value = (words[at] >> np.uint32(low)) & np.uint32((1 << width) - 1)
            found[at] |= self._numbers[width][value]
        return found


class _Side:
    """The reads or the writes of all forms: fixed bits, and for each field (low, width) which forms have it."""

    def __init__(
        self, texts: Sequence[str], places: Sequence[Mapping[str, tuple[int, int]]], names: Mapping[str, int]
    ) -> None:
        self.fixed = np.zeros(len(texts), np.uint32)
        self.fields: dict[tuple[int, int], NDArray[np.bool_]] = {}
        for row, (text, place) in enumerate(zip(texts, places, strict=True)):
            for word in text.split():
                if word in place:
                    self.fields.setdefault(place[word], np.zeros(len(texts), np.bool_))[row] = True
                else:
                    self.fixed[row] |= np.uint32(names[word])


def _places(encoding: str) -> dict[str, tuple[int, int]]:
    """The lowest bit and the width of each named field."""
    found, low = {}, 0
    for token in reversed(encoding.split()):
        field = _FIELD.fullmatch(token)
        width = int(field[2]) if field else len(token) if ":" not in token else int(token.partition(":")[2])
        if field:
            found[field[1]] = (low, width)
        low += width
    return found

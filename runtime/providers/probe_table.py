"""Probes that were created one by one, stored as columns: names in, identifiers out."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.targets.probe import ProbeName, matching
from kinst.targets.values import dataclass

Identifiers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe. Module, function and name are empty if its provider gives none."""

    identifier: int  # as every command shows it
    provider: str
    module: str  # the image's name, or a loaded module's
    function: str
    name: str  # entry, return, an offset, or a name of the provider's

    def __str__(self) -> str:
        return ":".join((self.provider, self.module, self.function, self.name))


class ProbeBlock(Protocol):
    """Probes of one provider whose names already exist as columns: a kernel's manifest has millions of them."""

    @property
    def identifiers(self) -> Identifiers:
        """The identifiers of all probes, ascending."""
        ...

    def match(self, pattern: ProbeName) -> Identifiers:
        """The identifiers of the probes that `pattern` matches, ascending. Its provider field is not compared again."""
        ...

    def probe(self, identifier: int) -> Probe | None:
        """The probe with this identifier; None if it is not in this block."""
        ...


class ProbeTable:
    """A `ProbeBlock` that grows and shrinks. Each text is stored once; a probe is the numbers of three texts."""

    def __init__(self, provider: str, image: str = "") -> None:
        """An empty table. `provider` is the first field of every name, `image` the image's own module."""
        self._provider = provider
        self._image = image
        self._texts: dict[str, int] = {}
        self._text: list[str] = []  # the texts, by number
        self._fields: dict[int, tuple[int, int, int]] = {}  # identifier -> numbers of module, function, name
        self._by_name: dict[tuple[int, int, int], int] = {}
        self._columns: NDArray[np.int64] | None = (
            None  # (n, 4): identifier and numbers of its fields; None: out of date
        )

    def add(self, identifier: int, module: str, function: str, name: str) -> None:
        """Add a probe. Its identifier must be larger than those before."""
        numbers = self._number(module), self._number(function), self._number(name)
        self._fields[identifier] = numbers
        self._by_name.setdefault(numbers, identifier)
        self._columns = None

    def discard(self, identifiers: Identifiers) -> None:
        """Remove these probes; identifiers that are not in the table are ignored."""
        for identifier in identifiers.tolist():
            numbers = self._fields.pop(identifier, None)
            if numbers is not None and self._by_name.get(numbers) == identifier:
                del self._by_name[numbers]
        self._columns = None

    def find(self, module: str, function: str, name: str) -> int | None:
        """The first probe with exactly these fields; None if there is none."""
        numbers = tuple(self._texts.get(text, -1) for text in (module, function, name))
        return self._by_name.get((numbers[0], numbers[1], numbers[2]))

    @property
    def identifiers(self) -> Identifiers:
        """The identifiers of all probes, ascending."""
        return self._rows()[:, 0].astype(np.intp)

    def match(self, pattern: ProbeName) -> Identifiers:
        """The identifiers of the probes that `pattern` matches, ascending."""
        rows = self._rows()
        if not (pattern.provider or pattern.module or pattern.function or pattern.name):
            chosen = rows[:, 2] != self._texts.get("", -1)  # `:::` matches only probes with a function
        else:
            chosen = self._matching_module(pattern)[rows[:, 1]]
            for column, text in ((2, pattern.function), (3, pattern.name)):
                if text:
                    chosen &= self._matching(text)[rows[:, column]]
        found: Identifiers = rows[chosen, 0].astype(np.intp)
        return found

    def probe(self, identifier: int) -> Probe | None:
        """The probe with this identifier; None if it is not in this table."""
        numbers = self._fields.get(identifier)
        if numbers is None:
            return None
        return Probe(identifier, self._provider, *(self._text[number] for number in numbers))

    def _number(self, text: str) -> int:
        number = self._texts.setdefault(text, len(self._texts))
        if number == len(self._text):
            self._text.append(text)
        return number

    def _rows(self) -> NDArray[np.int64]:
        if self._columns is None:
            rows = [(identifier, *fields) for identifier, fields in self._fields.items()]
            self._columns = np.array(rows, np.int64).reshape(-1, 4)
        return self._columns

    def _matching(self, text: str) -> NDArray[np.bool_]:
        return matching(text, self._texts)

    def _matching_module(self, pattern: ProbeName) -> NDArray[np.bool_]:
        if not pattern.module:
            return np.ones(len(self._texts), np.bool_)
        found = np.fromiter(map(pattern.matches_module, self._texts), np.bool_)
        if self._image in self._texts:
            found[self._texts[self._image]] |= bool(self._image) and pattern.matches_image(self._image)
        return found

"""The function field of a probe name -> functions of an image, each with the name that matched."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.functions.found import Functions
from kinst.targets.nearest import nearest_names
from kinst.targets.values import dataclass

Match = Callable[[str], bool]

_COLD: Final = re.compile(r"\.cold(\.\d+)*$")


@dataclass(frozen=True, slots=True)
class Selection:
    """Columns: functions by row, and the number of the name under which each was chosen (see `Names`)."""

    rows: NDArray[np.intp]
    names: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)


class Names:
    """Numbers for names: a function's row for its primary name, higher ones for aliases, in the order in which they
    come up."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._aliases: dict[tuple[int, str], int] = {}
        self._rows: dict[str, list[int]] = {}

    def select_exact(self, name: str) -> Selection:
        """The functions called `name`; there are several if statics of different files share it."""
        rows = self._by_name().get(name, ())
        names = [row if self._functions.names[row] == name else self._alias(row, name) for row in rows]
        return Selection(np.array(rows, np.intp), np.array(names, np.int64))

    def select_all(self) -> Selection:
        """Every function by its primary name."""
        rows = np.arange(len(self._functions))
        return Selection(rows, rows.astype(np.int64))

    def select_matching(self, matches: Match) -> Selection:
        """The functions one of whose names matches: by the primary name if that matches, else by the first alias."""
        rows = [row for row, name in enumerate(self._functions.names) if matches(name)]
        names = dict(zip(rows, rows, strict=True))
        for row, aliases in self._functions.aliases.items():
            alias = next((name for name in aliases if matches(name)), None)
            if alias is not None and row not in names:
                names[row] = self._alias(row, alias)
        chosen = sorted(names)
        return Selection(np.array(chosen, np.intp), np.array([names[row] for row in chosen], np.int64))

    def select_row(self, row: int) -> Selection:
        """One function by its primary name."""
        return Selection(np.array([row], np.intp), np.array([row], np.int64))

    def row_of(self) -> NDArray[np.int64]:
        """The function's row of every name's number."""
        aliases = [row for row, _ in self._aliases]
        return np.concatenate([np.arange(len(self._functions)), np.array(aliases, np.int64)])

    def text_of(self, number: int) -> str:
        """The name with a number: a function's own, or after all of those an alias."""
        if number < len(self._functions):
            return self._functions.names[number]
        return list(self._aliases)[number - len(self._functions)][1]

    def nearest(self, name: str) -> list[str]:
        """Names that look like `name`, for a message."""
        return nearest_names(name, self._by_name())

    def _alias(self, row: int, name: str) -> int:
        return self._aliases.setdefault((row, name), len(self._functions) + len(self._aliases))

    def _by_name(self) -> Mapping[str, Sequence[int]]:
        if not self._rows:
            for row, name in enumerate(self._functions.names):
                self._rows.setdefault(name, []).append(row)
            for row, aliases in self._functions.aliases.items():
                for name in aliases:
                    self._rows.setdefault(name, []).append(row)
        return self._rows


def base_name(name: str) -> str:
    """A name that all parts of a function share: control goes back and forth between `f` and `f.cold`. But `f.part.0`
    is a function of its own, which `f` calls, or jumps to at its end."""
    return _COLD.sub("", name) if ".cold" in name else name

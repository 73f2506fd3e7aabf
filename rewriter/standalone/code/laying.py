"""Templates behind one another -> their code at addresses.

Fixups begin in their shortest form. What that cannot hold takes what is there otherwise, which is longer, so that all
behind it is farther away: until nothing changes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kinst.rewriter.standalone.code.parts import TARGET, Addresses, Bytes, Encoding, Mask, Numbers, ranges
from kinst.rewriter.standalone.code.templates import NO_ENCODING, Columns, Templates

# Bytes of each group -> addresses of groups.
Place = Callable[[Numbers], Addresses]


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Templates behind one another: columns. `row` says whose values their fixups have, `group` where they are: both
    ascend.

    `own`: (rows, 16), the instruction of each row, and `own_size`, its bytes. `follows`: the row that `TARGET` leads
    to, if it is of the same group, else -1.
    """

    template: Numbers
    row: Numbers
    group: Numbers
    own: Bytes
    own_size: Numbers
    follows: Numbers
    values: Mapping[str, Addresses]

    def without(self, gone: Mask) -> "Pieces":
        """The pieces of the rest of the groups, which have other numbers then."""
        kept, number = ~gone[self.group], np.cumsum(~gone) - 1
        return replace(self, template=self.template[kept], row=self.row[kept], group=number[self.group[kept]])


@dataclass(frozen=True, slots=True, eq=False)
class Laid:
    """Code of groups, one behind the other: where in `code` each begins, and where the last one ends; and addresses of
    groups. `refused`: by reason, groups that cannot be there, 0 elsewhere; if there are any, there is no code."""

    code: Bytes
    start: Numbers
    address: Addresses
    refused: Numbers


def lay(templates: Templates, pieces: Pieces, groups: int, place: Place) -> Laid:
    """The code of some groups where `place` puts them."""
    columns = templates.columns()
    owner = np.repeat(np.arange(len(pieces.template)), columns.count[pieces.template])
    part = ranges(columns.first[pieces.template], columns.count[pieces.template])
    row, group = pieces.row[owner], pieces.group[owner]
    while True:
        laying = _Laying.of(columns, pieces, part, row, group, groups, place)
        filled = list(laying.filled([*templates.encodings], [*templates.values]))
        fails = np.zeros(len(part), np.bool_)
        for which, _, fits in filled:
            fails[which[~fits]] = True
        instead = columns.fallback[part[fails]]
        refused = first_of_groups(columns.refused[instead], group[fails], groups)
        if refused.any():
            return Laid(np.zeros(0, np.uint8), laying.start, laying.address, refused)
        if not len(instead):
            return Laid(laying.code(filled), laying.start, laying.address, refused)
        first, count = part.copy(), np.ones(len(part), np.int64)
        first[fails], count[fails] = columns.first[instead], columns.count[instead]
        part, row, group = ranges(first, count), np.repeat(row, count), np.repeat(group, count)


def first_of_groups(why: Numbers, group: Numbers, groups: int) -> Numbers:
    """The first reason of each group that has any, else 0."""
    found, some = np.zeros(groups, np.int64), np.flatnonzero(why)[::-1]
    found[group[some]] = why[some]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Laying:
    """Parts, with their rows and groups, and where they begin among all."""

    columns: Columns
    pieces: Pieces
    part: Numbers
    row: Numbers
    group: Numbers
    size: Numbers
    at: Numbers  # of each, and behind the last one
    start: Numbers  # of groups, and behind the last one
    address: Addresses

    @classmethod
    def of(
        cls, columns: Columns, pieces: Pieces, part: Numbers, row: Numbers, group: Numbers, groups: int, place: Place
    ) -> "_Laying":
        size = np.where(part == 0, pieces.own_size[row], columns.size[part])
        at = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
        start = at[np.searchsorted(group, np.arange(groups + 1))]
        return cls(columns, pieces, part, row, group, size, at, start, place(np.diff(start)))

    def filled(self, encodings: list[Encoding], values: list[str]) -> Iterator[tuple[Numbers, Bytes, Mask]]:
        """Fixups of one form after the other: which parts, their bytes, and which of them fit."""
        columns, part = self.columns, self.part
        encoding_of = columns.encoding[part]
        value = np.zeros(len(part), np.uint64)
        fixups = np.flatnonzero(encoding_of != NO_ENCODING)
        value_of = columns.value[part[fixups]]
        for number, name in enumerate(values):
            chosen = fixups[value_of == number]
            value[chosen] = self.pieces.values[name][self.row[chosen]] if len(chosen) else 0
            if name == TARGET:
                self._follow(value, chosen[np.array([one.follows for one in encodings])[encoding_of[chosen]]])
        for number, encoding in enumerate(encodings):
            chosen = np.flatnonzero(encoding_of == number)
            if len(chosen):
                where = self._address(self.at[chosen], self.group[chosen])
                yield chosen, *encoding.fill(where, value[chosen], columns.operand[part[chosen]])

    def _follow(self, value: Addresses, chosen: Numbers) -> None:
        """What leads to an instruction of the same group leads to where that is now, its task included."""
        goal = self.pieces.follows[self.row[chosen]]
        chosen, goal = chosen[goal >= 0], goal[goal >= 0]
        value[chosen] = self._address(self.at[np.searchsorted(self.row, goal)], self.group[chosen])

    def _address(self, at: Numbers, group: Numbers) -> Addresses:
        found: Addresses = self.address[group] + (at - self.start[group]).view(np.uint64)
        return found

    def code(self, filled: list[tuple[Numbers, Bytes, Mask]]) -> Bytes:
        """All bytes."""
        own, pool = self.pieces.own, self.columns.pool
        source = np.where(self.part == 0, len(pool) + own.shape[1] * self.row, self.columns.start[self.part])
        code: Bytes = np.concatenate([pool, own.reshape(-1)])[ranges(source, self.size)]
        for which, content, _ in filled:
            code[self.at[which][:, None] + np.arange(content.shape[1])] = content
        return code

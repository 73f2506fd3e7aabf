"""Templates back to back -> their code at addresses.

Every fixup begins with its shortest encoding. One that cannot hold its value is replaced by its fallback, which is
longer and moves all that follows; this repeats until nothing changes. Code only grows, so it ends, as the relaxation of
branches in an assembler does.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from kinst.rewriter.standalone.code.parts import TARGET, Addresses, Bytes, Encoding, Mask, Numbers, ranges
from kinst.rewriter.standalone.code.templates import NO_ENCODING, Columns, Templates
from kinst.targets.values import dataclass

# Bytes of each group -> the address of each group.
Place = Callable[[Numbers], Addresses]


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Templates back to back: columns. `row` says whose values their fixups take, `group` which group they are in; both
    ascend.

    `own`: (rows, 16), the instruction of each row, and `own_size`, its bytes. `follows`: the row of the same group that
    `TARGET` leads to, else -1.
    """

    template: Numbers
    row: Numbers
    group: Numbers
    own: Bytes
    own_size: Numbers
    follows: Numbers
    values: Mapping[str, Addresses]

    def without(self, gone: Mask) -> "Pieces":
        """The pieces of the other groups, which are renumbered."""
        kept, number = ~gone[self.group], np.cumsum(~gone) - 1
        return replace(self, template=self.template[kept], row=self.row[kept], group=number[self.group[kept]])


@dataclass(frozen=True, slots=True, eq=False)
class Laid:
    """Code of groups back to back: where each begins in `code`, and where the last one ends; and the address of each
    group. `ends`: where the code of each row ends, as an address; `places`: where that of each
    piece begins and ends. `refused`: for each group the number of the reason
    why it cannot be there, else 0; if there is any, there is no code."""

    code: Bytes
    start: Numbers
    address: Addresses
    ends: Addresses
    refused: Numbers
    places: tuple[Addresses, Addresses]


def lay(templates: Templates, pieces: Pieces, groups: int, place: Place) -> Laid:
    """The code of some groups where `place` puts them."""
    columns = templates.columns()
    owner = np.repeat(np.arange(len(pieces.template)), columns.count[pieces.template])
    part = ranges(columns.first[pieces.template], columns.count[pieces.template])
    while True:
        row, group = pieces.row[owner], pieces.group[owner]
        # Every fixup is tried again: a replacement moves all that is after it.
        laying = _Laying.of(columns, pieces, part, row, group, groups, place)
        filled = list(laying.filled([*templates.encodings], [*templates.values]))
        fails = np.zeros(len(part), np.bool_)
        for which, _, fits in filled:
            fails[which[~fits]] = True
        instead = columns.fallback[part[fails]]
        # A fallback that is only a reason refuses its group.
        refused = first_of_groups(columns.refused[instead], group[fails], groups)
        if refused.any():
            nothing = laying.address[:0]
            return Laid(np.zeros(0, np.uint8), laying.start, laying.address, nothing, refused, (nothing, nothing))
        if not len(instead):
            places = laying.places(owner)
            return Laid(laying.code(filled), laying.start, laying.address, laying.ends, refused, places)
        first, count = part.copy(), np.ones(len(part), np.int64)
        first[fails], count[fails] = columns.first[instead], columns.count[instead]
        part, owner = ranges(first, count), np.repeat(owner, count)


def first_of_groups(why: Numbers, group: Numbers, groups: int) -> Numbers:
    """The first reason of each group that has one, else 0."""
    # Written last to first, so that the first reason of a group is the one that stays.
    found, some = np.zeros(groups, np.int64), np.flatnonzero(why)[::-1]
    found[group[some]] = why[some]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Laying:
    """Parts with their rows and groups, and where each begins."""

    columns: Columns
    pieces: Pieces
    part: Numbers
    row: Numbers
    group: Numbers
    size: Numbers
    at: Numbers  # of each part, and the end of the last one
    start: Numbers  # of each group, and the end of the last one
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
        """Fixups, one encoding after the other: which parts, their bytes, and which of them hold their value."""
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
        """A branch to an instruction of the same group goes to its displaced copy, and to the task before it: that site
        fires, too."""
        goal = self.pieces.follows[self.row[chosen]]
        chosen, goal = chosen[goal >= 0], goal[goal >= 0]
        # The first part of the row is its task, if it has one.
        value[chosen] = self._address(self.at[np.searchsorted(self.row, goal)], self.group[chosen])

    @property
    def ends(self) -> Addresses:
        """Where the code of each row ends; of rows that are left out, anywhere."""
        if not len(self.row):  # all are left out
            return np.zeros(len(self.pieces.own_size), np.uint64)
        after = np.searchsorted(self.row, np.arange(len(self.pieces.own_size)), "right")
        last = np.maximum(after - 1, 0)
        return self._address(self.at[last + 1], self.group[last])

    def places(self, owner: Numbers) -> tuple[Addresses, Addresses]:
        """Where the code of each piece begins and ends: `owner` says of which piece each part is. Of those without
        code both are 0."""
        pieces = np.arange(len(self.pieces.template))
        first, after = np.searchsorted(owner, pieces), np.searchsorted(owner, pieces, "right")
        some = first < after
        found = np.zeros((2, len(pieces)), np.uint64)
        first, after = first[some], after[some]
        found[0, some] = self._address(self.at[first], self.group[first])
        found[1, some] = self._address(self.at[after], self.group[first])
        return found[0], found[1]

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

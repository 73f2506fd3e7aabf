"""Records of many hits -> those that are equal in what the clauses of their sites read, taken together.

A site has a kind: which columns of its records its clauses read, and, if they do not read the probe, which clauses. The
records of one kind are compared by these columns only. Of the stack it is not known in advance which words are read:
the first record of some that are equal so far says it, and those that differ in these words are compared again.

Each group fires when its first record would, so that keys of aggregations come in the order in which they would come.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.hits.actions import Alike, alike_of
from kinst.runtime.hits.distinct import distinct
from kinst.runtime.tracing.standalone.columns import CpuSource
from kinst.runtime.tracing.standalone.forms import Form, Forms
from kinst.runtime.trap.trap import Enabling
from kinst.targets.values import dataclass

_SITE: Final = 0  # the column
_SINGLE: Final = 0  # the kind of sites whose records fire one by one
_UNKNOWN: Final = -1
Rows = NDArray[np.intp]
Records = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Records of one kind have the same meaning, and the same form. `columns`: what is read, without the stack."""

    form: int
    columns: tuple[int, ...]
    has_stack: bool
    clauses: tuple[int, ...]  # their identities; none where the site is among the columns


@dataclass(order=True, slots=True)
class Group:
    """Records of one kind that are equal in what is read, as far as that is known: the first of them, and how many.
    `rows` has all of them where more is to be known; else it is None."""

    first: int
    hits: int
    kind: int
    rows: Rows | None = field(compare=False, default=None)


class Turns:
    """The order in which records fire: groups, and between them the rows of those that fire one by one. It can change
    while it is iterated over."""

    def __init__(self, groups: list[Group], single: Rows) -> None:
        """`groups` in any order; `single` ascending."""
        heapify(groups)
        self._groups, self._single = groups, single

    def __iter__(self) -> Iterator[Group | Rows]:
        while self._groups or len(self._single):
            end = len(self._single)
            if self._groups:
                end = int(np.searchsorted(self._single, self._groups[0].first))
            if end:
                rows, self._single = self._single[:end], self._single[end:]
                yield rows
            else:
                yield heappop(self._groups)

    def again(self, group: Group) -> None:
        """Let a group have a turn."""
        heappush(self._groups, group)

    def take(self, kind: int) -> list[Group]:
        """The groups of a kind that have not had their turn, which they will not have."""
        found = [group for group in self._groups if group.kind == kind]
        self._groups = [group for group in self._groups if group.kind != kind]
        heapify(self._groups)
        return found

    def apart(self, rows: Rows) -> None:
        """Let some records fire one by one, in their turn."""
        self._single = np.sort(np.concatenate([self._single, rows]))


class AlikeRecords:
    """The sites of one image."""

    def __init__(self, forms: Forms, cpu: CpuSource, enablings: Callable[[int], Sequence[Enabling]]) -> None:
        """`enablings` gives those of the site in a row."""
        self._forms, self._cpu, self._enablings = forms, cpu, enablings
        self._numbers: dict[_Kind, int] = {}
        self._kinds: list[_Kind | None] = [None]  # by number; the first stands for `_SINGLE`
        self._kind_of = np.zeros(0, np.int32)  # by row of a site
        self._faulty = set[int]()  # identities of what has faulted

    def turns(self, records: Records) -> Turns:
        """The order in which records fire."""
        kinds, groups = self._kinds_of(records[:, _SITE]), list[Group]()
        present = np.flatnonzero(np.bincount(kinds, minlength=len(self._kinds))).tolist()
        for number in present:
            kind = self._kinds[number]
            if kind is not None:
                rows = None if len(present) == 1 else np.flatnonzero(kinds == number)
                groups += self._groups(number, kind, records, rows)
        return Turns(groups, np.flatnonzero(kinds == _SINGLE))

    def give_up(self, alike: Alike, group: Group, records: Records, turns: Turns) -> None:
        """An action has faulted at the first record of a group: from now on the records of its sites fire one by one,
        and now those of the group's kind that have not fired."""
        left = [group, *turns.take(group.kind)]
        if group.rows is None:
            kind = self._kinds[group.kind]
            assert kind is not None, "records that fire one by one are in no group"
            rows = np.flatnonzero(self._kinds_of(records[:, _SITE]) == group.kind)
            left = [one for one in _by_rows(self._keys(kind, records[rows]), rows, 0) if one.first >= group.first]
        turns.apart(np.concatenate([one.rows for one in left if one.rows is not None]))
        self._faulty.add(id(alike))
        self._kind_of.fill(_UNKNOWN)

    # -- kinds --------------------------------------------------------------------------------------------------------

    def _kinds_of(self, sites: Records) -> NDArray[np.int32]:
        rows = sites.astype(np.intp)
        highest = int(rows.max(initial=-1))
        if highest >= len(self._kind_of):
            more = np.full(highest + 1 - len(self._kind_of), _UNKNOWN, np.int32)
            self._kind_of = np.concatenate([self._kind_of, more])
        found: NDArray[np.int32] = self._kind_of[rows]
        if found.min(initial=0) < 0:
            for row in np.unique(rows[found < 0]).tolist():
                self._kind_of[row] = self._number_of(row)
            found = self._kind_of[rows]
        return found

    def _number_of(self, row: int) -> int:
        kind = self._kind(self._forms.number(row), self._enablings(row))
        if kind is None:
            return _SINGLE
        number = self._numbers.setdefault(kind, len(self._kinds))
        if number == len(self._kinds):
            self._kinds.append(kind)
        return number

    def _kind(self, number: int, enablings: Sequence[Enabling]) -> _Kind | None:
        """The kind of sites whose records have the form of that number. None: their records fire one by one."""
        columns, has_stack, clauses = set[int](), False, list[int]()
        form = self._forms.several[number]
        for one in enablings:
            alike = alike_of(one.action)
            own = None if alike is None or id(alike) in self._faulty else self._read(one, alike, form)
            if alike is None or own is None:
                return None
            columns |= own
            has_stack |= alike.reads.has_memory and form.columns.stack is not None
            clauses.append(id(alike))
        return _Kind(number, tuple(sorted(columns)), has_stack, () if _SITE in columns else tuple(clauses))

    def _read(self, enabling: Enabling, alike: Alike, form: Form) -> set[int] | None:
        """The columns that an action reads of the records of a probe; None: more than that."""
        reads, columns, known = alike.reads, form.columns, form.registers
        found = {known[number] for number in reads.registers if number in known}
        if reads.has_probe:
            found.add(_SITE)
        if reads.has_task or reads.has_memory:
            found |= {*columns.members.values(), *(() if columns.task is None else (columns.task,))}
        if reads.has_memory:
            found |= {*columns.behind.values()}
            found |= {*known.values(), *(() if columns.stack is None else (columns.stack,))}
        for index in reads.arguments:
            own, registers = columns.named.get(f"arg{index}"), enabling.registers(index)
            if own is None and registers is None:
                return None
            if own is None or registers is None:
                found.add(_SITE)  # probes have different arguments
            found |= {known[number] for number in registers or () if own is None and number in known}
            found |= set() if own is None else {own}
        return found

    # -- groups -------------------------------------------------------------------------------------------------------

    def _groups(self, number: int, kind: _Kind, records: Records, rows: Rows | None) -> Iterator[Group]:
        """`rows` are those of the kind; None: all."""
        keys = self._keys(kind, records if rows is None else records[rows])
        if kind.has_stack:
            return _by_rows(keys, np.arange(len(records)) if rows is None else rows, number)
        first, hits = distinct(keys)
        places = first if rows is None else rows[first]
        return (Group(one, count, number) for one, count in zip(places.tolist(), hits.tolist(), strict=True))

    def _keys(self, kind: _Kind, records: Records) -> Records:
        """(columns, records) what must be equal."""
        keys, cpu = records[:, list(kind.columns)].T, self._forms.several[kind.form].columns.cpu
        cpus = np.zeros(len(records), np.uint64) if cpu is None else self._cpu.numbers(records[:, cpu])
        return np.ascontiguousarray(np.concatenate([keys, cpus[None]]))

    def without(self, group: Group, records: Records, words: set[int]) -> tuple[int, Group | None]:
        """How many of a group are equal to its first in some words of the stack as well, and the others."""
        if group.rows is None or group.hits == 1:
            return group.hits, None
        kind = self._kinds[group.kind]
        at = None if kind is None else self._forms.several[kind.form].columns.stack
        assert at is not None, "without a stack groups are final"
        read = records[np.ix_(group.rows, np.array(sorted(words), np.intp) + at + 1)]
        left = group.rows[(read != read[0]).any(axis=1)]
        others = Group(int(left[0]), len(left), group.kind, left) if len(left) else None
        return len(group.rows) - len(left), others


def _by_rows(keys: Records, rows: Rows, kind: int) -> Iterator[Group]:
    """Groups with all of their rows."""
    order = np.lexsort(keys)
    ordered = keys[:, order]
    borders = np.flatnonzero((ordered[:, 1:] != ordered[:, :-1]).any(axis=0)) + 1
    for some in np.split(order, borders):
        own = rows[some]  # ascending: the sort is stable
        yield Group(int(own[0]), len(own), kind, own)

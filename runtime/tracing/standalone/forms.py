"""What the records of one image have, site by site: a form has the columns of its fields."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.tracing.standalone.columns import Columns, CpuSource, columns_of
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.standalone import RETURN_ADDRESS, stack_of
from kinst.targets.values import dataclass

Records = NDArray[np.uint64]
Rows = NDArray[np.intp]
_SITE = 0  # the column
_LAST = np.uint64((1 << 64) - 1)  # a time after all others


@dataclass(frozen=True, slots=True)
class Form:
    """The columns of one form. `registers` has those of registers, by their index in the trap frame; the registers
    that are `known` are these and the PC. `has_frames`: the stack has more than a return address."""

    columns: Columns
    registers: Mapping[int, int]
    known: frozenset[int]
    has_frames: bool


class Forms:
    """The forms of an image's records."""

    def __init__(self, several: Sequence[Sequence[str]], of_sites: Rows, cpu: CpuSource, arch: ArchFacts) -> None:
        """`several` has the fields of each form, `of_sites` the number of the form of each site, by row."""
        self.several = tuple(_form(fields, cpu, arch) for fields in several)
        self._rows, self._numbers = of_sites, of_sites.tolist()
        self._is_one = len(self.several) == 1

    def number(self, row: int) -> int:
        """Which of `several` the site in a row records."""
        return 0 if self._is_one else self._numbers[row]

    def of(self, row: int) -> Form:
        """That of the site in a row."""
        return self.several[self.number(row)]

    def split(self, records: Records) -> Iterator[tuple[Form, Rows | slice]]:
        """Each form that these records have, and which of them have it."""
        if self._is_one:
            yield self.several[0], slice(None)
            return
        numbers = self._rows[records[:, _SITE].astype(np.intp)]
        for number in np.unique(numbers).tolist():
            yield self.several[number], np.flatnonzero(numbers == number)

    def plain(self, records: Records) -> list[list[int]]:
        """The words of each record before its stack."""
        if self._is_one:
            words: list[list[int]] = records[:, : self.several[0].columns.plain].tolist()
            return words
        found: list[list[int]] = [[]] * len(records)
        for form, rows in self.split(records):
            for row, one in zip(
                np.arange(len(records))[rows].tolist(), records[rows, : form.columns.plain].tolist(), strict=True
            ):
                found[row] = one
        return found

    def times(self, records: Records) -> tuple[Records, NDArray[np.bool_]]:
        """The time of each record, and whether it has one."""
        times, has_time = np.zeros(len(records), np.uint64), np.zeros(len(records), np.bool_)
        for form, rows in self.split(records):
            if form.columns.time is not None:
                times[rows], has_time[rows] = records[rows, form.columns.time], True
        return times, has_time

    def in_order(self, records: Records) -> Records:
        """Records of all CPUs, sorted by their time, which a writer reads when it has taken its place in the ring.
        Those of the same time stay in the order of their places."""
        times, has_time = self.times(records)
        if not has_time.any():
            return records
        # One without a time comes before the first that has a later place and a time. What its CPU took before it has
        # an earlier one: clocks are read behind places, and those of CPUs agree.
        times[~has_time] = _LAST
        filled = np.where(has_time, times, np.minimum.accumulate(times[::-1])[::-1])
        return records[np.argsort(filled, kind="stable")]


def _form(fields: Sequence[str], cpu: CpuSource, arch: ArchFacts) -> Form:
    columns, names = columns_of(fields, cpu), arch.registers
    registers = {names.index(name): column for name, column in columns.named.items() if name in names}
    words = max((one.words for one in map(stack_of, fields) if one is not None), default=0)
    return Form(columns, registers, frozenset((*registers, arch.pc)), words > RETURN_ADDRESS)

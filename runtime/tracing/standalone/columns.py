"""The fields of records -> their columns in a row of `Findings`, and which of them are words of memory."""

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.standalone import CPU, TASK, TIME, behind_of, member_of, stack_of, width_of
from kinst.targets.values import dataclass

_SITE = 1  # columns before the first field


@dataclass(frozen=True, slots=True)
class CpuSource:
    """Which field has the number of the CPU, in which bits, and the CPUs of numbers that are not consecutive."""

    name: str = CPU
    shift: int = 0
    mask: int = (1 << 64) - 1
    order: Mapping[int, int] = field(default_factory=dict)

    def cpu(self, word: int) -> int:
        """The CPU that a word of it names."""
        number = word >> self.shift & self.mask
        return self.order.get(number, number)

    def numbers(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The numbers in words, as they are there."""
        return words >> np.uint64(self.shift) & np.uint64(self.mask)


def own_number(arch: ArchFacts) -> CpuSource:
    """The number that the hardware gives the CPU."""
    return CpuSource(mask=arch.cpu_number.mask)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a record's fields. Registers and arguments are in `named`, words of the current task in `members`,
    by offset, and those behind pointers in it in `behind`, by the offsets of both. None: there is no such field.
    `plain`: how many come before the stack, which is the last field if it is there."""

    named: Mapping[str, int]
    members: Mapping[int, int]
    behind: Mapping[tuple[int, int], int]
    time: int | None
    cpu: int | None
    task: int | None
    stack: int | None
    plain: int


def columns_of(fields: Sequence[str], cpu: CpuSource) -> Columns:
    """The columns of these fields."""
    starts = np.cumsum([_SITE, *map(width_of, fields)]).tolist()
    at = dict(zip(fields, starts, strict=False))
    members = {offset: column for name, column in at.items() if (offset := member_of(name)) is not None}
    behind = {offsets: column for name, column in at.items() if (offsets := behind_of(name)) is not None}
    stack = next((column for name, column in at.items() if stack_of(name) is not None), None)
    special = {TIME, CPU, TASK}
    named = {
        name: column
        for name, column in at.items()
        if name not in special and not any(of(name) is not None for of in (member_of, behind_of, stack_of))
    }
    return Columns(
        named=named,
        members=members,
        behind=behind,
        time=at.get(TIME),
        cpu=at.get(cpu.name),
        task=at.get(TASK),
        stack=stack,
        plain=starts[-1] if stack is None else stack,
    )

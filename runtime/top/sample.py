"""A sample of a guest for the live view: plain values, taken in the guest's thread and drawn in another."""

from collections.abc import Mapping
from typing import Final

from kinst.runtime.clauses.environment import TaskState
from kinst.runtime.tracing.host.ending import CpuPlace
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one aggregation."""

    title: str  # @calls
    heading: str  # of the values: count, avg, ...
    values: Mapping[str, int]  # by key, as it is shown; of a distribution the number of values in it
    pictures: Mapping[str, str]  # of distributions: a character for each bucket
    is_growing: bool  # whether values say how often or how much, so that they have a rate


NOTHING: Final = Table("", "count", {}, {}, is_growing=True)  # before there is a sample


@dataclass(frozen=True, slots=True)
class CpuView:
    """One CPU."""

    place: CpuPlace
    level: str  # EL1, ring 0, ...; empty if it is off
    task: str  # the name and number of the task that it runs; empty if no system is known


@dataclass(frozen=True, slots=True)
class Sample:
    """A guest at one moment."""

    wall: int  # ns of the host's time for which it ran
    time: int  # ns of the machine's time
    tables: tuple[Table, ...]
    cpus: tuple[CpuView, ...]
    tasks: tuple[TaskState, ...]

"""Probes that fire -> the task that each CPU runs, sampled at its probes.

Only changes are kept. A task that ran between two probes of a CPU, without one of its own, is not noticed.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import field

from kinst.runtime.clauses.environment import GuestProfile
from kinst.runtime.trap.trap import Firing
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the guest's operating system: D's tid, pid and execname. tid 0 is the idle task of each CPU."""

    tid: int
    pid: int
    name: str


@dataclass(slots=True)
class _Cpu:
    times: list[int] = field(default_factory=list)  # ns, ascending
    tasks: list[Task] = field(default_factory=list)


class TasksSeen:
    """The tasks of all CPUs."""

    def __init__(self, profile: GuestProfile, now: Callable[[], int]) -> None:
        """`profile` gives the tasks, `now` the time in ns."""
        self._integer, self._string, self._now = profile.integer, profile.string, now
        self._is_known = not profile.why_not("pid")
        self._cpus: dict[int, _Cpu] = {}

    def note(self, firing: Firing) -> None:
        """A probe fires."""
        if firing.thread < 0 or not self._is_known:  # BEGIN and END fire in no task
            return
        tid, name = self._integer(firing, "tid"), self._string(firing, "execname")
        if not tid and not name:  # no task runs yet
            return
        cpu = self._cpus.setdefault(firing.cpu, _Cpu())
        task = Task(tid, self._integer(firing, "pid"), name.decode(errors="backslashreplace"))
        if not cpu.tasks or cpu.tasks[-1] != task:
            cpu.times.append(self._now())
            cpu.tasks.append(task)

    def at(self, cpu: int, time: int) -> Task | None:
        """The task of a CPU at a time (ns) of a record; None: none is known."""
        seen = self._cpus.get(cpu)
        place = 0 if seen is None else bisect_right(seen.times, time)
        return seen.tasks[place - 1] if seen is not None and place else None

    def changes(self) -> Iterator[tuple[int, list[int], list[Task]]]:
        """Each CPU with the times (ns) at which another task was seen, and those tasks."""
        for cpu, seen in sorted(self._cpus.items()):
            yield cpu, seen.times, seen.tasks

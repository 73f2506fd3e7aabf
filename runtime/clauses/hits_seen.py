"""Probes that fire -> how often each did, and when, by CPU and by task: for the timeline and coverage of a report.

Hits that are dispatched have their own time. Those that the engine counted are known only as a number since the last
snapshot, by CPU: they are spread evenly over that time, in the task that was last seen on that CPU.
"""

from collections import Counter
from collections.abc import Callable, MutableSequence

from kinst.runtime.clauses.tasks_seen import Task, TasksSeen
from kinst.runtime.clauses.time_bins import TimeBins
from kinst.runtime.trap.trap import Enabling, Firing


class HitsSeen:
    """All hits of a run, but for BEGIN and END, which fire in the code of no CPU."""

    def __init__(self, start: int, now: Callable[[], int], tasks: TasksSeen | None) -> None:
        """`start` is when the run begins, and `now` gives the time (ns)."""
        self.by_probe: Counter[int] = Counter()  # by identifier
        self.by_cpu = TimeBins(start)
        self.by_task = TimeBins(start)
        self._now, self._tasks = now, tasks
        self._counted: Counter[int] = Counter()  # by CPU: counted hits since `_since`
        self._since = start
        self._is_over = False

    def note(self, firing: Firing) -> None:
        """A probe fires."""
        if firing.thread < 0 or self._is_over:
            return
        now, cpu = self._now(), firing.cpu
        self.by_probe[firing.enabling.probe] += 1
        self.by_cpu.add(cpu, now)
        task = self._task(cpu, now)
        if task is not None:
            self.by_task.add(task, now)

    def count(self, enabling: Enabling, cpu: int, hits: int, _regs: MutableSequence[int]) -> None:
        """A probe fired several times since the last `spread_counted`."""
        if self._is_over:
            return
        self.by_probe[enabling.probe] += hits
        self._counted[cpu] += hits

    def stop(self) -> None:
        """Tracing is over: probes that fire from now on run no clause, and are not hits."""
        self._is_over = True

    def spread_counted(self) -> None:
        """Spread the hits that were counted since the last call over the time since then. Call it after `count`."""
        now = self._now()
        for cpu, hits in self._counted.items():
            self.by_cpu.spread(cpu, self._since, now, hits)
            task = self._task(cpu, now)
            if task is not None:
                self.by_task.spread(task, self._since, now, hits)
        self._counted.clear()
        self._since = now

    def _task(self, cpu: int, time: int) -> Task | None:
        return None if self._tasks is None else self._tasks.at(cpu, time)

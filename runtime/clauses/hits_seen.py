"""Probes that fire -> how often each did, and when, by CPU and by task: what a report shows beside the output.

Hits that are dispatched have their own time. Those that the engine counted are known when they are asked for: they
came since the last time, on that CPU, and the task is the one seen there last.
"""

from collections import Counter
from collections.abc import Callable, MutableSequence

from kinst.runtime.clauses.tasks_seen import Task, TasksSeen
from kinst.runtime.clauses.time_bins import TimeBins
from kinst.runtime.trap.trap import Enabling, Firing


class HitsSeen:
    """All hits of a run. Probes that fire in no CPU's code, BEGIN and END, are not among them."""

    def __init__(self, start: int, now: Callable[[], int], tasks: TasksSeen | None) -> None:
        """`start` is when the run begins, and `now` tells the time (ns)."""
        self.by_probe: Counter[int] = Counter()  # by identifier
        self.by_cpu = TimeBins(start)
        self.by_task = TimeBins(start)
        self._now, self._tasks = now, tasks
        self._counted: Counter[int] = Counter()  # by CPU: hits since `_asked`, when what was counted was told last
        self._asked = start
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
        """A probe fired several times since the last `asked`."""
        if self._is_over:
            return
        self.by_probe[enabling.probe] += hits
        self._counted[cpu] += hits

    def stop(self) -> None:
        """Tracing is over: what fires from now on runs no clause."""
        self._is_over = True

    def asked(self) -> None:
        """All that was counted until now has been told."""
        now = self._now()
        for cpu, hits in self._counted.items():
            self.by_cpu.spread(cpu, self._asked, now, hits)
            task = self._task(cpu, now)
            if task is not None:
                self.by_task.spread(task, self._asked, now, hits)
        self._counted.clear()
        self._asked = now

    def _task(self, cpu: int, time: int) -> Task | None:
        return None if self._tasks is None else self._tasks.at(cpu, time)

"""Records and aggregations -> tracks and events of a Perfetto trace.

Where tasks are known, each has a track in its process; probes that fire in no task, or in the idle task, are on the
track of their CPU. Entry and return of a function make a span, other probes are instants, and what clauses recorded is
in their arguments. Each key of an aggregation is a counter.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from kinst.runtime.clauses.environment import Record
from kinst.runtime.clauses.tasks_seen import Task, TasksSeen
from kinst.runtime.consumer.documents.argument_names import named_values, value_names
from kinst.runtime.consumer.documents.json_values import Json, JsonValues
from kinst.runtime.consumer.flow import Flow, flow_of
from kinst.runtime.consumer.perfetto.counters import Counters
from kinst.runtime.consumer.perfetto.trace import PerfettoTrace, Track
from kinst.runtime.consumer.spans import SpanStack
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang.program import Clause
from kinst.runtime.providers.provider import Probe

_UNFINISHED: Final = {"unfinished": True}  # the return was not seen


@dataclass(slots=True)
class _Fired:
    """What the clauses of a probe recorded when it fired."""

    time: int
    cpu: int
    probe: Probe
    clause: int  # the last one
    arguments: dict[str, Json]


@dataclass(slots=True)
class _Lane:
    """A track and the spans that are open on it."""

    track: Track
    stack: SpanStack = field(default_factory=SpanStack)


class PerfettoDocument:
    """Implements `document_output.Document`."""

    def __init__(
        self, output: BinaryIO, clauses: Sequence[Clause], totals: Totals, values: JsonValues, tasks: TasksSeen
    ) -> None:
        """Write the beginning of the trace."""
        self._output = output
        self._trace = PerfettoTrace(output)
        self._clauses, self._tasks = clauses, tasks
        self._lanes = _Lanes(self._trace)
        self._counters = Counters(self._trace, clauses, totals, values)
        self._fired: list[_Fired] = []
        self._last: dict[int, _Fired] = {}  # by CPU
        self._names: dict[int, tuple[str, ...]] = {}  # of a clause's values
        self._meanings: dict[int, tuple[Flow, Hashable]] = {}  # by probe
        self._end = 0  # ns: the latest time that is known

    def record(self, record: Record, probe: Probe, objects: Sequence[Json]) -> None:
        """See `Document`. The records of one firing are consecutive, in the order of their clauses, and make one
        event."""
        cpu, _, clause, time, _ = record
        names = self._names.get(clause)
        if names is None:
            names = self._names[clause] = value_names(self._clauses[clause])
        for one in objects:
            for aggregation in one.get("aggregations", ()):
                self._counters.printed(time, aggregation)
        before = self._last.get(cpu)
        if before is not None and before.probe.identifier == probe.identifier and before.clause < clause:
            before.clause = clause
            before.arguments.update(named_values(objects, names))
            return
        self._last[cpu] = fired = _Fired(time, cpu, probe, clause, dict(named_values(objects, names)))
        self._fired.append(fired)

    def sample(self, now: int) -> None:
        """Add the aggregations in `totals` as their values at `now`."""
        self._end = max(self._end, now)
        self._counters.sample(now)

    def flush(self) -> None:
        """See `Document`. Events are sorted first: a committed speculation has records that are older than those
        before."""
        for fired in sorted(self._fired, key=lambda fired: fired.time):
            self._show(fired)
        self._fired.clear()
        self._last.clear()
        self._output.flush()

    def _show(self, fired: _Fired) -> None:
        self._end = max(self._end, fired.time)
        lane = self._lanes.of(fired.cpu, self._tasks.at(fired.cpu, fired.time))
        probe, time = fired.probe, fired.time
        flow, function = self._meanings.get(probe.identifier) or self._meaning(probe)
        if flow is Flow.ENTRY:
            lane.stack.enter(function)
            self._trace.begin(lane.track, time, probe.function, probe.provider, fired.arguments)
            return
        ended = lane.stack.leave(function) if flow is Flow.RETURN else 0
        for _ in range(ended - 1):
            self._trace.end(lane.track, time, _UNFINISHED)
        if ended:
            self._trace.end(lane.track, time, fired.arguments)
        else:
            name = f"{probe.function}:{probe.name}" if probe.function else probe.name
            self._trace.instant(lane.track, time, name, probe.provider, fired.arguments)

    def _meaning(self, probe: Probe) -> tuple[Flow, Hashable]:
        """Whether a probe begins or ends a span, and of which function."""
        found = flow_of(probe.name), (probe.provider, probe.module, probe.function)
        self._meanings[probe.identifier] = found
        return found

    def finish(self) -> None:
        """See `Document`."""
        self.flush()
        for lane in self._lanes:
            for _ in range(len(lane.stack)):
                self._trace.end(lane.track, self._end, _UNFINISHED)
        for cpu, times, tasks in self._tasks.changes():
            self._show_tasks(cpu, times, tasks)
        self._output.flush()

    def _show_tasks(self, cpu: int, times: Sequence[int], tasks: Sequence[Task]) -> None:
        """Add a track with the task in which each probe of a CPU fired."""
        track = self._trace.track(f"CPU {cpu}: task at its probes")
        for task, start, end in zip(tasks, times, [*times[1:], max(self._end, times[-1])], strict=True):
            name = f"{task.name} {task.tid}" if task.tid else task.name
            self._trace.begin(track, start, name, "task", {"tid": task.tid, "pid": task.pid})
            self._trace.end(track, end, {})


class _Lanes:
    """The tracks of tasks and CPUs, made when something happens on them."""

    def __init__(self, trace: PerfettoTrace) -> None:
        self._trace = trace
        self._lanes: dict[tuple[str, int], _Lane] = {}
        self._tasks: dict[int, Task] = {}  # as their tracks describe them, by tid
        self._processes: dict[int, tuple[Track, str]] = {}  # by pid; with the name

    def __iter__(self) -> Iterator[_Lane]:
        return iter(self._lanes.values())

    def of(self, cpu: int, task: Task | None) -> _Lane:
        """The track for probes on a CPU while it runs a task."""
        if task is None:
            return self._plain("cpu", cpu, f"CPU {cpu}")
        if not task.tid:
            return self._plain("idle", cpu, f"{task.name.partition('/')[0]}/{cpu}")
        lane = self._lanes.get(("task", task.tid))
        if lane is None:
            track = self._trace.thread(task.pid, task.tid, task.name, self._process(task))
            lane = self._lanes["task", task.tid] = _Lane(track)
        elif self._tasks[task.tid] != task:  # exec(), or a new task with an old number
            self._trace.thread(task.pid, task.tid, task.name, self._process(task), lane.track)
        self._tasks[task.tid] = task
        return lane

    def _plain(self, kind: str, cpu: int, name: str) -> _Lane:
        lane = self._lanes.get((kind, cpu))
        if lane is None:
            lane = self._lanes[kind, cpu] = _Lane(self._trace.track(name))
        return lane

    def _process(self, task: Task) -> Track:
        """The track of a task's process, which has the name of its first thread."""
        track, name = self._processes.get(task.pid, (0, ""))
        if not track or (task.tid == task.pid and task.name != name):
            track = self._trace.process(task.pid, task.name, track)
            self._processes[task.pid] = track, task.name
        return track

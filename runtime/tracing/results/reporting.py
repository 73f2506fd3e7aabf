"""A run with its output -> the same output, and a report: one HTML page, written when the run is over."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

from kinst.rewriter.disassemble import disassemble
from kinst.runtime.clauses.environment import ErrorRecord, Record
from kinst.runtime.clauses.tasks_seen import Task
from kinst.runtime.clauses.time_bins import TimeBins
from kinst.runtime.consumer.documents.json_values import JsonValues
from kinst.runtime.consumer.messages import Drop
from kinst.runtime.consumer.pictures.added_over_time import AddedOverTime
from kinst.runtime.consumer.pictures.flame_graph import FlameGraph
from kinst.runtime.consumer.pictures.folded_stacks import StackReader, with_stacks
from kinst.runtime.consumer.pictures.heat_map import HeatRow, Panel, heat_map
from kinst.runtime.consumer.pictures.heat_map_output import panels_of
from kinst.runtime.consumer.report.callers import callers_and_callees
from kinst.runtime.consumer.report.collected import Collected
from kinst.runtime.consumer.report.coverage import coverage
from kinst.runtime.consumer.report.page import Report, report_lines
from kinst.runtime.consumer.report.tables import Records, aggregation_tables, aggregations_of
from kinst.runtime.providers.provider import Probe
from kinst.runtime.tracing.documents import title_of
from kinst.runtime.tracing.outputs import Consumer
from kinst.runtime.tracing.results.report_facts import Watch, facts
from kinst.runtime.tracing.results.run_coverage import RunCoverage
from kinst.runtime.tracing.timers.frequent_snapshots import sample_often
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import ImageError, UsageError
from kinst.targets.manifest.packed import Manifest, ProbeKind

_TASKS: Final = 24  # rows of the timeline
_LONGEST: Final = 16  # bytes of an instruction
_INSTRUCTIONS: Final = 50_000  # that are shown


class Reporting:
    """An output that also collects for a report; implements `outputs.Consumer`."""

    def __init__(
        self,
        consumer: Consumer,
        tracing: Tracing,
        page: BinaryIO,
        command: Sequence[str],
        covered: RunCoverage | None = None,
    ) -> None:
        """`page` receives the report of what `command` ran, with the code that ran, if that is known. The tracer
        records hits, times and tasks."""
        tracer = tracing.tracer
        self._covered = covered
        self._consumer, self._tracing, self._page, self._command = consumer, tracing, page, command
        self._watch, self._start = Watch(), tracer.now()
        self._values = JsonValues(tracer.symbols)
        self._collected = Collected(tracer.totals, self._values, tracer.probe)
        self._added = AddedOverTime(self._start)
        sample_often(tracer, self._added.add)

    @property
    def status(self) -> int | None:
        """See `Consumer`."""
        return self._consumer.status

    def consume(self, taken: Sequence[Record | ErrorRecord | bytes]) -> None:
        """See `Consumer`."""
        self._collected.consume(taken)
        self._consumer.consume(taken)

    def drops(self, drops: Iterable[Drop]) -> None:
        """See `Consumer`."""
        lost = list(drops)
        self._collected.drops(lost)
        self._consumer.drops(lost)

    def notices(self, notices: Iterable[str]) -> None:
        """See `Consumer`."""
        lines = list(notices)
        self._collected.notices(lines)
        self._consumer.notices(lines)

    def flush(self) -> None:
        """See `Consumer`."""
        self._consumer.flush()

    def finish(self, end: Mapping[str, Any] | None) -> None:
        """Finish the output, and write the page."""
        self._consumer.finish(end)  # first: the output must be whole even if the page cannot be written
        for line in report_lines(self._report(end or {})):
            self._page.write(line.encode("utf-8", "backslashreplace") + b"\n")
        self._page.flush()

    # -- the page -----------------------------------------------------------------------------------------------------

    def _report(self, end: Mapping[str, Any]) -> Report:
        tracer, collected = self._tracing.tracer, self._collected
        assert tracer.hits is not None, "a request with a report records hits"
        reason = str(end.get("reason", ""))
        records = Records(tracer.clauses, tracer.probe, tracer.symbols, self._start)
        flame, calls = self._stacks()
        code, style = self._code()
        probes = [probe for number in tracer.enabled if (probe := tracer.probe(number)) is not None]
        return Report(
            title=title_of(self._tracing.request),
            outcome=f"ended: {reason}",
            is_failure=reason in ("error", "panic"),
            facts=list(facts(self._tracing, self._command, self._watch, self._start, end)),
            messages=collected.messages,
            message_count=collected.message_count,
            console=collected.console,
            records=list(records.rows(collected)),
            record_count=collected.record_count,
            aggregations=list(self._aggregations()),
            coverage=coverage(probes, tracer.hits.by_probe, self._instructions(probes)),
            timeline=self._timeline(),
            flame=flame,
            calls=calls,
            code=code,
            code_style=style,
        )

    def _code(self) -> tuple[str, str]:
        """The code that ran, as HTML, and its style."""
        if self._covered is None:
            return "", ""
        from kinst.runtime.coverage.page import coverage_parts, coverage_style  # few runs are counted

        return "\n".join(coverage_parts(self._covered.coverage, self._covered.lines_of)), coverage_style()

    def _aggregations(self) -> Iterator[dict[str, Any]]:
        tracer = self._tracing.tracer
        aggregations = aggregations_of(tracer.clauses)
        by_name = {one.shown: one for one in aggregations}
        for table in aggregation_tables(aggregations, tracer.totals, self._values, self._collected):
            panels = list(panels_of(by_name[table["name"]], self._added, self._values))
            if any(panel.columns > 1 for panel in panels):
                table["heat"] = _drawn(heat_map(table["name"], f"{table['function']}() over time", panels, "values"))
            yield table

    def _timeline(self) -> str:
        hits = self._tracing.tracer.hits
        if hits is None or not hits.by_cpu:
            return ""
        cpus = [HeatRow(f"CPU {cpu}", counts) for cpu, counts in sorted(hits.by_cpu, key=lambda item: str(item[0]))]
        panels = [Panel("by CPU", cpus, hits.by_cpu.width, hits.by_cpu.columns)]
        if hits.by_task:
            panels.append(Panel("by task", list(_tasks(hits.by_task)), hits.by_task.width, hits.by_task.columns))
        return _drawn(heat_map("Hits of probes", "by CPU, and by task where tasks are known", panels, "hits"))

    def _stacks(self) -> tuple[str, list[list[Any]]]:
        """A flame graph of what was counted by stack, and who called whom there; nothing if nothing was."""
        tracer = self._tracing.tracer
        try:
            aggregations = with_stacks(tracer.clauses)
        except UsageError:
            return "", []
        reader = StackReader(tracer.totals, tracer.symbols)
        stacks = reader.stacks(aggregations)
        title = title_of(self._tracing.request)
        if not stacks:
            return "", []
        return _drawn(FlameGraph(self._page, reader, aggregations, title).pieces(stacks)), callers_and_callees(stacks)

    def _instructions(self, probes: Sequence[Probe]) -> Mapping[int, str]:
        """The instructions at kinst's probes, by identifier."""
        guest = self._tracing.guest
        if guest is None or guest.prepared.manifest is None:
            return {}
        wanted = {probe.identifier for probe in probes if probe.provider == "kinst"}
        image, found = guest.prepared.original, dict[int, str]()
        for identifier, address in _places(guest.prepared.manifest):
            if identifier in wanted and len(found) < _INSTRUCTIONS:
                try:
                    lines = disassemble(image.facts, image.read(address, _LONGEST), address)
                except ImageError:  # at the very end of a segment
                    continue
                found[identifier] = lines[0].text
        return found


def _places(manifest: Manifest) -> Iterator[tuple[int, int]]:
    """The identifiers and addresses of kinst's probes."""
    is_kinst = manifest.probes["kind"] == ProbeKind.KINST
    probes = manifest.probes[is_kinst]
    addresses = manifest.functions["address"][probes["function"]] + probes["offset"]
    yield from zip(manifest.identifiers[is_kinst].tolist(), addresses.tolist(), strict=True)


def _tasks(bins: TimeBins) -> Iterator[HeatRow]:
    """The tasks with the most hits, and the rest in one row."""
    rows = sorted(bins, key=lambda item: -sum(item[1].values()))
    for task, counts in rows[:_TASKS]:
        assert isinstance(task, Task), "rows are tasks"
        yield HeatRow(f"{task.name} {task.tid}" if task.tid else task.name, counts)
    if len(rows) > _TASKS:
        rest: dict[int, int] = {}
        for _, counts in rows[_TASKS:]:
            for column, count in counts.items():
                rest[column] = rest.get(column, 0) + count
        yield HeatRow(f"{len(rows) - _TASKS} others", rest)


def _drawn(pieces: Iterable[bytes]) -> str:
    return b"".join(pieces).decode()

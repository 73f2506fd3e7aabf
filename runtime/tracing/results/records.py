"""What a traced run reports -> Python values: records, aggregations, the console."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

from kinst.runtime.clauses.environment import ErrorRecord
from kinst.runtime.clauses.environment import Record as Recorded
from kinst.runtime.consumer.documents.json_values import JsonValues, Style
from kinst.runtime.consumer.documents.performed_actions import PerformedActions
from kinst.runtime.consumer.messages import Drop, drop_message, error_message
from kinst.runtime.consumer.pictures.flame_graph import FlameGraph
from kinst.runtime.consumer.pictures.folded_stacks import StackReader, with_stacks
from kinst.runtime.dlang.program import Aggregate
from kinst.runtime.providers.provider import Probe
from kinst.runtime.tracing.hits import Place
from kinst.runtime.tracing.results.recorded import Aggregated, FlamePicture, Record, Records
from kinst.runtime.tracing.tracer import Output, Tracer
from kinst.targets.errors import UsageError

_CONSOLE: Final = 128 << 20  # bytes of the console that are kept; when there are more, the last half of that stays
_CUT: Final = f"the guest has printed more than {_CONSOLE >> 20} MiB: only the last of it is kept"
_PYTHON: Final = Style(int, Place, bytes)
_VALUES: Final = ("value", "stack-frames", "memory")  # the keys of `json_output`'s objects that have recorded values


class Kept:
    """Keeps what a run reports until it is read; a consumer like those that print. Implements `tracer.Output`."""

    def __init__(self, tracer: Tracer, messages: list[str]) -> None:
        """`messages` receives what dtrace would print on stderr; others may add to it."""
        self._clauses = tracer.clauses
        self._describe: Callable[[int], Probe | None] = tracer.probe
        self._actions = PerformedActions(
            tracer.totals, tracer.symbols, tracer.options, JsonValues(tracer.symbols, _PYTHON)
        )
        self._records: deque[Record] = deque()
        self.console = bytearray()
        self.messages = messages
        self._on_records: Callable[[], None] | None = None  # None: nobody waits for records

    @property
    def status(self) -> int | None:
        """The status of the last exit() that was consumed; None if there was none."""
        return self._actions.status

    @contextmanager
    def calling(self, on_records: Callable[[], None]) -> Iterator[None]:
        """Within this context, call `on_records` whenever records arrive."""
        self._on_records = on_records
        try:
            yield
        finally:
            self._on_records = None

    def take(self) -> Records:
        """The records since the last time."""
        taken = Records(self._records)
        self._records.clear()
        return taken

    def consume(self, taken: Sequence[Recorded | ErrorRecord | bytes]) -> None:
        """Keep the entries, and perform the actions of the consumer, such as clear(), in the order of the entries."""
        for entry in taken:
            if isinstance(entry, tuple):
                self._consume(entry)
            elif isinstance(entry, bytes):
                self._print(entry)
            else:
                self.messages.append(error_message(entry, self._describe(entry.probe)))
        if self._records and self._on_records is not None:
            self._on_records()

    def _print(self, data: bytes) -> None:
        self.console += data
        if len(self.console) > _CONSOLE:
            del self.console[: -_CONSOLE // 2]  # half at a time: to remove each line alone would move all of it
            self.messages += () if _CUT in self.messages else (_CUT,)

    def _consume(self, record: Recorded) -> None:
        cpu, identifier, clause, time, values = record
        probe = self._describe(identifier)
        assert probe is not None, "what fired is known"
        objects = self._actions.of_record(self._clauses[clause], values)
        found = [one[key] for one in objects for key in _VALUES if key in one]
        text = "".join(one["message"] for one in objects if "message" in one)
        self._records.append(Record(probe, cpu, time, tuple(found), text))

    def drops(self, drops: Iterable[Drop]) -> None:
        """Keep messages about what was lost."""
        self.messages += [drop_message(drop, has_tag=False) for drop in drops]

    def notices(self, notices: Iterable[str]) -> None:
        """Keep messages about what destructive actions did."""
        self.messages += notices

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def finish(self, end: Mapping[str, Any] | None) -> None:
        """Do nothing: the run itself says how it ended."""


class Reader:
    """Reads what is recorded while a guest of ours runs, or a Qiling object that its owner runs."""

    def __init__(self, tracer: Tracer, kept: Kept, output: Output | None = None) -> None:
        """`tracer` has its programs and actions enabled; `output` passes on to `kept`, or it is `kept` itself."""
        self._open: tuple[Tracer, Kept, Output] | None = (tracer, kept, output or kept)

    def _read(self) -> tuple[Tracer, Kept]:
        """The tracer, and what was kept, brought up to date. Raises UsageError: it was closed."""
        if self._open is None:
            raise UsageError("the trace was closed: read what you need before")
        tracer, kept, output = self._open
        tracer.read(output)
        return tracer, kept

    def close(self) -> None:
        """Forget all that was recorded."""
        self._open = None

    def take(self) -> Records:
        """The records of clauses since the last call, in the order in which probes fired."""
        _, kept = self._read()
        return kept.take()

    def aggregation(self, name: str = "_") -> Aggregated:
        """The current content of an aggregation, by its name without the @: key -> value, in dtrace's order. The one
        that programs write as a bare `@` is `_`, which is also the default.

        A key is the value itself if the aggregation has one key, a tuple if it has several, and () if it has none. A
        value is a number; for quantize(), lquantize() and llquantize() it is a dict from the smallest value of a bucket
        to its count. The lowest bucket of the last two has no smallest value and is named -inf. Empty buckets are left
        out.

        Raises:
            UsageError: no program has an aggregation of that name.

        Example:
            >>> program = "fbt::fibonacci:entry { @ = count(); @sizes = quantize(arg0); }"
            >>> with open_image("samples/kernel-arm64.elf") as image:
            ...     trace = image.trace(program, call="fibonacci(6)")
            ...     trace.run()
            <End.RETURNED: 'returned'>
            >>> trace.aggregation()[()], trace.aggregation("sizes")[()]
            (13, {1: 5, 2: 5, 4: 3})
        """
        found = self.aggregations
        if name not in found:
            raise UsageError(f"@{name}: no such aggregation; there are {', '.join(found) or 'none'}")
        return found[name]

    @property
    def aggregations(self) -> dict[str, Aggregated]:
        """All aggregations by name, each in the form of `aggregation`."""
        tracer, _ = self._read()
        values = JsonValues(tracer.symbols, _PYTHON)
        actions = (action for clause in tracer.clauses for action in clause.actions)
        known = {one.aggregation.name: one.aggregation for one in actions if isinstance(one, Aggregate)}
        objects = (values.aggregation(one, tracer.totals.rows(one))["aggregation-data"] for one in known.values())
        return {
            name: Aggregated(one, {_key(row["keys"]): _value(row) for row in rows})
            for (name, one), rows in zip(known.items(), objects, strict=True)
        }

    def flame_graph(self, *names: str, title: str = "stacks") -> FlamePicture:
        """A flame graph of aggregations that count by stack() or ustack(), by their names; default: all of them.

        Raises:
            UsageError: there are none, or what they hold cannot be added up.
        """
        tracer, _ = self._read()
        drawn = [one for one in with_stacks(tracer.clauses) if not names or one.name in names]
        if not drawn:
            raise UsageError(f"@{', @'.join(names)}: no such aggregation counts by stack")
        reader = StackReader(tracer.totals, tracer.symbols)
        graph = FlameGraph(BytesIO(), reader, drawn, title)
        return FlamePicture(b"".join(graph.pieces(reader.stacks(drawn))))

    @property
    def console(self) -> bytes:
        """What the guest has printed so far. Of more than 128 MiB only the end is kept, at least 64 MiB, and `messages`
        says so."""
        return bytes(self._read()[1].console)

    @property
    def messages(self) -> tuple[str, ...]:
        """What dtrace prints on stderr: clauses that were aborted, records that were lost, what panic() did."""
        return tuple(self._read()[1].messages)

    @property
    def exit_status(self) -> int | None:
        """The status that a clause gave to exit(); None if none has called it."""
        return self._read()[1].status


def _key(keys: Sequence[Any]) -> Any:
    """Keys with tuples in place of lists and dicts: a key of a dict must be hashable."""
    found = tuple(map(_fixed, keys))
    return found[0] if len(found) == 1 else found


def _fixed(value: Any) -> Any:
    match value:
        case list():
            return tuple(map(_fixed, value))
        case dict():
            return tuple((name, _fixed(part)) for name, part in value.items())
        case _:
            return value


def _value(row: Mapping[str, Any]) -> Any:
    if "buckets" not in row:
        return row["value"]
    return {bucket.get("value", -math.inf): bucket["count"] for bucket in row["buckets"]}

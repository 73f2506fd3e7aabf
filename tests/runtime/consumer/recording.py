"""What consumers' tests share: probes, names of addresses, clauses, aggregations, and an output to look at."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

from kinst.runtime.clauses.aggregations import AggregationStore
from kinst.runtime.clauses.environment import ErrorRecord, Record, Value
from kinst.runtime.consumer.output import TextOutput
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang import program
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.runtime.dlang.syntax.errors import Span
from kinst.runtime.dlang.types.types import DType
from kinst.runtime.providers.provider import Probe

PROBES = {
    1: Probe(1, "dtrace", "", "", "BEGIN"),
    2: Probe(2, "dtrace", "", "", "END"),
    10: Probe(10, "fbt", "kernel", "vm_fault", "entry"),
    11: Probe(11, "fbt", "kernel", "vm_fault", "return"),
    12: Probe(12, "fbt", "kernel", "pmap_enter", "entry"),
    13: Probe(13, "fbt", "kernel", "pmap_enter", "return"),
    20: Probe(20, "syscall", "", "read", "entry"),
    21: Probe(21, "syscall", "", "read", "return"),
    30: Probe(30, "kinst", "kernel", "vm_fault", "17"),
}
_SPAN = Span("", 1, 1, 1, "")
BEGIN_LINE = b"  0      1                           :BEGIN "
HEADER = b"CPU     ID                    FUNCTION:NAME\n"


class NamedSymbols:
    """0x1000 up to 0x1fff is kernel`main, 0x2000 up only module `kernel`, the rest nothing."""

    def object_start(self, address: int, kind: str) -> int:
        return address & ~0xFFF if kind != "uaddr" else address

    def describe(self, address: int, kind: str) -> str:
        if not 0x1000 <= address < 0x3000:
            return hex(address)
        if kind == "mod":
            return "kernel"
        if address >= 0x2000:
            return f"kernel`{address:#x}"
        offset = address - 0x1000
        return "kernel`main" + (f"+{offset:#x}" if offset and kind != "sym" else "")


def expression(kind: DType) -> program.Expression:
    """Some value of a type."""
    return program.Builtin(kind, "arg0")


def clause(*actions: program.Action) -> program.Clause:
    return program.Clause("probe", None, actions, tuple(range(1, len(actions) + 1)), _SPAN, 16)


def trace(kind: DType) -> program.Trace:
    return program.Trace(expression(kind))


def printf(text: bytes, *types: DType, kind: str = "printf") -> program.Printf:
    return program.Printf(kind, text, tuple(expression(one) for one in types))


def aggregation(
    function: AggregatingFunction, *keys: DType, number: int = 1, parameters: tuple[int, ...] = ()
) -> Aggregation:
    return Aggregation(number, "abcdefgh"[number - 1], function, keys, parameters)


@dataclass(frozen=True, slots=True)
class Session:
    """What is traced: `PROBES`."""

    clauses: Sequence[program.Clause]
    totals: Totals
    options: Options
    symbols: NamedSymbols = field(default_factory=NamedSymbols)

    def probe(self, identifier: int) -> Probe | None:
        """One of them."""
        return PROBES.get(identifier)

    def epid(self, clause: int, probe: int) -> int:
        """A number that shows both."""
        return 100 * clause + probe


class Recording:
    """A session's consumer side: an output in memory, and a store that clauses would fill."""

    def __init__(self, clauses: Sequence[program.Clause] = (), **options: str | None) -> None:
        self.options = Options()
        for name, value in options.items():
            self.options.set(name, value)
        self.store = AggregationStore(None)
        self.totals = Totals(self.options)
        self.written = io.BytesIO()
        self.errors = io.StringIO()
        self.output = TextOutput(self.written, self.errors, Session(clauses, self.totals, self.options))

    def add(self, made: Aggregation, key: tuple[Value, ...], *values: int, increment: int = 1, cpu: int = 0) -> None:
        """Aggregate values and take a snapshot."""
        update = self.store.updater(made)
        for value in values:
            update(cpu, key, value, increment)
        self.totals.absorb(self.store.take())

    def consume(self, *taken: Record | ErrorRecord | bytes) -> bytes:
        """What this writes."""
        before = len(self.written.getvalue())
        self.output.consume(taken)
        self.output.flush()
        return self.written.getvalue()[before:]

    def finish(self) -> bytes:
        """What the end writes."""
        before = len(self.written.getvalue())
        self.output.finish()
        return self.written.getvalue()[before:]


def printed(action: program.Action, value: object, **options: str | None) -> bytes:
    """What one action of BEGIN prints, without header and line."""
    recording = Recording([clause(action)], **options)
    written = recording.consume((0, 1, 0, 0, (value,)))  # type: ignore[arg-type]  # any recorded value
    if recording.options.is_on("quiet"):
        return written
    return written.removeprefix(HEADER + BEGIN_LINE).removesuffix(b"\n")

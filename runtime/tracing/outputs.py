"""--format, -o and --console -> the output of a run, and the streams that it goes to."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from kinst.rewriter.fresh_file import replaced_file
from kinst.runtime.consumer.csv_output import CsvDocument
from kinst.runtime.consumer.document_output import Document, DocumentOutput
from kinst.runtime.consumer.flame_graph import FlameGraph
from kinst.runtime.consumer.folded_stacks import StackDocument, StackReader, with_stacks
from kinst.runtime.consumer.json_lines import JsonLines
from kinst.runtime.consumer.json_output import JsonOutput
from kinst.runtime.consumer.json_values import JsonValues
from kinst.runtime.consumer.output import TextOutput
from kinst.runtime.tracing.output_format import Format
from kinst.runtime.tracing.tracer import Output, Tracer
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import KinstError, MachineError, UsageError

_SAMPLED: Final = "10ms"  # between two looks at aggregations that are drawn over time, if -x aggrate does not say


class Consumer(Output, Protocol):
    """An output of the command."""

    @property
    def status(self) -> int | None:
        """The status of the last exit() that was consumed; None if there was none."""
        ...


@dataclass(frozen=True, slots=True)
class Streams:
    """Where things go. `console` is the guest's; None: to the output, in its place among the records."""

    output: BinaryIO
    console: BinaryIO | None


def check_possible(form: Format, path: Path | None) -> None:
    """Say before anything is loaded that there cannot be such an output. Raises KinstError."""
    if form is Format.PERFETTO:
        import kinst.runtime.consumer.perfetto_trace  # noqa: F401  # which says what is missing
    if form.is_binary and path is None and sys.stdout.isatty():
        raise UsageError(f"--format {form.value}: a terminal cannot show it: give -o FILE, or a pipe")


@contextmanager
def opened(form: Format, path: Path | None, console: Path | None) -> Iterator[Streams]:
    """The streams for -o `path` and --console `console`. Raises KinstError."""
    with ExitStack() as files:
        output: BinaryIO = sys.stdout.buffer
        shown: BinaryIO | None = None if form.has_console else sys.stderr.buffer
        if path is not None:
            output = files.enter_context(_appended(path) if form.is_appended else _whole(path))
            shown = sys.stdout.buffer
        if console is not None:
            shown = files.enter_context(console.open("wb"))
        yield Streams(output, shown)


@contextmanager
def _appended(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("ab")
    except OSError as error:
        raise KinstError(f"failed to open output file '{path}': {error.strerror}") from error
    with file:
        yield file


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """A file that is replaced when all of it is written, also if the guest stopped for good: the output is finished
    then."""
    stopped: MachineError | None = None
    with replaced_file(path) as file:
        try:
            yield file
        except MachineError as error:
            stopped = error
    if stopped is not None:
        raise stopped


def output_of(form: Format, tracing: Tracing, streams: Streams) -> Consumer:
    """The output in a format, of programs that are enabled. Raises KinstError: it cannot be had."""
    tracer, options = tracing.tracer, tracing.options
    clauses, totals, symbols, probe = tracer.clauses, tracer.totals, tracer.symbols, tracer.probe
    if form is Format.TEXT:
        return TextOutput(
            streams.output,
            sys.stderr,
            clauses,
            totals,
            symbols,
            probe,
            options,
            console=streams.console,
            epid=tracer.epid,
        )
    if form in (Format.JSON, Format.JSONL):
        kind = JsonOutput if form is Format.JSON else JsonLines
        return kind(streams.output, clauses, totals, symbols, probe, options, console=streams.console)
    console = streams.console or sys.stderr.buffer
    document = _document(form, tracing, streams.output)
    return DocumentOutput(document, sys.stderr, console, clauses, totals, symbols, probe, options)


def _document(form: Format, tracing: Tracing, output: BinaryIO) -> Document:
    tracer = tracing.tracer
    if form is Format.PERFETTO:
        return _perfetto(tracer, output)
    if form is Format.CSV:
        return CsvDocument(output, tracer.clauses, tracer.totals, JsonValues(tracer.symbols))
    return _of_stacks(form, tracing, output)


def _of_stacks(form: Format, tracing: Tracing, output: BinaryIO) -> Document:
    tracer = tracing.tracer
    try:
        aggregations = with_stacks(tracer.clauses)
    except UsageError as error:
        raise UsageError(f"--format {form.value}: {error}") from None
    reader = StackReader(tracer.totals, tracer.symbols)
    if form is Format.FOLDED:
        return StackDocument(output, reader, aggregations)
    request = tracing.request
    title = request.name or ("D program" if request.image is None else request.image.name)
    return FlameGraph(output, reader, aggregations, title)


def _perfetto(tracer: Tracer, output: BinaryIO) -> Document:
    from kinst.runtime.consumer.perfetto_output import PerfettoDocument  # takes a tenth of a second, and is an extra

    assert tracer.tasks is not None, "this format asks for them"
    values = JsonValues(tracer.symbols)
    document = PerfettoDocument(output, tracer.clauses, tracer.totals, values, tracer.tasks)
    if not tracer.options.is_set("aggrate"):
        tracer.options.set("aggrate", _SAMPLED)
    tracer.on_snapshot = document.sample
    return document

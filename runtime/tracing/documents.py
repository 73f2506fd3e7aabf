"""A format that is not text, and programs that are enabled -> what writes their output."""

import sys
from typing import BinaryIO, Final, Literal, assert_never

from kinst.runtime.consumer.documents.document_output import Document, DocumentOutput
from kinst.runtime.consumer.documents.json_lines import JsonLines
from kinst.runtime.consumer.documents.json_output import JsonOutput
from kinst.runtime.consumer.documents.json_values import JsonValues
from kinst.runtime.consumer.documents.table import RowWriter, TableDocument, shape_of
from kinst.runtime.consumer.pictures.flame_graph import FlameGraph
from kinst.runtime.consumer.pictures.folded_stacks import StackDocument, StackReader, with_stacks
from kinst.runtime.consumer.pictures.heat_map_output import HeatMapDocument, distributions_of
from kinst.runtime.tracing.output_format import Format
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.timers.frequent_snapshots import sample_often
from kinst.runtime.tracing.tracer import Tracer
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import UsageError

_Table = Literal[Format.CSV, Format.PARQUET, Format.ARROW]
_OfStacks = Literal[Format.FOLDED, Format.FLAMEGRAPH]
_SAMPLED: Final = "10ms"  # the aggrate of aggregations that are drawn over time, unless -x aggrate sets one


def consumer_of(
    form: Format, tracing: Tracing, output: BinaryIO, console: BinaryIO | None
) -> JsonOutput | DocumentOutput:
    """The output in a format. `console` receives the guest's console; None: the output does, or stderr if the format
    has no place for it. Raises KinstError: the format is not possible here."""
    tracer, options = tracing.tracer, tracing.options
    clauses, totals, symbols, probe = tracer.clauses, tracer.totals, tracer.symbols, tracer.probe
    match form:
        case Format.JSON | Format.JSONL:
            kind = JsonOutput if form is Format.JSON else JsonLines
            return kind(output, clauses, totals, symbols, probe, options, console=console)
        case Format.CSV | Format.PARQUET | Format.ARROW:
            document: Document = TableDocument(_rows(form, tracing, output), totals, JsonValues(symbols))
        case Format.PERFETTO:
            document = _perfetto(tracer, output)
        case Format.FOLDED | Format.FLAMEGRAPH:
            document = _of_stacks(form, tracing, output)
        case Format.HEATMAP:
            document = _heat_map(tracing, output)
        case Format.TEXT:
            raise AssertionError("text is not a document: `outputs.output_of` writes it")
        case _:
            assert_never(form)
    return DocumentOutput(document, sys.stderr, console or sys.stderr.buffer, clauses, totals, symbols, probe, options)


def title_of(request: Request) -> str:
    """What a picture of a run is called."""
    return request.name or ("D program" if request.image is None else request.image.name)


def _heat_map(tracing: Tracing, output: BinaryIO) -> Document:
    tracer = tracing.tracer
    try:
        aggregations = distributions_of(tracer.clauses)
    except UsageError as error:
        raise UsageError(f"--format heatmap: {error}") from None
    values, start = JsonValues(tracer.symbols), tracer.now()
    document = HeatMapDocument(output, aggregations, values, title_of(tracing.request), start)
    sample_often(tracer, document.sample)
    return document


def _rows(form: _Table, tracing: Tracing, output: BinaryIO) -> RowWriter:
    shape = shape_of(tracing.tracer.clauses)
    if form is Format.CSV:
        from kinst.runtime.consumer.documents.csv_output import CsvWriter

        return CsvWriter(output, shape, is_safe=tracing.request.csv_is_safe)
    from kinst.runtime.consumer.documents.arrow_output import ArrowWriter  # an extra

    return ArrowWriter(output, shape, is_parquet=form is Format.PARQUET)


def _of_stacks(form: _OfStacks, tracing: Tracing, output: BinaryIO) -> Document:
    tracer = tracing.tracer
    try:
        aggregations = with_stacks(tracer.clauses)
    except UsageError as error:
        raise UsageError(f"--format {form.value}: {error}") from None
    reader = StackReader(tracer.totals, tracer.symbols)
    if form is Format.FOLDED:
        return StackDocument(output, reader, aggregations)
    return FlameGraph(output, reader, aggregations, title_of(tracing.request))


def _perfetto(tracer: Tracer, output: BinaryIO) -> Document:
    from kinst.runtime.consumer.perfetto.output import PerfettoDocument  # an extra

    assert tracer.tasks is not None, "this format asks for them"
    values = JsonValues(tracer.symbols)
    document = PerfettoDocument(output, tracer.clauses, tracer.totals, values, tracer.tasks)
    if not tracer.options.is_set("aggrate"):
        tracer.options.set("aggrate", _SAMPLED)
    tracer.on_snapshot(lambda now, _added: document.sample(now))
    return document

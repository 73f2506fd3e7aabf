"""--call-each, or --call with --from -> a run that makes the calls, and shows each."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kinst.runtime.consumer.call_table import CallCsv, CallLines, call_value
from kinst.runtime.consumer.documents.json_output import JsonOutput
from kinst.runtime.consumer.output import TextOutput
from kinst.runtime.machine.calling.call_rows import calls_of
from kinst.runtime.machine.calling.called import Called
from kinst.runtime.machine.calling.template import Call, parse_call, parse_template
from kinst.runtime.tracing.output_format import Format
from kinst.runtime.tracing.outputs import Consumer, Streams
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import UsageError


def output_of_calls(form: Format, tracing: Tracing, streams: Streams) -> Consumer | None:
    """The output of a run whose table has the calls: the guest's console; None: the format's own."""
    if form is not Format.CSV:
        return None
    return TextOutput(streams.console or sys.stderr.buffer, sys.stderr, tracing.tracer)


@contextmanager
def calling(tracing: Tracing, rows: Path | None, form: Format, streams: Streams, output: Consumer) -> Iterator[None]:
    """Let the run of `tracing` make the calls of a file's lines, or the one of its request; within this context.

    Raises:
        UsageError: QEMU runs the image, or the file cannot be read, or a line of it.
    """
    guest, text = tracing.guest, tracing.request.call
    assert text is not None, "there is something to call"
    if guest is None:
        raise UsageError("--call: functions are called in our own machine only")
    if rows is None:
        guest.call_each([parse_call(text)], guest.called)
        yield
        return
    write = _writer(form, tracing, streams, output)

    def told(call: Call, called: Called) -> None:
        tracing.tracer.read(output)  # what clauses and the guest printed comes first
        output.flush()
        write(call, called)

    with _opened(rows) as file:
        guest.call_each(calls_of(parse_template(text), file, "standard input" if str(rows) == "-" else str(rows)), told)
        yield


def _writer(form: Format, tracing: Tracing, streams: Streams, output: Consumer) -> Callable[[Call, Called], None]:
    if isinstance(output, JsonOutput):
        put = output.called
        return lambda call, called: put(call_value(call, called))
    if form is Format.CSV:
        table = CallCsv(streams.output, is_safe=tracing.request.csv_is_safe)
        table.flush()
        return table.write
    return CallLines(streams.output).write


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(f"--call-each {path}: {error.strerror}") from None
    with file:
        yield file

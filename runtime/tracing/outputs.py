"""--format, -o and --console -> the output of a run, and the streams that it goes to."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.runtime.consumer.output import TextOutput
from kinst.runtime.tracing.output_format import Format
from kinst.runtime.tracing.tracer import Output
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import KinstError, MachineError, UsageError
from kinst.targets.values import dataclass


class Consumer(Output, Protocol):
    """An output of the command."""

    @property
    def status(self) -> int | None:
        """The status of the last exit() that was consumed; None if there was none."""
        ...


@dataclass(frozen=True, slots=True)
class Streams:
    """Where output goes. `console` is for the guest's console; None: it goes to the output, in order with records."""

    output: BinaryIO
    console: BinaryIO | None


def check_possible(form: Format, path: Path | None) -> None:
    """Check, before anything is loaded, that such an output is possible. Raises KinstError."""
    if form is Format.PERFETTO:
        import kinst.runtime.consumer.perfetto.trace  # raises KinstError without the package that it needs
    if form in (Format.PARQUET, Format.ARROW):
        import kinst.runtime.consumer.documents.arrow_output  # noqa: F401  # likewise
    if form.is_binary and path is None and sys.stdout.isatty():
        raise UsageError(f"--format {form.value}: a terminal cannot show it: give -o FILE, or a pipe")


@contextmanager
def opened(form: Format, path: Path | None, console: Path | None) -> Iterator[Streams]:
    """The streams for -o `path` and --console `console`. Raises KinstError."""
    with ExitStack() as files:
        output: BinaryIO = sys.stdout.buffer
        shown: BinaryIO | None = None if form.has_console else sys.stderr.buffer
        if path is not None:
            output = files.enter_context(opened_file(form, path))
            shown = sys.stdout.buffer
        if console is not None:
            shown = files.enter_context(console.open("wb"))
        yield Streams(output, shown)


def opened_file(form: Format, path: Path) -> AbstractContextManager[BinaryIO]:
    """The file of -o. Entering it raises KinstError if it cannot be written."""
    return _appended(path) if form.is_appended else whole_file(path)


@contextmanager
def _appended(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("ab")
    except OSError as error:
        raise KinstError(f"failed to open output file '{path}': {error.strerror}") from error
    with file:
        yield file


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that is replaced when all of it is written. If the guest stops with an error, the output is complete all
    the same, so that the file is replaced before the error goes on."""
    stopped: MachineError | None = None
    with replaced_file(path) as file:
        try:
            yield file
        except MachineError as error:
            stopped = error
    if stopped is not None:
        raise stopped


def output_of(form: Format, tracing: Tracing, streams: Streams) -> Consumer:
    """The output in a format, of programs that are enabled. Raises KinstError: the format is not possible here."""
    if form is not Format.TEXT:
        from kinst.runtime.tracing.documents import consumer_of  # most runs print text

        return consumer_of(form, tracing, streams.output, streams.console)
    is_asked = not tracing.request.counts_by_itself
    return TextOutput(streams.output, sys.stderr, tracing.tracer, console=streams.console, is_asked=is_asked)

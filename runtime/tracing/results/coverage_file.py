"""A run with its output -> the same output, and the file of --coverage, written when the run is over."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from kinst.runtime.clauses.environment import ErrorRecord, Record
from kinst.runtime.consumer.messages import Drop
from kinst.runtime.coverage.output_form import CoverageForm
from kinst.runtime.coverage.writing import coverage_bytes
from kinst.runtime.tracing.outputs import Consumer
from kinst.runtime.tracing.results.run_coverage import RunCoverage


class WithCoverage:
    """Implements `outputs.Consumer`."""

    def __init__(
        self, consumer: Consumer, covered: RunCoverage, form: CoverageForm, file: BinaryIO, forget: Callable[[], None]
    ) -> None:
        """`file` receives what has run. `forget` is called before the output is finished: a program that only counts
        for this has nothing to print."""
        self._consumer, self._covered, self._form, self._file = consumer, covered, form, file
        self._forget = forget

    @property
    def status(self) -> int | None:
        """See `Consumer`."""
        return self._consumer.status

    def consume(self, taken: Sequence[Record | ErrorRecord | bytes]) -> None:
        """See `Consumer`."""
        self._consumer.consume(taken)

    def drops(self, drops: Iterable[Drop]) -> None:
        """See `Consumer`."""
        self._consumer.drops(drops)

    def notices(self, notices: Iterable[str]) -> None:
        """See `Consumer`."""
        self._consumer.notices(notices)

    def flush(self) -> None:
        """See `Consumer`."""
        self._consumer.flush()

    def finish(self, end: Mapping[str, Any] | None) -> None:
        """Finish the output, and write the file."""
        self._forget()
        self._consumer.finish(end)  # first: the output must be whole even if the file cannot be written
        for piece in coverage_bytes(self._covered.coverage, self._form, self._covered.lines_of):
            self._file.write(piece)
        self._file.flush()

"""Records, errors, drops and the guest's console -> a document that has only records or aggregations.

What dtrace prints on stderr goes there, and so does the guest's console if the document goes to stdout.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, BinaryIO, Protocol, TextIO

from kinst.runtime.clauses.environment import ErrorRecord, Record, Symbols
from kinst.runtime.consumer.documents.json_values import Json, JsonValues
from kinst.runtime.consumer.documents.performed_actions import PerformedActions
from kinst.runtime.consumer.live_options import LiveOptions
from kinst.runtime.consumer.messages import Drop, drop_message, error_message
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang.program import Clause
from kinst.runtime.providers.provider import Probe


class Document(Protocol):
    """A document in one format."""

    def record(self, record: Record, probe: Probe, objects: Sequence[Json]) -> None:
        """Add a record. `objects` describe it as in `json_output`, one or more for each value."""
        ...

    def flush(self) -> None:
        """Write as much as a reader can use already."""
        ...

    def finish(self) -> None:
        """Write what comes at the end."""
        ...


class DocumentOutput:
    """Implements `tracer.Output` for a document."""

    def __init__(
        self,
        document: Document,
        errors: TextIO,
        console: BinaryIO,
        clauses: Sequence[Clause],
        totals: Totals,
        symbols: Symbols,
        describe: Callable[[int], Probe | None],
        options: LiveOptions,
    ) -> None:
        """`errors` receives what dtrace prints on stderr, `console` what the guest prints; the others are those of
        `kinst.runtime.consumer.output.TextOutput`."""
        self._document = document
        self._errors = errors
        self._console = console
        self._clauses = clauses
        self._describe = cache(describe)  # a million records name a few probes
        self._options = options
        self._actions = PerformedActions(totals, symbols, options, JsonValues(symbols))

    @property
    def status(self) -> int | None:
        """The status of the last exit() that was consumed; None if there was none."""
        return self._actions.status

    def consume(self, taken: Sequence[Record | ErrorRecord | bytes]) -> None:
        """Write entries, and perform the actions in them, in order."""
        for entry in taken:
            if isinstance(entry, tuple):
                self._consume(entry)
            elif isinstance(entry, bytes):
                self._console.write(entry)
            elif not self._options.is_on("noerror"):
                self._print_error(error_message(entry, self._describe(entry.probe)))

    def _consume(self, record: Record) -> None:
        _, identifier, clause, _, values = record
        probe = self._describe(identifier)
        assert probe is not None, "what fired is known"
        self._document.record(record, probe, self._actions.of_record(self._clauses[clause], values))

    def _print_error(self, line: str) -> None:
        self._errors.write(line + "\n")

    def drops(self, drops: Iterable[Drop]) -> None:
        """Print what was lost."""
        for drop in drops:
            self._print_error(drop_message(drop, has_tag=self._options.is_on("droptags")))

    def notices(self, notices: Iterable[str]) -> None:
        """Print what destructive actions did."""
        for notice in notices:
            self._print_error(f"dtrace: {notice}")

    def flush(self) -> None:
        """Flush all three streams."""
        self._document.flush()
        self._errors.flush()
        self._console.flush()

    def finish(self, end: Mapping[str, Any] | None = None) -> None:
        """Write what comes at the end of the document. How the run ended is not a part of it."""
        self._document.finish()
        self.flush()

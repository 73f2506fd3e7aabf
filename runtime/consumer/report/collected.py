"""The output of a run -> as much of it as a page can show: the first and the last records and lines of the console.

It has the methods of `tracer.Output`, and gets a copy of what the real output gets: no action is performed here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final

from kinst.runtime.clauses.environment import ErrorRecord, Record
from kinst.runtime.consumer.documents.json_values import JsonValues
from kinst.runtime.consumer.messages import Drop, drop_message, error_message
from kinst.runtime.consumer.report.rows import table_row
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang.program import Aggregation
from kinst.runtime.providers.provider import Probe

MOST_ROWS: Final = 50_000  # of a table
_FIRST: Final = 20_000  # records that are kept from the beginning
_CONSOLE: Final = (256 << 10, 768 << 10)  # bytes of its beginning and of its end
_MESSAGES: Final = 200
_PRINTED: Final = 1_000  # rows of an aggregation that are kept when it is printed


class FirstAndLast:
    """Bytes of which the beginning and the end are kept. `left_out` is how many are not."""

    def __init__(self, first: int, last: int) -> None:
        self._first, self._last = first, last
        self._head, self._tail = bytearray(), bytearray()
        self.left_out = 0

    def add(self, data: bytes) -> None:
        """Append data."""
        room = self._first - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        if len(self._tail) > 2 * self._last:
            self._cut()

    def _cut(self) -> None:
        extra = max(0, len(self._tail) - self._last)
        self.left_out += extra
        del self._tail[:extra]

    def parts(self) -> tuple[bytes, bytes]:
        """The beginning, and the end of the rest."""
        self._cut()
        return bytes(self._head), bytes(self._tail)


class Collected:
    """What is kept of a run."""

    def __init__(self, totals: Totals, values: JsonValues, describe: Callable[[int], Probe | None]) -> None:
        """`totals` reports when aggregations are printed."""
        self.first: list[Record] = []
        self.last: deque[Record] = deque(maxlen=MOST_ROWS - _FIRST)
        self.record_count = 0
        self.console = FirstAndLast(*_CONSOLE)
        self.messages: list[str] = []
        self.message_count = 0
        self.printed: dict[int, list[list[Any]]] = {}  # by number of the aggregation: its rows when it was printed last
        self.prints: dict[int, int] = {}  # how often
        self._totals, self._values, self._describe = totals, values, describe
        totals.on_printed(self._note_printed)

    def consume(self, taken: Sequence[Record | ErrorRecord | bytes]) -> None:
        """Keep entries."""
        for entry in taken:
            if isinstance(entry, tuple):
                self.record_count += 1
                (self.first if self.record_count <= _FIRST else self.last).append(entry)
            elif isinstance(entry, bytes):
                self.console.add(entry)
            else:
                self._say(error_message(entry, self._describe(entry.probe)))

    def _say(self, message: str) -> None:
        self.message_count += 1
        if self.message_count <= _MESSAGES:
            self.messages.append(message)

    def drops(self, drops: Iterable[Drop]) -> None:
        """Keep what was lost."""
        for drop in drops:
            self._say(drop_message(drop, has_tag=False))

    def notices(self, notices: Iterable[str]) -> None:
        """Keep what destructive actions did."""
        for notice in notices:
            self._say(notice)

    def _note_printed(self, aggregations: Sequence[Aggregation]) -> None:
        for one in aggregations:
            rows = [table_row(one, row, self._values) for row in islice(self._totals.each_row(one), _PRINTED)]
            if rows:
                self.printed[one.number] = rows
                self.prints[one.number] = self.prints.get(one.number, 0) + 1

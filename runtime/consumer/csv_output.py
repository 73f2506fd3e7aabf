"""Rows of records and aggregations -> CSV (RFC 4180, with newlines as line ends)."""

import csv
import io
from typing import BinaryIO, Final

from kinst.runtime.consumer.table import PROBE, SCHEMA, WHAT, Row, Shape

_FIXED: Final = ("schema", "kind", *(column.name for column in (*PROBE, *WHAT)))


class CsvWriter:
    """Implements `table.RowWriter`. The value of an aggregation is in the first column of values: a column here may
    have numbers and texts."""

    def __init__(self, output: BinaryIO, shape: Shape) -> None:
        """Only the header is there yet, and it is not written."""
        self._output = output
        self._text = io.StringIO()
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._keys = len(shape.keys)
        values = [column.name for column in shape.values] or ["value1"]
        self._columns = len(values)
        self._rows.writerow([*_FIXED, *(column.name for column in shape.keys), *values])

    def write(self, row: Row) -> None:
        """See `RowWriter`."""
        values = row.values if row.number is None else (row.number,)
        keys = [*row.keys, *[None] * (self._keys - len(row.keys))]
        empty = [None] * (self._columns - len(values))
        self._rows.writerow([SCHEMA, row.kind, *row.fired, *row.what, *keys, *values, *empty])

    def flush(self) -> None:
        """See `RowWriter`."""
        self._output.write(self._text.getvalue().encode("utf-8", "backslashreplace"))
        self._text.seek(0)
        self._text.truncate()
        self._output.flush()

    def finish(self) -> None:
        """See `RowWriter`."""
        self.flush()

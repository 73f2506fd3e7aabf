"""Rows of records and aggregations -> CSV (RFC 4180, with newlines as line ends)."""

import csv
import io
from collections.abc import Iterable
from typing import Any, BinaryIO, Final, TextIO

from kinst.runtime.consumer.documents.table import PROBE, SCHEMA, WHAT, Row, Shape

_END: Final = "\r\n"
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")  # spreadsheets evaluate a cell that begins like this
_FIXED: Final = ("schema", "kind", *(column.name for column in (*PROBE, *WHAT)))


class CsvWriter:
    """Implements `table.RowWriter`. The value of an aggregation is in the first column of values: in CSV a column may
    hold both numbers and text."""

    def __init__(self, output: BinaryIO, shape: Shape, *, is_safe: bool = False) -> None:
        """Prepare the header, which `flush` writes. `is_safe`: see `safe_cells`."""
        self._output = output
        self._text = io.StringIO()
        self._rows = csv_writer(self._text)
        self._is_safe = is_safe
        self._keys = len(shape.keys)
        values = [column.name for column in shape.values] or ["value1"]
        self._columns = len(values)
        self._rows.writerow([*_FIXED, *(column.name for column in shape.keys), *values])

    def write(self, row: Row) -> None:
        """See `RowWriter`."""
        values = row.values if row.number is None else (row.number,)
        keys = [*row.keys, *[None] * (self._keys - len(row.keys))]
        empty = [None] * (self._columns - len(values))
        cells = [SCHEMA, row.kind, *row.fired, *row.what, *keys, *values, *empty]
        self._rows.writerow(safe_cells(cells) if self._is_safe else cells)

    def flush(self) -> None:
        """See `RowWriter`."""
        self._output.write(self._text.getvalue().encode("utf-8", "backslashreplace"))
        self._text.seek(0)
        self._text.truncate()
        self._output.flush()

    def finish(self) -> None:
        """See `RowWriter`."""
        self.flush()


class _Lines:
    """A text file whose lines end with a newline. The writer is told that they end with CR LF: only then does Python's
    csv module quote a cell with a carriage return."""

    def __init__(self, text: TextIO) -> None:
        self._text = text

    def write(self, line: str) -> int:
        """A whole row."""
        return self._text.write(line.removesuffix(_END) + "\n")


def csv_writer(text: TextIO) -> Any:
    """A writer of rows, as `csv.writer` makes one."""
    return csv.writer(_Lines(text), lineterminator=_END)


def safe_cells(cells: Iterable[Any]) -> list[Any]:
    """Cells for a spreadsheet (--csv-safe): text that comes from an image or a guest must not be evaluated as a formula
    (CSV injection). Such a cell gets an apostrophe in front, as one would type it."""
    return [f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for cell in cells]

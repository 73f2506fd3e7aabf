"""Rows -> a file: CSV, JSON lines or Parquet, for spreadsheets, jq and pandas."""

import io
import json
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, Final

from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.runtime.batch.rows import Row
from kinst.runtime.consumer.documents.csv_output import csv_writer, safe_cells

Cells = Callable[[Iterable[Any]], list[Any]]
Columns = Mapping[str, tuple[type, str]]


class TableFormat(Enum):
    """The format of the table, which is also the suffix of its file."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


def write_table(
    path: Path, rows: Iterable[Row], columns: Columns, form: TableFormat, *, csv_is_safe: bool = False
) -> None:
    """Write a table; one that exists is replaced at the end. `csv_is_safe`: see `safe_cells`. Raises UsageError: a
    library is missing."""
    with replaced_file(path) as file:
        writer = _write_safe_csv if csv_is_safe and form is TableFormat.CSV else _WRITERS[form]
        writer(file, rows, columns)


def _write_csv(file: BinaryIO, rows: Iterable[Row], columns: Columns, cells: Cells = list) -> None:
    text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="", write_through=True)
    writer = csv_writer(text)
    writer.writerow(columns)
    writer.writerows(cells(row[name] for name in columns) for row in rows)
    text.detach()


def _write_json_lines(file: BinaryIO, rows: Iterable[Row], columns: Columns) -> None:
    for row in rows:
        found: dict[str, Any] = {name: row[name] for name in columns if row[name] is not None}
        file.write(json.dumps(found, separators=(",", ":")).encode() + b"\n")


def _write_parquet(file: BinaryIO, rows: Iterable[Row], columns: Columns) -> None:
    from kinst.runtime.batch.parquet_file import write_parquet

    write_parquet(file, rows, columns)


def _write_safe_csv(file: BinaryIO, rows: Iterable[Row], columns: Columns) -> None:
    _write_csv(file, rows, columns, safe_cells)


_WRITERS: Final[Mapping[TableFormat, Callable[[BinaryIO, Iterable[Row], Columns], None]]] = {
    TableFormat.CSV: _write_csv,
    TableFormat.JSONL: _write_json_lines,
    TableFormat.PARQUET: _write_parquet,
}

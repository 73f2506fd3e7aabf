"""Rows -> a file: CSV, JSON lines or Parquet. Each is read again by what people use: spreadsheets, jq, pandas."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, Final

from kinst.rewriter.fresh_file import replaced_file
from kinst.runtime.batch.rows import Row

Columns = Mapping[str, tuple[type, str]]


class TableFormat(Enum):
    """The format of the table, which is the ending of its file's name."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


def write_table(path: Path, rows: Iterable[Row], columns: Columns, form: TableFormat) -> None:
    """Write a table, or replace it when all is written. Raises UsageError: a library is missing."""
    with replaced_file(path) as file:
        _WRITERS[form](file, rows, columns)


def _write_csv(file: BinaryIO, rows: Iterable[Row], columns: Columns) -> None:
    text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[name] for name in columns] for row in rows)
    text.detach()


def _write_json_lines(file: BinaryIO, rows: Iterable[Row], columns: Columns) -> None:
    for row in rows:
        found: dict[str, Any] = {name: row[name] for name in columns if row[name] is not None}
        file.write(json.dumps(found, separators=(",", ":")).encode() + b"\n")


def _write_parquet(file: BinaryIO, rows: Iterable[Row], columns: Columns) -> None:
    from kinst.runtime.batch.parquet_file import write_parquet

    write_parquet(file, rows, columns)


_WRITERS: Final[Mapping[TableFormat, Callable[[BinaryIO, Iterable[Row], Columns], None]]] = {
    TableFormat.CSV: _write_csv,
    TableFormat.JSONL: _write_json_lines,
    TableFormat.PARQUET: _write_parquet,
}

"""Rows of records and aggregations -> Parquet, or an Arrow file (Feather). `docs/formats.md` describes the columns.

The only file that uses the package `pyarrow`. Rows are written in groups, so that a run of any length takes the memory
of one group.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cached_property
from typing import BinaryIO, Final, Protocol

from kinst.runtime.consumer.documents.table import LOWEST, PROBE, SCHEMA, WHAT, Cell, CellKind, Column, Row, Shape
from kinst.targets.errors import KinstError

try:
    import pyarrow as pa
    from pyarrow import parquet
except ImportError as error:
    raise KinstError(
        f"--format parquet or arrow: needs the Python package pyarrow ({error}): pip install 'kinst-rewrite[parquet]'"
    ) from error

_ROWS: Final = 1 << 15  # of a group
_TEXT: Final = 16 << 20  # characters of a group
_TYPES: Final = {
    CellKind.INTEGER: pa.int64(),
    CellKind.UNSIGNED: pa.uint64(),
    CellKind.EITHER: pa.decimal128(20, 0),
    CellKind.TEXT: pa.string(),
}
_LEADING: Final = (Column("kind", CellKind.TEXT), *PROBE, *WHAT, Column("number", CellKind.INTEGER))
_ABOUT: Final = {"kinst-run": f'{{"format": "kinst-run table", "schema": {SCHEMA}}}'}


class _File(Protocol):
    """The interface of pyarrow's writers of both formats."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class ArrowWriter:
    """Implements `table.RowWriter`."""

    def __init__(self, output: BinaryIO, shape: Shape, *, is_parquet: bool) -> None:
        """Nothing is written yet: pyarrow's writer, once it is made, writes a footer whatever happens, and a run may be
        refused before it begins."""
        columns = (*_LEADING, *shape.keys, *shape.values)
        self._keys, self._values = len(shape.keys), len(shape.values)
        self._kinds = [column.kind for column in columns]
        self._schema = pa.schema([(column.name, _TYPES[column.kind]) for column in columns], metadata=_ABOUT)
        self._output, self._is_parquet = output, is_parquet
        self._rows: list[Sequence[Cell]] = []
        self._text = 0  # characters of the rows

    @cached_property
    def _file(self) -> _File:
        file: _File = (
            parquet.ParquetWriter(self._output, self._schema, compression="zstd")
            if self._is_parquet
            else pa.ipc.new_file(self._output, self._schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
        )
        return file

    def write(self, row: Row) -> None:
        """See `RowWriter`."""
        keys = (*row.keys, *(None,) * (self._keys - len(row.keys)))
        values = (*row.values, *(None,) * (self._values - len(row.values)))
        cells = (row.kind, *row.fired, *row.what, row.number, *keys, *values)
        self._rows.append(cells)
        self._text += sum(len(cell) for cell in cells if isinstance(cell, str))
        if len(self._rows) >= _ROWS or self._text > _TEXT:
            self._write_group()

    def _write_group(self) -> None:
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(self._kinds)
        arrays = [_array(kind, column) for kind, column in zip(self._kinds, columns, strict=True)]
        self._file.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._rows.clear()
        self._text = 0

    def flush(self) -> None:
        """See `RowWriter`. Nothing to do: such a file cannot be read before its footer is written."""

    def finish(self) -> None:
        """See `RowWriter`."""
        if self._rows:
            self._write_group()
        self._file.close()


def _array(kind: CellKind, cells: Iterable[Cell]) -> pa.Array:
    match kind:
        case CellKind.TEXT:
            found: list[object] = [None if cell is None else _text(cell) for cell in cells]
        case CellKind.EITHER:
            found = [None if cell is None else Decimal(cell) for cell in cells]
        case _:
            found = [None if cell == LOWEST else cell for cell in cells]
    return pa.array(found, _TYPES[kind])


def _text(cell: Cell) -> str:
    """Text as valid UTF-8: bytes of names that Python keeps as surrogates become escapes."""
    return str(cell).encode("utf-8", "backslashreplace").decode()

"""Rows -> a Parquet file. The only file of this package that uses pyarrow, which the extra [batch] installs."""

from collections.abc import Iterable
from importlib.util import find_spec
from itertools import islice
from typing import Any, BinaryIO, Final

from kinst.runtime.batch.rows import Row
from kinst.runtime.batch.tasks import FORMAT
from kinst.targets.errors import UsageError

_GROUP: Final = 10_000  # rows


def has_parquet() -> bool:
    """Whether Parquet can be written."""
    return find_spec("pyarrow") is not None


def write_parquet(file: BinaryIO, rows: Iterable[Row], columns: Any) -> None:
    """Write the table; what its columns mean is in their metadata."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError("--table parquet needs pyarrow: pip install 'kinst-rewrite[batch]'") from None
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    fields = [
        pyarrow.field(name, types[kind], metadata={"description": meaning}) for name, (kind, meaning) in columns.items()
    ]
    schema = pyarrow.schema(fields, metadata={"kinst-batch": str(FORMAT)})
    left = iter(rows)
    with parquet.ParquetWriter(file, schema) as writer:
        while some := list(islice(left, _GROUP)):
            writer.write_table(pyarrow.Table.from_pylist(some, schema))

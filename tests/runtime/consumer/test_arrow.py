"""--format parquet and arrow: the table of --format csv, with typed columns, as other tools read it."""

import csv
import io
import json
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from kinst.runtime.cli import run
from kinst.runtime.consumer.documents.arrow_output import ArrowWriter
from kinst.runtime.consumer.documents.table import Row, Shape
from tests.runtime.consumer.test_tables import PROGRAM, SAMPLE, output

MIXED = """
    BEGIN { trace(-1); trace((uint64_t)1 << 63); trace(timestamp); @few[probename, -3] = llquantize(5, 10, 1, 2, 10); }
    BEGIN { trace(7); trace(3); trace((uint64_t)-1); @[probename, 4] = min(-9); print("\\xff"); trace((char *)16);
        exit(0); }
"""


def kinst_run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(run, ["-q", "--clock", "icount", *map(str, arguments)], catch_exceptions=False)


def written(folder: Path, form: str, *arguments: str | Path) -> Path:
    path = folder / f"t.{form}"
    result = kinst_run("--format", form, "-o", path, *arguments)
    assert result.exit_code == 0, result.stderr
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Rows without their empty cells, in the columns and texts of CSV."""
    frame = pl.read_ipc(path) if path.suffix == ".arrow" else pl.read_parquet(path)
    rows = []
    for row in frame.to_dicts():
        number, aggregate = row.pop("number"), row["aggregate"]
        if number is not None:
            row["value1"] = number
            row["bucket"] = row["bucket"] if row["bucket"] is not None or aggregate != "lquantize" else "-inf"
        rows.append({name: str(cell) for name, cell in row.items() if cell not in (None, "")})
    return rows


def test_both_are_the_table(tmp_path: Path) -> None:
    arguments = (SAMPLE, "--console", os.devnull, "-n", PROGRAM)
    expected = [
        {name: cell for name, cell in row.items() if name != "schema" and cell}
        for row in csv.DictReader(io.StringIO(output("csv", *arguments)))
    ]
    for form in ("parquet", "arrow"):
        assert rows_of(written(tmp_path, form, *arguments)) == expected
    assert len(expected) == 30


def test_a_column_has_the_type_that_holds_what_the_program_puts_there(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet", "-n", MIXED)
    frame = pl.read_parquet(path)
    types = {name: kind for name, kind in frame.schema.items() if name[-1].isdigit()}
    assert types == {
        "key1": pl.String,
        "key2": pl.Int64,
        "value1": pl.Int64,
        "value2": pl.Decimal(20, 0),
        "value3": pl.UInt64,
        "value4": pl.String,
        "value5": pl.String,
    }
    first, second = frame.filter(kind="record").select("value1", "value2", "value4", "value5").rows()
    assert first == (-1, Decimal(1 << 63), None, None)
    assert second == (7, Decimal(3), "\\xff", "0x10")
    assert frame.filter(aggregation="@").select("key2", "number", "bucket").rows() == [(4, -9, None)]
    assert frame.filter(aggregation="@few").select("key2", "number", "bucket").rows() == [(-3, 1, None)]


def test_pandas_adds_up_what_the_table_counts(tmp_path: Path) -> None:
    program = "tick-1ms { @[probename] = count(); } tick-1ms /timestamp > 1010000000/ { printa(@); clear(@); exit(0); }"
    for read, form in ((pd.read_parquet, "parquet"), (pd.read_feather, "arrow")):
        frame = read(written(tmp_path, form, "-n", program))
        assert frame[frame.kind == "aggregation"].groupby("key1").number.sum().to_dict() == {"tick-1ms": 11}


def test_the_version_of_the_schema_is_in_the_file(tmp_path: Path) -> None:
    found = parquet.read_schema(written(tmp_path, "parquet", "-n", "BEGIN { exit(0); }")).metadata[b"kinst-run"]
    assert json.loads(found) == {"format": "kinst-run table", "schema": 1}


@pytest.mark.parametrize(("size", "groups"), [(1, 2), (4000, 4)])
def test_rows_are_written_in_groups_of_rows_and_text(size: int, groups: int) -> None:
    file, count = io.BytesIO(), 20_000 if size > 1 else 2 << 15
    writer = ArrowWriter(file, Shape((), ()), is_parquet=True)
    row = Row("record", (1, 0, 1, "p" * size, "", "", ""), (None, None, None, None), None, (), ())
    sizes = set()
    for _ in range(count):
        writer.write(row)
        sizes.add(len(file.getvalue()))
    writer.finish()
    found = parquet.ParquetFile(io.BytesIO(file.getvalue())).metadata
    assert found.num_rows == count
    assert found.num_row_groups == groups + (size > 1)
    assert len(sizes) == groups + 1  # each group is in the file before the next begins


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needing = ("pyarrow", "kinst.runtime.consumer.documents.arrow_output")
    for name in [name for name in sys.modules if name.startswith(needing)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = kinst_run("--format", "arrow", "-o", tmp_path / "t", "-n", "BEGIN { exit(0) }")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("kinst-run: --format parquet or arrow: needs the Python package pyarrow")
    assert line.endswith("pip install 'kinst-rewrite[parquet]'")
    assert list(tmp_path.iterdir()) == []

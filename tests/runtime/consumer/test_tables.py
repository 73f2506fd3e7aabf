"""--format jsonl and csv say what --format json says."""

import csv
import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kinst.runtime.batch.table_files import TableFormat, write_table
from kinst.runtime.cli import run
from tests.commands.all_commands import run as run_command

SAMPLE = Path(__file__).parents[3] / "samples" / "kernel-arm64.elf"
PROGRAM = """
    fbt::vfs_create:entry { trace(arg0); printf("%d, \\"%s\\"", cpu, probefunc); stack(2); }
    fbt::vfs_create:entry, fbt::vfs_read:entry {
        @calls[probefunc, cpu] = count(); @args = lquantize(arg1, 0, 10, 5); @shown[stack(1)] = sum(3);
    }
    fbt::vfs_report:entry { printa(@shown); sym(arg0); }
"""


def output(form: str, *arguments: str | Path) -> str:
    words = ["--format", form, "--clock", "icount", "-q", *map(str, arguments)]
    result = CliRunner().invoke(run, words, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def document() -> Any:
    return json.loads(output("json", SAMPLE, "-n", PROGRAM))["dtrace"]


def test_lines_are_the_elements_of_the_document(document: Any) -> None:
    head, *lines = map(json.loads, output("jsonl", SAMPLE, "-n", PROGRAM).splitlines())
    assert head == {"format": "kinst-run jsonl", "schema": 1}
    rows = [
        {"aggregation-name": one["aggregation-name"], "function": one["function"], **row}
        for one in document["aggregations"]
        for row in one["aggregation-data"]
    ]
    assert lines == [*document["probes"], *rows, {"end": document["end"]}]
    assert any("console" in line for line in lines)
    assert len(rows) == 3


def cell(value: Any) -> str:
    if isinstance(value, list):
        return ";".join(frame["symbol"] for frame in value)
    return str(value["symbol"] if isinstance(value, dict) else value)


def test_a_table_has_each_record_and_each_key(document: Any) -> None:
    table = list(csv.DictReader(StringIO(output("csv", SAMPLE, "--console", os.devnull, "-n", PROGRAM))))
    assert {row["schema"] for row in table} == {"1"}
    records = [row for row in table if row["kind"] == "record"]
    told = [one for one in document["probes"] if "output" in one]
    assert len(records) == len(told) > 20
    for row, one in zip(records, told, strict=True):
        assert all(row[name] == str(one[name]) for name in ("timestamp", "cpu", "id", "module", "function", "name"))
        values = [part.get("value", part.get("stack-frames")) for part in one["output"]]
        shown = [cell(value) for value in values if value is not None]
        assert [row[f"value{number}"] for number in range(1, 5)] == [*shown, *[""] * (4 - len(shown))]
        assert row["message"] == "".join(part.get("message", "") for part in one["output"])
    assert records[0]["message"] == '0, "vfs_create"'


def test_aggregations_in_a_table_are_printed_where_they_were_or_at_the_end(document: Any) -> None:
    table = csv.DictReader(StringIO(output("csv", SAMPLE, "--console", os.devnull, "-n", PROGRAM)))
    rows = [row for row in table if row["kind"] == "aggregation"]
    shown = [row for row in rows if row["aggregation"] == "@shown"]
    assert {row["function"] for row in shown} == {"vfs_report"}
    assert sorted(row["value1"] for row in shown) == ["240", "69"]
    columns = ("aggregate", "key1", "key2", "value1")
    calls = [tuple(row[name] for name in columns) for row in rows if row["aggregation"] == "@calls"]
    assert calls == [("count", "vfs_create", "0", "23"), ("count", "vfs_read", "0", "80")]
    (args,) = [one for one in document["aggregations"] if one["aggregation-name"] == "args"]
    buckets = args["aggregation-data"][0]["buckets"]
    assert [(row["bucket"], row["value1"]) for row in rows if row["aggregation"] == "@args"] == [
        (str(one.get("value", "-inf")), str(one["count"])) for one in buckets
    ]


def test_columns_are_as_many_as_the_program_needs() -> None:
    head = output("csv", "-n", "BEGIN { @[1, 2, 3] = count(); exit(0); } END { trace(1); trace(2); }").splitlines()[0]
    assert head.endswith(",bucket,key1,key2,key3,value1,value2")


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_what_a_call_returned_is_no_row(form: str) -> None:
    result = CliRunner().invoke(run, ["--format", form, str(SAMPLE), "--call", "fibonacci(10)"])
    assert result.stderr == "fibonacci(10) = 0x37\n"
    assert "fibonacci" not in result.stdout


FORMULAS = ["=1+2", "+x", "-x", "@SUM(A1)", "\tx", "\rx", "a=", "", "-"]


def test_texts_are_no_formulas_if_that_is_wanted() -> None:
    values = ", ".join(json.dumps(one) for one in FORMULAS)
    form = "%s" * len(FORMULAS)
    program = f'BEGIN {{ printf("{form}%d", {values}, -5); exit(0); }}'
    quoted = [f"'{one}" if one and one[0] in "=+-@\t\r" else one for one in FORMULAS]
    options: list[tuple[tuple[str, ...], list[str]]] = [((), FORMULAS), (("--csv-safe",), quoted)]
    for words, shown in options:
        (row,) = csv.DictReader(StringIO(output("csv", *words, "-n", program)))
        assert [row[f"value{number}"] for number in range(1, len(FORMULAS) + 2)] == [*shown, "-5"]


def test_a_table_of_a_batch_has_no_formulas_either(tmp_path: Path) -> None:
    columns = {"a": (str, ""), "b": (int, "")}
    rows = [{"a": one, "b": -1} for one in ("=1", "x", None)]
    for is_safe, shown in ((False, "=1,-1"), (True, "'=1,-1")):
        write_table(tmp_path / "t.csv", rows, columns, TableFormat.CSV, csv_is_safe=is_safe)
        assert (tmp_path / "t.csv").read_text() == f"a,b\n{shown}\nx,-1\n,-1\n"


@pytest.mark.parametrize(("words", "why"), [
    (("kinst-run", "-n", "BEGIN", "--csv-safe"), "--csv-safe: is for --format csv, and this is text"),
    (("kinst-batch", str(SAMPLE), "-p", "fbt:::", "--csv-safe", "--table", "jsonl"), "--csv-safe: is for --table csv"),
])  # fmt: skip
def test_it_is_for_csv(words: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_command(*words)
    assert (result.exit_code, result.stderr) == (2, f"{words[0]}: {why}\n")

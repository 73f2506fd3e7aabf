"""Records, probes and aggregations as frames, and as a notebook shows them."""

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars
import pytest

from kinst.runtime import Aggregated, Machine, Place, Probe, Record, Records, open_image
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.runtime.dlang.types.types import String
from kinst.runtime.tracing.results.rich_display import bar
from kinst.targets.errors import UsageError
from tests.runtime.test_cli import ENVIRONMENT

SAMPLE = Path(__file__).parents[3] / "samples" / "kernel-riscv64.elf"
PROBE = Probe(7, "fbt", "image", "f<script>", "entry")


def records(*values: tuple[Any, ...]) -> Records:
    return Records(Record(PROBE, 1, 1000 + number, one, "") for number, one in enumerate(values))


def test_values_of_every_kind_have_a_column() -> None:
    place = Place(0x10, "image`f+0x4")
    found = records((1, -2, "text", b"\x01\xff", place), (1 << 63, 3, None, b"", [place, Place(0x20, "image`g")]))
    frame = found.to_pandas()
    assert frame["value1"].dtype == "uint64"
    assert frame["value2"].tolist() == [-2, 3]
    assert [str(kind) for kind in frame.dtypes[:7]] == ["int64"] * 3 + ["string"] * 4
    assert frame["value3"].isna().tolist() == [False, True]
    assert frame["value4"].tolist() == ["01ff", ""]
    assert frame["value5"].tolist() == ["image`f+0x4", "image`f+0x4;image`g"]
    assert found.to_polars().schema["value1"] == polars.UInt64
    assert found.to_polars()["value5"].to_list() == frame["value5"].tolist()


def test_a_value_that_some_records_lack_is_missing_and_what_no_integer_type_holds_is_text() -> None:
    found = records((1,), (2, 5), ({"a": 1, "at": Place(1, "s")},), (-1, 1 << 63))
    frame = found.to_pandas()
    assert frame["value1"].tolist() == ["1", "2", '{"a": 1, "at": "s"}', "-1"]
    assert str(frame["value2"].dtype) == "UInt64"
    assert frame["value2"].isna().tolist() == [True, False, True, False]
    assert found.to_polars()["value2"].to_list() == [None, 5, None, 1 << 63]


def aggregated(function: AggregatingFunction, values: dict[Any, Any], keys: int = 1) -> Aggregated:
    return Aggregated(Aggregation(1, "a", function, (String(),) * keys), values)


def test_aggregations_are_dicts_with_columns() -> None:
    found = aggregated(AggregatingFunction.COUNT, {("x", 3): 5, ("y", 4): 7}, keys=2)
    assert found == {("x", 3): 5, ("y", 4): 7}
    assert found.to_pandas().to_dict("list") == {"key1": ["x", "y"], "key2": [3, 4], "number": [5, 7]}
    whole = aggregated(AggregatingFunction.SUM, {(): 9}, keys=0)
    assert whole.to_polars().to_dict(as_series=False) == {"number": [9]}
    stacks = aggregated(AggregatingFunction.COUNT, {(Place(1, "a"), Place(2, "b")): 1})
    assert stacks.to_pandas()["key1"].tolist() == ["a;b"]
    assert aggregated(AggregatingFunction.COUNT, {}).to_pandas().columns.tolist() == ["key1", "number"]


def test_distributions_have_a_row_for_each_bucket() -> None:
    found = aggregated(AggregatingFunction.LQUANTIZE, {"k": {-math.inf: 1, 0: 2, 10: 4}})
    assert found.to_polars().rows() == [("k", None, 1), ("k", 0, 2), ("k", 10, 4)]
    shown = re.sub("<[^>]*>", " ", found._repr_html_())
    assert re.search(r"k +-inf +█{7}▌ +1 +0 +█{15} +2 +10 +█{30} +4", shown), shown


def test_a_notebook_shows_text_as_text_and_the_greatest_first() -> None:
    found = aggregated(AggregatingFunction.COUNT, {f"<b>{number}</b>\x1b": number for number in range(100)})
    shown = found._repr_html_()
    assert "<b>9" not in shown
    assert "&lt;b&gt;99&lt;/b&gt;\\x1b" in shown
    assert shown.index("&gt;99&lt;") < shown.index("&gt;98&lt;")
    assert "100 rows, 20 of them shown" in shown
    assert "f&lt;script&gt;" in records((1,))._repr_html_()
    assert "<p>" not in records((1,))._repr_html_()


def test_bars_are_beside_the_greatest() -> None:
    assert [len(bar(value, 60)) for value in (60, 30, 0, -5)] == [30, 15, 0, 0]
    assert (bar(1, 240), bar(5, 0)) == ("▏", "")


def test_what_a_run_records_and_its_flame_graph(tmp_path: Path) -> None:
    program = "fbt::kmalloc:entry { @stacks[stack()] = count(); @plain[probefunc] = count(); trace(arg0); }"
    with open_image(SAMPLE) as image, image.trace(program, machine=Machine(clock="icount")) as trace:
        assert image.probes("fbt::kmalloc:entry").to_pandas()["function"].tolist() == ["kmalloc"]
        trace.run(seconds=5)
        frame = trace.take().to_pandas()
        assert len(frame) == trace.aggregation("plain").to_polars()["number"].item() == 196
        assert frame["timestamp"].is_monotonic_increasing
        picture = trace.flame_graph("stacks")
        assert "data:image/svg+xml;base64," in picture._repr_svg_()
        picture.save(tmp_path / "flames.svg")
        assert b"all: 196 hits, 100.00 %" in (tmp_path / "flames.svg").read_bytes()
        with pytest.raises(UsageError, match="@plain: no such aggregation counts by stack"):
            trace.flame_graph("plain")


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_without_the_package_one_line_names_the_extra(package: str) -> None:
    program = f"""
import sys
sys.modules["{package}"] = None
from kinst.runtime import KinstError, Records
try:
    Records().to_{package}()
except KinstError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRONMENT, check=True
    )
    assert re.fullmatch(rf"a frame of {package}: needs .*'kinst-rewrite\[notebook\]'\n", result.stdout)

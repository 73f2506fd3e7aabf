"""--format heatmap: distributions over time, as a picture."""

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from kinst.runtime.clauses.time_bins import MOST, TimeBins
from kinst.runtime.cli import run
from kinst.runtime.consumer.pictures.heat_map import HeatRow, Panel, duration, heat_map
from tests.chromium import used

SVG = "{http://www.w3.org/2000/svg}"
TOLD = re.compile(r"(.*) to (.*), (.*): ([\d,]+) values")
TICKS = "tick-1ms { @ = quantize(timestamp / 1000000 - 1000); } tick-40ms { exit(0); }"


def kinst_run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(run, ["-q", "--clock", "icount", *map(str, arguments)], catch_exceptions=False)


def picture(folder: Path, program: str) -> ElementTree.Element:
    path = folder / "t.svg"
    result = kinst_run("--format", "heatmap", "-o", path, "-n", program)
    assert result.exit_code == 0, result.stderr
    return ElementTree.parse(path).getroot()


def panels(root: ElementTree.Element) -> dict[str, list[tuple[str, str, int]]]:
    """By title: when a cell begins, its row, its count."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    for panel in root.iter(f"{SVG}g"):
        told = [TOLD.fullmatch(title.text or "") for title in panel.iter(f"{SVG}title")]
        cells = [(one[1], one[3], int(one[4].replace(",", ""))) for one in told if one is not None]
        assert len(cells) == len(told)
        found[panel.get("aria-label", "")] = cells
    return found


def test_each_value_is_where_its_time_and_its_size_are(tmp_path: Path) -> None:
    (cells,) = panels(picture(tmp_path, TICKS)).values()
    rows: Counter[str] = Counter()
    for _, row, count in cells:
        rows[row] += count
    assert rows == {"1": 1, "2": 2, "4": 4, "8": 8, "16": 16, "32": 9}
    first = {row: min(float(time.split()[0]) for time, other, _ in cells if other == row) for row in rows}
    assert first["32"] == pytest.approx(32, abs=0.6)
    assert first["4"] == pytest.approx(4, abs=0.6)


@pytest.mark.parametrize("what", ["printa(@);", "printa(@); clear(@);", "trunc(@);", "normalize(@, 2); printa(@);"])
def test_what_the_program_prints_and_clears_changes_nothing(what: str, tmp_path: Path) -> None:
    program = TICKS + f" tick-7ms {{ {what} }}"
    assert panels(picture(tmp_path, program)) == panels(picture(tmp_path, TICKS))


def test_keys_have_panels_the_largest_first(tmp_path: Path) -> None:
    program = """
        tick-1ms { @q[probename, "<&>"] = lquantize(5, 0, 100, 10); @one = quantize(-3); i++; }
        tick-2ms { @q[probename, "<&>"] = lquantize(-1, 0, 100, 10); @q["x", "y"] = lquantize(1000, 0, 100, 10); }
        tick-1ms /i == 10/ { exit(0); }
    """
    found = panels(picture(tmp_path, program))
    assert list(found) == ["@q, all keys", "@q[tick-1ms, <&>]", "@q[x, y]", "@q[tick-2ms, <&>]", "@one"] or list(
        found
    ) == ["@q, all keys", "@q[tick-1ms, <&>]", "@q[tick-2ms, <&>]", "@q[x, y]", "@one"]
    assert {row for _, row, _ in found["@q, all keys"]} == {"0", "< 0", "100"}
    assert {row for _, row, _ in found["@one"]} == {"-2"}


@pytest.mark.parametrize("program", ["BEGIN { @ = count(); exit(0); }", "BEGIN { exit(0); }"])
def test_a_program_without_a_distribution_is_refused(program: str, tmp_path: Path) -> None:
    result = kinst_run("--format", "heatmap", "-o", tmp_path / "t", "-n", program)
    assert result.exit_code == 2
    assert "--format heatmap: no program has a distribution" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_nothing_was_counted(tmp_path: Path) -> None:
    assert panels(picture(tmp_path, "tick-1s { @ = quantize(1); } BEGIN { exit(0); }")) == {}


def test_columns_become_wider_and_nothing_is_lost() -> None:
    bins = TimeBins(1000)
    for time in range(1000, 10_000_000, 997):
        bins.add("a", time)
    bins.spread("b", 5_000, 9_000_000, 1234)
    rows = {row: dict(columns) for row, columns in bins}
    assert bins.columns <= MOST < 2 * bins.columns
    assert sum(rows["a"].values()) == len(range(1000, 10_000_000, 997))
    assert max(rows["a"].values()) - sorted(rows["a"].values())[1] <= 1
    assert sum(rows["b"].values()) == 1234
    assert max(rows["b"].values()) - min(rows["b"].values()) <= 1


@pytest.mark.parametrize(
    ("time", "shown"), [(0, "0"), (999, "999 ns"), (1500, "1.5 µs"), (2_000_000, "2 ms"), (12_345_678_901, "12.35 s")]
)
def test_times_are_short(time: int, shown: str) -> None:
    assert duration(time) == shown


def test_colours_are_by_the_logarithm_and_of_each_panel() -> None:
    rows = [HeatRow("a", {0: 1, 1: 10, 2: 100, 3: 1000}), HeatRow("b\x01<", {})]
    text = b"".join(heat_map("t", "w", [Panel("p", rows, 1000, 4), Panel("q", rows[:1], 2000, 2000)], "hits")).decode()
    root = ElementTree.fromstring(text)
    first, second = root.iter(f"{SVG}g")
    levels = [one.get("class") for one in first.iter(f"{SVG}rect") if one.get("data-c")]
    assert levels == ["c l1", "c l3", "c l5", "c l8"]
    assert max(int(one.get("data-c", 0)) for one in second.iter(f"{SVG}rect")) < 256
    assert "://" not in re.sub(r'xmlns="[^"]*"', "", text)


@pytest.mark.long
def test_a_reader_points_and_walks(tmp_path: Path) -> None:
    picture(tmp_path, TICKS)
    script = """
      const panel = document.querySelector(".panel"), status = document.getElementById("status"), found = {};
      panel.focus();
      panel.dispatchEvent(new Event("focus"));
      found.first = status.textContent;
      key("ArrowUp", panel);
      key("ArrowDown", panel);
      key("ArrowRight", panel);
      found.walked = status.textContent;
      const last = [...panel.querySelectorAll("[data-c]")].pop();
      last.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
      found.pointed = status.textContent === last.querySelector("title").textContent;
      found.marked = document.querySelectorAll(".at").length;
      const box = document.documentElement.getBoundingClientRect();
      const texts = [...document.querySelectorAll("text")];
      found.fits = texts.every(text => text.getBoundingClientRect().right <= box.right);
      return found;
    """
    found = used(tmp_path / "t.svg", script)
    assert TOLD.fullmatch(found.pop("first"))
    assert TOLD.fullmatch(found.pop("walked"))
    assert found == {"pointed": True, "marked": 1, "fits": True}

"""--report: the run as one page, beside its output."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kinst.runtime import Machine, Options, open_image
from kinst.runtime.clauses.environment import ErrorRecord
from kinst.runtime.cli import run
from kinst.runtime.consumer.documents.json_values import JsonValues
from kinst.runtime.consumer.report.collected import MOST_ROWS, Collected, FirstAndLast
from kinst.runtime.consumer.report.coverage import coverage
from kinst.runtime.machine.configuration import End
from kinst.runtime.providers.provider import Probe
from kinst.runtime.trap.faults import Fault, FaultKind
from tests.chromium import used
from tests.runtime.consumer.recording import PROBES, NamedSymbols, Recording

SAMPLE = Path(__file__).parents[2] / "samples" / "kernel-amd64.elf"
PROGRAM = """
    fbt:::entry { @calls[probefunc] = count(); @args = quantize(arg0); @stacks[stack()] = count(); }
    kinst::vfs_read: { @instructions = count(); }
    fbt::vfs_create:entry { printf("%s:%d\\n", probefunc, cpu); trace(arg1); }
"""


def kinst_run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(run, ["-q", "--clock", "icount", *map(str, arguments)], catch_exceptions=False)


def data(page: Path) -> Any:
    found = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def hits(found: Any) -> dict[str, int]:
    """By function and probe."""
    return {f"{row[1]}:{name}": count for row in found["functions"] for name, count, _ in row[5]}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "t.html"
    result = kinst_run(SAMPLE, "--report", path, "-n", PROGRAM)
    plain = kinst_run(SAMPLE, "-n", PROGRAM)
    assert (result.exit_code, result.stdout, result.stderr) == (0, plain.stdout, plain.stderr)
    return path


def test_the_page_has_what_the_output_says(page: Path) -> None:
    found = data(page)
    told = json.loads(kinst_run(SAMPLE, "--format", "json", "-n", PROGRAM).stdout)["dtrace"]
    tables = {one["name"]: one for one in found["aggregations"]}
    for one in told["aggregations"]:
        table = tables[f"@{one['aggregation-name']}"]
        assert table["count"] == len(table["rows"]) == len(one["aggregation-data"])
        values = [row["value"] if "value" in row else row["buckets"] for row in one["aggregation-data"]]
        shown = [
            row[1] if isinstance(row[1], int) else [{"value": b, "count": n} for b, n in row[1] if n]
            for row in table["rows"]
        ]
        assert shown == values
    (calls,) = [one for one in told["aggregations"] if one["aggregation-name"] == "calls"]
    assert [row[0] for row in tables["@calls"]["rows"]] == [row["keys"] for row in calls["aggregation-data"]]
    records = [one for one in told["probes"] if "output" in one]
    assert [row[3] for row in found["records"]] == [
        f"vfs_create:0, {one['output'][-1]['value']}" for one in records if len(one["output"]) > 1
    ]
    console = "".join(one["console"] for one in told["probes"] if "console" in one)
    assert "".join(found["console"][:2]) == console.replace("\r\n", "\n")


def test_from_python_there_is_one_when_the_run_is_over(tmp_path: Path) -> None:
    """What the program takes meanwhile is in the page as well."""
    path = tmp_path / "r.html"
    program = "fbt::vfs_create:entry { @[probefunc] = count(); trace(arg1); }"
    with open_image(SAMPLE) as image:
        trace = image.trace(program, machine=Machine(clock="icount"), options=Options(report=path))
        trace.run(seconds=0.0003)
        first = trace.take()
        assert 0 < len(first) < 23 and not path.exists()
        assert trace.run(seconds=5) is End.POWER_OFF
        found = data(path)
        assert len(found["records"]) == len(first) + len(trace.take()) == 23
        assert hits(found) == {"vfs_create:entry": trace.aggregation()["vfs_create"]}
        trace.close()
    assert "<th scope=row>command" not in path.read_text()


def test_empty_buckets_are_shown_and_many_of_them_as_one(tmp_path: Path) -> None:
    path = tmp_path / "t.html"
    program = """
        BEGIN { @[1] = lquantize(-5, 0, 1000, 10); @[1] = lquantize(30, 0, 1000, 10); }
        BEGIN { @[1] = lquantize(500, 0, 1000, 10); }
        BEGIN { @q = quantize(0x7fffffffffffffff); @q = quantize(-1); exit(0); }
    """
    assert kinst_run("--report", path, "-n", program).exit_code == 0
    linear, powers = data(path)["aggregations"]
    assert linear["rows"] == [[[1], [["< 0", 1], [0, 0], [10, 0], [20, 0], [30, 1], ["⋯", 0], [500, 1]]]]
    assert powers["rows"] == [[[], [[-1, 1], ["⋯", 0], [str(1 << 62), 1]]]]


def test_hits_are_counted_whether_they_were_told_or_not(page: Path, tmp_path: Path) -> None:
    told = hits(data(page))
    counted = tmp_path / "c.html"
    kinst_run(SAMPLE, "--report", counted, "-n", "fbt:::entry, kinst::vfs_read: { @ = count(); }")
    assert hits(data(counted)) == told
    assert told["vfs_read:entry"] == told["vfs_read:+0"] == 80
    found = data(page)
    probed, hit, total, left = found["coverage"]
    assert (probed, left, total) == (len(found["functions"]), 0, sum(told.values()))
    assert 0 < hit < probed
    (read,) = [row for row in found["functions"] if row[1] == "vfs_read"]
    assert all(instruction for name, _, instruction in read[5] if name.startswith("+"))


def test_pictures_show_stacks_and_time(page: Path) -> None:
    found = data(page)
    assert 'data-name="vfs_read"' in found["flame"]
    assert "CPU 0" in found["timeline"]
    (args,) = [one for one in found["aggregations"] if one["name"] == "@args"]
    cells = [int(count.replace(",", "")) for count in re.findall(r": ([\d,]+) values</title>", args["heat"])]
    assert sum(cells) == sum(count for _, count in args["rows"][0][1])


def test_nothing_comes_from_elsewhere_and_names_are_no_markup(page: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "a<b>&.html"
    image = tmp_path / "<i>k.elf"
    image.symlink_to(SAMPLE)
    program = (
        """fbt::vfs_report:entry { printf("</script><script>alert(1)</script>"); @["<b>&", probefunc] = count(); }"""
    )
    assert kinst_run(image, "--report", hostile, "-n", program).exit_code == 0
    for text in (page.read_text(), hostile.read_text()):
        assert not re.search(r"https?:|@import|\bsrc=|url\(", text)
        assert text.count("<script") == text.count("</script>") == 2
    text = hostile.read_text()
    assert "&lt;i&gt;k.elf" in text and "<i>k" not in text and "alert(1)</script>" not in text
    assert data(hostile)["aggregations"][0]["rows"] == [[["<b>&", "vfs_report"], 1]]


def test_what_is_cleared_is_shown_as_it_was_printed(tmp_path: Path) -> None:
    path = tmp_path / "t.html"
    program = """
        tick-1ms { @a[probename] = count(); @all = sum(1); }
        tick-5ms { printa(@a); clear(@a); }
        tick-11ms { exit(3); }
    """
    assert kinst_run("--report", path, "-n", program).exit_code == 3
    first, whole = data(path)["aggregations"]
    assert (first["name"], first["asPrinted"], first["prints"], whole["asPrinted"]) == ("@a", False, 2, False)
    assert kinst_run("--report", path, "-n", program.replace("11ms", "10ms")).exit_code == 3
    first, _ = data(path)["aggregations"]
    assert first["asPrinted"] and first["rows"] == [[["tick-1ms"], 5]]


def test_a_page_is_written_when_the_guest_stops_for_good_and_not_when_nothing_runs(tmp_path: Path) -> None:
    path = tmp_path / "t.html"
    result = kinst_run("--report", path, "-n", "BEGIN { trace(*(int *)0); } BEGIN { panic(); }", "-w")
    assert result.exit_code == 1
    assert "ended: panic" in path.read_text()
    assert "invalid address (0x0)" in path.read_text()
    path.write_text("old")
    assert kinst_run("--report", path, "-n", "BEGIN { nothing }").exit_code == 1
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["t.html"]


# -- what is too much -------------------------------------------------------------------------------------------------


def test_of_many_records_and_messages_the_first_and_the_last_are_kept() -> None:
    collected = Collected(Recording().totals, JsonValues(NamedSymbols()), PROBES.get)
    for number in range(MOST_ROWS + 10):
        collected.consume([(0, 10, 0, number, ()), ErrorRecord(0, 10, 1, 1, Fault(FaultKind.DIVZERO))])
    times = [record[3] for record in (*collected.first, *collected.last)]
    assert collected.record_count == MOST_ROWS + 10
    assert times == [number for number in range(MOST_ROWS + 10) if not 20_000 <= number < 20_010]
    assert len(collected.messages) < 1000 < collected.message_count


@pytest.mark.parametrize("size", [1, 7, 100])
def test_of_a_long_console_the_beginning_and_the_end_are_kept(size: int) -> None:
    text = bytes(number % 251 for number in range(1000))
    kept = FirstAndLast(50, 80)
    for start in range(0, len(text), size):
        kept.add(text[start : start + size])
    assert (kept.parts(), kept.left_out) == ((text[:50], text[-80:]), len(text) - 130)


def test_of_many_functions_those_with_the_most_hits_are_listed() -> None:
    probes = [Probe(number, "fbt", "m", f"f{number}", "entry") for number in range(MOST_ROWS + 5)]
    found = coverage(probes, {MOST_ROWS + 4: 7, 3: 1}, {})
    assert (found.probed, found.hit, found.hits, found.left_out) == (MOST_ROWS + 5, 2, 8, 5)
    assert found.functions[0] == ["m", f"f{MOST_ROWS + 4}", 1, 1, 7, [["entry", 7, ""]]]
    assert found.functions[1][1] == "f3"


# -- a reader ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_reader_sorts_filters_and_walks_among_fifty_thousand_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.html"
    program = """
        BEGIN { i = 0; @q = quantize(3); }
        tick-200us /i < 60000/ { @keys[i % 50000] = sum(i); @by[i % 3] = lquantize(i, 0, 60000, 10000); trace(i); i++; }
        tick-200us /i == 60000/ { exit(0); }
    """
    assert kinst_run("--report", path, "-o", tmp_path / "o", "-n", program).exit_code == 0
    script = """
      const found = {}, one = id => document.getElementById(id), filter = one("filter");
      const rows = view => [...one("view-" + view).querySelectorAll(".sorted .row:not(.head)")];
      key("2", document.body);
      const names = one("names");
      names.focus();
      key("Home");
      key("ArrowDown");
      found.keys = names.querySelector("[aria-selected=true]").textContent;
      found.drawn = rows("aggregations").length;
      const heads = [...one("view-aggregations").querySelectorAll(".head button")];
      heads[0].click();
      const first = () => Math.min(...rows("aggregations").map(row => +row.dataset.place).filter(place => place >= 0));
      found.sorted = heads[0].getAttribute("aria-sort");
      found.top = rows("aggregations").find(row => row.dataset.place === "0").firstChild.textContent;
      type(filter, "49,999");
      type(filter, "49999");
      found.filtered = one("shown").textContent;
      key("Escape", filter);
      names.focus();
      key("End");
      await settled();
      const labels = one("view-aggregations").querySelectorAll(".bars > :nth-child(3n + 1)");
      found.histogram = [...labels].map(node => node.textContent);
      key("5", document.body);
      found.records = rows("records").length;
      found.kept = one("kept").textContent;
      key("1", document.body);
      found.cards = [...document.querySelectorAll(".card b")].map(node => node.textContent);
      key("d", document.body);
      found.dark = getComputedStyle(document.body).backgroundColor;
      one("tab-overview").focus();
      key("ArrowRight");
      found.next = document.activeElement.id;
      found.wide = document.documentElement.scrollWidth <= innerWidth;
      return found;
    """
    found = used(path, script, ready="document.documentElement.dataset.ready")
    assert found.pop("drawn") < 100
    assert found.pop("records") < 100
    assert found == {
        "keys": "@keyssum(), 50,000",
        "sorted": "descending",
        "top": "49,999",
        "filtered": "1 of 50,000",
        "histogram": ["0", "10,000", "20,000", "30,000", "40,000", "50,000"],
        "kept": "The first and the last of 60,001 records: 10,001 between them are left out.",
        "cards": ["60,001", "3"],
        "dark": "rgb(21, 24, 28)",
        "next": "tab-aggregations",
        "wide": True,
    }

"""--format folded and flamegraph: stacks that were counted, as lines and as a picture that can be used."""

import os
import re
from collections import Counter
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from kinst.runtime.clauses.environment import CALLER, Stack
from kinst.runtime.cli import run
from kinst.runtime.consumer.pictures.flame_graph import FlameGraph
from kinst.runtime.consumer.pictures.flame_tree import boxes
from kinst.runtime.consumer.pictures.folded_stacks import Frame, FrameKind, StackDocument, StackReader
from kinst.runtime.dlang.program import AggregatingFunction
from kinst.runtime.dlang.types.types import STACK, String
from tests.chromium import used
from tests.runtime.consumer.recording import NamedSymbols, Recording, aggregation

SAMPLE = Path(__file__).parents[3] / "samples" / "kernel-riscv64.elf"
SVG = "{http://www.w3.org/2000/svg}"
PROGRAM = "fbt::file_*:entry, fbt::vfs_*:entry, fbt::hash_bytes:entry { @[stack()] = count(); }"


def kinst_run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(run, ["-q", "--clock", "icount", *map(str, arguments)], catch_exceptions=False)


def picture(folder: Path) -> Path:
    path = folder / "t.svg"
    result = kinst_run(SAMPLE, "--console", os.devnull, "--format", "flamegraph", "-o", path, "-n", PROGRAM)
    assert result.exit_code == 0, result.stderr
    return path


def test_folded_lines_add_up_to_what_was_counted() -> None:
    result = kinst_run(SAMPLE, "--format", "folded", "-n", PROGRAM)
    counts: Counter[str] = Counter()
    for line in result.stdout.splitlines():
        frames, _, count = line.rpartition(" ")
        parts = frames.split(";")
        assert all(re.fullmatch(r"kernel-riscv64`\w+", part) for part in parts), line
        counts[parts[-1].partition("`")[2]] += int(count)
    assert any(
        "`kmain;kernel-riscv64`client_report;kernel-riscv64`total;" in line for line in result.stdout.splitlines()
    )
    assert counts["vfs_read"] == 80
    assert counts["vfs_get"] == 176
    assert result.stdout.splitlines() == sorted(result.stdout.splitlines())
    assert "kernel: booting" in result.stderr


def recorded(*functions: AggregatingFunction) -> tuple[Recording, StackDocument, BytesIO]:
    recording, written = Recording(), BytesIO()
    made = [aggregation(one, String(), STACK, STACK, number=number) for number, one in enumerate(functions, 1)]
    for number, one in enumerate(made, 1):
        for program, kernel, value in (
            (b"a;b", (0x1010, 0x1020), 2),
            (b"a;b", (0x1040, 0x1020), 3),
            (b"c", (0x10,), 5),
        ):
            user = Stack((0x7000,), 20, is_user=True, names=("sh`main+0x1c",))
            recording.add(one, (program, Stack(kernel, 20), user), *[number * value])
    reader = StackReader(recording.totals, NamedSymbols())
    return recording, StackDocument(written, reader, made), written


def test_keys_come_before_user_mode_and_that_before_the_kernel() -> None:
    _, document, written = recorded(AggregatingFunction.SUM)
    document.finish()
    assert written.getvalue().decode().splitlines() == [
        "a:b;sh`main;kernel`main;kernel`main 5",  # equal but for offsets: added
        "c;sh`main;0x10 5",
    ]


def test_several_aggregations_have_a_root_each() -> None:
    _, document, written = recorded(AggregatingFunction.COUNT, AggregatingFunction.SUM)
    document.finish()
    assert [line.partition(";")[0] for line in written.getvalue().decode().splitlines()] == ["@a", "@a", "@b", "@b"]


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("BEGIN { @[probefunc] = count(); exit(0) }", "no program counts by stack"),
        ("BEGIN { @t[stack()] = avg(3); exit(0) }", "@t: avg() has no parts that add up"),
    ],
)
@pytest.mark.parametrize("form", ["folded", "flamegraph"])
def test_what_cannot_be_drawn_is_refused_before_the_run(form: str, program: str, why: str, tmp_path: Path) -> None:
    result = kinst_run("--format", form, "-o", tmp_path / "t", "-n", program)
    assert result.exit_code == 2
    assert why in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_boxes_hold_those_they_called() -> None:
    frames = {name: Frame(name, FrameKind.KERNEL) for name in "abc"}
    stacks = {
        tuple(frames[name] for name in path): weight for path, weight in (("ab", 3), ("a", 1), ("ac", 2), ("b", 4))
    }
    assert [(box.frame.text, box.start, box.weight, box.depth) for box in boxes(stacks, 0)] == [
        ("all", 0, 10, 0),
        ("a", 0, 6, 1),
        ("b", 0, 3, 2),
        ("c", 3, 2, 2),
        ("b", 6, 4, 1),
    ]
    assert [box.frame.text for box in boxes(stacks, 0.3)] == ["all", "a", "b", "b"]


def test_the_picture_is_whole_without_scripts(tmp_path: Path) -> None:
    root = ElementTree.parse(picture(tmp_path)).getroot()
    frames = [group for group in root.iter(f"{SVG}g") if group.get("class", "").startswith("f ")]
    widths = {group.get("data-name"): 0.0 for group in frames}
    for group in frames:
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        assert float(rect.get("width", "").rstrip("%")) == pytest.approx(100 * float(group.get("data-w", "")), rel=1e-4)
        widths[group.get("data-name")] += float(group.get("data-w", ""))
    assert widths["all"] == 1
    assert 0 < widths["vfs_read"] < widths["kmain" if "kmain" in widths else "start"] <= 1
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert titles[0] == "kernel-riscv64.elf"
    assert re.fullmatch(r"all: [\d,]+ hits, 100.00 %", titles[1])
    text = (tmp_path / "t.svg").read_text()
    assert "://" not in re.sub(r'xmlns="[^"]*"', "", text)  # nothing comes from elsewhere


def test_names_that_mean_something_in_xml_and_an_empty_picture() -> None:
    recording, _, _ = recorded()
    made, written = aggregation(AggregatingFunction.COUNT, String(), STACK), BytesIO()
    graph = FlameGraph(written, StackReader(recording.totals, NamedSymbols()), [made], "a <b> & ]]>")
    graph.finish()
    recording.add(made, (b'<&>"\x01\xff;]]>', Stack((0x1000,), 20)), 1)
    empty = written.getvalue()
    written.truncate(0)
    written.seek(0)
    graph.finish()
    for text in (empty, written.getvalue()):
        root = ElementTree.fromstring(text)
        assert root.findtext(f"{SVG}title") == "a <b> & ]]>"
    names = [group.get("data-name") for group in root.iter(f"{SVG}g")]
    assert names == ["all", '<&>"\ufffd\\xff;]]>', "main"]


@pytest.mark.long
def test_a_reader_zooms_searches_and_walks(tmp_path: Path) -> None:
    script = """
      const frames = [...document.querySelectorAll(".f")], found = {};
      const search = document.getElementById("search");
      const shown = () => frames.filter(frame => getComputedStyle(frame).display !== "none");
      const named = name => frames.find(frame => frame.dataset.name === name);
      found.all = shown().length === frames.length;
      type(search, "^vfs_re");
      found.matches = [...new Set([...document.querySelectorAll(".found")].map(frame => frame.dataset.name))].sort();
      found.status = document.getElementById("status").textContent;
      type(search, "(");
      found.brokenPattern = document.querySelectorAll(".found").length;
      key("Escape", search);
      named("vfs_read").dispatchEvent(new MouseEvent("click", { bubbles: true }));
      found.zoomed = named("vfs_read").querySelector("rect").getAttribute("width");
      found.rest = shown().length < frames.length;
      found.focused = document.activeElement.dataset.name;
      key("ArrowDown");
      found.caller = Number(document.activeElement.dataset.d) === Number(named("vfs_read").dataset.d) - 1;
      key("ArrowUp");
      found.back = document.activeElement.dataset.name;
      key("Escape");
      found.again = shown().length === frames.length;
      found.texts = frames.every(frame => {
        const text = frame.querySelector("text"), rect = frame.querySelector("rect");
        return !text.textContent || text.getBBox().width <= rect.getBBox().width;
      });
      return found;
    """
    found = used(picture(tmp_path), script)
    status = found.pop("status")
    assert re.fullmatch(r"\d+ frames match, [1-9][\d.]* %", status)
    assert found == {
        "all": True,
        "matches": ["vfs_read", "vfs_report"],
        "brokenPattern": 0,
        "zoomed": "100%",
        "rest": True,
        "focused": "vfs_read",
        "caller": True,
        "back": "vfs_read",
        "again": True,
        "texts": True,
    }


def test_a_call_that_never_returns_belongs_to_the_function_before_its_return_address() -> None:
    recording, written = Recording(), BytesIO()
    made = aggregation(AggregatingFunction.COUNT, STACK)
    recording.add(made, (Stack((0x1000, 0x1000, 0x1008), 20),), 1)
    StackDocument(written, StackReader(recording.totals, Neighbours()), [made]).finish()
    assert written.getvalue() == b"kernel`main;kernel`before;kernel`main 1\n"


class Neighbours(NamedSymbols):
    """With kernel`before, which ends where kernel`main begins, in a call."""

    def describe(self, address: int, kind: str) -> str:
        is_before = 0xF00 <= address < 0x1000 or (address == 0x1000 and kind == CALLER)
        return f"kernel`before+{address - 0xF00:#x}" if is_before else super().describe(address, kind)

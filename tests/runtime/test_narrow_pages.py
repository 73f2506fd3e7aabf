"""Pages and pictures in a window of 500 pixels: nothing is cut off that cannot be scrolled to."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import diff, rewrite
from kinst.runtime.cli import run
from tests.chromium import used

SAMPLE = Path(__file__).parents[2] / "samples" / "kernel-amd64.elf"
WIDTH = 500
# What is drawn to the right of the window, and is in nothing that can be scrolled there; and lists without any height.
CUT = """
  const scrolls = node => node && (
    (node.scrollWidth > node.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(node).overflowX)) ||
    scrolls(node.parentElement));
  const cut = root => [...root.querySelectorAll("button, input, a, iframe, .row > *, td, .list")].filter(node => {
    const box = node.getBoundingClientRect();
    return node.checkVisibility() && (box.right > innerWidth + 1 && !scrolls(node.parentElement) ||
      node.classList.contains("list") && box.height < 48);
  }).map(node => node.outerHTML.slice(0, 80));
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_report(folder: Path) -> None:
    program = "fbt:::entry { @calls[probefunc] = count(); @[stack()] = count(); } fbt::vfs_*:entry { trace(arg0); }"
    options = ["-q", "--clock", "icount", "--report", "r.html"]
    assert CliRunner().invoke(run, [*options, str(SAMPLE), "-n", program]).exit_code == 0
    script = """
      const found = {};
      for (const tab of document.querySelectorAll("[role=tab]:not([hidden])")) {
        tab.click();
        await settled();
        found[tab.id] = cut(document);
      }
      return found;
    """
    found = used(folder / "r.html", CUT + script, ready="document.documentElement.dataset.ready", width=WIDTH)
    views = ("overview", "aggregations", "flame", "calls", "functions", "records", "console")
    assert found == {f"tab-{name}": [] for name in views}


def test_a_difference(folder: Path) -> None:
    assert CliRunner().invoke(rewrite, [str(SAMPLE), "-p", "fbt::vfs_*:", "-o", "p.elf"]).exit_code == 0
    options = ["--format", "html", "-o", "d.html"]
    assert CliRunner().invoke(diff, [*options, str(SAMPLE), "p.elf"]).exit_code == 0
    ready = "document.documentElement.dataset.ready"
    assert used(folder / "d.html", CUT + "return cut(document);", ready=ready, width=WIDTH) == []


def test_a_flame_graph(folder: Path) -> None:
    """Its tools are whole, and beside nothing else, however long its title is."""
    options = [
        "-q",
        "--clock",
        "icount",
        "--format",
        "flamegraph",
        "-o",
        "f.svg",
        "--name",
        "a-name-of-some-length" * 2,
    ]
    assert (
        CliRunner().invoke(run, [*options, str(SAMPLE), "-n", "profile-997 { @[stack()] = count(); }"]).exit_code == 0
    )
    script = """
      const box = node => node.getBoundingClientRect();
      const room = box(document.querySelector("foreignObject"));
      const tools = [...document.querySelectorAll("#bar > *")].map(box);
      const texts = [...document.querySelectorAll("svg > text, .f rect")].map(box);
      return [
        tools.every(one => one.left >= 0 && one.right <= innerWidth && one.bottom <= room.bottom),
        texts.every(one => tools.every(tool =>
          one.bottom <= tool.top || one.top >= tool.bottom || one.left >= tool.right || one.right <= tool.left)),
      ];
    """
    assert used(folder / "f.svg", script, width=WIDTH) == [True, True]

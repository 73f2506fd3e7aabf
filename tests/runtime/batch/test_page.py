"""The page of a batch, in a browser: a hundred thousand rows, filtered, sorted, chosen and shown."""

from pathlib import Path
from typing import Any

import pytest

from kinst.runtime.batch.page import batch_page_lines
from kinst.runtime.batch.rows import COLUMNS
from tests.chromium import used

READY = "document.documentElement.dataset.ready"
COUNT = 100_000
COVERED = {"image": "i", "function": "f<b>", "offset": 4, "instruction": "ret", "hits": 7, "inputs": 3, "first": 1}


def row(number: int) -> dict[str, Any]:
    known = {
        "kind": "call",
        "image": f"image{number % 3}<script>",
        "what": "f()",
        "input": f"{number}, 7",
        "outcome": "refused" if number % 1000 == 5 else "done",
        "reason": f"no <good> at {number:#x}" if number % 1000 == 5 else None,
        "covered": number * 7919 % COUNT,
        "aggregations": '{"a":[[["key"],3]]}' if number == 0 else None,
    }
    return {name: known.get(name) for name in COLUMNS}


def page(path: Path, count: int) -> Path:
    coverage = [
        {**COVERED, "refused": None},
        {**COVERED, "hits": None, "inputs": None, "first": None, "refused": "why"},
    ]
    path.write_text("\n".join(batch_page_lines("a <title>", map(row, range(count)), coverage)))
    return path


def test_sums_need_no_script_and_names_are_no_markup(tmp_path: Path) -> None:
    text = page(tmp_path / "page.html", 2000).read_text()
    assert "2,000 rows: <b class=good>1,998 done</b>, <b class=soft>2 refused</b>" in text
    assert "<td>no &lt;good&gt; at N<td>image2&lt;script&gt;, image0&lt;script&gt;" in text
    assert "a &lt;title&gt;" in text and "f&lt;b&gt;" in text and "<td colspan=4>not counted: why" in text
    assert "image0<script>" not in text
    assert "://" not in text


SCRIPT = """
const shown = () => document.getElementById("shown").textContent;
const first = () => [...document.querySelector("#rows .row").children].map(node => node.textContent);
const list = document.getElementById("rows"), drawn = list.querySelectorAll(".row").length;
const button = name => [...document.querySelectorAll("#head button")].find(node => node.textContent === name);
list.focus();
key("ArrowDown");
await settled();
const detail = document.getElementById("detail").textContent;
key("End");
await settled();
const last = list.querySelector("[aria-selected=true]").textContent;
type(document.getElementById("filter"), "outcome:refused image1");
await settled();
const filtered = [shown(), first()];
type(document.getElementById("filter"), "");
button("covered").click();
await settled();
const least = first();
button("covered").click();
await settled();
const most = first();
key("d", document.body);
return { drawn, detail, last, filtered, least, most, theme: document.documentElement.dataset.theme };
"""


def test_a_row_links_to_its_report_and_to_nothing_else(tmp_path: Path) -> None:
    path, names = tmp_path / "page.html", (f"reports/{'ab' * 16}.html", "javascript:alert(1)", "../../etc/passwd", None)
    rows = [{**row(number + 1), "kind": "run", "report": name} for number, name in enumerate(names)]
    path.write_text("\n".join(batch_page_lines("title", rows, [])))
    script = """
      const links = [...document.querySelectorAll("#rows .row")].map(node => {
        const found = node.querySelector("a");
        return found && found.getAttribute("href");
      });
      document.querySelector("#rows .row").click();
      return [links, document.querySelector("#detail a").getAttribute("href")];
    """
    assert used(path, script, ready=READY) == [[names[0], None, None, None], names[0]]


@pytest.mark.long
def test_a_hundred_thousand_rows_are_filtered_sorted_and_chosen(tmp_path: Path) -> None:
    found = used(page(tmp_path / "page.html", COUNT), SCRIPT, ready=READY)
    assert 10 < found["drawn"] < 60
    assert "@a" in found["detail"] and "key" in found["detail"]
    assert "99999, 7" in found["last"]
    assert found["filtered"][0].endswith(" of 100,000")
    assert found["filtered"][1][1] == "image1<script>"
    assert (found["least"][-1], found["most"][-1]) == ("0", "99,999")
    assert found["theme"] == "dark"

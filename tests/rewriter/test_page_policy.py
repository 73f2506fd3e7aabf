"""The policies of pages, in a browser: their own code runs, and nothing that somebody gets into them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kinst.runtime.batch.page import batch_page_lines
from kinst.runtime.consumer.pictures.heat_map import HeatRow, Panel, heat_map
from tests.chromium import used

INJECTED = """<script>document.documentElement.setAttribute("data-bad", "1")</script>
<img src="x" onerror="document.documentElement.setAttribute('data-bad', '2')"/>
<style>* { outline: 1px solid red; }</style>
<iframe src="data:text/html,x"></iframe>"""
XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'
ASKED = """
let fetched = "";
try { await fetch("data:text/plain,x"); fetched = "yes"; } catch (error) { fetched = "no"; }
return [document.documentElement.getAttribute("data-bad"), fetched];
"""


def batch_page() -> str:
    return "\n".join(batch_page_lines("t", [], []))


def picture() -> str:
    row = HeatRow("r", {0: 1})
    return b"".join(heat_map("t", "w", [Panel("p", [row], 1, 1)], "hits")).decode()


@pytest.mark.parametrize(("name", "make", "end"), [("t.html", batch_page, "</body>"), ("t.svg", picture, "</svg>")])
def test_nothing_else_runs_or_is_fetched(name: str, make: Callable[[], str], end: str, tmp_path: Path) -> None:
    page = tmp_path / name
    page.write_text(make())
    assert used(page, "return 1") == 1
    injected = (
        INJECTED
        if name == "t.html"
        else INJECTED.replace("<img", f"<img {XHTML}").replace("<iframe", f"<iframe {XHTML}")
    )
    page.write_text(f"{injected}{end}".join(make().rsplit(end, 1)))
    assert used(page, ASKED, refused=6) == [None, "no"]

"""The report of a run -> the lines of its page. `pages/report.js` draws it, and documents the shapes of the data."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from kinst.rewriter.shell.page import page_lines
from kinst.runtime.consumer.pictures.flame_graph import flame_graph_code
from kinst.runtime.consumer.pictures.heat_map import heat_map_code
from kinst.runtime.consumer.report.collected import FirstAndLast
from kinst.runtime.consumer.report.coverage import Coverage
from kinst.targets.values import dataclass
from kinst.targets.visible import visible_lines


@dataclass(frozen=True, slots=True)
class Report:
    """A run. Pictures are SVG; an empty text is none."""

    title: str
    outcome: str  # how it ended, in a few words
    is_failure: bool
    facts: Sequence[tuple[str, str]]  # what was run: a label and a text of one or more lines each
    messages: Sequence[str]  # errors and drops
    message_count: int
    console: FirstAndLast
    records: Sequence[Sequence[Any]]
    record_count: int
    aggregations: Sequence[dict[str, Any]]  # each may have a picture `heat`
    coverage: Coverage
    timeline: str
    flame: str
    calls: Sequence[Sequence[Any]]  # of the same stacks: `callers_and_callees`
    code: str = ""  # HTML: the functions that ran, and their source; empty if that was not counted
    code_style: str = ""  # and its CSS


def report_lines(report: Report) -> Iterator[str]:
    """The lines of the page."""
    texts = {
        "title": escape(f"{report.title}: a run"),
        "name": escape(report.title),
        "outcome": f'<strong class="{"bad" if report.is_failure else "good"}">{escape(report.outcome)}</strong>',
        "facts": "".join(f"<tr><th scope=row>{escape(name)}</th>{_cell(text)}</tr>\n" for name, text in report.facts),
        "messages": "".join(_messages(report)),
    }
    pictures = (flame_graph_code(), heat_map_code())
    yield from page_lines("kinst.runtime.consumer.report", "report", texts, _data(report), pictures, report.code_style)


def _cell(text: str) -> str:
    shown = escape(visible_lines(text))
    return f"<td><pre>{shown}</pre></td>" if "\n" in text else f"<td>{shown}</td>"


def _messages(report: Report) -> Iterator[str]:
    if not report.messages:
        return
    yield f"<h2>Messages <small>{report.message_count:,}</small></h2>\n<ul>\n"
    for message in report.messages:
        yield f"<li>{escape(visible_lines(message))}</li>\n"
    more = report.message_count - len(report.messages)
    yield f"<li>and {more:,} more</li>\n</ul>\n" if more else "</ul>\n"


def _data(report: Report) -> dict[str, Any]:
    head, tail = (_text(part) for part in report.console.parts())
    coverage = report.coverage
    return {
        "console": [head, tail, report.console.left_out],
        "records": report.records,
        "recordCount": report.record_count,
        "aggregations": report.aggregations,
        "functions": coverage.functions,
        "coverage": [coverage.probed, coverage.hit, coverage.hits, coverage.left_out],
        "timeline": report.timeline,
        "flame": report.flame,
        "calls": report.calls,
        "code": report.code,
    }


def _text(data: bytes) -> str:
    """The console's text: control characters are escaped, and carriage returns become newlines."""
    return visible_lines(data.decode(errors="backslashreplace").replace("\r\n", "\n").replace("\r", "\n"))

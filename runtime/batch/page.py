"""The rows of a batch -> one self-contained HTML page: a summary of all rows, and each row in detail.

There may be a hundred thousand rows; the page draws those that are looked at. Its data:

    {"columns": [[name, meaning], ...], "rows": [[value, ...], ...]}

Columns in which nothing is are left out. The sums, and what calls reached, need no script.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from kinst.rewriter.shell.page import page_lines
from kinst.runtime.batch.rows import COLUMNS, GOOD, Outcome, Row

_MOST: Final = 200_000  # rows on the page; the table has all
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d[\d,]*")
_REASONS: Final = 40  # that are listed
_EXAMPLES: Final = 3


@dataclass(slots=True)
class _Sums:
    """The sums over all rows."""

    count: int = 0
    outcomes: dict[tuple[str, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)  # outcome, and text without its numbers
    examples: dict[tuple[str, str], dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    kept: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Add a row."""
        self.count += 1
        self.outcomes[row["kind"], row["what"], row["machine"] or ""][row["outcome"]] += 1
        if row["reason"]:
            key = row["outcome"], _NUMBER.sub("N", row["reason"])
            self.reasons[key] += 1
            if len(self.examples[key]) < _EXAMPLES:
                self.examples[key][row["image"]] = None
        if len(self.kept) < _MOST:
            self.kept.append(row)


def batch_page_lines(
    title: str, rows: Iterable[Row], coverage: Sequence[Row], code: Sequence[str] = ()
) -> Iterator[str]:
    """The lines of the page. `code` are those about the code that ran in boots, as HTML."""
    sums = _Sums()
    for row in rows:
        sums.add(row)
    texts = {
        "title": escape(title),
        "verdict": _verdict(sums),
        "outcomes": "\n".join(_outcomes(sums)),
        "reasons": "\n".join(_reasons(sums)),
        "coverage": "\n".join((*code, *_coverage(coverage))),
    }
    yield from page_lines("kinst.runtime.batch", "batch", texts, _data(sums.kept))


def _verdict(sums: _Sums) -> str:
    counts = Counter[str]()
    for found in sums.outcomes.values():
        counts.update(found)
    shown = [f"<b class={_tone(outcome)}>{number:,} {escape(outcome)}</b>" for outcome, number in counts.most_common()]
    more = "" if sums.count <= _MOST else f" <small>(the first {_MOST:,} are listed below)</small>"
    return f"{sums.count:,} rows: {', '.join(shown)}{more}"


def _tone(outcome: str) -> str:
    if outcome == Outcome.DONE.value:
        return "good"
    return "soft" if outcome in GOOD else "bad"


def _outcomes(sums: _Sums) -> Iterator[str]:
    shown = [one.value for one in Outcome if any(one.value in found for found in sums.outcomes.values())]
    heads = "".join(f"<th scope=col class=number>{outcome}" for outcome in shown)
    yield f"<thead><tr><th scope=col>kind<th scope=col>what<th scope=col>machine{heads}</thead><tbody>"
    for (kind, what, machine), found in sorted(sums.outcomes.items()):
        cells = "".join(f"<td class='number {_tone(one)}'>{found[one]:,}" if found[one] else "<td>" for one in shown)
        yield f"<tr><td>{escape(kind)}<td><code>{escape(what)}</code><td>{escape(machine)}{cells}"
    yield "</tbody>"


def _reasons(sums: _Sums) -> Iterator[str]:
    if not sums.reasons:
        return
    yield "<h2>Reasons</h2><div class=wide><table><thead><tr><th scope=col>outcome<th scope=col class=number>rows"
    yield "<th scope=col>reason (N: a number)<th scope=col>for example</thead><tbody>"
    for (outcome, reason), number in sums.reasons.most_common(_REASONS):
        names = ", ".join(escape(name) for name in sums.examples[outcome, reason])
        shown = f"<td class={_tone(outcome)}>{escape(outcome)}<td class=number>{number:,}"
        yield f"<tr>{shown}<td>{escape(reason)}<td>{names}"
    yield "</tbody></table></div>"


def _coverage(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    most = max((row["inputs"] or 0 for row in rows), default=0) or 1
    yield "<h2>Coverage</h2><div class=wide><table class=coverage><thead><tr><th scope=col>image<th scope=col>function"
    yield "<th scope=col class=number>offset<th scope=col>instruction<th scope=col class=number>inputs"
    yield "<th scope=col><th scope=col class=number>executed<th scope=col class=number>first input</thead><tbody>"
    for row in rows:
        yield _covered(row, most)
    yield "</tbody></table></div>"


def _covered(row: Row, most: int) -> str:
    names = f"<td>{escape(row['image'])}<td>{escape(row['function'])}<td class=number>{row['offset']:d}"
    place = f"{names}<td><code>{escape(row['instruction'])}</code>"
    if row["inputs"] is None:
        return f"<tr class=soft>{place}<td colspan=4>not counted: {escape(row['refused'] or '')}"
    if not row["inputs"]:
        return f"<tr class=bad>{place}<td class=number>0<td>not reached<td><td>"
    bar = f"<td><meter min=0 max={most:d} value={row['inputs']:d}>{row['inputs']:d}</meter>"
    inputs, hits, first = (f"<td class=number>{row[name]:,}" for name in ("inputs", "hits", "first"))
    return f"<tr>{place}{inputs}{bar}{hits}{first}"


def _data(rows: Sequence[Row]) -> dict[str, Any]:
    names = [name for name in COLUMNS if any(row[name] is not None for row in rows)]
    return {
        "columns": [[name, COLUMNS[name][1]] for name in names],
        "rows": [[row[name] for name in names] for row in rows],
    }

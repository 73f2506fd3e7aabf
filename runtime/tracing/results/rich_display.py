"""Columns and aggregations -> HTML for a notebook: tables and bars. They use no scripts and no style sheet, since
viewers such as GitHub's remove both."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from kinst.runtime.tracing.results.frames import Cell, Columns
from kinst.targets.visible import visible

_MOST: Final = 20  # rows that are shown
_BAR: Final = 30  # characters
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_LONGEST: Final = 120  # characters of a cell
_LEFT: Final = ' style="text-align: left"'
_FIXED: Final = ' style="text-align: left; font-family: monospace; white-space: pre"'

Row = tuple[tuple[Cell, ...], Any]


def table(columns: Columns) -> str:
    """A table of the first rows, and how many there are."""
    rows = list(zip(*columns.values(), strict=True))
    shown = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:_MOST])
    return _table(list(columns), shown, len(rows))


def aggregation(title: str, rows: Sequence[Row]) -> str:
    """The keys with bars: one for each number, or a histogram for each distribution. dtrace prints in ascending order,
    so the last rows are shown, the greatest first."""
    keys = max((len(keys) for keys, _ in rows), default=0)
    caption = f"<caption{_LEFT}><b>{escape(title)}</b></caption>"
    if any(isinstance(value, Mapping) for _, value in rows):
        shown = "".join(_histogram(*row) for row in rows[: -_MOST - 1 : -1])
        return _table([*_names(keys), "bucket", "", "count"], shown, len(rows), caption)
    greatest = max((value for _, value in rows), default=0)
    shown = "".join(_bar_row(*row, greatest) for row in rows[: -_MOST - 1 : -1])
    return _table([*_names(keys), "", "value"], shown, len(rows), caption)


def _names(keys: int) -> Iterator[str]:
    return (f"key{number + 1}" for number in range(keys))


def _table(names: Sequence[str], rows: str, count: int, caption: str = "") -> str:
    head = "".join(f"<th{_LEFT}>{escape(name)}</th>" for name in names)
    more = f"<p>{count:,} rows, {_MOST} of them shown</p>" if count > _MOST else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _bar_row(keys: Sequence[Cell], value: int, greatest: int) -> str:
    return f"<tr>{''.join(map(_cell, keys))}<td{_FIXED}>{bar(value, greatest)}</td>{_number(value)}</tr>"


def _histogram(keys: Sequence[Cell], counts: Mapping[Any, int]) -> str:
    greatest = max(counts.values(), default=0)
    rows = []
    for place, (bucket, count) in enumerate(counts.items()):
        own = "".join(map(_cell, keys)) if place == 0 else "<td></td>" * len(keys)
        name = str(bucket) if isinstance(bucket, float) else bucket
        rows.append(f"<tr>{own}{_cell(name)}<td{_FIXED}>{bar(count, greatest)}</td>{_number(count)}</tr>")
    return "".join(rows)


def bar(value: int, greatest: int) -> str:
    """A bar of block characters, whose length is proportional to the value: the greatest takes the full width."""
    eighths = round(8 * _BAR * value / greatest) if greatest > 0 and value > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _number(value: int) -> str:
    return f'<td style="text-align: right">{value:,}</td>'


def _cell(value: Cell) -> str:
    if isinstance(value, int):
        return f'<td style="text-align: right">{value}</td>'
    text = "" if value is None else visible(value)
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return f"<td{_LEFT}>{escape(shown)}</td>"

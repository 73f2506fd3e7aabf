"""Counts by row and time -> a heat map: one SVG file for any browser. Each panel has its own rows, and all share one
time axis. Without scripts it is a static picture; with them, the cell under the pointer is described.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from kinst.rewriter.shell.page import picture_code, picture_head, picture_script
from kinst.rewriter.shell.page_policy import Code
from kinst.targets.values import dataclass

_LEVELS: Final = 8  # shades of what is not 0
_WIDTH: Final = 1200  # pixels of the picture, which is scaled to where it is shown
_LEFT: Final = 190  # of the labels
_RIGHT: Final = 20
_TOP: Final = 58  # of the title
_HEAD: Final = 28  # of a panel's title
_AXIS: Final = 30
_FOOT: Final = 54  # of the legend and the line that describes a cell
_COLUMNS: Final = 256  # the most
_THIN: Final = 0.6  # pixels of the narrowest cell
_SEEN: Final = 3.0  # and of one among few
_FEW: Final = 64  # cells of a panel
_MANY: Final = 128  # a count from which on all shades are used
_LABEL: Final = 25  # characters
_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_UNPRINTABLE: Final = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF), 0xFFFD)  # not in XML
_HELP: Final = "Point at a cell, or Tab to a panel and walk with the arrows: what it counts is shown below."


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A row: what it is, and its counts by column."""

    label: str
    counts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Panel:
    """Rows from top to bottom. `width` is that of a column in ns; `columns` is how many there are."""

    title: str
    rows: Sequence[HeatRow]
    width: int
    columns: int


def heat_map(title: str, what: str, panels: Sequence[Panel], unit: str) -> Iterator[bytes]:
    """The picture. `unit` is what is counted."""
    for piece in _pieces(title, what, panels, unit):
        yield piece.translate(_UNPRINTABLE).encode("utf-8", "backslashreplace")


def _pieces(title: str, what: str, panels: Sequence[Panel], unit: str) -> Iterator[str]:
    narrow = [_narrowed(panel) for panel in panels]
    end = max((panel.width * panel.columns for panel in narrow), default=1)
    height = _TOP + sum(map(_height, narrow)) + _FOOT
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    size = f'viewBox="0 0 {_WIDTH} {height}" width="100%" height="{height}" preserveAspectRatio="xMinYMin"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} lang="en">\n'
    yield f"<title>{escape(title)}</title>\n<desc>Heat map of {escape(what)}. {_HELP}</desc>\n"
    yield picture_head(heat_map_code())
    yield f'<text class="title" x="12" y="26">{escape(title)}</text>\n'
    yield f'<text class="what" x="12" y="46">{escape(what)}</text>\n'
    y = _TOP
    for panel in narrow:
        yield from _panel(panel, end, y, unit)
        y += _height(panel)
    most = [max((max(row.counts.values(), default=0) for row in panel.rows), default=0) for panel in narrow]
    yield from _legend(max(most, default=0), unit, height)
    yield f"{picture_script(heat_map_code())}</svg>\n"


def heat_map_code() -> Code:
    """The script and the style of every heat map."""
    return picture_code("kinst.runtime.consumer.pictures", "heat_map")


def _narrowed(panel: Panel) -> Panel:
    """The panel with as many columns as can be distinguished."""
    while panel.columns > _COLUMNS:
        rows = [HeatRow(row.label, _halved(row.counts)) for row in panel.rows]
        panel = Panel(panel.title, rows, 2 * panel.width, (panel.columns + 1) // 2)
    return panel


def _halved(counts: Mapping[int, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for column, count in counts.items():
        found[column >> 1] = found.get(column >> 1, 0) + count
    return found


def _row_height(panel: Panel) -> int:
    return 24 if len(panel.rows) <= 8 else 15


def _height(panel: Panel) -> int:
    return _HEAD + _row_height(panel) * len(panel.rows) + _AXIS


def _panel(panel: Panel, end: int, y: int, unit: str) -> Iterator[str]:
    """A panel, whose colours are relative to its own largest count."""
    yield f'<g class="panel" tabindex="0" role="group" aria-label="{escape(panel.title)}">\n'
    yield f'<text class="head" x="12" y="{y + 18}">{escape(panel.title)}</text>\n'
    high, top = _row_height(panel), y + _HEAD
    scale = (_WIDTH - _LEFT - _RIGHT) * panel.width / end
    most = max((max(row.counts.values(), default=0) for row in panel.rows), default=0)
    least = _SEEN if sum(len(row.counts) for row in panel.rows) <= _FEW else _THIN
    area = (_WIDTH - _LEFT - _RIGHT, high * len(panel.rows))
    yield f'<rect class="room" x="{_LEFT}" y="{top}" width="{area[0]}" height="{area[1]}"/>\n'
    for place, row in enumerate(panel.rows):
        at = top + place * high
        label = row.label if len(row.label) <= _LABEL else row.label[: _LABEL - 1] + "…"
        yield f'<text class="label" x="{_LEFT - 8}" y="{at + high / 2 + 4:g}">{escape(label)}</text>\n'
        for column, count in sorted(row.counts.items()):
            if count > 0:
                times = f"{duration(column * panel.width)} to {duration((column + 1) * panel.width)}"
                title = escape(f"{times}, {row.label}: {count:,} {unit}")
                yield (
                    f'<rect class="c l{_level(count, most)}" data-c="{column}" data-r="{place}"'
                    f' x="{_LEFT + column * scale:.2f}" y="{at}" width="{max(scale, least):.2f}" height="{high - 1}">'
                    f"<title>{title}</title></rect>\n"
                )
    yield from _axis(end, top + high * len(panel.rows))
    yield "</g>\n"


def _level(count: int, most: int) -> int:
    """The shade of a count, from 1: by its logarithm, so that a rare value beside a frequent one is visible."""
    return _LEVELS if count >= most else 1 + int((_LEVELS - 1) * math.log(count) / math.log(most))


def _axis(end: int, y: int) -> Iterator[str]:
    step = _step(end)
    for number in range(int(end // step) + 1):
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * number * step / end
        yield f'<path class="tick" d="M{x:.1f} {y}v5"/><text class="time" x="{x:.1f}" y="{y + 18}">'
        yield f"{duration(number * step)}</text>\n"


def _step(end: int) -> int:
    """The distance between the labels of an axis up to `end` (ns): 1, 2 or 5 times a power of ten."""
    least, power = end / 10, 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step >= least:
                return step
        power *= 10


def duration(time: int) -> str:
    """A time in ns as text: at most four digits and a unit."""
    if not time:
        return "0"
    unit, name = next((size, name) for size, name in _UNITS if time >= size)
    return f"{time / unit:.4g} {name}"


def _legend(most: int, unit: str, height: int) -> Iterator[str]:
    y = height - _FOOT + 10
    yield f'<text class="what" x="12" y="{y + 11}">{escape(unit)} in a cell, the most of its panel last:</text>\n'
    # A few values have fewer shades than there are.
    shades = sorted({_level(count, most) for count in range(1, most + 1)}) if most < _MANY else range(1, _LEVELS + 1)
    for place, level in enumerate(shades, 1):
        yield f'<rect class="c l{level}" x="{330 + 26 * place}" y="{y}" width="25" height="14"/>\n'
    legend = f"at the most {most:,}" if most else "nothing was counted"
    yield f'<text class="what" x="{330 + 26 * len(shades) + 40}" y="{y + 11}">{legend}</text>\n'
    yield f'<text id="status" x="12" y="{height - 10}" aria-live="polite">{_HELP}</text>\n'

"""Rows of the live view -> lines of text that fit the width."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from kinst.runtime.clauses.environment import TaskState
from kinst.runtime.top.ranking import HISTORY, RankedRow
from kinst.runtime.top.sample import CpuView
from kinst.runtime.tracing.host.ending import CpuState
from kinst.targets.values import dataclass

_NUMBER: Final = 12
_RATE: Final = 9
_SHARE: Final = 7
_BAR: Final = 10
_TREND: Final = HISTORY
_PICTURE: Final = 24
_NARROW: Final = 60  # columns below which there are no pictures
_WIDE: Final = 84  # columns from which on there are all of them
_UNITS: Final = ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k"))
_HEADING: Final = "bold"
_DIM: Final = "dim"
_STATES: Final = {CpuState.RUNS: ("runs", "green"), CpuState.WAITS: ("idle", _DIM), CpuState.OFF: ("off", _DIM)}


def short(number: float) -> str:
    """A number in a few columns: 950, 12.3k, 4.56M."""
    for unit, letter in _UNITS:
        if abs(number) >= unit:
            scaled = number / (1000 if letter == "k" else unit)
            return f"{scaled:.{2 if abs(scaled) < 10 else 1}f}{letter}"
    return f"{number:,.0f}"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one table."""

    key: str  # headings
    value: str
    has_rates: bool
    has_two_clocks: bool  # whether the guest's time is not the host's
    has_pictures: bool  # whether values are distributions

    def heading(self, width: int) -> Text:
        """The line above the rows."""
        rates = ["/s guest", "/s host"] if self.has_two_clocks else ["/s"]
        text = self._line(
            self.key, self.value, rates, ("share", "", "distribution" if self.has_pictures else "trend"), width
        )
        text.stylize(_HEADING)
        return text

    def row(self, ranked: RankedRow, width: int) -> Text:
        """A key with its values."""
        rates = [ranked.guest_rate, ranked.rate] if self.has_two_clocks else [ranked.rate]
        pictures = f"{ranked.share:.1%}", "█" * round(ranked.length * _BAR), ranked.trend
        return self._line(ranked.key, f"{ranked.value:,}", list(map(short, rates)), pictures, width)

    def _line(self, key: str, value: str, rates: Sequence[str], pictures: tuple[str, str, str], width: int) -> Text:
        share, bar, trend = pictures
        right = Text(value.rjust(_NUMBER))
        if self.has_rates:
            right.append("".join(rate.rjust(_RATE) for rate in rates))
        if self.has_rates and width >= _NARROW:
            right.append(share.rjust(_SHARE))
        if self.has_rates and width >= _WIDE:
            right.append(f" {bar:{_BAR}}", "blue")
        if self.has_rates and width >= _NARROW:
            size = _PICTURE if self.has_pictures else _TREND
            right.append(f" {trend[:size]:{size}}", "cyan")
        left = Text(key)
        left.truncate(max(8, width - len(right) - 1), overflow="ellipsis", pad=True)
        return left + Text(" ") + right


def cpu(view: CpuView, width: int) -> Text:
    """A line about a CPU."""
    state, style = _STATES[view.place.state]
    text = Text(f"{view.place.cpu:>2} ") + Text(f"{state:5}", style) + Text(f"{view.level:7}")
    place = view.place.symbol.rpartition("`")[2] or (f"{view.place.address:#x}" if view.place.address else "")
    text += Text(" ".join(filter(None, (view.task, place))))
    text.truncate(width, overflow="ellipsis")
    return text


TASKS_HEADING: Final = f"{'pid':>6} {'tid':>6} s {'time':>9} {'cpu':>5}  name"


def task(state: TaskState, share: float, width: int) -> Text:
    """A line about a task; `share` is the part of the time since the previous sample in which it ran."""
    style = "green" if state.state == "R" else ""
    text = Text(
        f"{state.pid:>6} {state.tid:>6} {state.state} {state.runtime / 1e9:>8.2f}s {share:>5.0%}  {state.name}", style
    )
    text.truncate(width, overflow="ellipsis")
    return text

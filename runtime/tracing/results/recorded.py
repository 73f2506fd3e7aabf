"""What a run has recorded, as Python values -> data frames of pandas and polars, and HTML for a notebook.

The values are plain lists and dicts with these methods added. Columns have the names that they have in files
(`docs/formats.md`); in a frame symbols are text, and stacks the names of their frames joined by `;`, innermost first.
"""

import json
import math
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.runtime.dlang.program import Aggregation
from kinst.runtime.providers.probe_table import Probe
from kinst.runtime.tracing.hits import Place
from kinst.runtime.tracing.results import rich_display
from kinst.runtime.tracing.results.frames import Cell, Columns, to_pandas, to_polars
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    import pandas
    import polars

_WIDTH: Final = 1200  # pixels of a flame graph


@dataclass(frozen=True, slots=True)
class Record:
    """What one clause recorded when one probe fired.

    `values` are those of trace(), print(), stack(), tracemem() and the arguments of printf(), in the order of the
    clause: numbers with the sign of their type, str for strings, bytes for memory, dict for structs, list for arrays,
    `Place` for symbols, a list of them for stacks. `text` is what printf() and printa() formatted.
    """

    probe: Probe
    cpu: int  # its number
    time: int  # the machine's time in ns
    values: tuple[Any, ...]  # what was recorded
    text: str  # what was formatted


class _Framed:
    """Something with columns, which data frames and tables show."""

    def _columns(self) -> Columns:
        raise NotImplementedError

    def to_pandas(self) -> "pandas.DataFrame":
        """A frame of pandas. Numbers are int64, uint64 where int64 does not hold them, Int64 or UInt64 if some are
        missing; the rest is text. Raises UsageError: pandas is not installed."""
        return to_pandas(self._columns())

    def to_polars(self) -> "polars.DataFrame":
        """A frame of polars, with Int64, UInt64 and String. Raises UsageError: polars is not installed."""
        return to_polars(self._columns())

    def _repr_html_(self) -> str:
        return rich_display.table(self._columns())


class Records(list[Record], _Framed):
    """Records in the order in which probes fired. The columns of a frame: timestamp (ns), cpu, id, provider, module,
    function, name, message (what printf() formatted), value1, value2, ..."""

    def _columns(self) -> Columns:
        columns: Columns = {
            "timestamp": [one.time for one in self],
            "cpu": [one.cpu for one in self],
            **_of_probes([one.probe for one in self]),
            "message": [one.text for one in self],
        }
        for place in range(max((len(one.values) for one in self), default=0)):
            columns[f"value{place + 1}"] = [
                _cell(one.values[place]) if place < len(one.values) else None for one in self
            ]
        return columns


class Probes(list[Probe], _Framed):
    """Probes as a listing has them. The columns of a frame: id, provider, module, function, name."""

    def _columns(self) -> Columns:
        return _of_probes(self)


class Aggregated(dict[Any, Any], _Framed):
    """The value of an aggregation for each key. The columns of a frame: key1, key2, ...; for a distribution `bucket`,
    the smallest value of the bucket, missing for the lowest of lquantize() and llquantize(); and `number`."""

    def __init__(self, aggregation: Aggregation, values: Mapping[Any, Any]) -> None:
        """`values` by key, as `Reader.aggregation` describes."""
        super().__init__(values)
        self.name = aggregation.shown  # as a program spells it, with the @
        self.function = aggregation.function.value  # count, sum, quantize, ...
        self._keys = len(aggregation.keys)

    def _rows(self) -> Iterator[tuple[tuple[Cell, ...], Any]]:
        for key, value in self.items():
            yield tuple(map(_cell, key if self._keys > 1 else (key,) if self._keys else ())), value

    def _columns(self) -> Columns:
        rows = [
            (*keys, *numbers)
            for keys, value in self._rows()
            for numbers in (
                [(None if bucket == -math.inf else bucket, count) for bucket, count in value.items()]
                if isinstance(value, dict)
                else [(value,)]
            )
        ]
        names = [f"key{number + 1}" for number in range(self._keys)]
        names += ["bucket"] if any(isinstance(value, dict) for value in self.values()) else []
        return {name: [row[place] for row in rows] for place, name in enumerate([*names, "number"])}

    def _repr_html_(self) -> str:
        return rich_display.aggregation(f"{self.name} = {self.function}()", list(self._rows()))


class FlamePicture:
    """A flame graph of stacks that aggregations count. A notebook shows a static picture; the file that `save` writes
    can be searched and zoomed."""

    def __init__(self, svg: bytes) -> None:
        """Made by `Reader.flame_graph`."""
        self.svg = svg  # the file

    def __repr__(self) -> str:
        return "FlamePicture: save(path) writes it"

    def save(self, path: Path | str) -> None:
        """Write the file. Raises OSError."""
        with replaced_file(Path(path)) as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        """An SVG that embeds the picture as an image: inline, its style sheet would apply to the whole notebook."""
        height = self.svg.partition(b' height="')[2].partition(b'"')[0].decode()
        size = f'width="{_WIDTH}" height="{height}"'
        data = f"data:image/svg+xml;base64,{b64encode(self.svg).decode()}"
        around = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {size}>'
        return f'{around}<image {size} href="{data}"/></svg>'


def _of_probes(probes: Sequence[Probe]) -> Columns:
    return {
        "id": [one.identifier for one in probes],
        "provider": [one.provider for one in probes],
        "module": [one.module for one in probes],
        "function": [one.function for one in probes],
        "name": [one.name for one in probes],
    }


def _cell(value: Any) -> Cell:
    """A value as a cell: symbols by name, stacks by the names of their frames, memory in hex, structs as JSON."""
    match value:
        case None | int() | str():
            return value
        case Place(symbol=symbol):
            return symbol
        case bytes():
            return value.hex()
        case [Place(), *_]:
            return ";".join(place.symbol for place in value)
        case _:
            return json.dumps(value, ensure_ascii=False, default=_cell)

"""Rows of aggregations -> text as dtrace prints it without a format: at the end, and for printa(@a, ...)."""

import os
from collections.abc import Iterable, Iterator, Sequence

from kinst.runtime.consumer import distributions
from kinst.runtime.consumer.live_options import LiveOptions
from kinst.runtime.consumer.totals import Cell, Row, Totals, is_distribution
from kinst.runtime.consumer.values import PACKED_TEXT, ValueText, integer_width
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.runtime.dlang.types.types import DType

_DUMB_TERMINALS = frozenset({"sun", "sun-color", "dumb"})
_IN_HISTOGRAMS = frozenset(
    {AggregatingFunction.COUNT, AggregatingFunction.SUM, AggregatingFunction.AVG, AggregatingFunction.STDDEV}
)


class AggregationText:
    """Renders rows of aggregations, with the options as they were when it was made."""

    def __init__(self, totals: Totals, values: ValueText, options: LiveOptions) -> None:
        """`values` formats keys."""
        self._totals = totals
        self._values = values
        self._has_histograms = options.is_on("agghist")
        self._is_packed = options.is_on("aggpack")
        encoding = options.text("encoding") if options.is_set("encoding") else ""
        self.style = distributions.Style(
            is_zoomed=options.is_on("aggzoom"),
            has_blocks=encoding == "utf8",
            packs_blocks=encoding != "ascii" and os.environ.get("TERM", "") not in _DUMB_TERMINALS,
        )

    def single(self, aggregation: Aggregation) -> Iterator[bytes]:
        """All rows of one aggregation, as pieces of output."""
        if self._has_histograms and aggregation.function in _IN_HISTOGRAMS:
            yield from self._histogram(aggregation, self._totals.rows(aggregation))
        elif self._is_packed and distributions.can_be_packed(aggregation):
            yield from self._packed(aggregation, self._totals.rows(aggregation))
        else:
            yield from self._rows(aggregation.keys, self._totals.each_row(aggregation))

    def joined(self, aggregations: Sequence[Aggregation]) -> Iterator[bytes]:
        """Rows of several aggregations side by side: each key once, then a value for each of them."""
        return self._rows(aggregations[0].keys, self._totals.joined(aggregations))

    def _rows(self, types: Sequence[DType], rows: Iterable[Row]) -> Iterator[bytes]:
        keys = [self._values.key(kind) for kind in types]
        for row in rows:
            line = [key(value) for key, value in zip(keys, row.key, strict=True)]
            line += [self.cell(cell) for cell in row.cells]
            yield b"".join(line) + b"\n"

    def cell(self, cell: Cell) -> bytes:
        """A value: a number or a picture."""
        if is_distribution(cell.aggregation):
            return self.picture(cell)
        return b" %16d" % cell.number

    def picture(self, cell: Cell) -> bytes:
        """The picture of a distribution."""
        return distributions.render(cell.aggregation, cell.buckets, cell.normal, self.style)

    # -- agghist, aggpack ---------------------------------------------------------------------------------------------

    def _packed_keys(self, types: Sequence[DType], row: Row) -> bytes:
        keys = [self._values.key(kind, is_packed=True) for kind in types]
        return b"".join([key(value) for key, value in zip(keys, row.key, strict=True)])

    def _histogram(self, aggregation: Aggregation, rows: Sequence[Row]) -> Iterator[bytes]:
        """agghist: a bar for each key, relative to the sum of all keys. As in a distribution, bars are of the recorded
        values, and only the numbers beside them are normalized."""
        if not rows:
            return
        plain = [Cell(aggregation, row.cells[0].content).number for row in rows]
        scale = distributions.scale(plain, self.style)
        yield distributions.header(_packed_width(aggregation.keys))
        for row, number in zip(rows, plain, strict=True):
            keys = self._packed_keys(aggregation.keys, row)
            yield keys + b" " + scale.line(number, row.cells[0].normal)

    def _packed(self, aggregation: Aggregation, rows: Sequence[Row]) -> Iterator[bytes]:
        """aggpack: the distribution of each key in one line."""
        if not rows:
            return
        buckets = [row.cells[0].buckets for row in rows]
        shown = distributions.packed_range(aggregation, buckets)
        yield distributions.packed_header(aggregation, shown, _packed_width(aggregation.keys))
        for row, counts in zip(rows, buckets, strict=True):
            keys = self._packed_keys(aggregation.keys, row)
            yield keys + distributions.packed(aggregation, counts, shown, self.style)


def _packed_width(types: Sequence[DType]) -> int:
    return sum((integer_width(kind) or PACKED_TEXT) + 1 for kind in types)

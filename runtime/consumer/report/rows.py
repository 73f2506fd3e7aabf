"""Rows of aggregations -> those of the page: [keys, number], or of distributions [keys, [[bucket, count], ...]]."""

from collections.abc import Iterator
from typing import Any, Final

from kinst.runtime.consumer.documents.json_values import JsonValues, bucket_bounds
from kinst.runtime.consumer.documents.table import cell
from kinst.runtime.consumer.sorting import divide
from kinst.runtime.consumer.totals import Cell, Row, is_distribution
from kinst.runtime.dlang.program import Aggregation

_EXACT: Final = 1 << 53  # JavaScript's numbers are exact below
_LONGEST: Final = 4  # empty buckets, one after another, that are shown


def table_row(aggregation: Aggregation, row: Row, values: JsonValues) -> list[Any]:
    """A row. A distribution has all buckets from the lowest to the highest that is not empty, except long empty
    runs."""
    keys = [exact(cell(key)) for key in values.keys(aggregation.keys, row)]
    found = row.cells[0]
    return [keys, list(_buckets(found)) if is_distribution(aggregation) else exact(found.number)]


def _buckets(found: Cell) -> Iterator[list[Any]]:
    before = None
    for bucket, count in sorted(found.buckets.items()):
        if not count:
            continue
        gap = range(bucket if before is None else before + 1, bucket)
        if len(gap) > _LONGEST:
            yield ["⋯", 0]
        else:
            yield from ([_label(found.aggregation, one), 0] for one in gap)
        yield [_label(found.aggregation, bucket), exact(divide(count, found.normal))]
        before = bucket


def _label(aggregation: Aggregation, bucket: int) -> Any:
    bounds = bucket_bounds(aggregation, bucket)
    return exact(bounds["value"]) if "value" in bounds else f"< {bounds['below']:,}"


def exact(value: Any) -> Any:
    """A number that JavaScript would round as text."""
    return str(value) if isinstance(value, int) and abs(value) >= _EXACT else value

"""The pictures of quantize(), lquantize() and llquantize(), and those that agghist and aggpack make of aggregations.

Bars show the counts as aggregated; the numbers beside them are normalized (docs/facts/dlang.md, Aggregations).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kinst.runtime.clauses.buckets import QUANTIZE_BUCKETS, ZERO, linear, log_linear, quantize_value
from kinst.runtime.consumer.sorting import divide
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.targets.values import dataclass

_WIDTH: Final = 40
_TITLE: Final = b"------------- Distribution -------------"
_ZOOM: Final = 1 / 0.95  # aggzoom: the longest bar takes 95 % of the width
_FULL_BLOCK: Final = 0x2588  # U+2588 FULL BLOCK; the seven characters after it are an eighth narrower each
_LOW_BLOCK: Final = 0x2581  # U+2581 LOWER ONE EIGHTH BLOCK; the seven characters after it are an eighth higher each
_ASCII_HEIGHTS: Final = b"__xxxxXX"
_NEGATIVE_HEIGHTS: Final = b"vvvvVV"


@dataclass(frozen=True, slots=True)
class Style:
    """How bars are drawn: the option aggzoom, and encoding=utf8 for bars and for aggpack."""

    is_zoomed: bool = False
    has_blocks: bool = False
    packs_blocks: bool = True


PLAIN: Final = Style()


def header(width: int = 0) -> bytes:
    """The line above a picture. `width` is the columns of agghist's keys, 0 for a distribution."""
    return b"\n%*s %41s %-9s\n" % (width or 16, b"key" if width else b"value", _TITLE, b"count")


@dataclass(frozen=True, slots=True)
class Scale:
    """What the lengths of bars are relative to."""

    total: float
    has_positives: bool
    has_negatives: bool
    style: Style

    def line(self, count: int, normal: int) -> bytes:
        """A bar and its count: 40 columns from the left, from the right, or 20 on each side if there are both."""
        number = b" %-9d\n" % divide(count, normal)
        if not self.has_negatives:
            if self.style.has_blocks and self.has_positives:
                return b"|" + self._blocks(count) + number
            return b"|" + (b"@" * self._depth(count, _WIDTH)).ljust(_WIDTH) + number
        if not self.has_positives:
            return (b"@" * self._depth(count, _WIDTH)).rjust(_WIDTH) + b"|" + number
        bar = b"@" * self._depth(count, _WIDTH // 2)
        left, right = (b"", bar) if count > 0 else (bar, b"")
        return left.rjust(_WIDTH // 2) + b"|" + right.ljust(_WIDTH // 2) + number

    def _depth(self, count: int, width: int) -> int:
        # libdtrace computes (int)(count * width / total + 0.5) in long double. Without aggzoom the total is an integer,
        # and integers round exactly; a Python float would be one column off for counts above 2**53.
        if not self.total:
            return 0
        if isinstance(self.total, int):
            return (2 * abs(count) * width + self.total) // (2 * self.total)
        return int(abs(count) * width / self.total + 0.5)

    def _blocks(self, count: int) -> bytes:
        length = abs(count) * _WIDTH / self.total if self.total else 0.0
        whole = int(length)
        part = int((length - whole) * 8)
        bar = chr(_FULL_BLOCK) * whole + (chr(_FULL_BLOCK + 8 - part) if part else "")
        return bar.ljust(_WIDTH).encode()


def scale(counts: Sequence[int], style: Style) -> Scale:
    """The scale for counts that are shown together. With aggzoom bars are relative to the longest, else to the sum."""
    total: float = max(map(abs, counts), default=0) * _ZOOM if style.is_zoomed else sum(map(abs, counts))
    return Scale(total, any(count > 0 for count in counts), any(count < 0 for count in counts), style)


def render(aggregation: Aggregation, buckets: Mapping[int, int], normal: int, style: Style = PLAIN) -> bytes:
    """The picture of one key's buckets (bucket -> count): a header, then lines from the bucket before the first that is
    not empty to the one after the last."""
    shown = _shown(aggregation, buckets)
    scaled = scale([buckets.get(bucket, 0) for bucket in shown], style)
    lines = [b"%16s %b" % (label(aggregation, bucket), scaled.line(buckets.get(bucket, 0), normal)) for bucket in shown]
    return header() + b"".join(lines)


def bucket_count(aggregation: Aggregation) -> int:
    """How many buckets the aggregation has."""
    match aggregation.function:
        case AggregatingFunction.QUANTIZE:
            return QUANTIZE_BUCKETS
        case AggregatingFunction.LQUANTIZE:
            return linear(aggregation.parameters).levels + 2
        case _:
            return len(log_linear(aggregation.parameters)) + 1


_EMPTY: Final = {  # the buckets that are shown if all are empty, as after clear()
    AggregatingFunction.QUANTIZE: range(ZERO - 1, ZERO + 2),
    AggregatingFunction.LQUANTIZE: range(3),
    AggregatingFunction.LLQUANTIZE: range(2),
}


def _shown(aggregation: Aggregation, buckets: Mapping[int, int]) -> range:
    used = [bucket for bucket, count in buckets.items() if count]
    if not used:
        return _EMPTY[aggregation.function]
    return range(max(0, min(used) - 1), min(bucket_count(aggregation), max(used) + 2))


def label(aggregation: Aggregation, bucket: int) -> bytes:
    """The label of a bucket's line."""
    match aggregation.function:
        case AggregatingFunction.QUANTIZE:
            return b"%d" % quantize_value(bucket)
        case AggregatingFunction.LQUANTIZE:
            buckets = linear(aggregation.parameters)
            if bucket == 0:
                return b"< %d" % buckets.base
            return b">= %d" % buckets.start(bucket) if bucket > buckets.levels else b"%d" % buckets.start(bucket)
        case _:
            factor, _, high, _ = aggregation.parameters
            starts = log_linear(aggregation.parameters)
            if bucket == 0:
                return b"< %d" % starts[0]
            start = starts[bucket - 1]
            return b">= %d" % start if start == factor ** (high + 1) else b"%d" % start


# -- aggpack: a distribution in one line ------------------------------------------------------------------------------


def can_be_packed(aggregation: Aggregation) -> bool:
    """Whether aggpack can show the aggregation."""
    return aggregation.function in (AggregatingFunction.QUANTIZE, AggregatingFunction.LQUANTIZE)


def packed_range(aggregation: Aggregation, rows: Sequence[Mapping[int, int]]) -> range:
    """The buckets that aggpack shows in all rows of an aggregation."""
    if aggregation.function is AggregatingFunction.LQUANTIZE:
        return range(bucket_count(aggregation))
    lows, highs = [], []
    for buckets in rows:
        used = [bucket for bucket, count in buckets.items() if count] or [ZERO]
        lows.append(min(used))
        highs.append(max(used))
    low, high = min(lows, default=ZERO), max(highs, default=ZERO)
    return range(low if low in (0, ZERO) else low - 1, min(high + 2, QUANTIZE_BUCKETS))


def packed_header(aggregation: Aggregation, shown: range, width: int) -> bytes:
    """The line above aggpack's rows. `width` is the columns of their keys."""
    low, high = 7, 8
    if aggregation.function is AggregatingFunction.QUANTIZE:
        low, high = _columns(quantize_value(shown[0])), _columns(quantize_value(shown[-1]))
    key = b"key" if width else b""
    return b"\n%*s %*s .%b. %-*s | count\n" % (width, key, low, b"min", b"-" * len(shown), high, b"max")


def packed(aggregation: Aggregation, buckets: Mapping[int, int], shown: range, style: Style = PLAIN) -> bytes:
    """One row of aggpack after its key, with the newline."""
    counts = [buckets.get(bucket, 0) for bucket in shown]
    total = scale(counts, style).total
    bars = "".join([_height(count, total, style) for count in counts]).encode()
    if aggregation.function is AggregatingFunction.QUANTIZE:
        low, high = quantize_value(shown[0]), quantize_value(shown[-1])
        return b" %*d :%b: %-*d | %d\n" % (_columns(low), low, bars, _columns(high), high, sum(counts))
    low_label, high_label = label(aggregation, shown[0]), label(aggregation, shown[-1])
    return b"%8s :%b: %-8s | %d\n" % (low_label, bars, high_label, sum(counts))


def _columns(value: int) -> int:
    """How many columns libdtrace gives to a number: 10 and other powers of ten have one too few, as there."""
    columns, power = 1 + (value < 0), 10
    while abs(value) > power:
        columns, power = columns + 1, power * 10
    return max(columns, 4)


def _height(count: int, total: float, style: Style) -> str:
    if count == 0:
        return " "
    if count < 0:
        return chr(_NEGATIVE_HEIGHTS[int(-count * (len(_NEGATIVE_HEIGHTS) - 1) / total + 0.5)])
    if style.packs_blocks:
        return chr(_LOW_BLOCK + int(count * 7 / total + 0.5))
    return chr(_ASCII_HEIGHTS[int(count * (len(_ASCII_HEIGHTS) - 1) / total + 0.5)])

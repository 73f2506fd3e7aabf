"""Values -> buckets of quantize(), lquantize() and llquantize(), and what each bucket is called.

Buckets are numbered from 0 in ascending order, as in the kernel's buffers (docs/facts/dlang.md, Aggregations).
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from typing import Final

from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.targets.values import dataclass

INT64_MAX: Final = (1 << 63) - 1
_WRAP: Final = 1 << 64
_INT32_WRAP: Final = 1 << 32
ZERO: Final = 63  # quantize's bucket of the value 0; 63 powers of two on each side
QUANTIZE_BUCKETS: Final = 2 * ZERO + 1


def signed(value: int) -> int:
    """The value as int64."""
    value &= _WRAP - 1
    return value - _WRAP if value > INT64_MAX else value


def quantize_bucket(value: int) -> int:
    """quantize(): the bucket of the largest power of two that is not larger; negative values mirror that."""
    if value > INT64_MAX:
        value -= _WRAP
    if value > 0:
        return ZERO + value.bit_length()
    return max(0, ZERO - (-value).bit_length())


def quantize_value(bucket: int) -> int:
    """The value that names a bucket: 0, a power of two, or the negative of one."""
    if bucket > ZERO:
        return 1 << (bucket - ZERO - 1)
    return -(1 << (ZERO - 1 - bucket)) if bucket < ZERO else 0


@dataclass(frozen=True, slots=True)
class Linear:
    """lquantize(): bucket 0 is for values below `base`, then come `levels` steps, then a bucket for all above."""

    base: int
    step: int
    levels: int

    def bucket(self, value: int) -> int:
        """The bucket of a value, which is truncated to int32: dtrace_aggregate_lquantize() takes an int32_t."""
        value &= _INT32_WRAP - 1
        if value >= _INT32_WRAP >> 1:
            value -= _INT32_WRAP
        if value < self.base:
            return 0
        return min((value - self.base) // self.step, self.levels) + 1

    def start(self, bucket: int) -> int:
        """The smallest value of a bucket other than the first."""
        return self.base + (bucket - 1) * self.step


@cache
def linear(parameters: tuple[int, ...]) -> Linear:
    """The buckets for lquantize's base, limit and step."""
    base, limit, step = parameters
    return Linear(base, step, (limit - base) // step)


@cache
def log_linear(parameters: tuple[int, ...]) -> tuple[int, ...]:
    """llquantize's factor, low, high and steps -> the smallest values of all buckets but the first.

    The last one is factor ** (high + 1), unless that does not fit an int64: then the last bucket has no upper bound.
    """
    factor, low, high, steps = parameters
    starts: list[int] = []
    value = factor**low
    for order in range(low, high + 1):
        end = factor ** (order + 1)
        width = end // steps if end > steps else 1  # low orders have fewer integers than steps
        starts += range(value, min(end, INT64_MAX + 1), width)
        value = end
    if value <= INT64_MAX:
        starts.append(value)
    return tuple(starts)


def bucket_function(aggregation: Aggregation) -> Callable[[int], int]:
    """A function from a value to its bucket."""
    match aggregation.function:
        case AggregatingFunction.QUANTIZE:
            return quantize_bucket
        case AggregatingFunction.LQUANTIZE:
            return linear(aggregation.parameters).bucket
        case _:
            starts = log_linear(aggregation.parameters)
            return lambda value: bisect_right(starts, value - _WRAP if value > INT64_MAX else value)

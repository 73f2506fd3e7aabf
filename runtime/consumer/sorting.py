"""The order in which dtrace prints the rows of an aggregation: by value, then by keys, unless options change it.

The functions here make sort keys that Python compares as libdtrace's dt_aggregate.c compares records. Numbers of a key
are unsigned and have their type's size, whatever their sign, so that -1 comes after 1; text is bytes; a stack is the
bytes of its addresses, little-endian.
"""

from collections.abc import Callable
from math import isqrt
from typing import Any, Final

from kinst.runtime.clauses.aggregations import Content, Distribution, Key, Moments
from kinst.runtime.clauses.buckets import linear, log_linear, quantize_value, signed
from kinst.runtime.clauses.environment import Stack, SymbolName, Value
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.runtime.dlang.types.types import DType, Dynamic, String, bare
from kinst.targets.c_types import Aggregate, size_of

_128_BITS: Final = (1 << 128) - 1
_64_BITS: Final = (1 << 64) - 1
_NUMBERS: Final = frozenset({1, 2, 4, 8})  # sizes (bytes) of keys that are compared as numbers


def divide(value: int, by: int) -> int:
    """value / by, rounded toward zero as in C."""
    quotient = abs(value) // abs(by)
    return quotient if (value < 0) == (by < 0) else -quotient


def average(moments: Moments, normal: int = 1) -> int:
    """sum / normal / count, each rounded toward zero in this order; 0 without values."""
    return divide(divide(signed(moments[1]), normal), moments[0]) if moments[0] else 0


def deviation(moments: Moments, normal: int = 1) -> int:
    """The standard deviation, in integers, of the values divided by `normal`: the square root of the average of the
    squares minus the square of the average."""
    # dt_stddev() computes in 128 bits and does not check for a negative difference, which rounding can leave: it wraps.
    if not moments[0]:
        return 0
    squares = (moments[2] & _128_BITS) // normal // normal // moments[0]
    return isqrt((squares - average(moments, normal) ** 2) & _128_BITS) & _64_BITS


def value_order(aggregation: Aggregation) -> Callable[[Content], Any]:
    """A function from a row's value to its sort key."""
    match aggregation.function:
        case AggregatingFunction.AVG:
            return lambda content: average(content)  # type: ignore[arg-type]  # content is of the function's kind
        case AggregatingFunction.STDDEV:
            return lambda content: deviation(content)  # type: ignore[arg-type]
        case AggregatingFunction.QUANTIZE | AggregatingFunction.LQUANTIZE | AggregatingFunction.LLQUANTIZE:
            return _distribution_order(aggregation)
        case _:
            return lambda content: content


def _distribution_order(aggregation: Aggregation) -> Callable[[Content], object]:
    """The sort key of distributions: the sum of bucket times count, then the count of zeros."""
    value_of = bucket_value(aggregation)

    def order(content: Content) -> object:
        assert isinstance(content, dict)
        return sum(value_of(bucket) * count for bucket, count in content.items()), _zeros(content, value_of)

    return order


def _zeros(content: Distribution, value_of: Callable[[int], int]) -> int:
    return sum(count for bucket, count in content.items() if value_of(bucket) == 0)


def bucket_value(aggregation: Aggregation) -> Callable[[int], int]:
    """A function from a bucket to its value in that sum: its smallest value; a bucket without a bound lies one further
    out."""
    match aggregation.function:
        case AggregatingFunction.QUANTIZE:
            return quantize_value
        case AggregatingFunction.LQUANTIZE:
            buckets = linear(aggregation.parameters)
            last = buckets.levels + 1
            return lambda bucket: (
                buckets.base - 1 if bucket == 0 else buckets.start(bucket) + (1 if bucket == last else 0)
            )
        case _:
            starts = log_linear(aggregation.parameters)
            return lambda bucket: starts[bucket - 1] if bucket else starts[0] - 1


def key_order(types: tuple[DType, ...], first: int) -> Callable[[Key], Any]:
    """A function from a row's keys to its sort key. `first` (aggsortkeypos) is the index of the primary key; those
    after it follow, then those before it. An index out of range means 0."""
    first = first if 0 <= first < len(types) else 0
    orders = [_order_of(kind) for kind in types]
    places = [*range(first, len(types)), *range(first)]
    if len(places) == 1:
        only = orders[0]
        return lambda key: only(key[0])
    return lambda key: tuple([orders[place](key[place]) for place in places])


def _order_of(kind: DType) -> Callable[[Value], object]:
    plain = bare(kind)
    if isinstance(plain, Dynamic):
        return _dynamic_order
    if isinstance(plain, String):
        return lambda value: value
    if isinstance(plain, Aggregate):  # compared by its bytes, as a number if it has the size of one
        return lambda value: int.from_bytes(value, "little") if len(value) in _NUMBERS else value  # type: ignore[arg-type]
    mask = (1 << 8 * (size_of(plain) or 8)) - 1
    return lambda value: value & mask if isinstance(value, int) else value


def _dynamic_order(value: Value) -> object:
    match value:
        case Stack(addresses=addresses):
            return b"".join([address.to_bytes(8, "little") for address in addresses])
        case SymbolName(kind=kind, address=address) if kind.startswith("u"):
            return address.to_bytes(8, "little")
        case SymbolName(address=address):
            return address
        case _:
            return value

"""Recorded values and rows of aggregations -> arguments of json.dumps(), in the shapes that `json_output` describes.
With another `Style` they are Python values in the same shapes.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from kinst.runtime.clauses.buckets import linear, log_linear, quantize_value
from kinst.runtime.clauses.environment import Stack, SymbolName, Symbols, Value
from kinst.runtime.clauses.guest.frame_names import frame_names
from kinst.runtime.consumer.sorting import divide
from kinst.runtime.consumer.totals import Cell, Row, is_distribution
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation
from kinst.runtime.dlang.types.types import DType, Dynamic, String, bare
from kinst.targets.c_types import Aggregate, Array, CType, EnumType, Float, Integer, IntegerKind, size_of, strip
from kinst.targets.values import dataclass

Json = Any  # what json.dumps() takes
_DEEPEST: Final = 64


def text(data: bytes) -> str:
    r"""Bytes as text. Bytes that are not UTF-8 become \xNN."""
    return data.decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Style:
    """How to represent values for which JSON has no type."""

    address: Callable[[int], Any]  # a pointer
    place: Callable[[int, str], Any]  # an address with its symbol
    memory: Callable[[bytes], Any]  # bytes without a type


JSON: Final = Style(hex, lambda address, symbol: {"address": hex(address), "symbol": symbol}, bytes.hex)


class JsonValues:
    """Converts values by their type."""

    def __init__(self, symbols: Symbols, style: Style = JSON) -> None:
        self._symbols = symbols
        self._style = style
        self.memory = style.memory

    def value(self, kind: DType, value: Value) -> Json:
        """A value by its type: a number with its sign, text, an object for a struct, a list for an array."""
        match value:
            case Stack():
                return self.stack(value)
            case SymbolName(kind=how, address=address, name=name):
                return self._style.place(address, name or self._symbols.describe(address, how))
            case None:
                return None
        plain = bare(kind)
        if isinstance(plain, String | Dynamic):
            return text(value) if isinstance(value, bytes) else value
        size = size_of(plain) or 8
        data = value if isinstance(value, bytes) else (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        return self._typed(plain, data, 0)

    def stack(self, stack: Stack) -> Json:
        """Frames, innermost first."""
        names = frame_names(stack, self._symbols)
        return [self._style.place(*of) for of in zip(stack.addresses, names, strict=True)]

    def _typed(self, kind: CType, data: bytes, depth: int) -> Json:
        match strip(kind):
            case Integer(is_signed=is_signed):
                return int.from_bytes(data, "little", signed=is_signed)
            case EnumType(base=base, enumerators=enumerators):
                number = int.from_bytes(data, "little", signed=base.is_signed)
                return next((name for name, value in enumerators if value == number), number)
            case Array(element=element):
                return self._array(element, data, depth)
            case Aggregate(members=members) if members is not None and depth < _DEEPEST:
                return self._members(members, data, depth)
            case Float() | Aggregate():
                return self._style.memory(data)
            case _:
                return self._style.address(int.from_bytes(data, "little"))

    def _array(self, element: CType, data: bytes, depth: int) -> Json:
        plain, size = strip(element), size_of(element) or 1
        if isinstance(plain, Integer) and plain.kind is IntegerKind.CHARACTER:
            return text(data.partition(b"\0")[0])
        return [self._typed(element, data[start : start + size], depth + 1) for start in range(0, len(data), size)]

    def _members(self, members: Sequence[Any], data: bytes, depth: int) -> Json:
        shown: dict[str, Json] = {}
        for member in members:
            part = data[member.offset : member.offset + (size_of(member.type) or 0)]
            if member.bit_size is not None:
                unit = int.from_bytes(part, "little")
                shown[member.name] = unit >> member.bit_offset & (1 << member.bit_size) - 1
            elif member.name:
                shown[member.name] = self._typed(member.type, part, depth + 1)
            else:  # C: members of an anonymous struct are members of the struct that contains it
                shown |= self._typed(member.type, part, depth + 1)
        return shown

    # -- aggregations -------------------------------------------------------------------------------------------------

    def aggregation(self, aggregation: Aggregation, rows: Sequence[Row], column: int = 0) -> Json:
        """One aggregation as an object. `column` is its index among the cells of each row."""
        return {
            "aggregation-name": aggregation.name,
            "function": aggregation.function.value,
            "aggregation-data": [
                {"keys": self.keys(aggregation.keys, row), **_content(row.cells[column])} for row in rows
            ],
        }

    def keys(self, types: Sequence[DType], row: Row) -> Json:
        """The keys of a row, as a list."""
        return [self.value(kind, value) for kind, value in zip(types, row.key, strict=True)]


def _content(cell: Cell) -> dict[str, Json]:
    normal = {} if cell.normal == 1 else {"normal": cell.normal}
    if not is_distribution(cell.aggregation):
        return {"value": cell.number, **normal}
    buckets = sorted((bucket, count) for bucket, count in cell.buckets.items() if count)
    return {
        "buckets": [
            {**bucket_bounds(cell.aggregation, bucket), "count": divide(count, cell.normal)}
            for bucket, count in buckets
        ],
        **normal,
    }


def bucket_bounds(aggregation: Aggregation, bucket: int) -> dict[str, Json]:
    """The label of a bucket. `value` is its smallest value, or its largest for quantize's negative buckets. The first
    bucket of lquantize and llquantize has only an upper bound, "below"."""
    if aggregation.function is AggregatingFunction.QUANTIZE:
        return {"value": quantize_value(bucket)}
    if aggregation.function is AggregatingFunction.LQUANTIZE:
        buckets = linear(aggregation.parameters)
        return {"value": buckets.start(bucket)} if bucket else {"below": buckets.base}
    starts = log_linear(aggregation.parameters)
    return {"value": starts[bucket - 1]} if bucket else {"below": starts[0]}

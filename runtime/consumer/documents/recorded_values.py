"""Values that actions recorded -> objects in the shapes of `json_output`. No action is performed."""

from collections.abc import Iterator
from typing import assert_never

from kinst.runtime.clauses.environment import Stack, Symbols
from kinst.runtime.consumer import printf
from kinst.runtime.consumer.documents.json_values import Json, JsonValues, text
from kinst.runtime.consumer.records import Recorded, several
from kinst.runtime.dlang import formats, program
from kinst.runtime.dlang.types.type_names import describe as describe_type
from kinst.runtime.dlang.types.types import SYMBOL


class RecordedValues:
    """Values of trace(), print(), printf(), stack() and the like."""

    def __init__(self, symbols: Symbols, values: JsonValues) -> None:
        """`values` decides how values and addresses are represented."""
        self._symbols, self._values = symbols, values

    def objects(self, action: program.Shown | program.Printf, value: Recorded) -> Iterator[Json]:
        """One or more objects for an action that records values."""
        if isinstance(action, program.Printf):
            yield {"message": text(self.message(action, value))}
            for argument, one in zip(action.arguments, several(value), strict=True):
                yield {"value": self._values.value(argument.type, one)}
        else:
            yield self._value(action, value)

    def message(self, action: program.Printf, values: Recorded) -> bytes:
        """The text of a printf(), or of another action with a format."""
        types = [argument.type for argument in action.arguments]
        return printf.render(formats.parse(action.format), types, several(values), self._symbols)

    def _value(self, action: program.Shown, value: Recorded) -> Json:
        if isinstance(value, tuple):
            raise TypeError(f"several values of {action}")
        match action:
            case program.Print(type=kind):
                return {"type": describe_type(kind), "value": self._values.value(kind, value)}
            case program.Trace(value=expression):
                return {"value": self._values.value(expression.type, value)}
            case program.StackTrace():
                assert isinstance(value, Stack), "what a stack records"
                return {"stack-frames": self._values.stack(value)}
            case program.SymbolTrace():
                return {"value": self._values.value(SYMBOL, value)}
            case program.TraceMemory() | program.PrintMemory():
                return {"memory": self._values.memory(value if isinstance(value, bytes) else b"")}
            case _:
                assert_never(action)

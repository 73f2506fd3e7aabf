"""Aggregations with stacks among their keys -> weighted stacks, for flame graphs and for the folded format.

A folded line is the frames of a stack, outermost first, with `;` between them, a blank, and how much was counted there:
the input of flamegraph.pl, inferno and speedscope.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import BinaryIO, Final

from kinst.runtime.clauses.environment import Stack, Symbols, Value
from kinst.runtime.clauses.guest.frame_names import frame_names
from kinst.runtime.consumer.documents.json_values import JsonValues
from kinst.runtime.consumer.totals import Row, Totals
from kinst.runtime.dlang.program import Aggregate, AggregatingFunction, Aggregation, Clause, StackKey
from kinst.runtime.dlang.types.types import DType
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_PARTS: Final = (AggregatingFunction.COUNT, AggregatingFunction.SUM)  # a whole is the sum of its parts
_OFFSET: Final = re.compile(r"\+0x[0-9a-f]+$")
_UNFOLDED: Final = str.maketrans({";": ":", "\n": " ", "\r": " "})


class FrameKind(Enum):
    """Where a frame comes from."""

    KERNEL = "kernel"  # stack()
    USER = "user"  # ustack()
    KEY = "key"  # another key of the aggregation, or its name


@dataclass(frozen=True, slots=True)
class Frame:
    """A function as dtrace shows it, module`function, or the text of a key."""

    text: str
    kind: FrameKind


Stacks = dict[tuple[Frame, ...], int]  # outermost frame first -> how much was counted there, above 0


def with_stacks(clauses: Sequence[Clause]) -> list[Aggregation]:
    """The aggregations that can be drawn, each once. Raises UsageError: there is none."""
    found: dict[int, Aggregation] = {}
    for action in (action for clause in clauses for action in clause.actions):
        if isinstance(action, Aggregate) and any(isinstance(key, StackKey) for key in action.keys):
            found[action.aggregation.number] = action.aggregation
    drawn = [aggregation for aggregation in found.values() if aggregation.function in _PARTS]
    if drawn:
        return drawn
    if found:
        one = next(iter(found.values()))
        raise UsageError(f"{one.shown}: {one.function.value}() has no parts that add up: use count() or sum()")
    raise UsageError("no program counts by stack: give one like 'profile-997 { @[stack()] = count(); }'")


class StackReader:
    """Reads the weighted stacks of aggregations."""

    def __init__(self, totals: Totals, symbols: Symbols) -> None:
        self._totals, self._symbols, self._values = totals, symbols, JsonValues(symbols)

    def stacks(self, aggregations: Sequence[Aggregation]) -> Stacks:
        """The stacks of all of them. Offsets in functions are left out, and stacks that are equal then are added up. If
        there are several aggregations, the name of each is the outermost frame. A value that is not positive has no
        area and is left out."""
        found: Stacks = {}
        for aggregation in aggregations:
            root = (Frame(aggregation.shown, FrameKind.KEY),) if len(aggregations) > 1 else ()
            for row in self._totals.unsorted_rows(aggregation):
                frames = (*root, *self._frames(aggregation.keys, row))
                if frames and row.cells[0].number > 0:
                    found[frames] = found.get(frames, 0) + row.cells[0].number
        return found

    def _frames(self, types: Sequence[DType], row: Row) -> Iterator[Frame]:
        """The frames, outermost first: keys that are not stacks, then user mode, which called the kernel."""
        for kind, value in zip(types, row.key, strict=True):
            if not isinstance(value, Stack):
                yield Frame(self._text(kind, value), FrameKind.KEY)
        for is_user in (True, False):
            for value in row.key:
                if isinstance(value, Stack) and value.is_user is is_user:
                    yield from self._of_stack(value)

    def _of_stack(self, stack: Stack) -> Iterator[Frame]:
        kind = FrameKind.USER if stack.is_user else FrameKind.KERNEL
        for name in reversed(frame_names(stack, self._symbols)):
            yield Frame(_OFFSET.sub("", name), kind)

    def _text(self, kind: DType, value: Value) -> str:
        shown = self._values.value(kind, value)
        return str(shown["symbol"] if isinstance(shown, dict) and "symbol" in shown else shown)


class StackDocument:
    """Implements `document_output.Document`: the content of aggregations with stacks at the end of the run."""

    def __init__(self, output: BinaryIO, reader: StackReader, aggregations: Sequence[Aggregation]) -> None:
        self._output, self._reader, self._aggregations = output, reader, aggregations

    def record(self, *_: object) -> None:
        """See `Document`: records are no part of this."""

    def flush(self) -> None:
        """See `Document`: there is nothing before the end."""

    def finish(self) -> None:
        """See `Document`."""
        for piece in self.pieces(self._reader.stacks(self._aggregations)):
            self._output.write(piece)
        self._output.flush()

    def pieces(self, stacks: Stacks) -> Iterable[bytes]:
        """The folded format, in order of its lines."""
        lines = (f"{';'.join(frame.text.translate(_UNFOLDED) for frame in frames)}" for frames in stacks)
        for line, weight in sorted(zip(lines, stacks.values(), strict=True)):
            yield f"{line} {weight}\n".encode("utf-8", "backslashreplace")

"""The calls of two runs in their order -> where they part, CPU by CPU."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

import numpy as np

from kinst.runtime.coverage.call_order import CallOrder, Calls
from kinst.runtime.coverage.document import Coverage
from kinst.targets.values import dataclass

_BEFORE: Final = 8  # calls that are shown
_THEN: Final = 4


@dataclass(frozen=True, slots=True)
class CallParting:
    """Where the calls of a CPU part: the first `number` are the same, of which `before` are the last ones; `then` are
    the next ones of each run, fewer or none where it has no more."""

    cpu: int
    number: int
    before: tuple[str, ...]
    then: tuple[tuple[str, ...], tuple[str, ...]]


def call_partings(first: Coverage, second: Coverage) -> tuple[CallParting, ...] | None:
    """The CPUs whose calls differ; None: one of the runs has no order of calls. Raises ImageError: it is damaged."""
    if not first.calls or not second.calls:
        return None
    names = [list(first.names), list(second.names)]
    known = {name: number for number, name in enumerate(names[0])}
    other = np.array([known.setdefault(name, len(known)) for name in names[1]] or [0], np.uint32)
    shown = list(known)
    orders = [{one.cpu: one for one in run.calls} for run in (first, second)]
    found = []
    for cpu in sorted({*orders[0], *orders[1]}):
        one = _calls(orders[0].get(cpu), len(names[0]))
        two = (other[calls] for calls in _calls(orders[1].get(cpu), len(names[1])))
        parted = _parting(one, two)
        if parted is not None:
            number, before, then = parted
            named = [tuple(shown[call] for call in calls) for calls in (before, *then)]
            found.append(CallParting(cpu, number, named[0], (named[1], named[2])))
    return tuple(found)


def _calls(order: CallOrder | None, functions: int) -> Iterator[Calls]:
    return iter(()) if order is None else order.calls(functions)


def _parting(one: Iterator[Calls], two: Iterator[Calls]) -> tuple[int, list[int], tuple[list[int], list[int]]] | None:
    """How many calls are equal, the last of them, and the next of each; None: all are. Pieces are equally long, but
    for the last ones."""
    nothing = np.zeros(0, np.uint32)
    number, last = 0, nothing
    for here, there in zip_longest(one, two, fillvalue=nothing):
        length = min(len(here), len(there))
        differing = np.flatnonzero(here[:length] != there[:length])
        at = int(differing[0]) if len(differing) else length
        before = np.concatenate([last, here[:at]])[-_BEFORE:]
        if len(differing) or len(here) != len(there):
            then = [_next(calls[at:], rest) for calls, rest in ((here, one), (there, two))]
            return number + at, before.tolist(), (then[0], then[1])
        number, last = number + at, before
    return None


def _next(calls: Calls, rest: Iterator[Calls]) -> list[int]:
    """The next calls: of this piece, or else of the next one as well."""
    if len(calls) < _THEN:
        calls = np.concatenate([calls, next(rest, np.zeros(0, np.uint32))])
    return [int(call) for call in calls[:_THEN]]

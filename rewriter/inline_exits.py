"""The instructions of a function and one inlined copy in it -> where control leaves the copy.

A way out is an instruction of the copy after which control may be outside all ranges of the copy: one that falls
through at the end of a range, a jump, a return. A call is none, since it comes back.

The compiler moves instructions about, so ranges alone mislead in two ways, for which control is followed through the
function:

- An instruction of the copy that is reached without passing the copy's entry was moved to before it (a load that is
  made early): leaving it is not leaving the copy.
- Between two ranges may stand instructions of the caller from which every path leads back into the copy: the copy was
  not left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kinst.rewriter.sites import Decoded
from kinst.targets.debuginfo.inlined import InlinedCopy, Range
from kinst.targets.instruction import Flow

_FALLS: Final = frozenset({Flow.NEXT, Flow.BRANCH, Flow.CALL, Flow.INDIRECT_CALL})
_JUMPS: Final = frozenset({Flow.JUMP, Flow.BRANCH})
_LARGEST: Final = 1 << 16  # instructions of functions in which control is followed; beyond, the ranges decide


@dataclass(frozen=True, slots=True)
class Exit:
    """A way out of a copy: the row of the instruction. `staying`: only if control does not go there afterwards."""

    row: int
    staying: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """One instruction: where control may go after it. A computed jump goes anywhere."""

    address: int
    following: tuple[int, ...]
    flow: int


def exits(code: Decoded, rows: Sequence[int], copy: InlinedCopy) -> list[Exit]:
    """The ways out of a copy, in the order of its ranges.

    Args:
        code: decoded functions.
        rows: of the functions that hold the copy: the caller, and parts of it that the compiler put elsewhere.
        copy: the copy.
    """
    ranges = _joined(copy.ranges)
    inside = {row: _step(code, row) for low, high in ranges for row in rows_between(code, low, high)}
    followed = _followed(code, rows, copy, inside) if _is_scattered(ranges) else None
    return [
        found
        for row, step in inside.items()
        if (found := _exit(row, step, ranges) if followed is None else followed.exit(row, step)) is not None
    ]


def _is_scattered(ranges: Sequence[Range]) -> bool:
    return len(ranges) > 1


def _joined(ranges: Sequence[Range]) -> list[Range]:
    """Ascending, those that touch or overlap as one."""
    found: list[Range] = []
    for low, high in sorted(one for one in ranges if one[0] < one[1]):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def rows_between(code: Decoded, low: int, high: int) -> range:
    """Rows of the instructions that begin in [low, high)."""
    first, last = np.searchsorted(code.instructions.address, np.array([low, high], np.uint64)).tolist()
    return range(first, last)


def _step(code: Decoded, row: int) -> _Step:
    found = code.instructions
    address, flow, target = int(found.address[row]), int(found.flow[row]), int(found.target[row])
    following = (address + int(found.size[row]),) if flow in _FALLS else ()
    return _Step(address, (target, *following) if flow in _JUMPS else following, flow)


def _is_in(address: int, ranges: Sequence[Range]) -> bool:
    return any(low <= address < high for low, high in ranges)


def _exit(row: int, step: _Step, ranges: Sequence[Range]) -> Exit | None:
    """By the ranges alone."""
    staying = tuple((target, target + 1) for target in step.following if _is_in(target, ranges))
    return _as_exit(row, step, staying, ranges)


def _as_exit(row: int, step: _Step, staying: tuple[Range, ...], ranges: Sequence[Range]) -> Exit | None:
    if step.flow == Flow.RETURN:
        return Exit(row)
    if step.flow == Flow.INDIRECT_JUMP:
        return Exit(row, tuple(ranges))
    return Exit(row, staying) if len(staying) < len(step.following) else None


# -- following control ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Followed:
    """A copy in pieces. `core` are its instructions behind its entry, `within` also those of the caller from which
    every path leads back to them; addresses."""

    ranges: Sequence[Range]
    core: frozenset[int]
    within: frozenset[int]

    def exit(self, row: int, step: _Step) -> Exit | None:
        if step.address not in self.core:
            return None
        staying = tuple((target, target + 1) for target in step.following if target in self.within)
        return _as_exit(row, step, staying, self.ranges)


def _followed(code: Decoded, rows: Sequence[int], copy: InlinedCopy, inside: dict[int, _Step]) -> _Followed | None:
    """None where control cannot be followed."""
    spans = [(int(code.first[row]), int(code.last[row])) for row in rows]
    own = {step.address for step in inside.values()}
    if sum(last - first for first, last in spans) > _LARGEST:
        return None
    steps = {step.address: step for first, last in spans for step in (_step(code, row) for row in range(first, last))}
    if copy.entry not in steps:
        return None
    start = int(code.functions.address[rows[0]])
    early = _reached(steps, start, copy.entry)
    core = frozenset(own - early)
    return _Followed(_joined(copy.ranges), core, core | _leading_back(steps, core, copy.entry))


def _reached(steps: dict[int, _Step], start: int, without: int) -> set[int]:
    """What is reached from the function's start without passing one instruction."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        address = waiting.pop()
        if address in found or address == without or address not in steps:
            continue
        found.add(address)
        waiting += steps[address].following
    return found


def _leading_back(steps: dict[int, _Step], core: frozenset[int], entry: int) -> set[int]:
    """Instructions outside the copy from which every path leads into it, and not by its entry: that is a new call."""
    before: dict[int, list[int]] = {}
    missing: dict[int, int] = {}  # paths of which it is not known that they lead back
    for step in steps.values():
        if step.address not in core and step.address != entry and step.following:
            missing[step.address] = len(set(step.following))
            for target in set(step.following):
                before.setdefault(target, []).append(step.address)
    found: set[int] = set()
    waiting = [address for address in core if address != entry]
    while waiting:
        for address in before.get(waiting.pop(), ()):
            missing[address] -= 1
            if not missing[address]:
                found.add(address)
                waiting.append(address)
    return found


def common(first: tuple[Range, ...], second: tuple[Range, ...]) -> tuple[Range, ...]:
    """Addresses in both: where two copies leave by one instruction, leaving one of them is enough."""
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in first for b in second)
    return tuple(pair for pair in pairs if pair[0] < pair[1])

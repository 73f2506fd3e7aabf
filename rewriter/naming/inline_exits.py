"""The instructions of a function and one inlined copy in it -> where control leaves the copy.

An exit is an instruction of the copy after which control may be outside all ranges of the copy: one that falls through
at the end of a range, a jump, or a return. A call is no exit, since it comes back.

The compiler moves instructions, so ranges alone mislead in two ways, and control is followed through the function:

- An instruction of the copy that is reached without passing the copy's entry was moved in front of it (a load that is
hoisted): leaving it is not leaving the copy.
- Between two ranges there may be instructions of the caller from which every path leads back into the copy: there the
copy was not left.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kinst.rewriter.naming.control_flow import ControlFlows
from kinst.rewriter.naming.sites import Decoded
from kinst.targets.debuginfo.inlined import InlinedCopy, Range
from kinst.targets.instruction import Flow
from kinst.targets.values import dataclass

_FALLS: Final = frozenset({Flow.NEXT, Flow.BRANCH, Flow.CALL, Flow.INDIRECT_CALL})
_JUMPS: Final = frozenset({Flow.JUMP, Flow.BRANCH})
_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class Exit:
    """A way out of a copy: the row of the instruction. `staying`: where control may go without leaving; any other
    destination leaves."""

    row: int
    staying: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """One instruction: where control may go next. A computed jump may go anywhere."""

    address: int
    following: tuple[int, ...]
    flow: int


def exits(flows: ControlFlows, rows: Sequence[int], copy: InlinedCopy) -> list[Exit]:
    """The ways out of a copy, in the order of its ranges.

    Args:
        flows: of decoded functions.
        rows: of the functions that hold the copy: the caller, and parts of it that the compiler put elsewhere.
        copy: the copy.
    """
    code, ranges = flows.code, _joined(copy.ranges)
    inside = {row: _step(code, row) for low, high in ranges for row in rows_between(code, low, high)}
    followed = _followed(flows, rows, copy, inside) if _is_scattered(ranges) else None
    return [
        found
        for row, step in inside.items()
        if (found := _exit(row, step, ranges) if followed is None else followed.exit(row, step)) is not None
    ]


def _is_scattered(ranges: Sequence[Range]) -> bool:
    return len(ranges) > 1


def _joined(ranges: Sequence[Range]) -> list[Range]:
    """Ascending, with touching and overlapping ranges merged."""
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
    """The exit at an instruction, by the ranges alone."""
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
    """A copy whose control flow was followed. `core` are the addresses of its instructions after its entry, `within`
    also those of the caller's from which every path leads back to them."""

    ranges: Sequence[Range]
    core: frozenset[int]
    within: frozenset[int]

    def exit(self, row: int, step: _Step) -> Exit | None:
        if step.address not in self.core:
            return None
        staying = tuple((target, target + 1) for target in step.following if target in self.within)
        return _as_exit(row, step, staying, self.ranges)


def _followed(
    flows: ControlFlows, rows: Sequence[int], copy: InlinedCopy, inside: dict[int, _Step]
) -> _Followed | None:
    """None where control cannot be followed. If everything of a copy was moved in front of its entry, what was moved is
    the copy."""
    flow = flows.of(rows)
    entry = _NOWHERE if flow is None else flow.position(copy.entry)
    if flow is None or entry == _NOWHERE:
        return None
    own = np.searchsorted(flow.rows, np.array(sorted(inside), np.int64))
    core = frozenset((own[~flow.reached_without(own, entry)] if len(own) else own).tolist()) or frozenset(own.tolist())
    within = core | flow.leading_into(core, entry)
    addresses = flows.code.instructions.address
    core_addresses, within_addresses = (frozenset(addresses[flow.rows[list(one)]].tolist()) for one in (core, within))
    return _Followed(_joined(copy.ranges), core_addresses, within_addresses)


def common(first: tuple[Range, ...], second: tuple[Range, ...]) -> tuple[Range, ...]:
    """Addresses in both: where two copies are left by one instruction, leaving one of them is enough."""
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in first for b in second)
    return tuple(pair for pair in pairs if pair[0] < pair[1])

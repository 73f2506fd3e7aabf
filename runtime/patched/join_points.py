"""Where the block of a tracepoint (`kinst.runtime.patched.call_blocks`) rejoins the code that runs without tracing."""

from collections.abc import Callable, Mapping

import numpy as np

from kinst.rewriter.naming.control_flow import ControlFlow, ControlFlows
from kinst.rewriter.naming.sites import decoded
from kinst.rewriter.program import Program, instructions_of


class JoinPoints:
    """Follows the control flow of functions with tracepoints, when one of these fires for the first time."""

    def __init__(self, program: Callable[[], Program]) -> None:
        """`program` gives the decoded image."""
        self._program = program
        self._flows: dict[tuple[int, ...], ControlFlow | None] = {}

    def of(self, place: int, behind: int, target: int, places: Mapping[int, int]) -> frozenset[int]:
        """The link addresses of the instructions at which a block joins code that is reached without it, too.

        Args:
            place: of the nop that may be a jump.
            behind: address of the instruction after it.
            target: where the jump would lead.
            places: the nops of the same tracepoint, and where their jumps would lead.
        """
        flow = self._flow(place, target)
        if flow is None:
            return frozenset({behind})
        pairs = ((flow.position(one), flow.position(goal)) for one, goal in places.items())
        own = {at: goal for at, goal in pairs if at >= 0}
        # Compilers put blocks after calls that do not return, of panic() or BUG(): these must not fall through into
        # one.
        ends = {goal - 1: (-1,) for goal in own.values() if flow.may_end(goal - 1)}
        usual, _ = flow.reached((flow.first, flow.position(behind)), ends | {at: (at + 1,) for at in own})
        either = {at: (at + 1, goal) for at, goal in own.items()}
        _, joined = flow.reached((flow.position(target),), either, _Outside(usual))
        return frozenset({behind, *map(flow.address, joined)})

    def _flow(self, place: int, target: int) -> ControlFlow | None:
        program = self._program()
        rows = dict.fromkeys(program.functions.row_at(address) for address in (place, target))
        key = tuple(row for row in rows if row is not None)
        if key not in self._flows:
            code = decoded(program.functions, instructions_of(program, np.array(sorted(key), np.intp)))
            self._flows[key] = ControlFlows(code).of(key)
        return self._flows[key]


class _Outside:
    """All positions that are not in a set."""

    def __init__(self, inside: set[int]) -> None:
        self._inside = inside

    def __contains__(self, one: object) -> bool:
        return one not in self._inside

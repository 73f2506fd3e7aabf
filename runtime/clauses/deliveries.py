"""A checked clause -> how its hits may be delivered, and why not in a cheaper way."""

from kinst.runtime.clauses.compile.counting import reads_of, why_not_counted
from kinst.runtime.clauses.compile.replaying import why_not_replayed
from kinst.runtime.clauses.needs import needs
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.program import Clause
from kinst.runtime.hits.combining import Replays
from kinst.runtime.trap.delivery import Delivery, Way


class ClauseDeliveries:
    """Decides for the clauses of one session."""

    def __init__(self, options: Options, replays: Replays | None, *, is_each_noted: bool) -> None:
        """`replays` is None if nothing can be replayed. `is_each_noted`: the output wants the time and task of each
        hit."""
        self._options, self._replays, self._is_each_noted = options, replays, is_each_noted

    def of(self, clause: Clause) -> Delivery:
        """How the hits of one clause may be delivered, as far as that depends on the clause."""
        why_not_counted = self._why_not_counted(clause)
        if not why_not_counted:
            return Delivery(Way.RECORD if reads_of(clause) else Way.COUNT)
        why = self._why_not_replayed(clause, why_not_counted)
        return Delivery(Way.DISPATCH, why) if why else Delivery(Way.REPLAY, why_not_counted)

    def _why_not_counted(self, clause: Clause) -> str:
        # Which keys are dropped depends on the order in which they come, and counted hits are delivered site by site.
        if self._options.is_set("aggsize"):
            return "aggsize is set, and the keys that come first find room"
        return why_not_counted(clause)

    def _why_not_replayed(self, clause: Clause, why_not_counted: str) -> str:
        if self._replays is None or self._options.is_set("aggsize"):
            return why_not_counted
        if self._is_each_noted:
            return f"{why_not_counted}, and the time and the task of each hit are noted"
        why = why_not_replayed(clause)
        if not why and self._replays.learn is None and needs(clause).has_threads:
            return "it uses self->, and the thread is not recorded"
        return why

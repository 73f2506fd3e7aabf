"""A checked clause -> how it is told of hits: all at once that are alike, later and in their order, or each at once."""

from kinst.runtime.clauses.compile.counting import reads_of, why_not_counted
from kinst.runtime.clauses.compile.replaying import why_not_replayed
from kinst.runtime.clauses.needs import needs
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.program import Clause
from kinst.runtime.tracing.surroundings import Replays


class Telling:
    """What can be told when, in one session."""

    def __init__(self, options: Options, replays: Replays | None, *, is_each_noted: bool) -> None:
        """`replays` is None if nothing can be told later. `is_each_noted`: the time and the task of each hit are."""
        self._options, self._replays, self._is_each_noted = options, replays, is_each_noted

    def why_not_together(self, clause: Clause) -> str:
        """Why a clause cannot be told of several hits together; empty if all that it does is to count."""
        if self._options.is_set("aggsize"):
            return "aggsize is set, and the keys that come first find room"
        return why_not_counted(clause)

    def why_not_later(self, clause: Clause) -> str:
        """Why a clause that does more than to count is told of each hit at once; empty if it can be told later."""
        together = self.why_not_together(clause)
        if self._replays is None or self._options.is_set("aggsize"):
            return together
        if self._is_each_noted:
            return f"{together}, and the time and the task of each hit are noted"
        why = why_not_replayed(clause)
        if not why and self._replays.learn is None and needs(clause).has_threads:
            return "it uses self->, and the thread is not recorded"
        return why

    def became(self, clause: Clause) -> str:
        """What became of it, for -x explain."""
        if not self.why_not_together(clause):
            return f"hits are {'recorded' if reads_of(clause) else 'counted'}"
        why = self.why_not_later(clause)
        return f"each hit is told: {why}" if why else "hits are recorded, and told later in their order"

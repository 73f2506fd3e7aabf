"""Whether the hits of probes count: not after exit(), and not while a debugger lets the guest do again what it did."""

from collections.abc import Callable, Iterable

from kinst.runtime.clauses.state import State


class Listening:
    """What decides that for the clauses of one run. `counts`: of hits that were counted.

    A guest that was taken back does the same again, up to where it was: all of that was traced already. So what clauses
    have recorded and assigned stays, and nothing of it is recorded twice.
    """

    def __init__(self, state: State, later: State, fold: Callable[[], None]) -> None:
        """`state` is that of clauses which run at their hits, `later` of those that replay recorded ones, for which
        `fold` runs the clauses, as for counted ones."""
        self.counts, self._is_paused = True, False
        self._state, self._later, self._fold = state, later, fold
        self.destructive: tuple[str, ...] = ()

    def know(self, destructive: Iterable[str]) -> None:
        """The functions and actions of the run's clauses that change more than what is recorded."""
        self.destructive = tuple(dict.fromkeys(destructive))

    @property
    def is_over(self) -> bool:
        """Whether a clause has ended tracing."""
        return not self._state.is_tracing and not self._is_paused

    def end(self) -> None:
        """exit(): hits that came before it count, those that come after it do not."""
        self._fold()
        self._stop()

    def pause(self) -> None:
        """The same, until `go_on`: what comes was traced already."""
        if self._state.is_tracing:
            self.end()
            self._is_paused = True

    def go_on(self) -> None:
        """The hits that come now count again."""
        if self._is_paused:
            self._fold()  # what was counted and recorded meanwhile is dropped
            self._is_paused, self.counts = False, True
            self._state.go_on()
            self._later.go_on()

    def _stop(self) -> None:
        self.counts = False
        self._later.stop()
        self._state.stop()

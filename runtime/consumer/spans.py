"""Entries and returns of functions on one track -> which spans begin and end, properly nested."""

from collections.abc import Hashable


class SpanStack:
    """The functions that were entered on a track and have not returned, outermost first."""

    def __init__(self) -> None:
        self._open: list[Hashable] = []

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, function: Hashable) -> None:
        """A function is entered."""
        self._open.append(function)

    def leave(self, function: Hashable) -> int:
        """A function returns. Returns the number of spans that end now: those inside it whose return was not traced,
        and last its own; 0 if its entry was not traced."""
        for count, entered in enumerate(reversed(self._open), 1):
            if entered == function:
                del self._open[-count:]
                return count
        return 0

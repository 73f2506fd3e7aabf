"""The time -> whether to look again: for what looks between two turns of the CPUs, rarely enough to cost nothing."""


class NowAndThen:
    """A period of the machine's time, in ns. It has begun when it is made."""

    def __init__(self, period: int) -> None:
        self._period = period
        self._next: int | None = 0  # None: never

    def is_due(self, now: int) -> bool:
        """Whether to look at `now`; the next time is a period later."""
        if self._next is None or now < self._next:
            return False
        self._next = now + self._period
        return True

    def begin(self) -> None:
        """Look from now on."""
        self._next = 0

    def stop(self) -> None:
        """Never look again, unless it begins anew."""
        self._next = None

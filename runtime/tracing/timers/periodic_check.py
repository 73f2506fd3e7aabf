"""The time -> whether a periodic check is due: for checks between two turns of the CPUs, so rare that they cost
nothing."""


class PeriodicCheck:
    """A period of the machine's time, in ns. The first check is due at once."""

    def __init__(self, period: int) -> None:
        self._period = period
        self._next: int | None = 0  # None: never

    def is_due(self, now: int) -> bool:
        """Whether to check at `now`; if so, the next check is due a period later."""
        if self._next is None or now < self._next:
            return False
        self._next = now + self._period
        return True

    def begin(self) -> None:
        """Check from now on."""
        self._next = 0

    def stop(self) -> None:
        """Do not check again until `begin`."""
        self._next = None

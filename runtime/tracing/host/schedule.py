"""The rates of a program's options, and the time -> when something is consumed."""

from typing import Final

from kinst.runtime.dlang.options import Options

SOONEST: Final = 1_000_000  # ns between two drains, however high the rate
_MOST_PRINTED: Final = 1 << 20  # bytes of the guest's console that wait for a drain
_ECHO: Final = 10_000_000  # ns until somebody who types sees what the guest answers


class Schedule:
    """When the next drain, snapshot of aggregations and look at the status are due, in ns of the machine's time."""

    def __init__(self, options: Options) -> None:
        """Nothing has begun."""
        self._options = options
        self.begin(0)

    def begin(self, now: int) -> None:
        """Tracing begins: everything is due at once."""
        self.drain = self.snapshot = self._status = self._began = now
        self._rates = self._present_rates()
        self._printed = 0

    @property
    def next(self) -> int:
        """When something is due."""
        return min(self.drain, self.snapshot)

    def echo(self, now: int) -> None:
        """The guest answered somebody who types."""
        self.drain = min(self.drain, now + _ECHO)

    def is_much_printed(self, size: int) -> bool:
        """Whether the guest has printed so much, with these bytes, that it is to be consumed at once."""
        self._printed += size
        return self._printed > _MOST_PRINTED

    def drained(self, now: int) -> None:
        """Buffers were drained."""
        self._printed = 0
        self.drain = now + self._present_rates()[0]

    def taken(self, now: int) -> None:
        """Aggregations are as of now."""
        self.snapshot = now + self._present_rates()[1]

    def note_rates(self) -> None:
        """Rates may be changed now, by setopt()."""
        self._rates = self._present_rates()

    def keep_rates(self) -> None:
        """Rates that were changed since `note_rates` count from the last drain and snapshot on."""
        drains, snapshots = self._present_rates()
        self.drain += drains - self._rates[0]
        self.snapshot += snapshots - self._rates[1]

    def is_status_due(self, now: int) -> bool:
        """Whether the status is to be looked at; if so, the next time is later."""
        is_due = now >= self._status
        if is_due:
            self._status = now + max(SOONEST, self._options.number("statusrate"))
        return is_due

    def until_status(self, now: int) -> int:
        """How long it is until dtrace would look at the status, and see exit()."""
        rate = max(1, self._options.number("statusrate"))
        return (self._began - now) % rate if self._options.is_set("statusrate") else 0

    def _present_rates(self) -> tuple[int, int]:
        """How long it is from one drain to the next, and from one snapshot to the next (ns)."""
        drains, snapshots = self._options.number("switchrate"), self._options.number("aggrate")
        return max(SOONEST, drains), max(SOONEST, snapshots)

"""The rates among the options (switchrate, aggrate, statusrate), and the time -> when something is consumed."""

from typing import Final

from kinst.runtime.dlang.options import Options

SOONEST: Final = 1_000_000  # ns between two drains, however high the rate
_MOST_PRINTED: Final = 1 << 20  # bytes of the guest's console that wait for a drain
_ECHO: Final = 10_000_000  # ns until an echo appears on the terminal


class Schedule:
    """When the next drain, snapshot of aggregations and check of the status are due, in ns of the machine's time."""

    def __init__(self, options: Options) -> None:
        """Tracing has not begun."""
        self._options = options
        self.begin(0)

    def begin(self, now: int) -> None:
        """Tracing begins: everything is due at once."""
        self.drain = self.snapshot = self._status = self._began = now
        self._rates = self._present_rates()
        self._printed = 0

    @property
    def next(self) -> int:
        """When something is due next."""
        return min(self.drain, self.snapshot)

    def echo(self, now: int) -> None:
        """The guest printed something on a terminal: drain soon."""
        self.drain = min(self.drain, now + _ECHO)

    def is_much_printed(self, size: int) -> bool:
        """Count `size` bytes of console output. Returns whether there is so much that it must be drained at once."""
        self._printed += size
        return self._printed > _MOST_PRINTED

    def drained(self, now: int) -> None:
        """The buffers were drained: the next drain is due a switchrate later, with the rate as it is now."""
        self._printed = 0
        self.drain = now + self._present_rates()[0]

    def taken(self, now: int) -> None:
        """A snapshot of the aggregations was taken."""
        self.snapshot = now + self._present_rates()[1]

    def note_rates(self) -> None:
        """Remember the rates, before records are consumed: setopt() among them may change these."""
        self._rates = self._present_rates()

    def keep_rates(self) -> None:
        """Apply rates that were changed since `note_rates` to the intervals that have already begun: libdtrace compares
        the time of the last drain with the option's present value."""
        drains, snapshots = self._present_rates()
        self.drain += drains - self._rates[0]
        self.snapshot += snapshots - self._rates[1]

    def is_status_due(self, now: int) -> bool:
        """Whether to check the status now; if so, the next check is due a statusrate later."""
        is_due = now >= self._status
        if is_due:
            self._status = now + max(SOONEST, self._options.number("statusrate"))
        return is_due

    def until_status(self, now: int) -> int:
        """How long it is until dtrace would check the status and notice exit() (ns). 0 unless statusrate is set."""
        rate = max(1, self._options.number("statusrate"))
        return (self._began - now) % rate if self._options.is_set("statusrate") else 0

    def _present_rates(self) -> tuple[int, int]:
        """The interval between drains, and between snapshots (ns)."""
        drains, snapshots = self._options.number("switchrate"), self._options.number("aggrate")
        return max(SOONEST, drains), max(SOONEST, snapshots)

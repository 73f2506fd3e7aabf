"""A guest and calls -> each call made, and told of: what a run does with --call-each."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from kinst.runtime.machine.calling.called import Called
from kinst.runtime.machine.calling.template import Call
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.tracing.guests.calls import CALL_TIMEOUT, CallingGuest, Calls
from kinst.runtime.tracing.host.limits import Limits

Told = Callable[[Call, Called], None]
# What ends a call, and the calls after it are made all the same.
_OF_CALLS: Final = frozenset({None, End.RETURNED, End.TIMEOUT, End.POWER_OFF, End.RESET, End.PANIC})


class EachCall:
    """Calls of one guest's functions that a run makes in place of booting it, or of continuing."""

    def __init__(self, guest: CallingGuest, calls: Iterable[Call], told: Told, *, pauses: bool) -> None:
        """Nothing is called yet. `told` is called with each call and its outcome, between two runs. `pauses`: the run
        pauses behind each call, and continues with the next."""
        self._guest, self._pending, self._told, self._pauses = guest, iter(calls), told, pauses
        self._calls: Calls | None = None

    def go(self, limits: Limits, hooks: MachineHooks) -> End:
        """Make the calls, each within the machine's time of `limits`, all of them within the host's. Returns why it
        ended. Raises KinstError."""
        if self._calls is None:
            self._calls = Calls(self._guest)
        timeout = CALL_TIMEOUT if limits.timeout is None else limits.timeout
        until = None if limits.wall_timeout is None else time.monotonic_ns() + limits.wall_timeout
        for call in self._pending:
            left = None if until is None else max(0, until - time.monotonic_ns())
            called = self._calls.call(call, timeout, hooks, left)
            if called.end not in _OF_CALLS:
                assert called.end is not None, "it is one of those above"
                return called.end
            self._told(call, called)
            if self._pauses:
                return End.PAUSED
        return End.RETURNED

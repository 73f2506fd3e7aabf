"""What devices gave when the guest asked last -> what a scratch copy is told in their place: no device is asked twice,
since reads have effects.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kinst.runtime.machine.watching.accesses import DeviceAccess
from kinst.runtime.paging.walker import Access
from kinst.targets.machines.machine import Space

_MOST: Final = 1 << 14  # addresses that are remembered
_IS_TIME: Final = 4  # reads one after the other that each gave more than the one before

Key = tuple[Space, int, int]  # address and size


@dataclass(slots=True)
class _Seen:
    """The last value that a device gave at an address. `rises`: how often it had become more, without an exception."""

    value: int
    time: int
    rises: int = 0
    rate: float = 0.0  # by how much it grew for each ns


class DeviceValues:
    """The last values of one machine's devices."""

    def __init__(self, now: Callable[[], int]) -> None:
        """`now` gives the machine's time (ns)."""
        self._now = now
        self._seen: dict[Key, _Seen] = {}

    def note(self, access: DeviceAccess) -> None:
        """Note an access; see `DeviceAccesses.watch`."""
        if access.access is not Access.READ or not access.is_answered or not access.size:
            return
        key, now = (access.space, access.address, access.size), self._now()
        seen = self._seen.get(key)
        if seen is None:
            if len(self._seen) < _MOST:
                self._seen[key] = _Seen(access.value, now)
            return
        if access.value > seen.value and now > seen.time:
            rate = (access.value - seen.value) / (now - seen.time)
            seen.rises, seen.rate = seen.rises + 1, rate
        elif access.value < seen.value:
            seen.rises = 0
        seen.value, seen.time = access.value, now

    def is_time(self, key: Key) -> bool:
        """Whether a register grows with time."""
        seen = self._seen.get(key)
        return seen is not None and seen.rises >= _IS_TIME

    def value(self, key: Key, now: int) -> int:
        """What is given at a time: what was given last, and more if it grows. 0 for what was never asked."""
        seen = self._seen.get(key)
        if seen is None:
            return 0
        grown = int((now - seen.time) * seen.rate) if seen.rises >= _IS_TIME else 0
        return seen.value + grown & (1 << 8 * key[2]) - 1

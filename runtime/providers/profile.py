"""profile: probes that fire by time, `profile-N[unit]` on every CPU and `tick-N[unit]` on one.

They count the machine's time from the moment they are enabled, and do not drift. Like one of the kernel's cyclics, a
timer that is late fires once for each interval that it missed, so that counts are right. If it is more than a second
late, it skips to the next interval. Timers that are due at the same time fire in the order of their identifiers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kinst.runtime.machine.device import Timed
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, UNSTABLE, ProviderAttributes
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.manifest.probe_ids import TIMER_IDS
from kinst.targets.probe import ProbeName

_SECOND: Final = 1_000_000_000
_SHORTEST: Final = _SECOND // 5000
_MOST: Final = len(TIMER_IDS)  # probes, including those that always exist
_LONGEST: Final = (1 << 63) - 1  # ns: the longest interval that the kernel can count
_LONGEST_NAME: Final = 63  # characters of a probe's name
_LATEST: Final = _SECOND  # ns that a timer may be late before intervals are skipped
_UNITS: Final = {
    "ns": 1, "nsec": 1, "us": 1000, "usec": 1000, "ms": 1_000_000, "msec": 1_000_000, "s": _SECOND, "sec": _SECOND,
    "m": 60 * _SECOND, "min": 60 * _SECOND, "h": 3600 * _SECOND, "hour": 3600 * _SECOND, "d": 86400 * _SECOND,
    "day": 86400 * _SECOND,
}  # fmt: skip
_NAME: Final = re.compile(r"(profile|tick)-([0-9]+)([^0-9]*)", re.ASCII | re.DOTALL)
_PREMADE: Final = (
    *(f"profile-{rate}" for rate in (97, 199, 499, 997, 1999, 4001, 4999)),
    *(f"tick-{rate}" for rate in (1, 10, 100, 500, 1000, 5000)),
)


class TimerHost(Protocol):
    """What timers need from the run."""

    def now(self) -> int:
        """The machine's time in ns."""
        ...

    def attach(self, timed: Timed) -> None:
        """Call `timed.advance` at its deadlines from now on."""
        ...

    def cpus(self) -> Sequence[int]:
        """The numbers of the CPUs that are on, ascending."""
        ...

    def firing(self, cpu: int, thread: int) -> Firing:
        """A firing with a CPU's registers, this thread, and the PC as `site` (0 if there is no image)."""
        ...

    def is_user(self, firing: Firing) -> bool:
        """Whether the firing's CPU is in user mode."""
        ...


def timer_thread(cpu: int) -> int:
    """`Firing.thread` of timers: each CPU has one, which belongs to the tracer."""
    return -2 - cpu


def interval(name: str) -> tuple[bool, int] | None:
    """The timer that a probe's name describes: whether it fires on every CPU, and its interval in ns. None if it
    describes none."""
    found = _NAME.fullmatch(name)
    if found is None or len(name) > _LONGEST_NAME:
        return None
    number, unit = int(found[2]), found[3].lower()
    if not number or not (unit in ("", "hz") or unit in _UNITS):
        return None
    length = number * _UNITS[unit] if unit in _UNITS else _SECOND // number
    return (found[1] == "profile", length) if _SHORTEST <= length <= _LONGEST else None


def refusal(name: str) -> str:
    """Why a name that looks like a timer's is not one; empty if it does not look like one."""
    if not name.startswith(("profile-", "tick-")) or interval(name) is not None:
        return ""
    return f"a number and a unit (ns us ms s m h d hz) follow {name.split('-')[0]}-, at most 5000hz (200us)"


@dataclass(slots=True)
class _Timer:
    """The timer of an enabled probe."""

    interval: int
    is_on_all: bool
    expires: int
    enabling: Enabling
    late: int = 0


class ProfileProvider:
    """The provider `profile`; implements `kinst.runtime.providers.provider.Provider`, and `Timed` for the machine."""

    registration = Registration(
        "profile", ProviderAttributes(EVOLVING, UNSTABLE, PRIVATE, EVOLVING, EVOLVING), identifiers=TIMER_IDS
    )

    def __init__(self, host: TimerHost) -> None:
        """Nothing is enabled. It attaches itself to the machine when the first timer is enabled."""
        self._host = host
        self._count = 0
        self._intervals: dict[int, tuple[bool, int]] = {}  # by identifier
        self._timers: dict[int, _Timer] = {}  # enabled ones, ascending by identifier
        self._is_attached = False

    # -- provider -----------------------------------------------------------------------------------------------------

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create the usual rates, and any that is asked for by name."""
        for name in _PREMADE if wanted is None else (wanted.name,):
            found = interval(name)
            if found is not None and self._count < _MOST and probes.lookup("", "", name) is None:
                self._intervals[probes.create("", "", name)] = found
                self._count += 1

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Start timers. One that is running keeps its deadline and gets the new action."""
        for identifier in identifiers.tolist():
            self._start(identifier, action)
        self._timers = dict(sorted(self._timers.items()))
        if not self._is_attached:
            self._is_attached = True
            self._host.attach(self)

    def _start(self, identifier: int, action: Action) -> None:
        running = self._timers.get(identifier)
        is_on_all, length = self._intervals[identifier]
        expires = self._host.now() + length if running is None else running.expires

        def argument(firing: Firing, index: int) -> int:
            # profile-N: arg0 is the PC in the kernel, arg1 that in user mode, the other one is 0, arg2 the ns by which
            # it is late; tick-N has the first two.
            if index == 2:
                return timer.late if is_on_all else 0
            return firing.site if index == int(self._host.is_user(firing)) else 0

        timer = _Timer(length, is_on_all, expires, Enabling(identifier, action, argument, 0))
        self._timers[identifier] = timer

    def disable(self, identifiers: Identifiers) -> None:
        """Stop the timers of these probes."""
        for identifier in identifiers.tolist():
            self._timers.pop(identifier, None)

    def destroy(self, identifiers: Identifiers) -> None:
        """Forget these probes, so that others can be created."""
        for identifier in identifiers.tolist():
            self._count -= self._intervals.pop(identifier, None) is not None

    # -- device -------------------------------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """When the next timer expires, in the machine's time (ns); None if there is none."""
        return min((timer.expires for timer in self._timers.values()), default=None)

    def advance(self) -> None:
        """Fire everything that is due now, in the order of time. What becomes due in the meantime must wait until the
        guest has run again."""
        now = self._host.now()
        while self._timers:
            timer = min(self._timers.values(), key=lambda timer: timer.expires)
            if timer.expires > now:
                return
            timer.late = now - timer.expires
            timer.expires += timer.interval  # not now + interval: it would drift
            if now - timer.expires > _LATEST:
                timer.expires += ((now - timer.expires) // timer.interval + 1) * timer.interval
            self._fire(timer)

    def _fire(self, timer: _Timer) -> None:
        cpus = self._host.cpus()
        for cpu in cpus if timer.is_on_all else cpus[:1]:
            self._host.firing(cpu, timer_thread(cpu)).fire(timer.enabling)

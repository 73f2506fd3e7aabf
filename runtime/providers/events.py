"""sched, DTrace's provider of a scheduler's events, from a Linux kernel's tracepoints and functions that all versions
have.

An event is at other probes of the image, and it is there if they are. Its arguments are some of theirs, which our D
library `linux_sched.d` translates into those that dtrace_sched(4) describes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kinst.runtime.providers.host import Point, ProviderHost, fire
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Argument, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.probe import ProbeName

_ATTRIBUTES: Final = ProviderAttributes(EVOLVING, PRIVATE, PRIVATE, EVOLVING, EVOLVING)
_TASK: Final = "struct task_struct *"


@dataclass(frozen=True, slots=True)
class Event:
    """One probe: where it fires, and its arguments, each by its number there."""

    name: str
    place: str  # a description
    needs: str  # what a symbol begins with, without which there is no such place
    arguments: tuple[tuple[int, Argument], ...] = ()


def _tracepoint(name: str, place: str, *arguments: tuple[int, Argument]) -> Event:
    return Event(name, f"sdt:::{place}", f"__tracepoint_{place}", arguments)


def _task(number: int) -> tuple[tuple[int, Argument], ...]:
    """A task as DTrace shows it: its thread and its process."""
    return tuple((number, Argument(_TASK, translated=kind)) for kind in ("lwpsinfo_t *", "psinfo_t *"))


def _queue(name: str, function: str) -> Event:
    """At the functions of all classes of the scheduler: the task, and the queue's CPU."""
    queue = 0, Argument("struct rq *", translated="cpuinfo_t *")
    return Event(name, f"fbt::{function}_*:entry", f"{function}_fair", (*_task(1), queue))


SCHED: Final = (
    _tracepoint("off-cpu", "sched_switch", *_task(2)),  # the task that comes
    # The first function that every task runs when it comes, new ones included.
    Event("on-cpu", "fbt::finish_task_switch*:entry", "finish_task_switch"),
    _tracepoint("wakeup", "sched_waking", *_task(0)),
    _queue("enqueue", "enqueue_task"),
    _queue("dequeue", "dequeue_task"),
)


class EventsProvider:
    """See `kinst.runtime.providers.provider.Provider`."""

    def __init__(self, name: str, events: Sequence[Event], host: ProviderHost) -> None:
        """A point at the places of each event that the image has; none of them is armed."""
        self.registration = Registration(name, _ATTRIBUTES)
        self._enablings: dict[int, Enabling] = {}
        self._events: dict[int, Event] = {}  # by identifier, once there is one
        self._points: dict[int, Point] = {}  # likewise
        self._identifiers: dict[str, int] = {}
        self._planted: list[tuple[Event, Point]] = []
        for event in events:
            if len(host.image.symbols.rows_beginning(event.needs.encode())):
                called = partial(self._reached, event)
                self._planted.append((event, host.plant(event.place, called, may_lack=True)))

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """All of them, at once."""
        if wanted is None:
            for event, point in self._planted:
                identifier = self._identifiers[event.name] = probes.create("", "", event.name)
                self._events[identifier], self._points[identifier] = event, point

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Arm the places."""
        for identifier in identifiers.tolist():
            self._enablings[identifier] = Enabling(identifier, action, self.argument, 0)
            self._points[identifier].arm()

    def disable(self, identifiers: Identifiers) -> None:
        """Disarm them."""
        for identifier in identifiers.tolist():
            del self._enablings[identifier]
            self._points[identifier].disarm()

    def destroy(self, identifiers: Identifiers) -> None:
        """Nothing is kept for a probe that is gone."""

    def arguments(self, identifier: int) -> Sequence[Argument]:
        """What is translated, and into what."""
        return tuple(argument for _, argument in self._events[identifier].arguments)

    def argument(self, firing: Firing, index: int) -> int:
        """An argument of the place."""
        return firing.enabling.argument(firing, index)

    def _reached(self, event: Event, firing: Firing) -> None:
        enabling = self._enablings.get(self._identifiers.get(event.name, -1))
        if enabling is None:
            return
        numbers, inner = [number for number, _ in event.arguments], firing.enabling.argument

        def argument(at: Firing, index: int) -> int:
            return inner(at, numbers[index]) if index < len(numbers) else 0

        fire(firing, Enabling(enabling.probe, enabling.action, argument, 0))


def sched_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_sched(4)."""
    return EventsProvider("sched", SCHED, host)

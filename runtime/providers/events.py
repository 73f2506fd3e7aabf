"""Providers of what an operating system does, for which DTrace has names and arguments of its own.

An event is derived from other probes of the image, and exists if one of them does. Its arguments are computed from
theirs; D libraries translate them into what DTrace's guide describes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kinst.runtime.providers.host import Point, ProviderHost, fire
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Argument, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.probe import ProbeName
from kinst.targets.values import dataclass

_ATTRIBUTES: Final = ProviderAttributes(EVOLVING, PRIVATE, PRIVATE, EVOLVING, EVOLVING)


class Numbers:
    """arg0, arg1, ... of a place that was reached."""

    __slots__ = ("firing",)

    def __init__(self, firing: Firing) -> None:
        """`firing` is that of the place."""
        self.firing = firing

    def __call__(self, number: int) -> int:
        """One of them."""
        return self.firing.enabling.argument(self.firing, number)


Values = Callable[[Numbers], Sequence[int] | None]  # arguments of a place -> those of the event; None: no event


@dataclass(frozen=True, slots=True)
class Place:
    """A probe that may be an event, and the event's arguments there."""

    description: str
    needs: str  # prefix of a symbol: without one the image has no such place
    values: Values = lambda _numbers: ()
    is_whole: bool = False  # `needs` is the whole name of the symbol


@dataclass(frozen=True, slots=True)
class Event:
    """One probe."""

    name: str
    places: tuple[Place, ...]
    arguments: tuple[Argument, ...] = ()
    needs_all: bool = False  # where one of its places is missing, only a part of what happens would be told


def given(*numbers: int) -> Values:
    """The place's own arguments, by their numbers there."""
    return lambda at: [at(number) for number in numbers]


def tracepoint(name: str, values: Values = lambda _numbers: ()) -> Place:
    """A tracepoint of Linux."""
    return Place(f"sdt:::{name}", f"__tracepoint_{name}", values)


def function(name: str, values: Values = lambda _numbers: (), end: str = "entry") -> Place:
    """The entry or return of one function."""
    return Place(f"fbt::{name}:{end}", name, values, is_whole=True)


class EventsProvider:
    """See `kinst.runtime.providers.provider.Provider`."""

    def __init__(self, name: str, events: Sequence[Event], host: ProviderHost) -> None:
        """Plant a point at each place that the image has; none of them is armed."""
        self.registration = Registration(name, _ATTRIBUTES, needs="a Linux kernel with the names of its tracepoints")
        self._enablings: dict[int, Enabling] = {}
        self._events: dict[int, Event] = {}  # by identifier, once there is one
        self._identifiers: dict[str, int] = {}
        self._points: dict[str, list[Point]] = {}
        self._planted = [event for event in events if self._plant(event, host)]

    def _plant(self, event: Event, host: ProviderHost) -> bool:
        """Plant an event's points. Whether the image has its places."""
        points = self._points[event.name] = []
        places = [place for place in event.places if _has(host, place)]
        if event.needs_all and len(places) < len(event.places):
            return False
        for place in places:
            called = partial(self._reached, event.name, place.values)
            points.append(host.plant(place.description, called, may_lack=True))
        return bool(points)

    def _is_present(self, event: Event) -> bool:
        """Whether the image could be patched where the event is told of."""
        return (all if event.needs_all else any)(point.is_placed for point in self._points[event.name])

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create all of them when it registers."""
        if wanted is None:
            for event in filter(self._is_present, self._planted):
                identifier = self._identifiers[event.name] = probes.create("", "", event.name)
                self._events[identifier] = event

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Arm the places."""
        for identifier in identifiers.tolist():
            self._enablings[identifier] = Enabling(identifier, action, self.argument, 0)
            for point in self._points[self._events[identifier].name]:
                point.arm()

    def disable(self, identifiers: Identifiers) -> None:
        """Disarm them."""
        for identifier in identifiers.tolist():
            del self._enablings[identifier]
            for point in self._points[self._events[identifier].name]:
                point.disarm()

    def destroy(self, identifiers: Identifiers) -> None:
        """Do nothing: there is nothing to release."""

    def arguments(self, identifier: int) -> Sequence[Argument]:
        """The types of the arguments, and what they are translated into."""
        return self._events[identifier].arguments

    def argument(self, firing: Firing, index: int) -> int:
        """An argument of the event."""
        return firing.enabling.argument(firing, index)

    def _reached(self, name: str, values: Values, firing: Firing) -> None:
        enabling = self._enablings.get(self._identifiers.get(name, -1))
        numbers = None if enabling is None else values(Numbers(firing))
        if enabling is not None and numbers is not None:
            argument = lambda _firing, index: numbers[index] if index < len(numbers) else 0  # noqa: E731
            fire(firing, Enabling(enabling.probe, enabling.action, argument, 0))


def _has(host: ProviderHost, place: Place) -> bool:
    if place.is_whole:
        return host.address_of(place.needs) is not None
    return len(host.image.symbols.rows_beginning(place.needs.encode())) > 0

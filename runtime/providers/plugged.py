"""Providers of other packages: loaded only where something names them, and each error of theirs names its package.

A package that is installed runs no code of its own in a run that does not ask for its probes. What asks is a provider's
field that stands for the name of its entry point, as that is also the name of its provider, or an identifier that
nothing else has.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from kinst.runtime.providers.host import Called, Point, ProviderHost
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import (
    Action,
    Argument,
    DescribesArguments,
    Probes,
    Provider,
    ProviderError,
    Registration,
    check_operations,
)
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.targets.errors import KinstError, MachineError
from kinst.targets.probe import ProbeName, matcher

ENTRY_POINTS: Final = "kinst.providers"


def asks_for(descriptions: Collection[str], identified: Collection[str]) -> Callable[[str], bool]:
    """Whether some of the descriptions name a provider. `identified` are those that are identifiers of the image's."""
    fields = [text.split(":")[0] for text in descriptions if text.count(":") == len(ProbeName.__slots__) - 1]
    if any(text.isdigit() and text not in identified for text in descriptions):
        return lambda _provider: True
    known = [matcher(field) for field in fields if field]
    return lambda provider: any(matches(provider) for matches in known)


def installed_providers(
    host: ProviderHost | None = None, is_wanted: Callable[[str], bool] = lambda _name: True
) -> list[Provider]:
    """What other packages plug in, for a run of an image; without one there is nothing for them to trace.

    Raises:
        ProviderError: a package whose entry point does not work: its name and why.
    """
    if host is None:
        return []
    found = sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)
    return [_made(entry, host) for entry in found if is_wanted(entry.name)]


def _made(entry: EntryPoint, host: ProviderHost) -> Provider:
    package = "" if entry.dist is None else f" of {entry.dist.name}"
    who = f"provider {entry.name}{package}"
    with _named(who):
        provider: Provider = entry.load()(_Host(host, who))
        check_operations(provider)
        if provider.registration.name != entry.name:
            raise ProviderError(f"registers as {provider.registration.name}")
    return (_PluggedWithArguments if isinstance(provider, DescribesArguments) else _Plugged)(provider, who)


@contextmanager
def _named(who: str) -> Iterator[None]:
    """It is someone else's code: say whose. A fault is the clause's, and what ends the machine the guest's."""
    try:
        yield
    except (Fault, MachineError):
        raise
    except KinstError as error:
        raise ProviderError(f"{who}: {error}") from error
    except Exception as error:
        raise ProviderError(f"{who}: {type(error).__name__}: {error}") from error


class _Host:
    """The `ProviderHost` of one package, which is told of what it does when it is called."""

    def __init__(self, host: ProviderHost, who: str) -> None:
        self._host = host
        self._who = who

    def plant(self, description: str, called: Called) -> Point:
        """See `ProviderHost`."""

        def guarded(firing: Firing) -> None:
            with _named(self._who):
                called(firing)

        return self._host.plant(description, guarded)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


class _Plugged:
    """See `Provider`."""

    def __init__(self, provider: Any, who: str) -> None:
        self._provider = provider
        self._who = who

    @property
    def registration(self) -> Registration:
        with _named(self._who):
            found: Registration = self._provider.registration
            return found

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        with _named(self._who):
            self._provider.provide(probes, wanted)

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        with _named(self._who):
            self._provider.enable(identifiers, action)

    def disable(self, identifiers: Identifiers) -> None:
        with _named(self._who):
            self._provider.disable(identifiers)

    def destroy(self, identifiers: Identifiers) -> None:
        with _named(self._who):
            self._provider.destroy(identifiers)


class _PluggedWithArguments(_Plugged):
    """See `DescribesArguments`."""

    def arguments(self, identifier: int) -> Sequence[Argument] | None:
        with _named(self._who):
            found: Sequence[Argument] | None = self._provider.arguments(identifier)
            return found

    def argument(self, firing: Firing, index: int) -> int:
        with _named(self._who):
            return int(self._provider.argument(firing, index))

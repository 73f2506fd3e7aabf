"""Providers of other packages. They are loaded only if something names them, and their errors name their package.

A package's code does not run unless a program asks for its probes. A description asks for them if its provider field
matches the entry point's name, which is also the provider's name, or if it is an identifier that no other probe has.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kinst.runtime.providers.host import Called, Point, ProviderHost
from kinst.runtime.providers.linux.internet import ip_provider, udp_provider
from kinst.runtime.providers.linux.io import io_provider
from kinst.runtime.providers.linux.lockstat import lockstat_provider
from kinst.runtime.providers.linux.proc import proc_provider
from kinst.runtime.providers.linux.sched import sched_provider
from kinst.runtime.providers.linux.sysinfo import sysinfo_provider
from kinst.runtime.providers.linux.tcp import tcp_provider
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
OWN: Final[Mapping[str, Callable[[ProviderHost], Provider]]] = MappingProxyType(
    {
        "io": io_provider,
        "ip": ip_provider,
        "lockstat": lockstat_provider,
        "proc": proc_provider,
        "sched": sched_provider,
        "sysinfo": sysinfo_provider,
        "tcp": tcp_provider,
        "udp": udp_provider,
    }
)


def asks_for(descriptions: Collection[str], identified: Collection[str]) -> Callable[[str], bool]:
    """A function that says whether the descriptions name a provider. `identified`: descriptions that are identifiers of
    probes of the image."""
    fields = [text.split(":")[0] for text in descriptions if text.count(":") == len(ProbeName.__slots__) - 1]
    if any(text.isdigit() and text not in identified for text in descriptions):
        return lambda _provider: True
    known = [matcher(field) for field in fields if field]
    return lambda provider: any(matches(provider) for matches in known)


def installed_providers(
    host: ProviderHost | None = None, is_wanted: Callable[[str], bool] = lambda _name: True
) -> list[Provider]:
    """The providers of `OWN` and of other packages that a run of an image wants. Without an image there are none: they
    have nothing to trace.

    Raises:
        ProviderError: the entry point of a package does not work; the message has the package's name and the reason.
    """
    if host is None:
        return []
    found = _installed(tuple((folder, _changed_at(folder)) for folder in sys.path))
    own = [make(host) for name, make in OWN.items() if is_wanted(name)]
    return [*own, *(_made(entry, host) for entry in found if is_wanted(entry.name))]


@lru_cache(maxsize=1)
def _installed(_folders: tuple[tuple[str, int], ...]) -> Sequence[EntryPoint]:
    """By name. It reads the metadata of all packages, which takes longer than a short program: once for who runs many,
    as long as the folders that packages are in are what they were."""
    return sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)


def _changed_at(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


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
    """Around calls of a package's code: its exceptions become a ProviderError that names it. Faults are passed on for
    the clause, and so is what ends the machine."""
    try:
        yield
    except (Fault, MachineError):
        raise
    except KinstError as error:
        raise ProviderError(f"{who}: {error}") from error
    except Exception as error:
        raise ProviderError(f"{who}: {type(error).__name__}: {error}") from error


class _Host:
    """The `ProviderHost` of one package. Errors in the functions that it plants name the package."""

    def __init__(self, host: ProviderHost, who: str) -> None:
        self._host = host
        self._who = who

    def plant(self, description: str, called: Called, *, may_lack: bool = False) -> Point:
        """See `ProviderHost`; errors in `called` name the package."""

        def guarded(firing: Firing) -> None:
            with _named(self._who):
                called(firing)

        return self._host.plant(description, guarded, may_lack=may_lack)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


class _Plugged:
    """A package's `Provider`, whose errors name the package."""

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
    """A package's `Provider` that `DescribesArguments`, too."""

    def arguments(self, identifier: int) -> Sequence[Argument] | None:
        with _named(self._who):
            found: Sequence[Argument] | None = self._provider.arguments(identifier)
            return found

    def argument(self, firing: Firing, index: int) -> int:
        with _named(self._who):
            return int(self._provider.argument(firing, index))

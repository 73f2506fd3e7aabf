"""What every provider answers: the life cycle of DTrace's dtrace_pops_t, in bulk where probes are many.

A provider is made with what it needs (register), says which probes it has (provide, lookup), lets them fire (enable,
disable), describes their arguments (getargdesc) and lets go of everything (destroy, unregister). Others plug in through
the entry-point group `kinst.providers`: a callable without arguments that makes a `Provider`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.trap import Firing
from kinst.targets.probe import ProbeName

ENTRY_POINTS: Final = "kinst.providers"
Action = Callable[[Firing], None]


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe. Module, function or name is empty where its provider has none."""

    identifier: int
    provider: str
    module: str
    function: str
    name: str

    def __str__(self) -> str:
        return ":".join((self.provider, self.module, self.function, self.name))


class Provider(Protocol):
    """A source of probes."""

    @property
    def name(self) -> str:
        """The first field of its probes' names."""
        ...

    def match(self, pattern: ProbeName) -> NDArray[np.intp]:
        """Identifiers of the probes that `pattern` stands for, ascending; probes made on demand are made now."""
        ...

    def probe(self, identifier: int) -> Probe | None:
        """The probe with this identifier, if it is this provider's."""
        ...

    def enable(self, identifiers: NDArray[np.intp], action: Action) -> None:
        """Let probes do `action` when they fire. Takes effect when the machine runs on."""
        ...

    def disable(self, identifiers: NDArray[np.intp]) -> None:
        """Let probes cost nothing again."""
        ...

    def argument_type(self, identifier: int, index: int) -> str | None:
        """The C type of args[index]; None: there is no such argument."""
        ...

    def close(self) -> None:
        """Disable and forget all probes."""
        ...


class Providers:
    """The providers of a session, the newest first, as dtrace_register keeps them."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        """`providers` in the order of registration."""
        self._providers = list(providers)

    def __iter__(self) -> Iterator[Provider]:
        return iter(self._providers)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the providers."""
        return tuple(provider.name for provider in self._providers)

    def register(self, provider: Provider) -> None:
        """Add a provider; its probes can be matched from now on."""
        self._providers.append(provider)

    def unregister(self, provider: Provider) -> None:
        """Take a provider away."""
        provider.close()
        self._providers.remove(provider)

    def enable(self, pattern: ProbeName, action: Action) -> int:
        """Enable all probes that `pattern` stands for; how many there are."""
        count = 0
        for provider in self._providers:
            identifiers = provider.match(pattern)
            if len(identifiers):
                provider.enable(identifiers, action)
                count += len(identifiers)
        return count

    def probe(self, identifier: int) -> Probe | None:
        """The probe with this identifier."""
        for provider in self._providers:
            found = provider.probe(identifier)
            if found is not None:
                return found
        return None


def installed_providers() -> list[Provider]:
    """What other packages plug in."""
    return [entry.load()() for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)]

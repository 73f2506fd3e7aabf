"""What a provider is, and the framework that keeps them: DTrace's dtrace_register, dtrace_pops_t and so on.

A provider registers, is asked to provide probes (all of them, or on demand those of one description), creates them,
enables and disables them on request, describes their arguments, and finally releases everything. It may create probes
while the guest runs. The framework gives probes their identifiers, finds them by name, and knows which are enabled.
Where there are many probes, it has no object for each of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import Flag, auto
from typing import Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.providers.probe_table import Identifiers, Probe, ProbeBlock, ProbeTable
from kinst.runtime.providers.stability import ProviderAttributes
from kinst.runtime.trap.trap import Firing
from kinst.targets.c_types import CType
from kinst.targets.columns import union, unique
from kinst.targets.errors import KinstError
from kinst.targets.probe import ProbeName, parse_probe_name
from kinst.targets.values import dataclass

__all__ = [
    "Action",
    "Argument",
    "DescribesArguments",
    "ExplainsMisses",
    "Identifiers",
    "Privilege",
    "Probe",
    "Probes",
    "Provider",
    "ProviderError",
    "Providers",
    "Registration",
    "check_operations",
]

Action = Callable[[Firing], None]
_FORBIDDEN: Final = frozenset(":*?[]\\,;{}/")
_LONGEST: Final = {"module": 64, "function": 192, "name": 64}  # DTRACE_MODNAMELEN, FUNCNAMELEN, NAMELEN, NUL included


class ProviderError(KinstError):
    """A provider did something that the framework does not allow; the message names the provider."""


class Privilege(Flag):
    """Who may see a provider's probes (DTRACE_PRIV_*). A user who runs a guest may see everything in it."""

    NONE = 0
    KERNEL = auto()
    USER = auto()
    OWNER = auto()
    ZONEOWNER = auto()


@dataclass(frozen=True, slots=True)
class Registration:
    """The arguments of dtrace_register."""

    name: str  # the first field of the probes' names
    attributes: ProviderAttributes
    privilege: Privilege = Privilege.KERNEL
    family: str = ""  # a name that several providers share: `sdt` for all static probes
    identifiers: range = range(0)  # the first identifiers of its probes, the same in every run
    needs: str = ""  # what an image without any of its probes lacks, for messages


@dataclass(frozen=True, slots=True)
class Argument:
    """args[i] of a probe: dtrace_argdesc_t. A type is C text, or the type itself if it comes from debug information."""

    native: str | CType
    mapping: int | None = None  # the native argument that it is made from; None: the one with the same index
    translated: str | CType | None = None  # the type that a translator makes of it; None: there is no translation

    @property
    def type(self) -> str | CType:
        """The type that D programs see."""
        return self.native if self.translated is None else self.translated


class Provider(Protocol):
    """The operations that every provider has. `DescribesArguments` has the optional ones."""

    @property
    def registration(self) -> Registration:
        """How it registers."""
        ...

    def provide(self, probes: "Probes", wanted: ProbeName | None) -> None:
        """dtps_provide: create probes. With None, once, when it registers, these are all that exist; with `wanted` they
        are those that it matches and that are made on demand. `probes` stays valid: more may be created at any time."""
        ...

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """dtps_enable: enable probes with `action`, which replaces the one they had. A firing has an
        `Enabling` with the probe's identifier and a function that gives arg0, arg1, ..."""
        ...

    def disable(self, identifiers: Identifiers) -> None:
        """dtps_disable: disable probes, so that they cost nothing again."""
        ...

    def destroy(self, identifiers: Identifiers) -> None:
        """dtps_destroy: release these probes, none of which is enabled."""
        ...


@runtime_checkable
class DescribesArguments(Protocol):
    """The operations of a provider with typed arguments."""

    def arguments(self, identifier: int) -> Sequence[Argument] | None:
        """dtps_getargdesc: args[0], args[1], ...; None: it has none."""
        ...

    def argument(self, firing: Firing, index: int) -> int:
        """dtps_getargval: arg0, arg1, ... of a firing, extended to 64 bits by the signs of their types. Raises `Fault`
        if the value cannot be read."""
        ...


@runtime_checkable
class ExplainsMisses(Protocol):
    """The operation of a provider that knows why it has not made a probe."""

    def why_not(self, wanted: ProbeName) -> str:
        """Why there is no such probe; empty if that is not known."""
        ...


_REQUIRED: Final = ("provide", "enable", "disable", "destroy")
_OPTIONAL: Final = ("arguments", "argument")


class Probes:
    """The probes of one provider, and the only way to create more; in DTrace a dtrace_provider_id_t."""

    def __init__(self, provider: str, take: Callable[[int], int], created: Callable[[Identifiers], None]) -> None:
        """Called by the framework. `take` reserves identifiers; `created` is called for new probes."""
        self._provider = provider
        self._take = take
        self._created = created
        self._table = ProbeTable(provider)
        self._blocks: list[ProbeBlock] = []

    def create(self, module: str, function: str, name: str) -> int:
        """dtrace_probe_create: create a probe and return its identifier.

        Raises:
            ProviderError: no description could name the probe: a field is too long or contains pattern characters.
        """
        for kind, text in (("module", module), ("function", function), ("name", name)):
            self._check(kind, text)
        identifier = self._take(1)
        self._table.add(identifier, module, function, name)
        self._created(np.array([identifier], np.intp))
        return identifier

    def add(self, block: ProbeBlock) -> None:
        """Add many probes at once. They already have identifiers: reserved ones, or the image's."""
        self._blocks.append(block)
        self._created(block.identifiers)

    def reserve(self, count: int) -> int:
        """Reserve `count` identifiers for `add`, and return the first."""
        return self._take(count)

    def lookup(self, module: str, function: str, name: str) -> int | None:
        """dtrace_probe_lookup: the probe that was created with these fields; None if there is none."""
        return self._table.find(module, function, name)

    def discard(self, identifiers: Identifiers) -> None:
        """Remove probes that were created one by one."""
        self._table.discard(identifiers)

    @property
    def created(self) -> Identifiers:
        """The probes that were created one by one."""
        return self._table.identifiers

    def match(self, pattern: ProbeName) -> Identifiers:
        """The probes that `pattern` matches, ascending."""
        found = [block.match(pattern) for block in (self._table, *self._blocks)]
        return np.sort(np.concatenate(found)) if len(found) > 1 else found[0]

    def probe(self, identifier: int) -> Probe | None:
        """The probe with this identifier; None if it is not this provider's."""
        for block in (self._table, *self._blocks):
            if (found := block.probe(identifier)) is not None:
                return found
        return None

    def holding(self, identifiers: Identifiers) -> Identifiers:
        """Those of `identifiers` that are probes of this provider."""
        masks = [_is_in(identifiers, block.identifiers) for block in (self._table, *self._blocks)]
        return identifiers[np.logical_or.reduce(masks)]

    def _check(self, kind: str, text: str) -> None:
        if len(text) >= _LONGEST[kind] and kind == "name":
            raise ProviderError(f"{self._provider}: probe {text!r}: its name is longer than {_LONGEST[kind] - 1}")
        forbidden = _FORBIDDEN - {"/"} if kind == "module" else _FORBIDDEN  # a program's path
        if not forbidden.isdisjoint(text) or any(letter.isspace() or not letter.isprintable() for letter in text):
            raise ProviderError(f"{self._provider}: probe {text!r}: its {kind} cannot be written in a description")


def _is_in(wanted: Identifiers, known: Identifiers) -> NDArray[np.bool_]:
    """For each of `wanted`, whether it is in `known`, which ascends."""
    if not len(known):
        return np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == wanted
    return found


@dataclass(slots=True)
class _Registered:
    provider: Provider
    probes: Probes
    settled: Identifiers = field(default_factory=lambda: np.zeros(0, np.intp))  # created when it registered
    enabled: Identifiers = field(default_factory=lambda: np.zeros(0, np.intp))


class Providers:
    """The providers of a session, in the order in which they registered, and all their probes."""

    def __init__(self, providers: Sequence[Provider] = ()) -> None:
        """Register `providers`. The dtrace provider comes first: its probes are 1, 2 and 3."""
        self._registered: list[_Registered] = []
        self._next = 1
        self._providing = 0
        self._on_create: list[Callable[[Identifiers], None]] = []
        for provider in providers:
            self.register(provider)

    def __iter__(self) -> Iterator[Provider]:
        return iter([one.provider for one in self._registered])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the providers, each once."""
        return tuple(dict.fromkeys(one.provider.registration.name for one in self._registered))

    # -- registration -------------------------------------------------------------------------------------------------

    def register(self, provider: Provider) -> Probes:
        """dtrace_register: add a provider and let it create its probes.

        Raises:
            ProviderError: its name or its combination of operations cannot work.
        """
        check_operations(provider)
        _check_registration(provider.registration)
        fixed = iter(provider.registration.identifiers)
        probes = Probes(provider.registration.name, lambda count: self._take(count, fixed), self._notify)
        one = _Registered(provider, probes)
        self._registered.append(one)
        self._provide(one, None)
        one.settled = probes.created
        return probes

    def unregister(self, provider: Provider) -> None:
        """dtrace_unregister: destroy a provider's probes and forget it.

        Raises:
            ProviderError: some of its probes are enabled.
        """
        one = self._entry(provider)
        name = provider.registration.name
        if len(one.enabled):
            raise ProviderError(f"provider {name}: cannot unregister: {len(one.enabled)} of its probes are enabled")
        provider.destroy(one.probes.match(ProbeName(name, "", "", "")))
        self._registered.remove(one)

    def close(self) -> None:
        """End the run: disable everything, and unregister every provider, which releases what it has."""
        self.disable(self.enabled)
        for provider in list(self):
            self.unregister(provider)

    def _entry(self, provider: Provider) -> _Registered:
        for one in self._registered:
            if one.provider is provider:
                return one
        raise ProviderError(f"provider {provider.registration.name}: is not registered")

    def _take(self, count: int, fixed: Iterator[int]) -> int:
        own = next(fixed, None) if count == 1 else None
        if own is not None:
            return own
        first = self._next
        self._next += count
        return first

    def skip_to(self, identifier: int) -> None:
        """Give new probes no identifiers below this one: those belong to the image's probes."""
        self._next = max(self._next, identifier)

    def _provide(self, one: _Registered, wanted: ProbeName | None) -> None:
        self._providing += 1
        try:
            one.provider.provide(one.probes, wanted)
        finally:
            self._providing -= 1

    def _notify(self, identifiers: Identifiers) -> None:
        if not self._providing:  # else they are part of the result of the `match` that asked for them
            for callback in self._on_create:
                callback(identifiers)

    def on_create(self, callback: Callable[[Identifiers], None]) -> None:
        """Call `callback` for probes that a provider creates by itself, for example while the guest runs: a description
        of the program may match them. Probes that `match` creates are part of its result instead."""
        self._on_create.append(callback)

    # -- finding ------------------------------------------------------------------------------------------------------

    def match(self, pattern: ProbeName) -> Identifiers:
        """All probes that `pattern` matches, ascending. Probes on demand are created now (dtrace_probe_provide)."""
        chosen = [one for one in self._registered if _is_named_by(one.provider.registration, pattern)]
        for one in chosen:
            self._provide(one, pattern)
        found = [one.probes.match(pattern) for one in chosen]
        return np.sort(np.concatenate([np.zeros(0, np.intp), *found]))

    def described(self, text: str) -> Identifiers:
        """The probes of a description in text: up to four fields, or the identifier of a probe (`-i 5`).

        Raises:
            ProbeNameError: the text is no description.
        """
        if text.isascii() and text.isdigit():
            known = len(text) < 19 and self.probe(int(text)) is not None
            return np.array([int(text)] if known else [], np.intp)
        return self.match(parse_probe_name(text, providers=self.names))

    def probe(self, identifier: int) -> Probe | None:
        """The probe with this identifier; None if there is none."""
        found = self._owner(identifier)
        return None if found is None else found[1]

    def is_settled(self, identifier: int) -> bool:
        """Whether a probe has this identifier in every run. Probes that are created on demand or while the guest runs
        take the next free one."""
        found = self._owner(identifier)
        if found is None:
            return False
        created, settled = found[0].probes.created, found[0].settled
        return identifier in settled or identifier not in created

    def _owner(self, identifier: int) -> tuple[_Registered, Probe] | None:
        for one in self._registered:
            probe = one.probes.probe(identifier)
            if probe is not None:
                return one, probe
        return None

    # -- enabling -----------------------------------------------------------------------------------------------------

    def enable(self, wanted: Identifiers | ProbeName, action: Action) -> int:
        """Enable probes with `action`; returns how many there are. A probe has one action: enabling it again replaces
        it."""
        identifiers = self.match(wanted) if isinstance(wanted, ProbeName) else unique(wanted)
        for one in self._registered:
            own = one.probes.holding(identifiers)
            if len(own):
                one.provider.enable(own, action)
                one.enabled = union(one.enabled, own)
        return len(identifiers)

    def disable(self, identifiers: Identifiers) -> None:
        """Disable probes. Those that are not enabled are ignored."""
        identifiers = unique(identifiers)
        for one in self._registered:
            own = identifiers[_is_in(identifiers, one.enabled)]
            if len(own):
                one.provider.disable(own)
                one.enabled = np.setdiff1d(one.enabled, own, assume_unique=True)

    @property
    def enabled(self) -> Identifiers:
        """All enabled probes, ascending."""
        return np.sort(np.concatenate([np.zeros(0, np.intp), *(one.enabled for one in self._registered)]))

    # -- describing ---------------------------------------------------------------------------------------------------

    def arguments(self, identifier: int) -> tuple[Argument, ...] | None:
        """args[0], args[1], ... of a probe; None if there are none or they are not known."""
        found = self._owner(identifier)
        if found is None or not isinstance(found[0].provider, DescribesArguments):
            return None
        arguments = found[0].provider.arguments(identifier)
        return None if arguments is None else tuple(arguments)

    def argument_types(self, identifier: int) -> tuple[str | CType, ...] | None:
        """The types of args[0], args[1], ... as D programs see them: C text, or the type itself."""
        arguments = self.arguments(identifier)
        return None if arguments is None else tuple(argument.type for argument in arguments)

    def attributes(self, identifier: int) -> ProviderAttributes | None:
        """The stability of the fields of a probe's name and of its arguments; None for an unknown probe."""
        found = self._owner(identifier)
        return None if found is None else found[0].provider.registration.attributes


def _is_named_by(registration: Registration, pattern: ProbeName) -> bool:
    return pattern.matches_provider(registration.name) or (pattern.provider or None) == registration.family


def _check_registration(registration: Registration) -> None:
    name = registration.name
    if not name or not _FORBIDDEN.isdisjoint(name) or any(one.isspace() or not one.isprintable() for one in name):
        raise ProviderError(f"provider {name!r}: its name cannot be written in a description")
    if len(name) > 63:
        raise ProviderError(f"provider {name!r}: its name is longer than 63")
    privilege = registration.privilege
    if Privilege.KERNEL in privilege and privilege & (Privilege.USER | Privilege.OWNER | Privilege.ZONEOWNER):
        raise ProviderError(
            f"provider {name}: privileges {privilege} need the operation usermode, which is not supported: a guest has "
            "one owner"
        )


def check_operations(provider: Provider) -> None:
    """Raise ProviderError for a provider that lacks operations which the framework calls."""
    name = getattr(getattr(provider, "registration", None), "name", None) or type(provider).__name__
    missing = [one for one in _REQUIRED if not callable(getattr(provider, one, None))]
    if missing or not isinstance(getattr(provider, "registration", None), Registration):
        raise ProviderError(f"provider {name}: lacks {', '.join(missing or ['a Registration'])}")
    half = [one for one in _OPTIONAL if not callable(getattr(provider, one, None))]
    if len(half) == 1:
        raise ProviderError(f"provider {name}: lacks {half[0]}: types and values of arguments come together")

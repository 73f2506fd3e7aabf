"""Probe descriptions of a program -> probes of the session's providers, for the checker and for enabling."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.dlang.context import MatchedProbes
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.providers.plugged import OWN
from kinst.runtime.providers.profile import refusal
from kinst.runtime.providers.provider import Action, ExplainsMisses, Providers
from kinst.runtime.tracing.programs.bpftrace_names import bpftrace_name
from kinst.targets.c_types import CType
from kinst.targets.errors import ProbeNameError
from kinst.targets.nearest import nearest
from kinst.targets.probe import IN_PROGRAMS, WATCHING, ProbeName, matcher, parse_probe_name
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.tracing.programs.inline_clauses import InlineClauses

_MOST_TYPED = 256  # the most probes of a description whose argument types are compared; more are assumed to differ
_UNTYPED: Mapping[tuple[str, tuple[CType, ...] | None], str] = {  # a provider, its args[] -> why there are none
    ("fbt", None): "no debug information tells the types of these arguments; arg0, arg1, ... are numbers",
    ("kinst", ()): "an instruction has no arguments; regs[] has the registers",
}
_WITHOUT_FUNCTION = ("BEGIN", "END", "ERROR", "profile-", "tick-")  # names that stand alone


@dataclass(frozen=True, slots=True)
class _Found:
    """What a description matches."""

    name: ProbeName
    probes: NDArray[np.intp]  # their identifiers

    @property
    def fields(self) -> str:
        """All four fields, as messages show them."""
        return str(self.name)


class Matching:
    """Matches descriptions; implements `kinst.runtime.dlang.context.ProbeLookup`."""

    def __init__(
        self,
        providers: Providers,
        options: Options,
        why: Callable[[str], str],
        resolve: Callable[[str | CType], CType | None],
        inlines: "InlineClauses | None" = None,
        others: Sequence[str] = (),
    ) -> None:
        """Match against what is registered now.

        Args:
            providers: of the session.
            options: zdefs permits descriptions that match nothing.
            why: gives the reason why a description, by its four fields or as an identifier, patched nothing.
            resolve: finds a C type by its text.
            inlines: what descriptions of inlined copies mean.
            others: providers that the image may have, but that have no probes in this run.
        """
        self._providers = providers
        self._options = options
        self._why = why
        self._resolve = resolve
        self._inlines = inlines
        self._others = others
        self._known: dict[str, _Found] = {}

    def match(self, description: str) -> MatchedProbes:
        """The probes that a description matches. Raises DError."""
        found = self._found(description)
        count = len(found.probes)
        if not count and not self._options.is_on("zdefs"):
            raise DError("D_PDESC_ZERO", self._nothing(description, found.fields))
        if self._inlines is None or found.name not in self._inlines:
            arguments, is_mixed = self._arguments(found.probes)
            why = "" if arguments else self._why_untyped(found.probes, arguments)
            translated = partial(self._translated, found.probes)
            return MatchedProbes(found.fields, count, arguments, is_mixed, why, translated)
        arguments, is_mixed = self._inlines.types(found.name, self._types_of, _are_same)
        return MatchedProbes(found.fields, count, arguments, is_mixed, self._inlines.obstacle(found.name))

    def probes(self, description: str) -> tuple[str, NDArray[np.intp]]:
        """The description with all four fields, and the identifiers of its probes."""
        found = self._found(description)
        return found.fields, found.probes

    def wrapped(self, description: str, run: Action) -> Action:
        """The action of a clause with this description, which may mean inlined copies."""
        name = self._found(description).name
        return run if self._inlines is None or name not in self._inlines else self._inlines.wrapped(name, run)

    def argument_types(self, identifier: int) -> Sequence[str | CType]:
        """The types of a probe's args[]. In an inlined copy they are the copy's, which the provider does not know."""
        inlined = () if self._inlines is None else self._inlines.argument_types.get(identifier, ())
        return inlined or self._providers.argument_types(identifier) or ()

    def concrete(self, description: str) -> list[str]:
        """What a description stands for, as -d shows it: itself, or the probes of inlined copies."""
        name = self._found(description).name
        return [description] if self._inlines is None or name not in self._inlines else self._inlines.concrete(name)

    def pattern(self, description: str) -> ProbeName | None:
        """The pattern that new probes are compared with; None for an identifier."""
        return None if description.isdigit() else self._parsed(description)

    def _found(self, description: str) -> _Found:
        found = self._known.get(description)
        if found is None:
            found = self._known[description] = self._look_up(description)
        return found

    def _look_up(self, description: str) -> _Found:
        if description.isdigit():
            return self._identified(description)
        name = self._parsed(description)
        if name is None:
            return _Found(ProbeName(*_four_fields(description).split(":")), np.zeros(0, np.intp))
        if self._inlines is not None and name in self._inlines:
            return _Found(name, self._inlines.probes(name))
        return _Found(name, self._providers.match(name))

    def _identified(self, description: str) -> _Found:
        probe = self._providers.probe(int(description))
        if probe is None:
            reason = self._why(description)
            why = f"Unknown probe identifier{reason and ': '}{reason}"
        elif not self._providers.is_settled(probe.identifier):
            why = f"{probe} is created on demand, and its identifier may be another probe's next time: name the probe"
        else:
            name = ProbeName(probe.provider, probe.module, probe.function, probe.name)
            return _Found(name, np.array([probe.identifier], np.intp))
        raise DError("D_PDESC_INVAL", f'invalid probe description "{description}": {why}')

    def _parsed(self, description: str) -> ProbeName | None:
        """The description as a probe name; None if the provider is unknown, which is not an error by itself.

        Raises:
            DError: D_PDESC_INVAL.
        """
        if description.count(":") > 3:
            why = "Overspecified probe description"
            raise DError("D_PDESC_INVAL", f'invalid probe description "{description}": {why}')
        provider = _four_fields(description).split(":")[0]
        try:
            return parse_probe_name(description, providers={*self._providers.names, provider})
        except ProbeNameError as error:
            why = str(error).removeprefix(f"{description}: ")
            raise DError("D_PDESC_INVAL", f'invalid probe description "{description}": {why}') from error

    def _nothing(self, description: str, fields: str) -> str:
        reason = self.reason(fields)
        return f"probe description {fields or description} does not match any probes{reason and ': '}{reason}"

    def reason(self, fields: str) -> str:
        """Why a description matches nothing; empty if there is no known reason."""
        provider, name = fields.split(":")[0], fields.split(":")[-1]
        # The most specific reason counts: a suggestion by spelling only where nothing is known about the description.
        reason = _no_machine(provider, self._providers.names)
        reason = reason or (bpftrace_name(fields) if provider not in self._providers.names else "")
        reason = reason or self._explained(fields)
        reason = reason or self._why(fields) or refusal(name) or self._lacking(provider)
        names = {*self._providers.names, *self._others}
        if not reason and not any(map(matcher(provider), names)):
            near = difflib.get_close_matches(provider, sorted(names), 1)
            known = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(names))}"
            reason = f"no provider '{provider}': {known}"
        if not reason and fields.strip(":") == name:
            reason = nearest(name, _WITHOUT_FUNCTION).removeprefix("; ")
            reason = reason or f"a word alone is the name of a probe; those of a function {name} are {name}:"
        return reason

    def _explained(self, fields: str) -> str:
        """Why the provider that is named has not made such a probe; empty if it does not say."""
        wanted = ProbeName(*fields.split(":"))
        named = [one for one in self._providers if one.registration.name == wanted.provider]
        return next(filter(None, (one.why_not(wanted) for one in named if isinstance(one, ExplainsMisses))), "")

    def _lacking(self, provider: str) -> str:
        """Why a registered provider has no probes at all: the image lacks what it makes them from. Empty: it has some,
        or this is not the reason."""
        for one in self._providers:
            known = one.registration
            if (
                known.name == provider
                and known.needs
                and not len(self._providers.match(ProbeName(provider, "", "", "")))
            ):
                return f"provider {provider} has no probes here: it needs {known.needs}"
        return ""

    def _arguments(self, identifiers: NDArray[np.intp]) -> tuple[tuple[CType, ...] | None, bool]:
        """The argument types that all these probes share, and whether they differ. As in libdtrace, args[] of a clause
        is typed only if all its probes agree; otherwise it is D_ARGS_MULTI."""
        if not len(identifiers) or len(identifiers) > _MOST_TYPED:
            return None, len(identifiers) > 1
        first = self._providers.argument_types(int(identifiers[0]))
        for identifier in identifiers[1:].tolist():
            if self._providers.argument_types(identifier) != first:
                return None, True
        return self._types_of(int(identifiers[0])), False

    def _why_untyped(self, identifiers: NDArray[np.intp], types: tuple[CType, ...] | None) -> str:
        """Why the first of these probes has no argument types; empty if there is no particular reason."""
        probe = self._providers.probe(int(identifiers[0])) if len(identifiers) else None
        return "" if probe is None else _UNTYPED.get((probe.provider, types), "")

    def _translated(self, identifiers: NDArray[np.intp], number: int) -> str:
        """What an argument is shown as: the name of a struct, or an empty text."""
        arguments = (self._providers.arguments(int(identifiers[0])) if len(identifiers) else None) or ()
        shown = arguments[number].translated if number < len(arguments) else None
        return shown.removesuffix(" *") if isinstance(shown, str) else ""

    def _types_of(self, identifier: int) -> tuple[CType, ...] | None:
        """The argument types of one probe."""
        arguments = self._providers.arguments(identifier)
        if arguments is None:
            return None
        types = []
        for argument in arguments:
            found = self._resolve(argument.native)
            if found is None:
                break  # after an unknown type, no further types are given
            types.append(found)
        return tuple(types)


def _no_machine(provider: str, names: Sequence[str]) -> str:
    """Why a provider that watches a machine is not there; empty if it is, or is none."""
    if provider in IN_PROGRAMS and provider not in names:
        return f"provider {provider} is for Linux that boots in kinst-run's own machine, with --initrd or --user"
    if provider in OWN and provider not in names:
        return f"provider {provider} is for Linux that boots in kinst-run's own machine, with breakpoints"
    if provider not in WATCHING or provider in names:
        return ""
    return f"provider {provider} watches the machine of kinst-run with an image that boots in it, and no other"


def _are_same(first: CType, second: CType) -> bool:
    """Whether types are the same. They are compared by spelling: each unit of debug information has its own structs."""
    return first == second or describe(first) == describe(second)


def _four_fields(description: str) -> str:
    """A description with four fields: missing ones are added as empty fields on the left."""
    return ":" * max(0, 3 - description.count(":")) + description

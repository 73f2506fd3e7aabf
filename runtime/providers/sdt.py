"""sdt: static probes, which the authors of an image put into its code. Each of them names its provider.

args[] have the types that the image declares, or else the size and sign that the probe's record gives. arg0, arg1, ...
are read from the operands in the record. For FreeBSD's kind of probe, and for Linux' tracepoints, they are the
arguments of the function that the probe calls; a tracepoint's types are those of that function in the kernel's types.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kinst.runtime.patched.sites import Argument, SiteTable
from kinst.runtime.patched.static_gates import place_at
from kinst.runtime.providers import provider
from kinst.runtime.providers.fbt import Prototype, argument_at_entry
from kinst.runtime.providers.operands import FindSymbol, Operands
from kinst.runtime.providers.probe_table import Identifiers, ProbeTable
from kinst.runtime.providers.provider import Action, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.manifest.packed import ProbeKind
from kinst.targets.probe import ProbeName
from kinst.targets.static_probes import PlaceKind
from kinst.targets.tracepoints import FUNCTION

ATTRIBUTES: Final = ProviderAttributes(EVOLVING, PRIVATE, PRIVATE, EVOLVING, EVOLVING)


def sdt_providers(
    sites: SiteTable, arch: ArchFacts, find: FindSymbol, prototype: Prototype = lambda _name, _module: None
) -> list["SdtProvider"]:
    """The providers of a patched image's static probes, in the order of their probes in the image.

    Args:
        sites: the image's sites.
        arch: the image's machine.
        find: gives the run-time address of a symbol, since operands may name symbols.
        prototype: gives the types of functions that tracepoints call.
    """
    operands = Operands(arch, find)
    static, offsets = sites.manifest.static, sites.manifest.probes["offset"]
    given = argument_at_entry(arch)

    def called(firing: Firing, index: int) -> int:
        return given(firing, index + 1)  # the first is the probe's id, or the tracer's own data

    def arguments_at(row: int, address: int) -> Argument:
        place = place_at(static[int(offsets[row])], address)
        return called if place.kind in (PlaceKind.CALL, PlaceKind.BLOCK) else operands.compile(place.operands)

    sites.arguments[int(ProbeKind.SDT)] = arguments_at
    rows = np.flatnonzero(sites.manifest.probes["kind"] == ProbeKind.SDT)
    names = dict.fromkeys(static[int(offset)].provider for offset in offsets[rows])
    return [SdtProvider(name, sites, prototype) for name in names]


class SdtProvider:
    """The static probes of one provider name; implements `kinst.runtime.providers.provider.Provider`."""

    def __init__(self, name: str, sites: SiteTable, prototype: Prototype) -> None:
        """Made by `sdt_providers`, which also connects the sites with the arguments of their probes."""
        self._prototype = prototype
        self.registration = Registration(name, ATTRIBUTES, family="sdt")
        self._sites = sites

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create all of them when it registers: they are in the image."""
        if wanted is not None:
            return
        name, manifest = self.registration.name, self._sites.manifest
        table = ProbeTable(name, manifest.module)
        rows = np.flatnonzero(manifest.probes["kind"] == ProbeKind.SDT)
        for row in rows[np.argsort(self._sites.identifiers[rows])].tolist():
            fields = manifest.probe_fields(row)
            if fields[0] == name:
                table.add(int(self._sites.identifiers[row]), *fields[1:])
        probes.add(table)

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Enable probes with `action`."""
        self._sites.enable(self._sites.rows_of(identifiers), action)

    def disable(self, identifiers: Identifiers) -> None:
        """Disable probes."""
        self._sites.disable(self._sites.rows_of(identifiers))

    def destroy(self, identifiers: Identifiers) -> None:
        """Do nothing: sites stay in the manifest."""

    def arguments(self, identifier: int) -> Sequence[provider.Argument]:
        """args[] with the types that the image declares, or else types by size and sign; for a tracepoint the
        parameters of the function that it calls, except the first."""
        manifest = self._sites.manifest
        row = self._sites.rows_of(np.array([identifier]))[0]
        static = manifest.static[int(manifest.probes["offset"][row])]
        if static.callees is not None:
            function = self._prototype(f"{FUNCTION}{static.name}", "")
            return () if function is None else tuple(map(provider.Argument, (function.parameters or ())[1:]))
        return tuple(provider.Argument(text) for text in static.types)

    def argument(self, firing: Firing, index: int) -> int:
        """arg0, arg1, ... read from the site's operands."""
        return firing.enabling.argument(firing, index)

"""sdt: static probes, which the authors of an image have put into its code. Each names its own provider.

args[] have the types that the image declares, or else the size and the sign that its record gives them; arg0, arg1, ...
are read where the record says they are, or are those of the function that FreeBSD's kind of probe calls.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kinst.runtime.patched.sites import Argument, SiteTable
from kinst.runtime.patched.static_gates import place_at
from kinst.runtime.providers import provider
from kinst.runtime.providers.fbt import argument_at_entry
from kinst.runtime.providers.operands import FindSymbol, Operands
from kinst.runtime.providers.probe_table import Identifiers, ProbeTable
from kinst.runtime.providers.provider import Action, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.manifest import ProbeKind
from kinst.targets.probe import ProbeName
from kinst.targets.static_probes import PlaceKind

ATTRIBUTES: Final = ProviderAttributes(EVOLVING, PRIVATE, PRIVATE, EVOLVING, EVOLVING)


def sdt_providers(sites: SiteTable, arch: ArchFacts, find: FindSymbol) -> list["SdtProvider"]:
    """The providers of the static probes of a patched image, in the order in which their probes stand there.

    Args:
        sites: of the image.
        arch: its machine.
        find: run-time addresses of symbols, which operands may name.
    """
    operands = Operands(arch, find)
    static, offsets = sites.manifest.static, sites.manifest.probes["offset"]
    given = argument_at_entry(arch)

    def called(firing: Firing, index: int) -> int:
        return given(firing, index + 1)  # the probe's id comes first

    def arguments_at(row: int, address: int) -> Argument:
        place = place_at(static[int(offsets[row])], address)
        return called if place.kind is PlaceKind.CALL else operands.compile(place.operands)

    sites.arguments[int(ProbeKind.SDT)] = arguments_at
    rows = np.flatnonzero(sites.manifest.probes["kind"] == ProbeKind.SDT)
    names = dict.fromkeys(static[int(offset)].provider for offset in offsets[rows])
    return [SdtProvider(name, sites) for name in names]


class SdtProvider:
    """See `kinst.runtime.providers.provider.Provider`: the static probes of one provider name."""

    def __init__(self, name: str, sites: SiteTable) -> None:
        """Use `sdt_providers`."""
        self.registration = Registration(name, ATTRIBUTES, family="sdt")
        self._sites = sites

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """All of them: they are in the image."""
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
        """Let probes do `action`."""
        self._sites.enable(self._sites.rows_of(identifiers), action)

    def disable(self, identifiers: Identifiers) -> None:
        """Let probes do nothing."""
        self._sites.disable(self._sites.rows_of(identifiers))

    def destroy(self, identifiers: Identifiers) -> None:
        """Sites stay in the manifest: there is nothing to let go of."""

    def arguments(self, identifier: int) -> Sequence[provider.Argument]:
        """As declared, or by size and sign."""
        manifest = self._sites.manifest
        row = self._sites.rows_of(np.array([identifier]))[0]
        static = manifest.static[int(manifest.probes["offset"][row])]
        return tuple(provider.Argument(text) for text in static.types)

    def argument(self, firing: Firing, index: int) -> int:
        """As the operands of the site say."""
        return firing.enabling.argument(firing, index)

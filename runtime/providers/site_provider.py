"""What kinst and fbt share: probes that are rows of a manifest and fire at patched instructions."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.hits.deciding import ArgumentRegisters
from kinst.runtime.patched.sites import ArgumentAt, SiteTable
from kinst.runtime.providers.probe_table import Identifiers, Probe
from kinst.runtime.providers.provider import Action, Argument, Probes, Registration
from kinst.runtime.trap.trap import Firing
from kinst.targets.manifest.packed import PROBE_FORM, Manifest, ProbeKind
from kinst.targets.probe import ProbeName, matching

Rows = NDArray[np.intp]
Described = Callable[[int], Sequence[Argument] | None]  # row of the manifest -> args[0], args[1], ...
_NAMED: Final = {kind: name for kind, (_, name) in PROBE_FORM.items() if name}


class SiteProvider:
    """A provider whose probes are sites of a manifest; implements `kinst.runtime.providers.provider.Provider`."""

    def __init__(
        self,
        registration: Registration,
        sites: SiteTable,
        values: Mapping[ProbeKind, ArgumentAt],
        described: Described,
        registers: Mapping[ProbeKind, ArgumentRegisters],
    ) -> None:
        """`values`: the provider's kinds of probes, and for each kind a function that gives arg0, arg1, ... at a
        site. `registers`: for each kind a function that gives the registers from which these are computed."""
        self.registration = registration
        self._sites = sites
        self._kinds = tuple(values)
        self._described = described
        for kind, value in values.items():
            sites.arguments[int(kind)] = value
            sites.argument_registers[int(kind)] = registers[kind]

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create all of them when it registers: they are in the image."""
        if wanted is None:
            probes.add(ManifestBlock(self.registration.name, self._sites, self._kinds))

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Enable probes with `action`."""
        self._sites.enable(self._sites.rows_of(identifiers), action)

    def disable(self, identifiers: Identifiers) -> None:
        """Disable probes."""
        self._sites.disable(self._sites.rows_of(identifiers))

    def destroy(self, identifiers: Identifiers) -> None:
        """Do nothing: sites stay in the manifest."""

    def arguments(self, identifier: int) -> Sequence[Argument] | None:
        """The types of args[]; None if they are not known."""
        return self._described(int(self._sites.rows_of(np.array([identifier]))[0]))

    def argument(self, firing: Firing, index: int) -> int:
        """arg0, arg1, ... at the site of the firing."""
        return firing.enabling.argument(firing, index)


class ManifestBlock:
    """The probes of some kinds in a manifest; implements `kinst.runtime.providers.probe_table.ProbeBlock`."""

    def __init__(self, provider: str, sites: SiteTable, kinds: Sequence[ProbeKind]) -> None:
        """The block of the probes of `kinds` in the manifest of `sites`."""
        self._provider = provider
        self._manifest, self._is_named = sites.manifest, sites.is_named
        rows = np.flatnonzero(np.isin(self._manifest.probes["kind"], [int(kind) for kind in kinds]))
        self._rows = rows[np.argsort(sites.identifiers[rows], kind="stable")]
        self.identifiers: Identifiers = sites.identifiers[self._rows].astype(np.intp)
        self._in_order = (
            self.identifiers.data
        )  # the same as numbers of Python, in which bisect is several times as fast
        self._identifier_of = sites.identifiers  # the identifier by row

    def match(self, pattern: ProbeName) -> Identifiers:
        """The probes that `pattern` matches, ascending."""
        if self._is_named and not pattern.names_module(self._manifest.module):
            return self.identifiers[:0]
        return self._identifier_of[matching_rows(self._manifest, self._rows, pattern)].astype(np.intp)

    def probe(self, identifier: int) -> Probe | None:
        """The probe with this identifier; None if it is not in this block."""
        at = bisect_left(self._in_order, identifier)
        if at >= len(self._rows) or self._in_order[at] != identifier:
            return None
        kind, function, offset = self._manifest.probes[self._rows[at]].tolist()
        name = PROBE_FORM[ProbeKind(kind)][1] or str(offset)
        return Probe(identifier, self._provider, self._manifest.module, self._manifest.function_name(function), name)


def matching_rows(manifest: Manifest, rows: Rows, pattern: ProbeName) -> Rows:
    """The rows among `rows` whose module, function and name match, in their order."""
    if not pattern.matches_image(manifest.module):
        return rows[:0]
    if pattern.address is not None:
        rows = rows[_is_at(manifest, rows, pattern.address)]
    elif pattern.function and pattern.function != "*":
        names = (manifest.function_name(row) for row in range(len(manifest.functions)))
        functions = manifest.probes["function"][rows]
        rows = rows[matching(pattern.function, names)[functions]]
    return rows[_has_name(manifest, rows, pattern)] if pattern.name and pattern.name != "*" else rows


def _is_at(manifest: Manifest, rows: Rows, address: int) -> NDArray[np.bool_]:
    """For each row, whether its function or its instruction is at the address: 0x... in the function field may be
    either."""
    probes = manifest.probes[rows]
    start = manifest.functions["address"][probes["function"]]
    found: NDArray[np.bool_] = (start == address) | (start + probes["offset"] == address)
    return found


def _has_name(manifest: Manifest, rows: Rows, pattern: ProbeName) -> NDArray[np.bool_]:
    kinds, offsets = manifest.probes["kind"][rows], manifest.probes["offset"][rows]
    found: NDArray[np.bool_] = np.isin(
        kinds, [int(kind) for kind, name in _NAMED.items() if pattern.matches_name(name)]
    )
    is_kinst = kinds == ProbeKind.KINST
    if pattern.offset is not None:
        found |= is_kinst & (offsets == pattern.offset)
        return found
    # A kinst probe is named by its offset. Millions of probes have far fewer different ones.
    unique, inverse = np.unique(offsets[is_kinst], return_inverse=True)
    found[is_kinst] = matching(pattern.name, map(str, unique.tolist()))[inverse]
    return found

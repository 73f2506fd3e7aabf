"""What kinst and FBT share: probes that are rows of a manifest and fire at patched instructions."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.providers.provider import Action, Probe
from kinst.runtime.sites import Argument, SiteTable
from kinst.targets.manifest import FIRST_PROBE_ID, PROBE_FORM, ProbeKind
from kinst.targets.probe import ProbeName, matching


class SiteProvider:
    """See `kinst.runtime.providers.provider.Provider`. The identifier of a probe is its row plus `FIRST_PROBE_ID`."""

    def __init__(self, name: str, sites: SiteTable, arguments: Mapping[ProbeKind, Argument]) -> None:
        """`arguments` says which kinds of probes are this provider's, and what arg0, arg1, ... are."""
        self.name = name
        self._sites = sites
        self._manifest = sites.manifest
        kinds = self._manifest.probes["kind"]
        self._rows = np.flatnonzero(np.isin(kinds, [int(kind) for kind in arguments]))
        for kind, argument in arguments.items():
            sites.arguments[int(kind)] = argument

    def match(self, pattern: ProbeName) -> NDArray[np.intp]:
        """Probes that `pattern` stands for."""
        if not pattern.matches_provider(self.name) or not pattern.matches_module(self._manifest.module):
            return np.zeros(0, np.intp)
        rows = self._rows
        functions = self._manifest.functions
        if pattern.address is not None:
            rows = rows[self._is_at(rows, pattern.address)]
        elif pattern.function:
            names = [self._manifest.function_name(row) for row in range(len(functions))]
            rows = rows[matching(pattern.function, names)[self._manifest.probes["function"][rows]]]
        return rows[self._has_name(rows, pattern)] + FIRST_PROBE_ID

    def _is_at(self, rows: NDArray[np.intp], address: int) -> NDArray[np.bool_]:
        """The function is at the address, or the instruction is (0x... in the function field means either)."""
        probes = self._manifest.probes[rows]
        start = self._manifest.functions["address"][probes["function"]]
        found: NDArray[np.bool_] = (start == address) | (start + probes["offset"] == address)
        return found

    def _has_name(self, rows: NDArray[np.intp], pattern: ProbeName) -> NDArray[np.bool_]:
        probes = self._manifest.probes[rows]
        if not pattern.name:
            return np.ones(len(rows), np.bool_)
        if pattern.offset is not None:
            return np.asarray((probes["kind"] == ProbeKind.KINST) & (probes["offset"] == pattern.offset))
        found, inverse = np.unique(np.stack([probes["kind"], probes["offset"]], 1), axis=0, return_inverse=True)
        names = [PROBE_FORM[ProbeKind(kind)][1] or str(offset) for kind, offset in found.tolist()]
        return matching(pattern.name, names)[inverse.ravel()]

    def probe(self, identifier: int) -> Probe | None:
        """The probe with this identifier."""
        row = identifier - FIRST_PROBE_ID
        at = int(np.searchsorted(self._rows, row))
        if at >= len(self._rows) or self._rows[at] != row:
            return None
        kind, function, offset = self._manifest.probes[row].tolist()
        name = PROBE_FORM[ProbeKind(kind)][1] or str(offset)
        return Probe(identifier, self.name, self._manifest.module, self._manifest.function_name(function), name)

    def enable(self, identifiers: NDArray[np.intp], action: Action) -> None:
        """Let probes do `action`."""
        self._sites.enable(identifiers - FIRST_PROBE_ID, action)

    def disable(self, identifiers: NDArray[np.intp]) -> None:
        """Let probes do nothing."""
        self._sites.disable(identifiers - FIRST_PROBE_ID)

    def argument_type(self, identifier: int, index: int) -> str | None:
        """kinst has no typed arguments; FBT's come with debug information."""
        return None

    def close(self) -> None:
        """Disable all."""
        self._sites.disable(self._rows)

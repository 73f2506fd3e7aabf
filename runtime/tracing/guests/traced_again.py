"""The probes of a guest that a debugger takes back: whether they allow that, and that they do not fire twice."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from kinst.runtime.providers.dtrace import BEGIN, END, ERROR
from kinst.runtime.providers.provider import Providers
from kinst.runtime.tracing.host.surroundings import Repeatable

if TYPE_CHECKING:
    from kinst.runtime.patched.sites import SiteTable

_OWN: Final = (BEGIN, END, ERROR)  # which depend on no instruction
# Of what is destructive, all that leaves the guest as it is: it happens once, when the guest first comes there.
_HARMLESS: Final = frozenset({"system", "breakpoint", "snapshot", "freopen", "ftruncate"})


class TracedProbes:
    """The probes of one guest."""

    def __init__(self, providers: Providers, sites: "SiteTable | None", warn: Callable[[str], None]) -> None:
        """Which are enabled is asked when it matters. `sites` are the image's; None: it has no breakpoints."""
        self._providers, self._sites, self._warn = providers, sites, warn
        self._traced: Repeatable | None = None

    def know(self, traced: Repeatable) -> None:
        """A run begins."""
        self._traced = traced

    def why_not(self) -> str | None:
        """Why the guest cannot do again what they have seen; None: it can."""
        for name in () if self._traced is None else self._traced.destructive:
            if name not in _HARMLESS:
                what = name if name.endswith("]") else f"{name}()"
                return f"there is no way back while {what} may have changed the guest: leave out its clause"
        known = np.array(_OWN) if self._sites is None else np.append(self._sites.identifiers, _OWN)
        for identifier in self._providers.enabled[~np.isin(self._providers.enabled, known)][:1].tolist():
            probe = self._providers.probe(identifier)
            return f"there is no way back while {probe} is enabled, which is no breakpoint in code of the image"
        return None

    def pause(self) -> None:
        """What comes until `go_on` was traced already."""
        if self._traced is not None:
            self._traced.pause()

    def go_on(self, *, is_another: bool) -> None:
        """What comes now was not. `is_another`: it is not what came in its place before."""
        if self._traced is not None:
            self._traced.go_on()
        if is_another and len(self._providers.enabled):
            self._warn("gdb: the guest was changed in its past: what probes have recorded of what came then stays")

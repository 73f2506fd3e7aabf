"""Probes of what the machine does -> enabled ones; the machine is watched while there are any."""

from collections.abc import Callable

from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action
from kinst.runtime.trap.trap import Enabling, Firing


class WatchingProvider:
    """What the providers share whose probes one watcher fires: a part of
    `kinst.runtime.providers.provider.Provider`."""

    def __init__(self, watch: Callable[[], None], unwatch: Callable[[], None]) -> None:
        """Nothing is enabled, and nothing watched. `watch` is called when the first probe is enabled, `unwatch` after
        the last: then it costs nothing again."""
        self._watch, self._unwatch = watch, unwatch
        self._enablings: dict[int, Enabling] = {}
        self._values: tuple[int, ...] = ()  # of what fires

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Enable probes."""
        if not self._enablings:
            self._watch()
        for identifier in identifiers.tolist():
            self._enablings[identifier] = Enabling(identifier, action, self.argument, 0)

    def disable(self, identifiers: Identifiers) -> None:
        """Disable probes."""
        for identifier in identifiers.tolist():
            self._enablings.pop(identifier, None)
        if not self._enablings:
            self._unwatch()

    def destroy(self, identifiers: Identifiers) -> None:
        """Do nothing: there is nothing to release."""

    def argument(self, firing: Firing, index: int) -> int:
        """A number of what fires."""
        return self._values[index] if index < len(self._values) else 0

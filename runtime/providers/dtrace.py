"""The dtrace provider: BEGIN and END, which the session fires itself, and ERROR. Registered first: ids 1, 2, 3."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.providers.provider import Action, Probe
from kinst.runtime.trap import Firing
from kinst.targets.probe import ProbeName

BEGIN, END, ERROR = 1, 2, 3
_NAMES: Final = {BEGIN: "BEGIN", END: "END", ERROR: "ERROR"}


class DtraceProvider:
    """See `kinst.runtime.providers.provider.Provider`."""

    name = "dtrace"

    def __init__(self) -> None:
        """Nothing is enabled."""
        self._actions: dict[int, Action] = {}

    def match(self, pattern: ProbeName) -> NDArray[np.intp]:
        """BEGIN, END and ERROR have no module and no function, so `:::` does not mean them."""
        found = [number for number, name in _NAMES.items() if pattern.matches(self.name, "", "", name)]
        return np.array(found, np.intp)

    def probe(self, identifier: int) -> Probe | None:
        """BEGIN, END or ERROR."""
        name = _NAMES.get(identifier)
        return None if name is None else Probe(identifier, self.name, "", "", name)

    def enable(self, identifiers: NDArray[np.intp], action: Action) -> None:
        """Let probes do `action`."""
        self._actions.update(dict.fromkeys(identifiers.tolist(), action))

    def disable(self, identifiers: NDArray[np.intp]) -> None:
        """Let probes do nothing."""
        for identifier in identifiers.tolist():
            self._actions.pop(identifier, None)

    def fire(self, identifier: int, firing: Firing) -> None:
        """BEGIN before the machine runs, END after it."""
        action = self._actions.get(identifier)
        if action is not None:
            action(firing)

    def argument_type(self, identifier: int, index: int) -> str | None:
        """None has arguments yet."""
        return None

    def close(self) -> None:
        """Disable all."""
        self._actions.clear()

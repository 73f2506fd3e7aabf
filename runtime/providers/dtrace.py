"""The dtrace provider: BEGIN, END and ERROR, which the session fires. It registers first, so they are 1, 2 and 3."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Probes, Registration
from kinst.runtime.providers.stability import PRIVATE, STABLE, ProviderAttributes
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.probe import ProbeName

BEGIN, END, ERROR = 1, 2, 3
TRACER_THREAD: Final = -1  # Firing.thread of BEGIN and END, which is no thread of the guest
_NAMES: Final = ("BEGIN", "END", "ERROR")


def _no_arguments(_index: int) -> int:
    return 0


class DtraceProvider:
    """The provider `dtrace`; implements `kinst.runtime.providers.provider.Provider`."""

    registration = Registration("dtrace", ProviderAttributes(STABLE, PRIVATE, PRIVATE, STABLE, STABLE))

    def __init__(self) -> None:
        """Nothing is enabled."""
        self._actions: dict[int, Action] = {}

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create the three probes. They have no module and no function, so `:::` does not match them."""
        if wanted is None:
            for name in _NAMES:
                probes.create("", "", name)

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Enable probes with `action`."""
        self._actions.update(dict.fromkeys(identifiers.tolist(), action))

    def disable(self, identifiers: Identifiers) -> None:
        """Disable probes."""
        for identifier in identifiers.tolist():
            self._actions.pop(identifier, None)

    def destroy(self, identifiers: Identifiers) -> None:
        """Do nothing: there is nothing to release."""

    def fire(self, identifier: int, firing: Firing, arguments: Callable[[int], int] = _no_arguments) -> None:
        """Fire BEGIN before the machine runs, END after it, or ERROR when a clause was aborted.

        Args:
            identifier: BEGIN, END or ERROR.
            firing: the state of a CPU, with the thread `TRACER_THREAD`. For ERROR it is a separate object with the
            thread of the firing that was aborted, as in the kernel's dtrace_probe_error.
            arguments: arg0, arg1, ... For ERROR, arg1 is the epid of the clause, arg2 the number of its action, arg3
            the DIF offset (-1: unknown), arg4 the kind of the fault and arg5 its value.
        """
        action = self._actions.get(identifier)
        if action is not None:
            firing.fire(Enabling(identifier, action, lambda _firing, index: arguments(index), 0))

    def match(self, pattern: ProbeName) -> list[int]:
        """The identifiers of the probes that `pattern` matches."""
        found = [pattern.matches("dtrace", "", "", name) for name in _NAMES]
        return [number for number, is_matched in enumerate(found, BEGIN) if is_matched]

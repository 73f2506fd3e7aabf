"""A guest that a debugger may take back: implements `kinst.runtime.debugger.history.Rewindable`."""

from typing import TYPE_CHECKING

from kinst.runtime.machine.configuration import ClockKind
from kinst.runtime.machine.system import System
from kinst.runtime.providers.provider import Providers
from kinst.runtime.tracing.guests.snapshotting import GuestSnapshots
from kinst.runtime.tracing.images.preparing import Prepared

if TYPE_CHECKING:
    from kinst.runtime.machine.snapshots.snapshot import Snapshot


class Rewinding:
    """One guest's snapshots, and whether what comes after them can be done again."""

    def __init__(self, prepared: Prepared, system: System, snapshots: GuestSnapshots, providers: Providers) -> None:
        """Nothing is copied yet. Whether probes are enabled is asked when it matters."""
        self._prepared, self._system, self._snapshots, self._providers = prepared, system, snapshots, providers

    def why_not(self) -> str | None:
        """Why the guest cannot go back; None: it can."""
        request = self._prepared.request
        if self._system.clock_kind is not ClockKind.ICOUNT:
            return "there is no way back with the host's clock: use --clock icount"
        if len(self._providers.enabled) or request.actions:
            return "there is no way back while probes are enabled, which would fire again: leave out the D program"
        if request.log is not None or request.learn is not None:
            return "there is no way back with --log and --learn, which would tell everything again"
        if self._prepared.beside:
            return "there is no way back with images of --load and --stage: start without them"
        return self._snapshots.why_not()

    def take(self) -> "Snapshot":
        """The guest as it is. Raises MachineError: not at the moment."""
        return self._snapshots.take()

    def restore(self, snapshot: "Snapshot") -> None:
        """Return to it, between two runs."""
        self._snapshots.restore(snapshot)

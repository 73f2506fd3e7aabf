"""A guest that a debugger may take back: implements `kinst.runtime.debugger.history.Rewindable`."""

from typing import TYPE_CHECKING

from kinst.runtime.machine.configuration import ClockKind
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.guests.snapshotting import GuestSnapshots
from kinst.runtime.tracing.guests.traced_again import TracedProbes
from kinst.runtime.tracing.host.surroundings import Repeatable
from kinst.runtime.tracing.images.preparing import Prepared

if TYPE_CHECKING:
    from kinst.runtime.machine.snapshots.snapshot import Snapshot


class Rewinding:
    """One guest's snapshots, and whether what comes after them can be done again."""

    def __init__(self, prepared: Prepared, system: System, snapshots: GuestSnapshots, probes: TracedProbes) -> None:
        """Nothing is copied yet."""
        self._prepared, self._system, self._snapshots, self._probes = prepared, system, snapshots, probes

    def know(self, traced: Repeatable) -> None:
        """A run begins, which is traced."""
        self._probes.know(traced)

    def why_not(self) -> str | None:
        """Why the guest cannot go back; None: it can."""
        request = self._prepared.request
        if self._system.clock_kind is not ClockKind.ICOUNT:
            return "there is no way back with the host's clock: use --clock icount"
        if request.actions:
            return "there is no way back with actions in Python, --snapshot-at and --shell: leave them out"
        if request.records_hits or request.records_tasks:
            return "there is no way back with an output that has all hits in the order of time: leave out --report"
        if self._prepared.modules or self._prepared.loading:
            return "there is no way back with probes in modules: leave them out"
        if request.log is not None or request.learn is not None:
            return "there is no way back with --log and --learn, which would tell everything again"
        if self._prepared.beside:
            return "there is no way back with images of --load and --stage: start without them"
        return self._probes.why_not() or self._snapshots.why_not()

    def take(self) -> "Snapshot":
        """The guest as it is. Raises MachineError: not at the moment."""
        return self._snapshots.take()

    def pause(self) -> None:
        """What the guest does until `go_on` was traced already."""
        self._probes.pause()

    def go_on(self, *, is_another: bool) -> None:
        """What it does now was not; `is_another`: it is not what came then."""
        self._probes.go_on(is_another=is_another)

    def restore(self, snapshot: "Snapshot") -> None:
        """Return to it, between two runs."""
        self._snapshots.restore(snapshot)

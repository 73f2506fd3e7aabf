"""A probe of --snapshot-at fires -> the file of a snapshot, the first time."""

from collections.abc import Callable
from pathlib import Path

from kinst.runtime.tracing.hits import Hit
from kinst.runtime.tracing.host.contract import Snapshotted


class SnapshotAt:
    """The action of one probe description."""

    def __init__(self, path: Path) -> None:
        """`path`: of the file."""
        self.path = path
        self._ask: Callable[[Path], None] | None = None
        self.is_done = False  # whether it has fired

    def attach(self, guest: Snapshotted) -> None:
        """Know the guest, which is made after the action. Raises KinstError: it can have no snapshots."""
        guest.check()
        self._ask = guest.ask

    def __call__(self, _hit: Hit) -> None:
        """The probe fires. Raises KinstError: there can be no snapshot now, or the file cannot be written."""
        if not self.is_done and self._ask is not None:
            self.is_done = True
            self._ask(self.path)

"""snapshot() of a program -> the file of a snapshot, once for each name."""

from collections.abc import Iterable
from pathlib import Path

from kinst.runtime.dlang.program import Program, Snapshot
from kinst.runtime.tracing.host.contract import Snapshotted
from kinst.targets.errors import UsageError


class ProgramSnapshots:
    """The snapshots that the clauses of one run write."""

    def __init__(self, guest: Snapshotted | None) -> None:
        """None: there is no guest that has snapshots."""
        self._guest = guest
        self._written: set[bytes] = set()

    def check(self, programs: Iterable[Program]) -> None:
        """Raise KinstError if a clause writes a snapshot and there can be none."""
        clauses = (clause for program in programs for clause in program.clauses)
        wanting = next((one for one in clauses if any(isinstance(act, Snapshot) for act in one.actions)), None)
        if wanting is None:
            return
        if self._guest is None:
            raise UsageError(
                f"{wanting.description}: snapshot(): there are snapshots of our own machine only, with an image"
            )
        self._guest.check()

    def write(self, name: bytes) -> None:
        """A clause calls snapshot(). Raises KinstError: there can be none now, or the file cannot be written."""
        if name in self._written or self._guest is None:
            return
        if not name:
            raise UsageError("snapshot(): a file needs a name, and the one that it was given is empty")
        self._written.add(name)
        self._guest.ask(Path(name.decode(errors="surrogateescape")))

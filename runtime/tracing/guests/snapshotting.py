"""A guest -> snapshots of it: in a file, or in memory; and a guest that begins with one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kinst.runtime.machine.snapshots.state import cpu_contents
from kinst.runtime.patched.armed_memory import ArmedMemory, copies_of
from kinst.targets.errors import MachineError, UsageError

if TYPE_CHECKING:
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.snapshots.snapshot import Snapshot, Snapshots
    from kinst.runtime.machine.system import System
    from kinst.runtime.patched.sites import SiteTable
    from kinst.runtime.tracing.images.preparing import Prepared


class GuestSnapshots:
    """The snapshots of one guest. Nothing is imported for them before one is wanted."""

    def __init__(
        self,
        prepared: "Prepared",
        system: "System",
        loaded: "Loaded",
        sites: "SiteTable | None",
        warn: Callable[[str], None],
    ) -> None:
        """`sites` are the image's; None: it has no probes. `warn` is called with what a user should know of a start."""
        self._prepared, self._system, self._loaded, self._warn = prepared, system, loaded, warn
        self._armed = None if sites is None else ArmedMemory(sites, loaded, system.memory)
        self._is_started = self._is_running = False
        self._wanted: list[Path] = []  # files that are written between two turns
        self._new: tuple[bytes, ...] = ()  # the CPUs' states as the board starts them
        self._kept: Snapshots | None = None

    # -- the start ----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the board, or continue from the request's snapshot, unless that has happened. Raises KinstError."""
        if self._is_started:
            return
        self._is_started = True
        self._system.board.start(self._loaded)
        self._system.space.start()
        self._new = cpu_contents(self._system)
        if self._prepared.request.start is not None:
            self._continue(self._prepared.request.start)

    def _continue(self, path: Path) -> None:
        from kinst.runtime.tracing.snapshots.facts import check_facts, facts_of
        from kinst.runtime.tracing.snapshots.reading import header_of, restore

        check_facts(path, header_of(path).facts, facts_of(self._prepared, self._system))
        header = restore(path, self._system)
        lost = 0 if self._armed is None else self._armed.restored(header.copies)
        if lost:
            self._warn(
                f"{path}: {lost:,} site{'' if lost == 1 else 's'} cannot fire: the guest has no code there any more"
            )

    def before_arming(self) -> None:
        """Called before sites are armed: a snapshot's memory has to be there by then."""
        if self._prepared.request.start is not None and self._prepared.call is None:
            self.begin()

    def armed(self) -> None:
        """Called when sites were armed."""
        if self._armed is not None:
            self._armed.arm_copies()

    # -- files --------------------------------------------------------------------------------------------------------

    def write(self, path: Path, site: int | None = None) -> None:
        """Write a snapshot: at the hit of a breakpoint at `site`, or between two turns. Raises KinstError."""
        from kinst.runtime.tracing.snapshots.facts import facts_of
        from kinst.runtime.tracing.snapshots.writing import write_snapshot

        facts = facts_of(self._prepared, self._system)
        copies = copies_of(self._loaded, self._system.memory)
        own = () if self._armed is None else self._armed.own_bytes(copies)
        write_snapshot(path, self._system, facts, own, copies, site, self._new)

    def check(self) -> None:
        """Raise UsageError if what was asked for has no snapshots."""
        from kinst.runtime.tracing.snapshots.facts import check_request

        check_request(self._prepared)

    def ask(self, path: Path) -> None:
        """Write a snapshot at what fires now: before the instruction of a probe that is a breakpoint; at once for BEGIN
        and END; or, for any other, at the end of the CPU's turn."""
        site = self._hit() if self._is_running else None
        if site is None and self._is_running:
            self._wanted.append(path)
            return
        self.begin()
        self._write_and_say(path, site)

    def _write_and_say(self, path: Path, site: int | None) -> None:
        self.write_here(path, site)
        if not self._prepared.request.options.is_on("quiet"):
            self._warn(f"{path}: has the guest at {self._system.clock.now():,} ns")

    def write_here(self, path: Path, site: int | None = None) -> None:
        """As `write`, to a file that a program or a debugger has named."""
        self._check_not_read(path)
        self.write(path, site)

    def _check_not_read(self, path: Path) -> None:
        """A program may have made up the name of the image that is run, or of the snapshot that it started from."""
        for one in (self._prepared.path, self._prepared.request.start):
            if one is not None and path.exists() and one.exists() and path.samefile(one):
                raise UsageError(f"{path}: is a file that this run reads: give the snapshot another name")

    @contextmanager
    def during_run(self) -> Iterator[None]:
        """The guest runs in this context."""
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False

    def _hit(self) -> int | None:
        """The address of the breakpoint whose hit is handled at the moment; None: it is no breakpoint that fires."""
        system = self._system
        site, bias = system.trap.firing.site, system.arch.engine.breakpoint_bias
        is_hit = (
            system.trap.firing.returned == 0 and system.engine.pc() == site + bias and system.position[1] is not None
        )
        return site if is_hit and (site in system.trap.hits or system.trap.dtrace_invop(site) is not None) else None

    def after_turn(self) -> None:
        """Between two turns, write what was asked for."""
        while self._wanted:
            self._write_and_say(self._wanted.pop(), None)

    # -- in memory ----------------------------------------------------------------------------------------------------

    def why_not(self) -> str | None:
        """Why this guest has no snapshots in memory; None: it has, but maybe not at every moment."""
        from kinst.runtime.machine.snapshots.snapshot import check_memory

        try:
            check_memory(self._system)
            self._in_memory()
        except MachineError as error:
            return str(error)
        return None

    def take(self) -> "Snapshot":
        """A snapshot in memory, between two turns or runs. Raises MachineError."""
        return self._in_memory().take()

    def restore(self, snapshot: "Snapshot") -> None:
        """Return to one of this guest's, between two runs. Raises MachineError."""
        self._in_memory().restore(snapshot)

    def _in_memory(self) -> "Snapshots":
        from kinst.runtime.machine.snapshots.snapshot import Snapshots

        self.begin()
        if self._kept is None:
            self._kept = Snapshots(self._system)
        return self._kept

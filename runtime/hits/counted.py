"""Sites whose hits the engine handles: it counts or records them without running a clause, or it dispatches them.

A hit in Python takes about a microsecond. For a counted hit the engine adds to a cell and resumes the CPU: in the
trampoline, or where an instruction leads that does nothing else. What is recorded or replayed goes to a buffer
(`kinst.runtime.hits.recorded`). Both are collected before anything reads their results (`fold`). A dispatched hit runs
its clauses, and the engine resumes the CPU in the same way; it cannot if Python emulates the instruction, which then
gives the next PC. A batched hit is dispatched at such a site, too.

A trampoline that ends with a breakpoint, and that of a call, serves one address here, since the engine's table has one
address to continue at for it. If a copy of the code is hit whose site has the same trampoline, both sites are left to
the trap path, whose FIRED state knows where the CPU came from. Sites that Python can emulate need no trampoline: the
last one gets it.
"""

from collections.abc import Callable
from typing import Protocol

from kinst.runtime.hits.actions import Batched, BatchedRuns
from kinst.runtime.hits.recorded import RecordedSites, Records
from kinst.runtime.trap.delivery import Way
from kinst.runtime.trap.trap import Site
from kinst.targets.arch.facts import ArchFacts

_HIGHEST = (1 << 64) - 3  # the two addresses above mark free and deleted rows of the engine's table


class Counters(Protocol):
    """Handles breakpoints. `kinst.runtime.engine.breakpoint_counters.BreakpointCounters` implements it."""

    @property
    def records(self) -> Records:
        """What was recorded."""
        ...

    def set(self, address: int, following: int, cell: int, *, has_credit: bool) -> None:
        """Count the breakpoint at `address` in `cell` (0: in none), and resume the CPU at `following`. With
        `has_credit` the breakpoint is not counted as an instruction, since the displaced one will be in its
        trampoline."""
        ...

    def on_full(self, call: Callable[[], None]) -> None:
        """Call this when the buffer of records is full; it takes them."""
        ...

    def record(self, address: int, following: int, *, has_credit: bool, is_keyed: bool = False) -> None:
        """Record the hits of the breakpoint at `address`, and resume the CPU at `following`; see `set`. With
        `is_keyed` the record has the key of the thread, and hits of unknown threads go to the trap path."""
        ...

    def dispatch(self, address: int, following: int, hit: Callable[[], None], *, has_credit: bool) -> None:
        """Call `hit` at the breakpoint at `address`, and resume the CPU at `following`; 0: at the PC that it leaves in
        the frame."""
        ...

    def drop(self, address: int) -> None:
        """Stop handling a breakpoint: its hits go to the trap path."""
        ...

    def cell(self) -> int:
        """A new cell, which each CPU has for itself."""
        ...

    def give_back(self, cells: list[int]) -> None:
        """Free cells that no breakpoint uses any more."""
        ...

    def take(self) -> list[tuple[int, int, int]]:
        """CPU, cell and hits of what was counted since the last time."""
        ...


class CountedSites:
    """The sites whose hits the engine handles."""

    def __init__(self, counters: Counters, arch: ArchFacts, trampolines: Callable[[], range]) -> None:
        """`trampolines` gives the addresses of all of them."""
        self._trampolines = trampolines
        self._jump: Callable[[int, int], bool] = lambda _trampoline, _target: False
        self._end: Callable[[int], None] = lambda _trampoline: None
        self._counters = counters
        self._return_breakpoint = arch.return_breakpoint
        self.recorded = RecordedSites(counters.records, arch)
        counters.on_full(self.recorded.fold)
        self._cells: dict[int, int] = {}  # by address of a site
        self._dispatched: set[int] = set()  # addresses of sites
        self._counts: dict[int, BatchedRuns] = {}  # by cell: what runs for its hits
        self._left: list[int] = []  # cells whose breakpoints are gone, with hits that nobody has taken
        self._users: dict[int, tuple[int, int]] = {}  # trampoline -> the one site that uses it, the next instruction
        self._shared: set[int] = set()  # trampolines of several sites

    def add(self, site: Site, at: int, fire: Callable[[], None] | None, hit: Callable[[], None]) -> None:
        """See `kinst.runtime.trap.trap.SiteCounter`."""
        self.remove(at)  # it may have been delivered in another way
        # Whether a conditional return site fires is known only when Python has computed its instruction.
        fires_always = all(enabling.leaving is None for enabling in site.enablings)
        is_known = fires_always and (fire is not None or site.delivery.is_batched)
        following = self._following(site, at) if is_known and at <= _HIGHEST else None
        if site.delivery.is_batched and following is not None:
            self._count(site, at, following)
        elif (
            following and fire is not None
        ):  # 0, the target of a jump to address 0, would mean that Python gives the next PC: it does
            self._dispatch(at, following, fire)
        elif site.emulation is None:
            self._free(site.trampoline)
        elif at <= _HIGHEST:
            self._dispatch(at, 0, hit)

    def _dispatch(self, at: int, following: int, call: Callable[[], None]) -> None:
        self._dispatched.add(at)
        self._counters.dispatch(at, following, call, has_credit=following in self._trampolines())

    def _count(self, site: Site, at: int, following: int) -> None:
        has_credit = following in self._trampolines()
        batched = [(one.action, one) for one in site.enablings if isinstance(one.action, Batched)]
        assert len(batched) == len(site.enablings), "what is batched was decided for all of them"
        if site.delivery.way is Way.COUNT:
            cell = self._cells[at] = self._counters.cell()
            self._counts[cell] = batched
            self._counters.set(at, following, cell, has_credit=has_credit)
            return
        self.recorded.add(at, batched, is_replayed=site.delivery.way is Way.REPLAY)
        is_keyed = self.recorded.is_keyed(at)
        self._counters.record(at, following, has_credit=has_credit, is_keyed=is_keyed)

    def _following(self, site: Site, at: int) -> int | None:
        """Where the CPU continues after a hit that the engine handles; None: only Python can say."""
        place = site.trampoline if site.emulation is None else site.out_of_line(at)
        if (
            place is None
            or place not in self._trampolines()
            or (self._return_breakpoint is None and site.emulation is None)
        ):
            # Any number of addresses can share this: it is where an instruction leads, or jumps back by itself (a
            # copy of the code has a trampoline of its own, by `moved_trampoline`).
            return place
        user = self._users.get(place)
        if user is not None and user[0] != at:
            self._free(place)
            if site.emulation is None:
                self._shared.add(place)
        if place in self._shared:
            return None
        self._users[place] = at, at + site.size
        # Where no jump reaches, the engine handles the breakpoint at the end as well: counted in no cell.
        if self._return_breakpoint is not None and not self._jump(place, at + site.size):
            self._counters.set(place + self._return_breakpoint, at + site.size, 0, has_credit=False)
        return place

    def _free(self, trampoline: int) -> None:
        """Leave the site that uses a trampoline, and the trampoline's end, to the trap path."""
        user = self._users.pop(trampoline, None)
        if user is not None:
            self.remove(user[0])
        if user is not None and self._return_breakpoint is not None:
            self._counters.drop(trampoline + self._return_breakpoint)
            self._end(trampoline)

    def end_with(self, jump: Callable[[int, int], bool], end: Callable[[int], None]) -> None:
        """See `kinst.runtime.trap.trap.SiteCounter`."""
        self._jump, self._end = jump, end

    def remove(self, address: int) -> None:
        """See `kinst.runtime.trap.trap.SiteCounter`. `_users` keeps the trampoline, for CPUs that are in it."""
        cell = self._cells.pop(address, None)
        if cell is not None:
            self._left.append(cell)
        if cell is not None or address in self._dispatched or self.recorded.remove(address):
            self._dispatched.discard(address)
            self._counters.drop(address)

    def user(self, trampoline: int) -> tuple[int, int] | None:
        """See `kinst.runtime.trap.trap.SiteCounter`."""
        return self._users.get(trampoline)

    def forget_threads(self) -> None:
        """Forget which threads have which stacks, since that has changed."""
        self._counters.records.threads.clear()

    def fold(self) -> None:
        """Give what was counted to the actions."""
        self.recorded.fold()
        for cpu, cell, hits in self._counters.take():
            for action, enabling in self._counts[cell]:
                assert action.count is not None, "a cell is of what is counted"
                action.count(enabling, cpu, hits, [])
        for cell in self._left:  # their last hits have just been taken
            del self._counts[cell]
        self._counters.give_back(self._left)
        self._left = []

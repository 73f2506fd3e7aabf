"""`syscall` probes of a kernel that records its hits: a call's `return` fires where its handler has returned to.

A record at the handler's entry says which call its task is in; the next one of that task on the way out ends it. What
comes there without an entry, such as a new task, was in none. After records were lost nothing is known of the calls
that were under way: their returns are lost as well, and are counted as such.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Final

from kinst.runtime.live.ways_out import WayOut, ways_out
from kinst.runtime.providers.host import ImageHost, PlantedPoint, fire
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Argument, Probes
from kinst.runtime.providers.syscall import ENTRY, MOST, RESULT, RETURN, SyscallProvider, calls_of, error_of, types_of
from kinst.runtime.systems.linux_records import TaskWords
from kinst.runtime.tracing.standalone.record_memory import RecordMemory
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.probe import ProbeName
from kinst.targets.values import dataclass

_WORD: Final = 8
_FIELDS: Final = len(ProbeName.__slots__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What some `syscall` probes are: rows of the manifest's probes at which entries fire, and those of the entries of
    calls whose returns fire."""

    entries: tuple[int, ...]
    returning: tuple[int, ...]
    has_return: bool

    def __bool__(self) -> bool:
        return bool(self.entries) or self.has_return


NONE: Final = Asked((), (), has_return=False)


class SystemCalls:
    """See `kinst.runtime.providers.provider.Provider`."""

    registration = SyscallProvider.registration

    def __init__(self, host: ImageHost, descriptions: Iterable[str]) -> None:
        """Plant a point at the entry of each handler of a call that is described, and on the way out."""
        self._host, self._facts = host, host.arch.linux.system_calls
        self._enabled: dict[int, Enabling] = {}
        self._ends: dict[int, tuple[str, str]] = {}  # by identifier: the call, and ENTRY or RETURN
        self._identifiers: dict[tuple[str, str], int] = {}
        self._calls = calls_of(host.image.symbols, self._facts.prefix)
        wanted = _wanted(descriptions, self._calls)
        self._points = {
            call: host.plant(f"fbt::{self._facts.prefix}{call}:entry", partial(self._entered, call), may_lack=True)
            for call in self._calls
            if (call, ENTRY) in wanted or (call, RETURN) in wanted
        }
        has_return = any(name == RETURN for _, name in wanted)
        self._ways: list[tuple[WayOut, PlantedPoint]] = [
            (way, host.plant(way.description, partial(self._left, way), may_lack=True))
            for way in (ways_out(host.image) if has_return else ())
        ]
        self._inside: dict[tuple[int, int], Enabling] = {}  # what fires when a task leaves its call
        self._has_result = False  # of the way out that fires
        self._has_gaps = False
        self._lost = 0

    # -- Provider -----------------------------------------------------------------------------------------------------

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create all of them when it registers."""
        if wanted is None:
            for end in ((call, name) for call in self._calls for name in (ENTRY, RETURN)):
                identifier = probes.create("", *end)
                self._ends[identifier], self._identifiers[end] = end, identifier

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Arm the points."""
        for identifier in identifiers.tolist():
            call, name = self._ends[identifier]
            error = self._error if name == RETURN else None
            self._enabled[identifier] = Enabling(identifier, action, self.argument, 0, error=error)
            self._points[call].arm()
            for _, point in self._ways if name == RETURN else ():
                point.arm()

    def disable(self, identifiers: Identifiers) -> None:
        """Disarm what has no other probe."""
        for identifier in identifiers.tolist():
            del self._enabled[identifier]
            call = self._ends[identifier][0]
            if not any(self._identifiers[call, name] in self._enabled for name in (ENTRY, RETURN)):
                self._points[call].disarm()

    def destroy(self, identifiers: Identifiers) -> None:
        """Do nothing: there is nothing to release."""

    def arguments(self, identifier: int) -> Sequence[Argument]:
        """The types of the call's arguments, or of its result."""
        call, name = self._ends[identifier]
        return (RESULT, RESULT) if name == RETURN else tuple(map(Argument, types_of(self._host.image, call)))

    def argument(self, firing: Firing, index: int) -> int:
        """A word of user mode's registers, or the result."""
        if self._ends[firing.enabling.probe][1] == RETURN:
            return self._result(firing) if index <= 1 else 0
        return self._saved(firing, self._facts.arguments[index]) if index < MOST else 0

    def _result(self, firing: Firing) -> int:
        if self._has_result:
            return firing.regs[self._host.arch.return_value]
        return self._saved(firing, self._facts.result)

    def _saved(self, firing: Firing, offset: int) -> int:
        """A word of struct pt_regs, to which the first argument points where it is read."""
        return self._host.memory.load(firing.regs[self._host.arch.arguments[0]] + offset, _WORD)

    def _error(self, firing: Firing) -> int:
        return error_of(self._result(firing))

    # -- what is recorded ---------------------------------------------------------------------------------------------

    def asked(self, identifiers: Identifiers) -> Asked:
        """What those of some identifiers are that are its probes."""
        ends = [self._ends[one] for one in identifiers.tolist() if one in self._ends]
        rows = {
            name: [row for call, end in ends if end == name for row in self._rows(call)] for name in (ENTRY, RETURN)
        }
        return Asked(tuple(rows[ENTRY]), tuple(rows[RETURN]), any(end == RETURN for _, end in ends))

    @property
    def is_planted(self) -> bool:
        """Whether any of its probes is described."""
        return bool(self._points)

    @property
    def ways(self) -> tuple[tuple[WayOut, tuple[int, ...]], ...]:
        """Where returns fire, each with its rows of the manifest's probes."""
        return tuple((way, point.rows) for way, point in self._ways)

    @property
    def followed(self) -> tuple[int, ...]:
        """The rows at which records have to tell the task: the entries of calls whose returns are enabled, and the
        ways out of them."""
        calls = [call for call, name in map(self._ends.__getitem__, self._enabled) if name == RETURN]
        rows = [row for call in calls for row in self._rows(call)]
        return tuple(rows + [row for _, own in self.ways for row in own]) if rows else ()

    @property
    def entered(self) -> tuple[int, ...]:
        """The rows at which entries are enabled."""
        ends = map(self._ends.__getitem__, self._enabled)
        return tuple(row for call, name in ends if name == ENTRY for row in self._rows(call))

    def offset_of(self, argument: int | None) -> int:
        """Where struct pt_regs has an argument of user mode's; None: or what the call returns."""
        return self._facts.result if argument is None else self._facts.arguments[argument]

    def _rows(self, call: str) -> tuple[int, ...]:
        return self._points[call].rows if call in self._points else ()

    # -- firing -------------------------------------------------------------------------------------------------------

    def begin(self, *, is_behind: bool, has_gaps: bool) -> None:
        """Records come: `is_behind`, records were lost before them; `has_gaps`: or between them, nobody knows where."""
        if is_behind or has_gaps or self._has_gaps:
            self._lost += len(self._inside)
            self._inside.clear()
        self._has_gaps = has_gaps

    def take_lost(self) -> int:
        """How many returns were lost since the last time."""
        lost, self._lost = self._lost, 0
        return lost

    def _entered(self, call: str, firing: Firing) -> None:
        entry, returning = (self._enabled.get(self._identifiers[call, name]) for name in (ENTRY, RETURN))
        task = None if returning is None else self._task()
        if task is not None and returning is not None:
            self._inside[task] = returning
        if entry is not None:
            fire(firing, entry)

    def _left(self, way: WayOut, firing: Firing) -> None:
        task = self._task()
        returning = None if task is None else self._inside.pop(task, None)
        if returning is None:
            return
        if self._has_gaps:
            self._lost += 1
            return
        self._has_result = way.has_result
        fire(firing, returning)

    def _task(self) -> tuple[int, int] | None:
        """The current task, and what tells it from the next one at its address. None: there is none yet."""
        memory = self._host.memory
        assert isinstance(memory, RecordMemory), "hits are recorded"
        if not memory.task:
            return None
        return memory.task, 0 if self._own is None else memory.load(memory.task + self._own, _WORD)

    @cached_property
    def _own(self) -> int | None:
        """The offset of that number."""
        words = TaskWords(self._host.types).of_thread()
        return words[0] if words else None


def _wanted(descriptions: Iterable[str], calls: Sequence[str]) -> set[tuple[str, str]]:
    """The ends of calls that descriptions may mean. An identifier may be any of them."""
    ends = [(call, name) for call in calls for name in (ENTRY, RETURN)]
    found = set[tuple[str, str]]()
    for text in descriptions:
        if text.isdigit():
            return set(ends)
        fields = text.split(":")
        if len(fields) == _FIELDS:
            name = ProbeName(*fields)
            found.update(end for end in ends if name.matches(SystemCalls.registration.name, "", *end))
    return found

"""Registers that nobody models -> what the guest waits for, while it runs; and what it was told, when it is over."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kinst.runtime.machine.assumed_registers import AssumedRegister
from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.machine.physical.unmodelled import Register
from kinst.runtime.machine.system import System
from kinst.runtime.machine.watching.found_memory import Found
from kinst.runtime.tracing.host.whereabouts import Whereabouts
from kinst.runtime.tracing.timers.periodic_check import PeriodicCheck

_PERIOD: Final = 50_000_000  # ns of the machine's time between two checks
_SILENCE: Final = 1_000_000_000  # ns without output, in which the guest reads the same register over and over
_POLLS: Final = 100  # reads in that time
_MEMORY: Final = 10  # reads that are no wait for each write
_ARE_MEMORY: Final = 128  # written words of a range
_MOST_WARNINGS: Final = 5
_MOST_LINES: Final = 24
_MOST_WHO: Final = 3  # functions that are named for a register


class UnmodelledWatch:
    """Checks between two turns of the CPUs. Without such registers it does nothing."""

    def __init__(self, system: System, whereabouts: Whereabouts, warn: Callable[[str], None]) -> None:
        """`warn` is called with a line for each register that the guest waits for."""
        self._system, self._whereabouts, self._warn = system, whereabouts, warn
        self._pace = PeriodicCheck(_PERIOD)
        self._since = 0
        self._before: dict[Register, tuple[int, int]] = {}  # reads and writes at that time
        self._warned: set[Register] = set()

    def on_console(self) -> None:
        """The guest prints something."""
        self._before.clear()

    def begin_anew(self) -> None:
        """Between two runs: the machine is as it was at an earlier time."""
        self._before.clear()
        if len(self._warned) <= _MOST_WARNINGS:
            self._pace.begin()

    def check(self) -> None:
        """Warn if the guest has done nothing but read a register for a while."""
        unmodelled, now = self._system.unmodelled, self._system.clock.now()
        if not unmodelled.reads or not self._pace.is_due(now):
            return
        if not self._before:
            self._since, self._before = now, {one: (one.reads, one.writes) for one in unmodelled.touched}
        elif now - self._since >= _SILENCE:
            found = max(unmodelled.touched, key=self._asked)
            if self._asked(found) >= _POLLS and found not in self._warned:
                self._tell(found)
            self._before.clear()

    def _asked(self, register: Register) -> int:
        """How often it was read. What is written as often is used as memory, and nobody waits for it."""
        reads, writes = self._before.get(register, (0, 0))
        return register.reads - reads - _MEMORY * (register.writes - writes)

    def _tell(self, register: Register) -> None:
        self._warned.add(register)
        if len(self._warned) > _MOST_WARNINGS:
            self._pace.stop()
            return
        who = ", ".join(self._who(register, 1))
        count, given = self._asked(register), f"{register.given:#x}, by the rule: {register.rule}"
        self._warn(f"waits: {who} reads {_where(register)} {count:,} times a second and gets {given}")

    def lines(self) -> tuple[str, ...]:
        """What was touched and assumed: a line for each register, or for each range if they are many."""
        return (*map(self._found_line, self._system.found_memory.found), *self._memory_lines(), *self._system_lines())

    def _found_line(self, found: Found) -> str:
        """A line for pages that are RAM since the guest used them as memory."""
        who = ", ".join(self._who(found, _MOST_WHO))
        where = f"{found.start:#x} to {found.stop:#x}"
        written = f"since {found.written:,} words were written"
        return f"assumed: {where}: memory, {written}; by {who}; see [memory] of a board file"

    def _system_lines(self) -> Iterator[str]:
        """A line for each system register whose bits nobody knows."""
        touched = self._system.assumed.touched
        for one in touched[:_MOST_LINES]:
            last = f"{one.value:#x} last (what was written)"
            yield f"assumed: {one.name}: {_how_often(one)}, {last}; by {', '.join(self._who(one, _MOST_WHO))}"
        if len(touched) > _MOST_LINES:
            yield f"assumed: {len(touched) - _MOST_LINES} more system registers that nobody models"

    def _memory_lines(self) -> tuple[str, ...]:
        touched = self._system.unmodelled.touched
        if len(touched) <= _MOST_LINES:
            return tuple(map(self._line, touched))
        rows = sorted(_groups(touched), key=lambda group: -sum(one.reads + one.writes for one in group))
        shown = sorted(rows[:_MOST_LINES], key=lambda group: group[0].address)
        rest = len(rows) - len(shown)
        more = (f"assumed: {rest} more ranges that nobody models, each touched less often",) if rest else ()
        return (*(self._line(one[0]) if len(one) == 1 else self._group_line(one) for one in shown), *more)

    def _group_line(self, group: list[Register]) -> str:
        first, last = group[0], group[-1]
        reads, writes = sum(one.reads for one in group), sum(one.writes for one in group)
        where = f"{first.address:#x} to {last.address + last.size:#x}"
        name = f"{first.group} ({where})" if first.is_named else where
        how_often = f"{len(group)} registers, read {reads:,}x, written {writes:,}x"
        busiest = max(group, key=lambda one: one.reads + one.writes)
        return f"assumed: {name}: {how_often}; by {', '.join(self._who(busiest, _MOST_WHO))}{_advice(group)}"

    def _line(self, register: Register) -> str:
        gave = f", gave {register.given:#x} last ({register.rule})" if register.reads else f", {register.value:#x} last"
        return (
            f"assumed: {_where(register)}: {_how_often(register)}{gave}; by {', '.join(self._who(register, _MOST_WHO))}"
        )

    def _who(self, register: Register | AssumedRegister | Found, most: int) -> Iterator[str]:
        """The functions that access a register, those first that do it most often."""
        counts: dict[str, int] = {}
        for pc, count in register.places.items():
            name = self._whereabouts.function(pc)
            counts[name] = counts.get(name, 0) + count
        yield from sorted(counts, key=lambda name: -counts[name])[:most]


def _how_often(register: Register | AssumedRegister) -> str:
    counts = {"read": register.reads, "written": register.writes}
    return ", ".join(f"{what} {count:,}x" for what, count in counts.items() if count)


def _groups(touched: Iterable[Register]) -> list[list[Register]]:
    """The registers of each range, and those of neighbouring pages that have no name."""
    groups: list[list[Register]] = []
    for one in touched:
        last = groups[-1][-1] if groups else None
        is_near = last is not None and not last.is_named and not one.is_named and one.address - last.address < PAGE
        if last is not None and (is_near or one.group == last.group):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _advice(group: list[Register]) -> str:
    """A hint if so many were written that it can only be memory."""
    written = sum(one.writes > 0 for one in group)
    return "; is it memory? see [memory] of a board file" if written >= _ARE_MEMORY else ""


def _where(register: Register) -> str:
    address = f"{register.address:#x}"
    return register.name if register.name == address else f"{register.name} ({address})"

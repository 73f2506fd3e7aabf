"""What a standalone image counted or recorded -> its probes fire, long after they were hit.

A clause can read what was recorded of the hit and nothing else: any other register, argument or word of memory is a
fault that says so, and not a zero.
"""

from collections.abc import Callable, Sequence
from typing import Final, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.program import Program
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.hits.actions import Additions, Alike, Batched, alike_of
from kinst.runtime.patched.sites import Argument, ArgumentAt, SiteTable
from kinst.runtime.tracing.host.surroundings import SCRATCH
from kinst.runtime.tracing.standalone.alike_records import AlikeRecords, Group, Turns
from kinst.runtime.tracing.standalone.columns import CpuSource, own_number
from kinst.runtime.tracing.standalone.constants import ConstantMemory
from kinst.runtime.tracing.standalone.findings import Found
from kinst.runtime.tracing.standalone.forms import Form, Forms
from kinst.runtime.tracing.standalone.moved import Moved
from kinst.runtime.tracing.standalone.record_memory import RecordMemory
from kinst.runtime.tracing.standalone.record_stacks import RecordStacks
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.image import Image
from kinst.targets.manifest.packed import ProbeKind

_CPU: Final = 0  # where no record has one
_NANOSECONDS: Final = 1_000_000_000
_LARGEST: Final = (1 << 64) - 1


class _Registers(list[int]):
    """The registers of a trap frame, of which only some are known. Reading any other is ILLOP."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__([0] * len(names))
        self._names = names
        self.known: frozenset[int] = frozenset()  # empty while no record fires

    def __getitem__(self, index: SupportsIndex | slice) -> int:  # type: ignore[override]  # it is never sliced
        number = int(index)  # type: ignore[arg-type]
        if number not in self.known:
            raise Fault(FaultKind.ILLOP, number, f"register {self._names[number]} was not recorded")
        return super().__getitem__(number)


class RecordedHits:
    """The hits of a standalone image's probes, as clauses see them."""

    def __init__(self, image: Image, program: Callable[[], Program], warn: Callable[[str], None]) -> None:
        """Nothing is recorded yet. `image` is the original; `warn` is called once if stacks are not shown whole."""
        self._arch = image.facts
        self._timebase = _NANOSECONDS
        self._passing: Callable[[], int] = lambda: 0
        self._registers = _Registers(self._arch.registers)
        self.frame = TrapFrame(self._registers, _no_memory, _no_memory, _no_memory)
        self.scratch = Scratch(SCRATCH)
        self.moved = Moved(image)
        self.memory = RecordMemory(ConstantMemory(image, self.scratch, self.moved.link))
        self.stacks = RecordStacks(image, self.memory, program, warn)
        self._values: dict[str, int] = {}
        cpu = own_number(self._arch)
        self.expect(Forms((), np.zeros(0, np.intp), cpu, self._arch), _NANOSECONDS, cpu)
        self._sites: dict[int, tuple[int, tuple[Enabling, ...]]] = {}  # row -> address, what happens there
        self._table: SiteTable | None = None
        self._last = 0  # the time of the last record in ns; 0: there is none
        self._base: int | None = None  # the time at which the guest's clock was 0; None: that is not known

    def expect(self, forms: Forms, timebase: int, cpu: CpuSource) -> None:
        """Set what records have from now on, the frequency of their clock in Hz, and where they have their CPU."""
        self._timebase, self._cpu = timebase, cpu
        self.forms, self._has_time = forms, False  # whether the record that fires has the time
        self._alike = AlikeRecords(forms, cpu, lambda row: self._site(row)[1])

    def now(self) -> int:
        """The time that clauses see, in ns: that of the record that fires, or of the last one that did, or in BEGIN of
        the first. If records have no time it is 0 for their clauses, and the machine's time for BEGIN, END and
        timers; so it is for these after `begin_at`."""
        if self._registers.known and not self._has_time:
            return 0
        if self._base is not None and not self._registers.known:
            return self._passing()
        return self._last or self._passing()

    def begin(self, found: Found) -> None:
        """Before any record fires, set the time to that of the first."""
        if not self._last:
            self._last = self._time_of(found.records, 0)

    def _time_of(self, records: NDArray[np.uint64], which: int) -> int:
        """The time, in ns, of the first (0) or the last (-1) of some records that have it; if none do, the last known
        one."""
        times, has_time = self.forms.times(records)
        return self._nanoseconds(int(times[has_time][which])) if has_time.any() else self._last

    def begin_at(self, time: int) -> None:
        """Set at which time (ns) of the machine the guest's clock was 0: then both are one."""
        self._base = time

    def _nanoseconds(self, count: int) -> int:
        return count * _NANOSECONDS // self._timebase + (self._base or 0)

    def attach(self, table: SiteTable, passing: Callable[[], int]) -> None:
        """Give the probes of a table their recorded arguments, where there are any. kinst's probes have none. `passing`
        gives the machine's time."""
        self._table, self._passing = table, passing
        for kind, default in list(table.arguments.items()):
            if kind != ProbeKind.KINST:
                table.arguments[kind] = self._given(default)

    def _given(self, default: ArgumentAt) -> ArgumentAt:
        values = self._values

        def arguments_at(row: int, address: int) -> Argument:
            otherwise = default(row, address)

            def argument(firing: Firing, index: int) -> int:
                found = values.get(f"arg{index}")
                return otherwise(firing, index) if found is None else found

            return argument

        return arguments_at

    # -- firing -------------------------------------------------------------------------------------------------------

    def fire(self, found: Found, firing: Firing) -> None:
        """Let probes fire for what was found. `firing` is reused for all of them; its frame is `frame`."""
        for row in np.flatnonzero(found.hits).tolist():
            hits = int(found.hits[row])
            for one in self._site(row)[1]:
                assert isinstance(one.action, Batched), "others were refused"
                assert one.action.count is not None
                one.action.count(one, firing.cpu, hits, [])
        if len(found.records):
            self._fire_records(found.records, firing)
        self.memory.hide()
        firing.run_on(_CPU)

    def _fire_records(self, records: NDArray[np.uint64], firing: Firing) -> None:
        """Those that are alike fire once, with their number."""
        turns, used = self._alike.turns(records), set[Additions]()
        for turn in turns:
            if isinstance(turn, Group):
                used.update(self._fire_group(turn, records, turns, firing))
                continue
            for additions in used:
                additions.keep()  # before those that come later
            self._fire_each(records if len(turn) == len(records) else records[turn], firing)
        for additions in used:
            additions.keep()
        self._last = self._time_of(records, -1)

    def _fire_group(
        self, group: Group, records: NDArray[np.uint64], turns: Turns, firing: Firing
    ) -> frozenset[Additions]:
        """Run what the records of a group have in common; returns to what was added."""
        record = records[group.first]
        form = self.forms.of(int(record[0]))
        plain = record[: form.columns.plain].tolist()
        self._show(form, plain, record, firing)
        done = list[Alike]()
        try:
            for one in self._set(form, plain, firing):
                alike = alike_of(one.action)
                assert alike is not None, "others fire one by one"
                done.append(alike)
                firing.be(firing.cpu, one)
                alike.run(firing)
        except Fault:
            done[-1].additions.drop()
            self._alike.give_up(done[-1], group, records, turns)
            return frozenset()
        finally:
            self._registers.known = frozenset()
        hits, others = self._alike.without(group, records, self.memory.seen)
        if others is not None:
            turns.again(others)
        found = frozenset(alike.additions for alike in done)
        for additions in found:
            additions.times(hits)
        return found

    def _fire_each(self, records: NDArray[np.uint64], firing: Firing) -> None:
        for record, plain in zip(records, self.forms.plain(records), strict=True):
            form = self.forms.of(plain[0])
            self._show(form, plain, record, firing)
            for one in self._set(form, plain, firing):
                firing.fire(one)
            self._registers.known = frozenset()

    def _show(self, form: Form, plain: list[int], record: NDArray[np.uint64], firing: Firing) -> None:
        """Set memory, and the firing's thread and CPU, to those of a record. `plain`: its words before the stack."""
        columns, registers = form.columns, form.registers
        firing.run_on(_CPU if columns.cpu is None else self._cpu.cpu(plain[columns.cpu]))
        sp, pc = registers.get(self._arch.stack_pointer), registers.get(self._arch.pc)
        self.stacks.expect(has_frames=form.has_frames)
        if pc is not None:
            self.stacks.move(plain[pc] - self._site(plain[0])[0])
        stack = b"" if columns.stack is None else _words_of(record[columns.stack :])
        members = {offset: plain[column] for offset, column in columns.members.items()}
        task = 0 if columns.task is None else plain[columns.task]
        behind = {}
        if columns.behind and task:
            behind = {
                members[pointer] + offset & _LARGEST: plain[column]
                for (pointer, offset), column in columns.behind.items()
                if pointer in members
            }
        self.memory.show(task, members if task else {}, 0 if sp is None else plain[sp], stack, behind)

    def _set(self, form: Form, plain: list[int], firing: Firing) -> tuple[Enabling, ...]:
        """Set registers, arguments and the time to those of a record; returns what happens at its site."""
        address, enablings = self._site(plain[0])
        columns, registers = form.columns, self._registers
        self._values.clear()
        self._values.update((name, plain[column]) for name, column in columns.named.items())
        registers[self._arch.pc] = address
        firing.move(address)
        for number, column in form.registers.items():
            registers[number] = plain[column]
        registers.known, self._has_time = form.known, columns.time is not None
        if columns.time is not None:
            self._last = self._nanoseconds(plain[columns.time])
        return enablings

    def _site(self, row: int) -> tuple[int, tuple[Enabling, ...]]:
        found = self._sites.get(row)
        if found is None:
            assert self._table is not None, "attach() comes first"
            found = self._sites[row] = self._table.address(row), self._table.enablings(row)
        return found


def _words_of(field: NDArray[np.uint64]) -> bytes:
    """The recorded part of the stack. Its first word is the number of those that follow: fewer where the
    stack or its page ends."""
    return field[1 : 1 + int(field[0])].tobytes()


def _no_memory(address: int, *_: int) -> NoReturn:
    raise Fault(FaultKind.BADADDR, address, "the guest's memory was not recorded")

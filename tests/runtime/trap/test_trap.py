"""The trap path by itself: no emulator, a frame of plain numbers, what it writes back and in which order it acts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from kinst.runtime.paging.walker import Access, PageFault
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Enabling, Firing, Port, Site, SiteCounter, TrapPath
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.riscv64 import RISCV64
from kinst.targets.errors import MachineError

BREAKPOINT = 3
SLOTS = range(0x9000, 0xA000)
A0 = 10


@dataclass
class Machine:
    """A frame in memory; `log` is everything that happened."""

    arch: ArchFacts = RISCV64
    bias: int = 0
    counts: bool = False
    counted: SiteCounter | None = None
    log: list[object] = field(default_factory=list)
    regs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.regs = [0] * len(self.arch.registers)
        self.written = list(self.regs)
        frame = TrapFrame(self.regs, lambda _a, _s: 0, lambda _a, _s, _v: None, lambda _n, _v: None)
        port = Port(
            frame=frame,
            read=lambda: 0,
            writer=self.writer,
            fail=self.log.append,
            unclaimed=lambda number: self.log.append(("unclaimed", number)),
            take_back=(lambda: self.log.append("take back")) if self.counts else None,
            fault=lambda fault: self.log.append(("fault", fault.address)),
        )
        engine = replace(self.arch.engine, breakpoint_number=BREAKPOINT, breakpoint_bias=self.bias)
        self.trap = TrapPath(replace(self.arch, engine=engine), port, lambda _trap: self.counted)
        self.trap.reach_trampolines(SLOTS)
        self.handler = self.trap.handler()

    def writer(self, indexes: Sequence[int]) -> Callable[[], int]:
        def write() -> int:
            for index in indexes:
                self.written[index] = self.regs[index]
            return 0

        return write

    def hit(self, pc: int, number: int = BREAKPOINT) -> int:
        """A breakpoint at `pc`; the PC after it."""
        self.regs[self.arch.pc] = pc + self.bias
        self.handler(0, number, 0)
        return self.written[self.arch.pc]

    def enabling(self, probe: int, **options: object) -> Enabling:
        def action(firing: Firing) -> None:
            self.log.append((firing.enabling.probe, firing.site, firing.regs[A0], firing.cpu))

        return Enabling(probe, action, lambda _firing, index: index, 0, **options)  # type: ignore[arg-type]


def jump(target: int, **changes: int) -> Emulation:
    def run(frame: TrapFrame) -> None:
        for index, value in changes.items():
            frame.regs[int(index[1:])] = value
        frame.regs[RISCV64.pc] = target

    return Emulation(run, tuple(int(index[1:]) for index in changes))


def test_an_emulated_site_fires_before_its_effect() -> None:
    machine = Machine()
    machine.regs[A0] = 7
    machine.trap.add(Site(0x1000, 4, 0, jump(0x2000, r10=99), (machine.enabling(5), machine.enabling(6))))
    assert machine.hit(0x1000) == 0x2000
    assert machine.log == [(5, 0x1000, 7, 0), (6, 0x1000, 7, 0)]
    assert machine.written[A0] == 99


def test_the_pc_is_not_written_where_the_cpu_goes_on_by_itself() -> None:
    machine = Machine(bias=4)
    machine.trap.add(Site(0x1000, 4, 0, jump(0x1004, r10=9), ()))
    machine.trap.add(Site(0x2000, 4, 0, jump(0x2004), ()))
    for site in (0x1000, 0x2000):
        assert machine.hit(site) == 0
        assert machine.regs[RISCV64.pc] == site + 4
    assert machine.written[A0] == 9


def test_a_copied_site_runs_in_its_slot_and_goes_on_after_the_second_breakpoint() -> None:
    machine = Machine()
    machine.trap.add(Site(0x1000, 2, 0x9008, None, (machine.enabling(5),)))
    assert machine.hit(0x1000) == 0x9008
    assert machine.trap.fired == [(0x9008, 0x1000, 0x1002)]
    assert machine.hit(0x900C) == 0x1002
    assert machine.trap.fired == []
    assert len(machine.log) == 1


def test_probes_hit_in_a_handler_of_the_displaced_instructions_exception_nest() -> None:
    machine = Machine()
    machine.trap.add(Site(0x1000, 4, 0x9000, None, (machine.enabling(5),)))
    machine.trap.add(Site(0x5000, 4, 0x9008, None, (machine.enabling(6),)))
    machine.hit(0x1000)
    assert machine.trap.original(0x9000) == 0x1000  # the exception is shown the site
    assert machine.trap.fired == []
    machine.hit(0x5000)
    assert machine.hit(0x900C) == 0x5004
    assert machine.hit(0x1000) == 0x9000  # the handler returned to the site
    assert machine.hit(0x9004) == 0x1004


def test_states_stack_when_the_first_trampoline_is_not_left() -> None:
    machine = Machine()
    machine.trap.add(Site(0x1000, 4, 0x9000, None, ()))
    machine.trap.add(Site(0x5000, 4, 0x9008, None, ()))
    machine.hit(0x1000)
    machine.hit(0x5000)
    assert machine.hit(0x900C) == 0x5004
    assert machine.hit(0x9004) == 0x1004


@pytest.mark.parametrize(("pc", "original"), [(0x9000, 0x1000), (0x9004, 0x1002), (0x1234, 0x1234), (0x9010, 0x9010)])
def test_an_address_in_a_trampoline_stands_for_one_in_the_original_code(pc: int, original: int) -> None:
    machine = Machine()
    machine.trap.add(Site(0x1000, 2, 0x9000, None, ()))
    machine.hit(0x1000)
    assert machine.trap.original(pc) == original


def test_amd64_trampolines_need_no_state() -> None:
    machine = Machine(AMD64, bias=1)
    machine.trap.add(Site(0x1000, 5, 0x9020, None, (machine.enabling(5),)))
    assert machine.hit(0x1000) == 0x9020
    assert machine.trap.fired == []
    assert (machine.trap.original(0x9020), machine.trap.original(0x9025)) == (0x1000, 0x1005)


def test_only_breakpoints_at_sites_are_claimed() -> None:
    machine = Machine()
    machine.trap.add(Site(0x1000, 4, 0, jump(0), ()))
    machine.hit(0x1004)
    machine.hit(0x1000, number=8)
    assert machine.log == [("unclaimed", BREAKPOINT), ("unclaimed", 8)]


def test_the_chain_is_asked_newest_first_and_knows_what_the_table_does_not() -> None:
    machine = Machine()
    asked: list[str] = []

    def older(pc: int) -> Callable[[int], None] | None:
        asked.append("older")
        return machine.log.append if pc == 0x1000 else None

    def newer(_pc: int) -> None:
        asked.append("newer")

    machine.trap.dtrace_invop_add(older)
    machine.trap.dtrace_invop_add(newer)
    machine.hit(0x1000)
    assert (asked, machine.log) == (["newer", "older"], [0x1000])
    assert machine.trap.claim(0x1000)
    assert not machine.trap.claim(0x2000)


@pytest.mark.parametrize(("target", "fires"), [(0x1010, False), (0x1000, False), (0x1100, True), (0xFFF, True)])
def test_a_conditional_return_site_fires_if_control_leaves_the_function(target: int, fires: bool) -> None:  # noqa: FBT001
    machine = Machine()
    machine.regs[A0] = 7
    enabling = machine.enabling(5, leaving=(0x1000, 0x1100))
    machine.trap.add(Site(0x1020, 4, 0, jump(target, r10=1), (enabling,)))
    assert machine.hit(0x1020) == target
    assert machine.log == ([(5, 0x1020, 7, 0)] if fires else [])  # the state before the instruction
    assert machine.written[A0] == 1


def test_a_conditional_return_site_in_a_relocated_copy() -> None:
    machine = Machine()
    enabling = machine.enabling(5, leaving=(0x1000, 0x1100))
    machine.trap.add(Site(0x1020, 4, 0, jump(0x7F00_1010), (enabling,)), 0x7F00_1020)
    machine.hit(0x7F00_1020)
    assert machine.log == []


def test_an_emulated_access_that_faults_is_delivered_at_the_site_and_changes_nothing() -> None:
    def run(_frame: TrapFrame) -> None:
        raise PageFault(0xDEAD, Access.READ, 13)

    machine = Machine(bias=4)
    machine.trap.add(Site(0x1000, 4, 0, Emulation(run, (A0,)), (machine.enabling(5),)))
    assert machine.hit(0x1000) == 0x1000
    assert machine.log == [(5, 0x1000, 0, 0), ("fault", 0xDEAD)]


def test_what_an_action_raises_is_not_lost() -> None:
    def action(_firing: Firing) -> None:
        raise ZeroDivisionError

    machine = Machine()
    machine.trap.add(Site(0x1000, 4, 0, jump(0), (Enabling(1, action, lambda _f, _i: 0, 0),)))
    machine.hit(0x1000)
    assert isinstance(machine.log[0], ZeroDivisionError)


def test_a_guest_that_enters_a_trampoline_by_itself_is_an_error() -> None:
    machine = Machine()
    machine.trap.add(Site(0x1000, 4, 0x9000, None, ()))
    machine.hit(0x9004)
    assert isinstance(machine.log[0], MachineError)


def test_the_breakpoint_of_a_copied_instruction_is_not_counted_twice() -> None:
    machine = Machine(counts=True)
    machine.trap.add(Site(0x1000, 4, 0x9000, None, ()))
    machine.trap.add(Site(0x1004, 4, 0, jump(0), ()))
    machine.hit(0x1000)
    machine.hit(0x9004)
    machine.hit(0x1004)
    assert machine.log == ["take back"]


def test_removed_sites_are_the_guests_again() -> None:
    machine = Machine()
    machine.trap.add(Site(0x1000, 4, 0x9000, None, ()))
    machine.hit(0x1000)
    machine.trap.remove([0x1000])
    assert machine.hit(0x9004) == 0x1004  # the one in flight still ends
    machine.hit(0x1000)
    assert machine.log == [("unclaimed", BREAKPOINT)]


def test_a_fault_of_a_counted_call_is_the_sites() -> None:
    """Its trampoline pushes where it would return to, on a stack that may not be there."""

    class Counted:
        def user(self, trampoline: int) -> tuple[int, int] | None:
            return (0x1000, 0x1005) if trampoline == 0x9020 else None

    machine = Machine(AMD64, bias=1, counted=Counted())  # type: ignore[arg-type]  # as far as it is asked
    assert (machine.trap.original(0x9020), machine.trap.original(0x9040)) == (0x1000, 0x9040)


def acting(probe: int, action: Callable[[Firing], None]) -> Enabling:
    return Enabling(probe, action, lambda _firing, index: index, 0)


def writing(index: int, value: int) -> Enabling:
    return acting(9, lambda firing: firing.intervene().write(index, value))


def test_a_written_register_is_seen_by_later_probes_and_by_the_instruction() -> None:
    machine = Machine()
    machine.trap.intervene()
    doubled = Emulation(lambda frame: frame.regs.__setitem__(A0, frame.regs[A0] * 2), (A0,))
    machine.trap.add(Site(0x1000, 4, 0, doubled, (machine.enabling(5), writing(A0, 21), machine.enabling(6))))
    machine.trap.add(Site(0x2000, 4, 0x9000, None, (writing(A0, 3),)))
    machine.hit(0x1000)
    assert machine.log == [(5, 0x1000, 0, 0), (6, 0x1000, 21, 0)]
    assert machine.written[A0] == 42
    assert machine.hit(0x2000) == 0x9000
    assert machine.written[A0] == 3


def test_what_was_said_last_is_where_the_cpu_goes_on() -> None:
    machine = Machine()
    machine.trap.intervene()
    said: list[Callable[[Firing], None]] = []
    machine.trap.add(
        Site(0x1000, 4, 0x9000, None, tuple(acting(at, lambda firing: said.pop()(firing)) for at in (1, 2)))
    )
    machine.regs[RISCV64.link_register or 0] = 0x7000
    skip = lambda firing: firing.intervene().skip()  # noqa: E731
    override = lambda firing: firing.intervene().override(-1)  # noqa: E731
    jump_to = lambda firing: firing.intervene().write(RISCV64.pc, 0x5000)  # noqa: E731
    for one, other, target in ((skip, override, 0x7000), (override, jump_to, 0x5000), (jump_to, skip, 0x5004)):
        said[:] = [other, one]
        assert machine.hit(0x1000) == target
    assert machine.trap.fired == []
    assert machine.written[A0] == (1 << 64) - 1


def test_only_a_hit_of_a_run_that_intervenes_has_a_cpu_to_change() -> None:
    machine = Machine()
    machine.trap.add(Site(0x1000, 4, 0, jump(0x2000), (writing(A0, 1),)))
    machine.hit(0x1000)
    machine.trap.intervene()
    with pytest.raises(Fault, match="only a probe at an instruction"):
        machine.trap.firing.intervene()
    assert isinstance(machine.log[0], Fault)
    assert machine.written[A0] == 0


def test_registers_that_cannot_be_written_are_faults() -> None:
    machine, told = Machine(), list[str]()

    def attempt(firing: Firing) -> None:
        for index, value in ((0, 1), (RISCV64.pc, 3)):
            try:
                firing.intervene().write(index, value)
            except Fault as fault:
                told.append(fault.text)

    machine.trap.intervene()
    machine.trap.add(Site(0x1000, 4, 0, jump(0x2000), (acting(1, attempt),)))
    assert machine.hit(0x1000) == 0x2000
    assert told == ["zero cannot be written", "pc = 0x3: no instruction begins there"]

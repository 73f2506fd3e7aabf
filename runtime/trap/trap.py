"""The trap path: breakpoint -> probes fire -> the displaced instruction is emulated or runs in its trampoline.

This is what dtrace_invop and its handlers kinst_invop and fbt_invop do in FreeBSD's kernel, on three machines. A probe
fires before its instruction executes, and `regs` show the state at the site. Then the instruction's effect is computed
(an `Emulation`), or the CPU continues in the trampoline. On arm64 and riscv64 a second breakpoint ends the trampoline.
Until then the CPU is FIRED, and the machine delivers no interrupts to it. amd64's trampolines jump back themselves, so
there is no state; no interrupt is delivered while the PC is in one.

The FIRED state (struct kinst_cpu_state) is a stack. An exception in the displaced instruction pops it (the guest sees
the site's own address), and a probe that is hit in the guest's handler starts a new entry.

There is no I/O and no emulator here: the trap frame comes as `regs` and as functions that write registers back. What
happens at a hit is a closure that is made once for its site: a hit takes about a microsecond, so one more lookup would
matter. A hit leaves the address at which the CPU continues in `regs`, and its caller writes the PC. Where the engine
can handle a site by itself (`SiteCounter`), it is the caller from the second hit on.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.delivery import DISPATCHED, Delivery
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.interventions import Interventions
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

Hit = Callable[[int], None]  # called with a breakpoint's address; leaves the next PC in the frame
AtGuests = Callable[[int], "Site | None"]  # a breakpoint of the guest's own -> the site where it is, if it is one
Invop = Callable[[int], Hit | None]  # a handler: a breakpoint's address -> its hit; None if it is not its breakpoint


class Firing:
    """What a probe's action sees: the CPU at the site, before the instruction. One object is used for all hits."""

    __slots__ = ("cpu", "enabling", "frame", "interventions", "returned", "site", "thread")

    def __init__(self, frame: TrapFrame, enabling: "Enabling", *, cpu: int = 0, thread: int = 0, site: int = 0) -> None:
        self.cpu = cpu
        self.enabling = enabling
        self.frame = frame
        self.interventions: Interventions | None = None  # None: no action of the run changes the CPU
        self.returned = 0  # the PC, if the function at `site` left by a tail call that has returned; else 0
        self.site = site  # address of the instruction
        self.thread = thread  # below 0: a thread of the tracer itself; else the CPU, in place of the guest's thread

    @property
    def regs(self) -> Sequence[int]:
        """The trap frame in the order of `ArchFacts.registers`."""
        return self.frame.regs

    def fire(self, enabling: "Enabling") -> None:
        """Let a probe fire."""
        self.enabling = enabling
        enabling.action(self)

    def fire_unable(self, enablings: "Sequence[Enabling]") -> None:
        """Let probes fire whose actions cannot change the CPU, though those of the site can."""
        outer, self.interventions = self.interventions, None
        try:
            for enabling in enablings:
                self.fire(enabling)
        finally:
            self.interventions = outer

    def fire_instead(self, enabling: "Enabling", action: "Callable[[Firing], None] | None" = None) -> None:
        """Let another probe fire from within an action; `action`, if it is not the probe's own."""
        outer, self.enabling = self.enabling, enabling
        try:
            (action or enabling.action)(self)
        finally:
            self.enabling = outer

    def be(self, cpu: int, enabling: "Enabling") -> None:
        """Stand for a hit of this probe on this CPU from now on."""
        self.cpu, self.enabling = cpu, enabling

    def run_on(self, cpu: int) -> None:
        """Stand for a hit on this CPU, of which no thread is known, from now on."""
        self.cpu = self.thread = cpu

    def move(self, site: int, returned: int = 0) -> None:
        """Stand for a hit at another place from now on."""
        self.site, self.returned = site, returned

    def exchange_frame(self, frame: TrapFrame) -> TrapFrame:
        """Show another CPU's registers and memory; returns what was shown before."""
        outer, self.frame = self.frame, frame
        return outer

    def intervene(self) -> Interventions:
        """What changes the CPU at this hit. Raises Fault: ILLOP where nothing can."""
        found = self.interventions
        if found is None or not found.is_open:
            raise Fault(FaultKind.ILLOP, text="only a probe at an instruction of the guest can change its CPU")
        return found

    def argument(self, index: int) -> int:
        """arg0, arg1, ... as the probe's provider defines them; 0 if it defines none."""
        return self.enabling.argument(self, index)


def registers_unknown(_index: int) -> None:
    """An argument is not, or not only, in registers."""


@dataclass(frozen=True, slots=True)
class Enabling:
    """One enabled probe at one site."""

    probe: int  # its id
    action: Callable[[Firing], None]  # what dtrace_probe() does in a kernel
    argument: Callable[[Firing, int], int]
    offset: int  # of the site in its function
    leaving: tuple[int, int] | None = None  # fire only if control leaves this range: conditional return sites
    error: Callable[[Firing], int] | None = None  # gives errno, at the end of what has one (a system call)
    # The registers, as indexes in the trap frame, from which arg0, arg1, ... are computed; None: not from them alone.
    registers: Callable[[int], Sequence[int] | None] = registers_unknown


def _nowhere(_address: int) -> None:
    """The instruction is emulated."""


@dataclass(frozen=True, slots=True)
class Site:
    """One probed instruction. `emulation` is None if it runs in its trampoline. Else `out_of_line` gives, for an
    address of it, where the CPU can go instead of emulating it: to a trampoline that does the same, or straight to its
    target if a jump is all that it is; None: nowhere. `delivery` is decided for all enablings and the instruction."""

    address: int
    size: int
    trampoline: int
    emulation: Emulation | None
    enablings: tuple[Enabling, ...]
    out_of_line: Callable[[int], int | None] = _nowhere
    delivery: Delivery = DISPATCHED


@dataclass(frozen=True, slots=True)
class Port:
    """What the trap path needs from the machine."""

    frame: TrapFrame
    read: Callable[[], int]  # fill frame.regs
    writer: Callable[[Sequence[int]], Callable[[], int]]  # gives a function that writes these registers back
    fail: Callable[[BaseException], None]
    unclaimed: Callable[[int], None]  # called for an exception that belongs to no probe, with Unicorn's number
    # Uncounts the breakpoint, since the displaced instruction will be counted in its trampoline; None: nobody counts.
    take_back: Callable[[], None] | None
    fault: Callable[[PageFault], None]  # called to deliver a fault of an emulated access; the PC is at the site


class SiteCounter(Protocol):
    """Has the engine handle hits: it counts or records those that need no Python at once, and resumes the CPU after
    any. `kinst.runtime.hits.counted.CountedSites` implements it."""

    def add(self, site: Site, at: int, fire: Callable[[], None] | None, hit: Callable[[], None]) -> None:
        """Deliver the hits of a site at an address as its `delivery` says. Where that is to dispatch, `fire` lets its
        probes fire, and `hit` computes its effect as well. `fire` is None if probes may change where the CPU goes
        on."""
        ...

    def remove(self, address: int) -> None:
        """Stop handling a site. A CPU in its trampoline can still leave it."""
        ...

    def user(self, trampoline: int) -> tuple[int, int] | None:
        """The site that a CPU in a trampoline comes from, and the next instruction; None: it has a FIRED state."""
        ...

    def fold(self) -> None:
        """Give what was counted to the actions."""
        ...

    def end_with(self, jump: Callable[[int, int], bool], end: Callable[[int], None]) -> None:
        """Let trampolines end with a jump where that is possible, which saves the second trap. `jump` writes one to an
        address, if it reaches that; `end` writes the breakpoint back."""
        ...


class TrapPath:
    """The armed sites, and what happens at them."""

    def __init__(
        self, arch: ArchFacts, port: Port, count: Callable[["TrapPath"], SiteCounter | None] = lambda _trap: None
    ) -> None:
        """No site is armed. `count` makes what handles hits in place of this path, if the engine can."""
        self._arch = arch
        self._port = port
        self._number = arch.engine.breakpoint_number
        self._bias = arch.engine.breakpoint_bias
        self._write_pc = port.writer((arch.pc,))
        self.hits: dict[int, Hit] = {}
        self.fired: list[tuple[int, int, int]] = []  # the running CPU's: (slot, site, next instruction)
        self._handlers: list[Invop] = []  # newest last
        self._at_guests: list[AtGuests] = []
        self.trampolines = range(0)  # the addresses of all of them
        self._slots: dict[int, tuple[int, int]] = {}  # amd64: slot -> (site, next instruction)
        self.firing = Firing(port.frame, Enabling(0, lambda _firing: None, lambda _firing, _index: 0, 0))
        self.counted = count(self)  # where the engine can count

    def run_as(self, cpu: int, fired: list[tuple[int, int, int]], thread: int | None = None) -> None:
        """Another CPU runs, in these FIRED states; `thread`: see `Firing`; None: that of the CPU."""
        self.fired = fired
        self.firing.cpu, self.firing.thread = cpu, cpu if thread is None else thread

    def reach_trampolines(self, addresses: range) -> None:
        """Trampolines are at these addresses: those that there were, and more."""
        self.trampolines = addresses

    def intervene(self) -> None:
        """From now on, actions may change the CPU at sites that are added."""
        self.firing.interventions = Interventions(self._arch, self._port.frame, self._port.writer)

    # -- arming -------------------------------------------------------------------------------------------------------

    def add(self, site: Site, address: int | None = None) -> None:
        """Add a site, at another `address` if its code was relocated. This does not write its breakpoint."""
        at = site.address if address is None else address
        hit = self.hits[at] = self.prepared(site, at)
        if self.counted is not None:
            fire = self._fire(site, at) if self.firing.interventions is None else None
            self.counted.add(site, at, fire, partial(hit, at))

    def prepared(self, site: Site, at: int) -> Hit:
        """The hit of a site that is not added, but whose trampoline can be left from now on."""
        if site.emulation is None:
            self._prepare_trampoline(site, at)
        return self._kinst_invop(site)

    def _prepare_trampoline(self, site: Site, at: int) -> None:
        if self._arch.return_breakpoint is not None:
            # Nobody removes it with the site: a CPU may be in the trampoline at that moment.
            self.hits.setdefault(site.trampoline + self._arch.return_breakpoint, self._done(site.trampoline))
        else:
            self._slots[site.trampoline] = at, at + site.size

    def remove(self, addresses: Iterable[int]) -> None:
        """Remove sites. A CPU in one of their trampolines can still leave it."""
        for address in addresses:
            self.hits.pop(address, None)
            if self.counted is not None:
                self.counted.remove(address)

    def original(self, pc: int) -> int:
        """The address in the original code that `pc` stands for. If `pc` is in a trampoline, that is the site, or after
        the displaced instruction was executed the next one; the FIRED state ends."""
        if pc not in self.trampolines:
            return pc
        # This is what makes exception tables (Linux' __ex_table) and unwinders work: no address in a trampoline is ever
        # shown to the guest.
        slot = pc - (pc - self.trampolines.start) % self._arch.slot_size
        if self._arch.return_breakpoint is not None:
            found = self.fired.pop()[1:] if self.fired and self.fired[-1][0] == slot else self._counted_in(slot)
        else:
            found = self._slots.get(slot) or self._counted_in(slot)
        if found is None:
            return pc
        site, following = found
        return site if pc == slot else following

    def shown(self, pc: int) -> int:
        """As `original`, for an instruction that is executed at `pc`: it goes on there, and so does the FIRED state."""
        if pc not in self.trampolines:
            return pc
        slot = pc - (pc - self.trampolines.start) % self._arch.slot_size
        if self._arch.return_breakpoint is not None and self.fired and self.fired[-1][0] == slot:
            return self.fired[-1][1]
        found = self._slots.get(slot) or self._counted_in(slot)
        return pc if found is None else found[0]

    def _counted_in(self, slot: int) -> tuple[int, int] | None:
        """The counted site that runs in a trampoline, for which there is no FIRED state, and the next instruction."""
        return None if self.counted is None else self.counted.user(slot)

    # -- hits ---------------------------------------------------------------------------------------------------------

    def handler(self) -> Callable[[int, int, int], None]:
        """The callback for UC_HOOK_INTR."""
        hits, regs, read, pc_index = self.hits, self._port.frame.regs, self._port.read, self._arch.pc
        wanted, bias, unclaimed, write_pc = self._number, self._bias, self._port.unclaimed, self._write_pc

        def callback(_uc: int, number: int, _data: int) -> None:
            try:
                if number == wanted:
                    read()
                    pc = regs[pc_index] - bias
                    hit = hits.get(pc) or self.dtrace_invop(pc)
                    if hit is not None:
                        hit(pc)
                        if regs[pc_index] != pc + bias:  # else a write, half a microsecond, is saved
                            write_pc()
                        return
                    self._fire_at_guests(pc)
                unclaimed(number)
            except BaseException as error:
                self.failed(error)

        return callback

    def failed(self, error: BaseException) -> None:
        """Handle what a hit raises: a fault of an emulated access is the guest's, everything else ends the run."""
        try:
            if not isinstance(error, PageFault):
                raise error
            self._fault(error)
        except BaseException as failure:  # it cannot be raised through ctypes, which would print it and continue
            self._port.fail(failure)

    def claim(self, pc: int) -> bool:
        """Handle a breakpoint at `pc` that Unicorn reports by ending the run (riscv64's ebreak). False if it is the
        guest's."""
        hit = self.hits.get(pc) or self.dtrace_invop(pc)
        if hit is None:
            self._port.read()
            self._fire_at_guests(pc)
            return False
        self._port.read()
        regs, index = self._port.frame.regs, self._arch.pc
        # As if it had come through UC_HOOK_INTR, so that one kind of hit serves both.
        regs[index] = pc + self._bias
        self._write_pc()
        try:
            hit(pc)
            if regs[index] != pc + self._bias:
                self._write_pc()
        except PageFault as fault:
            self._fault(fault)
        return True

    def dtrace_invop_add(self, handler: Invop, at_guests: AtGuests | None = None) -> None:
        """Call `handler` for breakpoints that are not in `hits`, before the handlers that were added earlier; and
        `at_guests` for those that are the guest's."""
        self._handlers.append(handler)
        if at_guests is not None:
            self._at_guests.append(at_guests)

    def _fire_at_guests(self, pc: int) -> None:
        """Let the probes fire where the CPU has executed a breakpoint of the guest's own, which the guest handles. The
        frame is filled, and stays as it is."""
        regs, index = self._port.frame.regs, self._arch.pc
        for site in filter(None, [find(pc) for find in self._at_guests]):
            shown, regs[index], self.firing.site = regs[index], pc, pc
            self.firing.fire_unable(self._firing_now(site, pc))
            regs[index] = shown

    def dtrace_invop(self, pc: int) -> Hit | None:
        """The hit of a breakpoint that is not in `hits`, from the newest handler that knows it. None if it is the
        guest's own."""
        for handler in reversed(self._handlers):
            hit = handler(pc)
            if hit is not None:
                return hit
        return None

    def _fault(self, fault: PageFault) -> None:
        # The instruction has changed nothing yet (an effect accesses memory first), so the guest can repeat it.
        regs, index = self._port.frame.regs, self._arch.pc
        regs[index] = self.firing.site
        self._write_pc()
        self._port.fault(fault)

    def _kinst_invop(self, site: Site) -> Hit:
        """What kinst_invop and fbt_invop do at a site, which may have probes of both."""
        if self.firing.interventions is not None:
            return self._intervened(site, self.firing.interventions)
        if site.emulation is None:
            return self._copied(site)
        if any(enabling.leaving is not None for enabling in site.enablings):
            return self._leaving(site, site.emulation)
        return self._emulated(site, site.emulation)

    def _fire(self, site: Site, at: int) -> Callable[[], None]:
        """A function that lets the probes of a site fire, where the frame is filled and its PC is at the site."""
        firing, enablings = self.firing, site.enablings
        if len(enablings) != 1:
            return partial(self._fire_all, enablings, at)
        (enabling,) = enablings
        action = enabling.action

        def fire() -> None:
            firing.site = at
            firing.enabling = enabling
            action(firing)

        return fire

    def _fire_all(self, enablings: Sequence[Enabling], at: int) -> None:
        firing = self.firing
        firing.site = at
        for enabling in enablings:
            firing.enabling = enabling
            enabling.action(firing)

    def _emulated(self, site: Site, emulation: Emulation) -> Hit:
        firing, frame, enablings = self.firing, self._port.frame, site.enablings
        regs, pc_index, run = frame.regs, self._arch.pc, emulation.run
        write_registers = self._port.writer(emulation.writes) if emulation.writes else None

        def hit(pc: int) -> None:
            # Unicorn's PC may be past the breakpoint (`breakpoint_bias`): probes and effects need that of the site.
            regs[pc_index] = firing.site = pc
            for enabling in enablings:
                firing.enabling = enabling
                enabling.action(firing)
            run(frame)
            if write_registers is not None:
                write_registers()

        return hit

    def _leaving(self, site: Site, emulation: Emulation) -> Hit:
        """The hit of a conditional return site. Whether it returns is known only when the instruction has been
        computed, but the probe must see the state before it."""
        firing, frame, regs, pc_index = self.firing, self._port.frame, self._port.frame.regs, self._arch.pc
        write_registers = self._port.writer(emulation.writes) if emulation.writes else None
        changed = (*emulation.writes, pc_index)

        def hit(pc: int) -> None:
            moved = pc - site.address  # `leaving` is a range of link addresses
            regs[pc_index] = firing.site = pc
            after = emulation.foreseen(frame, pc_index)
            target = after[-1] - moved
            # The frame is as before the instruction again. Other probes of the site fire in any case.
            for enabling in site.enablings:
                if enabling.leaving is None or not enabling.leaving[0] <= target < enabling.leaving[1]:
                    firing.enabling = enabling
                    enabling.action(firing)
            for index, value in zip(changed, after, strict=True):
                regs[index] = value
            if write_registers is not None:
                write_registers()

        return hit

    def _copied(self, site: Site) -> Hit:
        firing, regs, pc_index, enablings = self.firing, self._port.frame.regs, self._arch.pc, site.enablings
        slot, size = site.trampoline, site.size
        has_state, take_back = self._arch.return_breakpoint is not None, self._port.take_back

        def hit(pc: int) -> None:
            regs[pc_index] = firing.site = pc
            for enabling in enablings:
                firing.enabling = enabling
                enabling.action(firing)
            if take_back is not None:
                take_back()
            if has_state and self._counted_in(slot) is None:  # else the engine ends the trampoline, from now on
                self.fired.append((slot, pc, pc + size))
            regs[pc_index] = slot  # last: until here the frame shows the site

        return hit

    def _intervened(self, site: Site, made: Interventions) -> Hit:
        """The hit of a site whose actions may change the CPU. What then happens there is what happens at a site without
        probes, unless they have said where the CPU goes on."""
        firing, regs, pc_index = self.firing, self._port.frame.regs, self._arch.pc
        bare, emulation = replace(site, enablings=()), site.emulation
        proceed = self._copied(bare) if emulation is None else self._emulated(bare, emulation)

        def hit(pc: int) -> None:
            regs[pc_index] = firing.site = pc
            firing_now = self._firing_now(site, pc)
            made.begin(site.size)
            try:
                for enabling in firing_now:
                    firing.enabling = enabling
                    enabling.action(firing)
            except BaseException:
                made.abandon()
                raise
            if not made.end(pc):
                proceed(pc)

        return hit

    def _firing_now(self, site: Site, pc: int) -> Sequence[Enabling]:
        """The enablings that fire at a hit: see `_leaving`."""
        if site.emulation is None or all(enabling.leaving is None for enabling in site.enablings):
            return site.enablings
        target = site.emulation.foreseen(self._port.frame, self._arch.pc)[-1] - (pc - site.address)
        return [one for one in site.enablings if one.leaving is None or not one.leaving[0] <= target < one.leaving[1]]

    def _done(self, slot: int) -> Hit:
        """The hit of the second breakpoint: the displaced instruction has been executed."""
        regs, pc_index = self._port.frame.regs, self._arch.pc

        def hit(_pc: int) -> None:
            fired = self.fired
            if not fired or fired[-1][0] != slot:
                raise MachineError(f"the guest jumped to {slot:#x}, into the trampolines of its probes")
            regs[pc_index] = fired.pop()[2]

        return hit

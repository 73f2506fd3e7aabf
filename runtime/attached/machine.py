"""A Qiling object and a plan -> sites armed in its memory, traps claimed, trampolines mapped; and all of it undone.

Exceptions that belong to no probe are passed on to Qiling as if we were not there. The engine counts hits, or calls
what is dispatched, and resumes the CPU by itself where it can, as in our own machines. The first hit of each site, and
all hits of the others, come to the trap path. Qiling may switch threads while an instruction runs in its trampoline, so
each thread has its own stack of FIRED states.
"""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from kinst.runtime.attached.guest import AttachedGuest
from kinst.runtime.attached.loaded import place_for_trampolines
from kinst.runtime.attached.memory import AttachedMemory
from kinst.runtime.attached.timers import Timers
from kinst.runtime.engine.attached_engine import AttachedEngine
from kinst.runtime.engine.native_hooks import BlockMarks
from kinst.runtime.hits.counted import CountedSites
from kinst.runtime.machine.configuration import End
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.patched.sites import Patched, SiteHooks, SiteTable
from kinst.runtime.trap.arch.registry import emulator, moved_trampoline
from kinst.runtime.trap.trap import Hit, Port, TrapPath
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.runtime.unwinding.arch.registry import stack_effects
from kinst.runtime.unwinding.frame_rules import FrameRules
from kinst.runtime.unwinding.pending_returns import PendingReturns
from kinst.runtime.unwinding.return_addresses import ReturnAddresses, named
from kinst.targets.method import Method


class AttachedMachine:
    """The machine that the user runs, with our trap path in it."""

    def __init__(
        self, guest: AttachedGuest, engine: AttachedEngine, memory: AttachedMemory, method: str | None
    ) -> None:
        """Claim the traps, if there is a `method` by which sites are patched; nothing else of the guest is changed yet.
        Raises UsageError: another tracer has claimed them."""
        self.guest, self.engine, self.memory = guest, engine, memory
        self.arch = guest.arch
        self.frame = TrapFrame(engine.frame.regs, memory.load_word, memory.store_word, engine.set_vector)
        # Fills the trap frame; asking for the thread would cost half a microsecond a hit.
        self.read: Callable[[], int] = self._read_of_thread if guest.is_threaded else engine.frame.read
        self._fired: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)  # by thread
        self.trap = TrapPath(self.arch, self._port(), lambda trap: self._count(trap, method))
        # For timers, and for returns of tail calls: either has a hook of its own, whose marks the other does not see.
        self._hooks = [engine.hook_blocks(), engine.hook_blocks()]
        self.timers = Timers(self._hooks[0].marks)
        self._sites: AttachedSites | None = None
        self._is_over = False
        self._undo_snapshots = _nothing

    def _port(self) -> Port:
        return Port(
            frame=self.frame,
            read=self.read,
            writer=self.engine.frame.writer,
            fail=self.engine.fail,
            unclaimed=self._unclaimed,
            take_back=None,
            fault=self._execute_original,
        )

    def patch(self, patched: Patched, rules: FrameRules) -> SiteTable:
        """Map the trampolines of an image; sites are armed by `arm`. `rules` say how functions of the image unwind."""
        sites = self._sites = AttachedSites(patched, self, self._hooks[1].marks, rules)
        self.trap.dtrace_invop_add(sites.claim)
        for hook in self._hooks:
            hook.set_trampolines(self.trap.trampolines.start, len(self.trap.trampolines))
        self._undo_snapshots = self.guest.around_snapshots(self.memory.restore, self.arm)
        return sites.table

    def _count(self, trap: TrapPath, method: str | None) -> CountedSites | None:
        """Claim the traps. Returns what handles hits without Python; None where the engine or the method does not allow
        it."""
        counters = None if method is None else self.engine.claim_traps(trap.handler(), trap.failed)
        if counters is None or method == Method.TRAP:
            return None
        return CountedSites(counters, self.arch, lambda: trap.trampolines)

    def start(self) -> None:
        """Have all code translated anew, since hooks are compiled into it."""
        self.engine.forget_all_code()

    def fold(self) -> None:
        """Give what was counted to the actions."""
        if self.trap.counted is not None:
            self.trap.counted.fold()

    def arm(self) -> None:
        """Write the breakpoints of enabled probes into memory; the others' bytes are the original ones."""
        if self._sites is not None and not self._is_over:
            self._sites.table.arm(self.memory, self.trap)

    def end(self, end: End) -> None:
        """End the run for a clause. exit() ends tracing only: the guest continues in its original code."""
        if end is End.EXIT:
            self._is_over = True
            self.timers.soon(self.memory.restore)
        else:
            self.guest.stop()

    def release(self) -> None:
        """Undo everything. The guest continues in its original code."""
        self.timers.close()
        self._undo_snapshots()
        if self._sites is not None:
            self.read()
            pc = self.frame.regs[self.arch.pc]
            original = self.trap.original(pc)
            if original != pc:  # it is in a trampoline, which will be unmapped
                self.engine.set_pc(original)
            self.memory.restore()
            self._sites.unmap()
        self.engine.release()

    # -- the guest's own ----------------------------------------------------------------------------------------------

    def _read_of_thread(self) -> int:
        """Fill the trap frame, and give the trap path the FIRED states of the thread that runs."""
        thread = self.guest.thread()
        self.trap.run_as(0, self._fired[thread], thread)
        return self.engine.frame.read()

    def _unclaimed(self, number: int) -> None:
        """Pass an exception on to Qiling, with the PC in the original code, as Unicorn would have reported it."""
        self.read()
        bias = self.arch.engine.interrupt_bias
        pc = self.frame.regs[self.arch.pc]
        original = self.trap.original(pc - bias) + bias
        if original != pc:
            self.engine.set_pc(original)
        self.engine.pass_on(number)

    def _execute_original(self, _fault: PageFault) -> None:
        """Handle the fault of an emulated access: the instruction itself executes once, so that the hooks of Qiling and
        of the user see the fault. It runs as a block of its own, so the site is armed again when the second block from
        now begins."""
        assert self._sites is not None, "a site was hit"
        site = self.trap.firing.site
        armed = self._sites.armed_bytes(site)
        self.memory.write(site, self._sites.pristine(site, armed))
        self.timers.soon(lambda: self.timers.soon(lambda: self.memory.write(site, armed)))


class AttachedSites:
    """The sites of one image."""

    def __init__(self, patched: Patched, machine: AttachedMachine, marks: BlockMarks, rules: FrameRules) -> None:
        """Map its trampolines. `marks` are those of a hook of its own; `rules` say how functions unwind."""
        self._machine = machine
        self._patched, self._loaded, self._bias = patched, patched.loaded, patched.loaded.bias
        hooks = SiteHooks(returning=self._pending(marks, rules).waiting)
        self.table = SiteTable(patched, machine.arch, emulator(machine.arch), hooks)
        self._distance = self._map()  # of trampolines from their link addresses plus the bias
        # amd64's jump back to link addresses: those of an image that was moved are made when they are needed.
        is_moved = self._bias != 0 or self._distance != 0
        self._make = moved_trampoline(machine.arch) if is_moved else None

    def _map(self) -> int:
        address, size = self._patched.manifest.trampolines
        if not size:
            return 0
        planned, guest = address + self._bias, self._machine.guest
        start = planned if guest.is_free(planned, size) else place_for_trampolines(self._loaded, guest, size)
        slots = np.frombuffer(self._patched.trampolines, np.uint8).reshape(-1, self._machine.arch.slot_size)
        guest.map(start, self.table.slot_bytes(slots).tobytes())
        self._machine.trap.reach_trampolines(range(start, start + size))
        memory = self._machine.memory
        self.table.reach_trampolines(self._machine.trap, memory.read, memory.write, start - planned)
        return start - planned

    def unmap(self) -> None:
        """Unmap the trampolines."""
        place = self._machine.trap.trampolines
        if place:
            self._machine.guest.unmap(place.start, len(place))

    def claim(self, pc: int) -> Hit | None:
        """The hit of a breakpoint at `pc`; None if it is the guest's own."""
        row = self.table.row_at(pc - self._bias)
        if row is None or not self.table.is_armed[row]:
            return None
        site = self.table.site(row)
        if self._make is not None and site.emulation is None:
            record = self.table.manifest.sites[row]
            code = self._make(int(record["kind"]), record["original"].tobytes()[: site.size], pc, site.trampoline)
            reaches = code is not None and len(code) <= self._space(row)
            assert code is not None and reaches, "operands reach as far as they did where both were linked"
            self._machine.memory.write(site.trampoline, code)
        self._machine.trap.add(site, pc)
        return self._machine.trap.hits[pc]

    def _space(self, row: int) -> int:
        """Bytes from the trampoline of a site to the next one."""
        slots, (start, size) = self.table.manifest.sites["trampoline"], self.table.manifest.trampolines
        end = int(slots[row + 1]) if row + 1 < len(slots) else start + size
        return end - int(slots[row])

    def armed_bytes(self, address: int) -> bytes:
        """The breakpoint of the site at an address: no longer than its instruction."""
        row = self.table.row_at(address - self._bias)
        assert row is not None, "a site was hit"
        return self.table.armed_bytes[int(self.table.manifest.sites["size"][row])]

    def pristine(self, address: int, content: bytes) -> bytes:
        """Bytes read at an address, with the original ones where sites are armed."""
        return self.table.pristine(address - self._bias, content)

    def _pending(self, marks: BlockMarks, rules: FrameRules) -> PendingReturns:
        """Makes return probes at tail calls wait for the return."""
        machine, arch = self._machine, self._machine.arch
        is_named = named(self._loaded.image, rules.link_address)
        returns = ReturnAddresses(arch, stack_effects(arch), arch.engine.armed, self._bytes, is_named, rules.here)

        def watch(look: Callable[[int, int], None]) -> BlockMarks:
            marks.looks.append(look)
            return marks

        return PendingReturns(arch, machine.trap.firing, machine.read, returns, watch)

    def _bytes(self, address: int, size: int) -> bytes:
        """Memory within a page, without breakpoints; empty where there is none."""
        memory = self._machine.memory
        physical = memory.translate(address)
        if physical is None or not memory.has(physical, size):
            return b""
        return self.pristine(address, memory.read(physical, size))


def _nothing() -> None:
    """Undo nothing: nothing was installed."""

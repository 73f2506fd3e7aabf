"""A machine that is stopped in the middle of an instruction, or before an exception is taken -> a firing there.

Such a firing has a trap frame of its own: the trap path may be at work on a hit, whose registers must stay as they are.
"""

from collections.abc import MutableSequence

from kinst.runtime.machine.system import System
from kinst.runtime.tracing.host.contract import blank_firing
from kinst.runtime.trap.trap import Firing
from kinst.runtime.trap.trap_frame import TrapFrame


class MidInstruction:
    """Makes firings for what an instruction causes."""

    def __init__(self, system: System) -> None:
        """Between two runs."""
        self._system = system
        frame = system.engine.frame.another()
        self._read, self._regs = frame.read, frame.regs
        self._frame = TrapFrame(frame.regs, system.space.load, system.space.store, lambda _number, _value: None)
        self._firing = blank_firing(self._frame, 0, 0)
        self._place = system.engine.states.access_place()

    def accessing(self, *, is_memory: bool) -> Firing:
        """A firing at the instruction that accesses a window of memory at the moment (`is_memory`), or a port, or
        nothing since it faults; valid until the next one. Registers are as they are before the access."""
        system = self._system
        if system.space.is_asking:  # the trap path or a model does it for an instruction, whose registers it has
            hit = system.trap.firing
            self._regs[:] = hit.regs
            return self._at(self._regs, hit.site)
        if is_memory:
            self._place.settle()  # else Unicorn's note is that of another access
        self._read()
        return self._at(self._regs, system.trap.shown(self._regs[system.arch.pc]))

    def excepting(self, pc: int) -> Firing:
        """A firing for an exception or interrupt of the instruction at `pc` that is about to be taken, valid until the
        next one."""
        self._read()
        return self._at(self._regs, pc)

    def _at(self, regs: MutableSequence[int], pc: int) -> Firing:
        system = self._system
        regs[system.arch.pc] = pc
        self._firing.run_on(system.current.number)
        self._firing.move(pc)
        return self._firing

"""The first hit of a breakpoint -> its site, if the CPU is in the mode in which the code was read; else none.

An image does not always tell which of its code is 16- or 32-bit; the CPU knows. Only the first hit of a site comes
here. A site that was decoded in the wrong mode may be inside an instruction, so that the displaced bytes are no
instruction: the original bytes are restored, and the guest continues as if nothing had happened.
"""

from collections.abc import Callable

from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import Access
from kinst.runtime.trap.trap import Hit


class ModeCheck:
    """A handler for `TrapPath.dtrace_invop_add`, before those that know the sites."""

    def __init__(
        self,
        claim: Callable[[int], Hit | None],
        pristine: Callable[[int, bytes], bytes],
        system: System,
        warn: Callable[[str], None],
    ) -> None:
        """`claim` finds sites. `pristine` restores, in bytes read at an address, what armed sites replaced."""
        self._claim = claim
        self._pristine = pristine
        self._system = system
        self._warn = warn

    def claim(self, pc: int) -> Hit | None:
        """The hit of a breakpoint at `pc`; None if it is the guest's own."""
        hit = self._claim(pc)
        if hit is None:
            return None
        mode = self._system.exceptions.foreign_mode(self._system.current)
        if not mode:
            return hit
        self._system.trap.remove([pc])
        self._warn(f"no probe at {pc:#x}: the CPU runs {mode} code there, and it was read as {self._system.arch.name}")
        return self._give_back

    def _give_back(self, pc: int) -> None:
        system = self._system
        armed = max(system.arch.engine.armed.values(), key=len)
        content = self._pristine(pc, system.space.fetch(pc, len(armed)))
        system.memory.write(system.space.physical(pc, Access.FETCH), content)
        system.memory.code_changed()
        system.current.registers.set(system.arch.registers[system.arch.pc], pc)
        system.yield_cpu()

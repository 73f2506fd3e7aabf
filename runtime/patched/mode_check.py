"""A breakpoint's hit for the first time -> its site, if the CPU is in the mode that the code was read in; else none.

What 16- and 32-bit code is, an image tells imperfectly; the CPU knows. Asked once for each site, when it is first hit:
later hits find their site without coming here. A site that was read in the wrong mode may lie inside an instruction,
so what is displaced is no instruction either: the original bytes go back, and the guest goes on as if nothing had been.
"""

from collections.abc import Callable

from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import Access
from kinst.runtime.trap.trap import Hit


class ModeCheck:
    """A handler for `TrapPath.dtrace_invop_add`, in front of what knows the sites."""

    def __init__(
        self,
        claim: Callable[[int], Hit | None],
        pristine: Callable[[int, bytes], bytes],
        system: System,
        warn: Callable[[str], None],
    ) -> None:
        """`claim` finds sites; `pristine` gives bytes at an address as they were before sites were armed."""
        self._claim = claim
        self._pristine = pristine
        self._system = system
        self._warn = warn

    def claim(self, pc: int) -> Hit | None:
        """What to do at a breakpoint at `pc`; None: it is the guest's own."""
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
        armed = max(system.exceptions.armed.values(), key=len)
        content = self._pristine(pc, system.space.fetch(pc, len(armed)))
        system.memory.write(system.space.physical(pc, Access.FETCH), content)
        system.memory.is_code_stale = True
        system.current.registers.set(system.arch.registers[system.arch.pc], pc)
        system.yield_cpu()

"""A machine -> a call for each interrupt that is taken, and one for its end, for state that belongs to interrupted
code.

The machine delivers interrupts itself, so it knows when one begins. (On RISC-V Unicorn delivers them; there a block at
the guest's vector shows it.) An interrupt ends when the interrupted instruction is reached again with the same stack
pointer. Interrupts of user code are not reported: their handlers begin on an empty kernel stack.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.system import System
from kinst.targets.values import dataclass

_LARGEST_FRAME: Final = 64  # bytes that a CPU pushes when it takes an interrupt, with their alignment


@dataclass(frozen=True, slots=True, eq=False)
class Interrupt:
    """An interrupt that is being handled. Its handler's frames are below `limit`."""

    pc: int
    sp: int
    limit: int


class Interrupts:
    """Watches a system from its first run on."""

    def __init__(self, system: System, begun: Callable[[Interrupt], None], ended: Callable[[Interrupt], None]) -> None:
        """`begun` and `ended` are called with each interrupt. Call `drop` for one that is found to be over in another
        way; then `ended` is not called."""
        self._system, self._begun, self._ended = system, begun, ended
        self._live = system.engine.live
        self._sp = system.arch.registers[system.arch.stack_pointer]
        self._open: dict[int, list[Interrupt]] = {}  # by the interrupted PC
        self._vectors: set[int] = set()
        self._blocks = system.engine.watch_blocks(self._reached)
        system.attach_interrupt_watcher(self)

    def drop(self, interrupt: Interrupt) -> None:
        """Forget an interrupt that is over."""
        found = self._open.get(interrupt.pc, [])
        if interrupt in found:
            found.remove(interrupt)
            self._blocks.remove(interrupt.pc)

    def delivered(self, pc: int, sp: int) -> None:
        """See `InterruptWatcher`."""
        limit = self._live.get(self._sp)
        if 0 <= sp - limit <= _LARGEST_FRAME:  # otherwise it has another stack
            self._begin(Interrupt(pc, sp, limit))

    def _begin(self, interrupt: Interrupt) -> None:
        self._open.setdefault(interrupt.pc, []).append(interrupt)
        self._blocks.add(interrupt.pc)
        self._begun(interrupt)

    def may_come(self, cpu: VirtualCpu) -> None:
        """See `InterruptWatcher`. Watches the vectors."""
        for address in self._system.exceptions.vectors(cpu):
            if address not in self._vectors:
                self._vectors.add(address)
                self._blocks.add(address)

    def _reached(self, address: int) -> None:
        sp = self._live.get(self._sp)
        for interrupt in reversed(self._open.get(address, ())):
            if interrupt.sp == sp:
                self.drop(interrupt)
                self._ended(interrupt)
                break
        if address in self._vectors:
            pc = self._system.exceptions.interrupted(self._system.current)
            if pc is not None:
                self._begin(Interrupt(pc, sp, sp))

"""What the CPUs take -> a call for each exception and each interrupt, before its handler begins.

The exception model tells of what it delivers. Where Unicorn delivers interrupts itself (riscv64), a block at the
guest's vector shows one.
"""

from collections.abc import Mapping

from kinst.runtime.engine.block_watch import BlockWatch
from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.exception_model import Taken, TakenWatcher
from kinst.runtime.machine.system import System


class TakenWatch:
    """The exceptions and interrupts of one machine, to which several may listen."""

    def __init__(self, system: System) -> None:
        """Nobody listens, and nothing is watched."""
        self._system = system
        self._watchers: list[TakenWatcher] = []
        self._blocks: BlockWatch | None = None
        self._vectors: set[int] = set()

    def watch(self, watcher: TakenWatcher) -> None:
        """Call `watcher` with each from now on. The CPU's registers are as they were before, but for the PC and what a
        call of `TakenWatcher` is told."""
        self._watchers.append(watcher)
        self._system.exceptions.watch(self._tell)
        if self._blocks is None:
            self._blocks = self._system.engine.watch_blocks(self._reached)
            self._system.attach_interrupt_watcher(self)

    def unwatch(self, watcher: TakenWatcher) -> None:
        """Call it no more."""
        self._watchers.remove(watcher)
        if self._watchers:
            return
        self._system.exceptions.watch(None)
        if self._blocks is not None:
            for vector in self._vectors:
                self._blocks.remove(vector)
        self._vectors.clear()

    def _tell(self, taken: Taken) -> None:
        for watcher in tuple(self._watchers):
            watcher(taken)

    # -- interrupts that Unicorn delivers -----------------------------------------------------------------------------

    def delivered(self, pc: int, sp: int) -> None:
        """See `InterruptWatcher`. The model has told of it."""

    def may_come(self, cpu: VirtualCpu) -> None:
        """See `InterruptWatcher`. Watches the vectors."""
        if not self._watchers or self._blocks is None:
            return
        for vector in self._system.exceptions.vectors(cpu):
            if vector not in self._vectors:
                self._vectors.add(vector)
                self._blocks.add(vector)

    def _reached(self, address: int) -> None:
        cpu = self._system.current
        found = self._system.exceptions.entered(cpu) if address in self._vectors else None
        if found is None:
            return
        taken, before = found
        now = {name: cpu.registers.get(name) for name in before}
        _set(cpu, before)
        try:
            self._tell(taken)
        finally:
            _set(cpu, now)


def _set(cpu: VirtualCpu, values: Mapping[str, int]) -> None:
    for name, value in values.items():
        cpu.registers.set(name, value)

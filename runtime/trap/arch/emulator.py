"""What a machine's emulator does: the kind and bytes of a displaced instruction -> its effect on a trap frame."""

from collections.abc import Callable
from typing import Protocol

from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Emulation:
    """The effect of a displaced instruction, built once for a site and run at every hit.

    `run` changes `frame.regs` (the PC always) and memory. `writes` lists the frame indexes it may change besides the
    PC, so that only these are written back. PC-relative results are computed from `frame.regs[pc]` and never from the
    link address, so a relocated copy of the image can use the same emulation.
    """

    run: Callable[[TrapFrame], None]
    writes: tuple[int, ...]

    def foreseen(self, frame: TrapFrame, pc: int) -> list[int]:
        """The values that the registers in `writes`, and then the PC (at index `pc`), are about to get. The effect is
        computed, read and undone, since a probe sees the state before it. Not for instructions that store to memory."""
        regs, changed = frame.regs, (*self.writes, pc)
        before = [regs[index] for index in changed]
        try:
            self.run(frame)
            return [regs[index] for index in changed]
        finally:
            for index, value in zip(changed, before, strict=True):
                regs[index] = value


class Emulator(Protocol):
    """One machine's displaced instructions: kinst_emulate, but decoded once for each site."""

    @property
    def facts(self) -> ArchFacts:
        """The facts of the machine."""
        ...

    def emulation(self, kind: int, instruction: bytes) -> Emulation:
        """The effect of `instruction`, classified as `kind` with the verdict Emulate by the dissector."""
        ...

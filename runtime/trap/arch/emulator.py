"""What each machine's emulator answers: the kind and bytes of a displaced instruction -> its effect on a trap frame."""

from collections.abc import Callable, MutableSequence
from dataclasses import dataclass
from typing import Protocol

from kinst.targets.arch.facts import ArchFacts


class Frame(Protocol):
    """The state of one CPU at a trap, as an emulated instruction sees it.

    `regs` holds one unsigned 64-bit word a register in the order of `ArchFacts.registers`; what is stored must be
    masked to 64 bits. Memory is guest virtual memory of the interrupted context, little-endian; an access the guest may
    not make raises `PageFault`, so an effect touches memory before it changes any register.
    """

    regs: MutableSequence[int]

    def load(self, address: int, size: int) -> int:
        """`size` bytes at `address`, unsigned."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Write the low `size` bytes of `value`."""
        ...

    def set_vector(self, number: int, value: int) -> None:
        """Set a 128-bit SIMD register (arm64 literal loads); the upper part is zeroed by passing a narrow value."""
        ...


@dataclass(frozen=True, slots=True)
class Emulation:
    """A displaced instruction's effect, made once for a site and run at every hit.

    `run` changes `frame.regs` (the PC always) and memory. `writes` lists the frame indexes it may change besides the
    PC, so that only these are written back. PC-relative results are computed from `frame.regs[pc]`, never from the link
    address: a relocated copy of the image runs the same emulation.
    """

    run: Callable[[Frame], None]
    writes: tuple[int, ...]


class Emulator(Protocol):
    """One machine's displaced instructions."""

    @property
    def facts(self) -> ArchFacts:
        """The machine."""
        ...

    def emulation(self, kind: int, instruction: bytes) -> Emulation:
        """The effect of `instruction`, classified as `kind` with the verdict Emulate by the dissector."""
        ...

"""What a machine makes for a standalone image: jumps, and trampolines that do by themselves what their probes want."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.instruction import Flow


class ImmovableError(Exception):
    """A group of instructions cannot be in a trampoline there. Its text is the reason, to follow "refused: "."""


@dataclass(frozen=True, slots=True)
class Count:
    """Add one to a word, whatever other CPUs do to it at the same time. `cell` is its link address."""

    cell: int


@dataclass(frozen=True, slots=True)
class Clock:
    """The CPU's own clock: rdtsc, cntvct_el0, rdtime."""


@dataclass(frozen=True, slots=True)
class Register:
    """What is in a register before the site's instruction: its number in the trap frame."""

    number: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that is known."""

    value: int


@dataclass(frozen=True, slots=True)
class Record:
    """Append a record to the ring of `kinst.targets.standalone`: the site's row, and a word from each of `words`.

    `ring` is its link address; `mask` is its capacity - 1; `stride` is a record's bytes.
    """

    ring: int
    mask: int
    stride: int
    site: int
    words: tuple[Clock | Register | Constant, ...]


@dataclass(frozen=True, slots=True)
class Covered:
    """An instruction that a jump covers, or that follows in the trampoline.

    `dead`: the registers and flags that are dead before it (`kinst.rewriter.liveness`). `has_stack`: the stack pointer
    is one of a stack that may be pushed on. `task` is done before it; None: it is no site.
    """

    address: int
    code: bytes
    target: int  # as in `Instructions`
    kind: int
    flow: Flow
    dead: int
    has_stack: bool
    task: Count | Record | None
    dead_behind: int = 0  # what is dead where control goes on if it falls through


class Maker(Protocol):
    """One machine's code. All that it makes is position-independent: image and trampolines may be moved together."""

    def jump(self, address: int, size: int, target: int, dead: int = 0) -> bytes:
        """`size` bytes for `address`: a jump, the shortest that is needed, and breakpoints behind it. `dead`: the
        registers that are dead there, by one of which it may go.

        Raises:
            ImmovableError: it does not reach.
        """
        ...

    def trampoline(self, group: Sequence[Covered], address: int) -> bytes:
        """Code for a link address: each task, and each instruction with the effect that it has where it was, and at
        the end, if control comes there, a jump to what is behind the last one.

        Whatever a task does, the guest finds registers, flags, and memory but for red zones that are dead, as they
        were. A multiple of the machine's instruction alignment.

        Raises:
            ImmovableError: one of them cannot be there, or a task has nothing to work with.
        """
        ...

    def switches_stack(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """Which instructions load the stack pointer with something other than itself and a constant or an index, or a
        frame pointer in an epilogue: the functions they are in may run where there is no stack to push on.

        Args:
            code: bytes of a region, with 32 spare ones at its end.
            offsets: of the instructions.
            sizes: of them.
        """
        ...

    def uses_stack(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """Which instructions push, call by the stack, or move the stack pointer by a number: so there is a stack. Those
        that `switches_stack` names may be among them. Arguments as there."""
        ...


def maker(facts: ArchFacts) -> Maker:
    """That of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: Maker = import_module(f"kinst.rewriter.standalone.{facts.name}").MAKER
    return found

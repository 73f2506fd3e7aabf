"""What is dead at an instruction -> the registers that its task may use; those that live are saved on the stack."""

from collections.abc import Collection, Sequence

import numpy as np

from kinst.rewriter.standalone.code.trampoline import ImmovableError, Masks
from kinst.targets.standalone import WORD
from kinst.targets.values import dataclass

_ALIGNMENT = 16  # of the stack pointer: arm64 faults where SCTLR_EL1.SA is set, the psABI of riscv64 asks for it


@dataclass(frozen=True, slots=True)
class Scratch:
    """Registers by number. `saved` are those among them whose values are still needed."""

    registers: tuple[int, ...]
    saved: tuple[int, ...]

    @property
    def frame(self) -> int:
        """Bytes that the saved registers take on the stack, the first one lowest."""
        return -(-len(self.saved) * WORD // _ALIGNMENT) * _ALIGNMENT

    def place(self, number: int) -> int:
        """The offset of a saved register from the stack pointer."""
        return self.saved.index(number) * WORD


def needed(count: int, usable: Sequence[int], dead: Masks, recorded: Collection[int] = ()) -> Masks:
    """Which of the dead registers `scratch` would take."""
    found, lacking = np.zeros(len(dead), np.uint32), np.full(len(dead), count)
    for number in usable:
        if number not in recorded:
            taken = (dead >> number & 1 != 0) & (lacking > 0)
            found |= taken.astype(np.uint32) << number
            lacking -= taken
    return found


def scratch(
    count: int, usable: Sequence[int], dead: int, recorded: Collection[int] = (), *, has_stack: bool
) -> Scratch:
    """Choose `count` of the usable registers, in the order of preference.

    A register that is recorded is taken last, and is always saved, though it may be dead: its value is read from the
    stack. `dead` and `has_stack` are those of the instruction.

    Raises:
        ImmovableError: too few are dead, and there is no stack.
    """
    free = [number for number in usable if dead >> number & 1 and number not in recorded][:count]
    lacking = count - len(free)
    if lacking and not has_stack:
        raise ImmovableError("too few registers are dead there, and no stack is known to save others on")
    others = sorted((number for number in usable if number not in free), key=lambda number: number in recorded)
    saved = others[:lacking]
    return Scratch((*free, *saved), tuple(saved))

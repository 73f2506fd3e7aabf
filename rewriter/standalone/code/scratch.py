"""An instruction -> the registers that its task may use: dead ones, and others that the stack keeps meanwhile."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from kinst.rewriter.standalone.code.trampoline import ImmovableError, Masks
from kinst.targets.standalone import WORD

_ALIGNMENT = 16  # of the stack pointer, which arm64 checks and the psABI of riscv64 asks for


@dataclass(frozen=True, slots=True)
class Scratch:
    """Registers by their numbers. `saved` are those of them whose values are needed afterwards."""

    registers: tuple[int, ...]
    saved: tuple[int, ...]

    @property
    def frame(self) -> int:
        """Bytes of the stack that those take, the first one lowest."""
        return -(-len(self.saved) * WORD // _ALIGNMENT) * _ALIGNMENT

    def place(self, number: int) -> int:
        """Where one of them is on the stack, from its pointer on."""
        return self.saved.index(number) * WORD


def needed(count: int, usable: Sequence[int], dead: Masks, recorded: Collection[int] = ()) -> Masks:
    """Of the dead registers those that `scratch` would take."""
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
    """`count` of the registers that are usable, the best of which come first.

    A register that is recorded is taken last, and only saved: its value is on the stack then. `dead` and `has_stack`
    are those of the `Covered`.

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

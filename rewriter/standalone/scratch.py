"""An instruction -> the registers that its task may use: dead ones, and others that the stack keeps meanwhile."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kinst.rewriter.standalone.trampoline import Covered, ImmovableError


@dataclass(frozen=True, slots=True)
class Scratch:
    """Registers by their numbers. `saved` are those of them whose values are needed afterwards."""

    registers: tuple[int, ...]
    saved: tuple[int, ...]


def scratch(one: Covered, count: int, usable: Sequence[int], recorded: Collection[int] = ()) -> Scratch:
    """`count` of the registers that are usable, the best of which come first.

    A register that is recorded is taken last, and only saved: its value is on the stack then.

    Raises:
        ImmovableError: too few are dead, and there is no stack.
    """
    dead = [number for number in usable if one.dead >> number & 1 and number not in recorded][:count]
    lacking = count - len(dead)
    if lacking and not one.has_stack:
        raise ImmovableError("too few registers are dead there, and no stack is known to save others on")
    others = sorted((number for number in usable if number not in dead), key=lambda number: number in recorded)
    saved = others[:lacking]
    return Scratch((*dead, *saved), tuple(saved))

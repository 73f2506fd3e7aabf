"""Call frame information of an image -> the registers that unwinders find callers' values in.

Compilers describe a saved register some instructions after they have saved it. Until then its value is not needed any
more by the program, but by whoever unwinds from there, or from the trampoline that comes back there.
"""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.frames.original import OriginalFrames
from kinst.rewriter.frames.states import State
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.image import Image

_ALL = 0xFFFF_FFFF


def kept_for_unwinders(image: Image, addresses: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The registers that must keep their values at some instructions, as bits, by their index in the trap frame."""
    original = OriginalFrames(image)
    if not original:
        return np.zeros(len(addresses), np.uint32)
    rows = original.rows_of(addresses)
    row = rows.at(addresses)
    masks = np.array([_mask(image.facts, state) for state in original.states] or [0], np.uint32)
    return np.where(row >= 0, masks[np.maximum(rows.state[row], 0)], np.uint32(0))


def _mask(facts: ArchFacts, state: State) -> int:
    """Those that a function must give back and that have no rule; and what the CFA is reckoned from."""
    if state.expression:
        return _ALL
    numbers, rules = facts.unwind.dwarf_registers, dict(state.rules)
    named = [number for number in facts.unwind.preserved if number not in rules]
    if facts.link_register is not None:
        link = [*numbers].index(facts.link_register)
        named += [link] if link not in rules else []
    return sum({1 << numbers[number] for number in (*named, state.register)})

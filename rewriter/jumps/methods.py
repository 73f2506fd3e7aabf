"""How a site can become a jump to its trampoline, or why it cannot: what users read of it."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kinst.targets.values import dataclass


class JumpMethod(IntEnum):
    """Where the jump goes. `text` is what the user reads."""

    TRAP = 0  # not a jump: `Hindrance` says why
    ALONE = 1
    TOGETHER = 2
    INSIDE = 3
    PADDING = 4
    RELAY = 5
    BEFORE = 6

    @property
    def text(self) -> str:
        """The method in words."""
        return _METHOD_TEXT[self]


_METHOD_TEXT = {
    JumpMethod.TRAP: "a breakpoint",
    JumpMethod.ALONE: "a jump in its own bytes",
    JumpMethod.TOGETHER: "a jump over it and the instructions after it, to which nothing else leads",
    JumpMethod.INSIDE: "in the trampoline of a site before it",
    JumpMethod.PADDING: "a jump over it and the padding after it",
    JumpMethod.RELAY: "a short jump to padding, where the long one is",
    JumpMethod.BEFORE: "a jump over it and the instructions before it, from which alone control comes to it",
}


class Hindrance(IntEnum):
    """Why a site cannot be a jump. `text` is what the user reads."""

    NONE = 0
    REFUSED = 1
    DEFERRED = 2
    EXPECTED_FAULT = 3
    TOO_SHORT = 4
    LED_TO = 5
    COMPUTED_JUMP = 6
    NOT_MOVABLE = 7
    LEAVES = 8
    OUT_OF_REACH = 9
    CHECKED = 10

    @property
    def text(self) -> str:
        """The reason in words."""
        return _HINDRANCE_TEXT[self]


_HINDRANCE_TEXT = {
    Hindrance.NONE: "",
    Hindrance.REFUSED: "it cannot be probed",
    Hindrance.DEFERRED: "the guest writes here by itself",
    Hindrance.EXPECTED_FAULT: "the kernel expects a fault at its address",
    Hindrance.TOO_SHORT: "it is shorter than a jump",
    Hindrance.LED_TO: "too short, and something may lead to an instruction that the jump would cover",
    Hindrance.COMPUTED_JUMP: "too short, and a computed jump of its function may lead anywhere in it",
    Hindrance.NOT_MOVABLE: "too short, and an instruction that the jump would cover must stay where it is",
    Hindrance.LEAVES: "too short, and what follows it is not reached from it alone",
    Hindrance.OUT_OF_REACH: "its trampoline is out of a jump's reach",
    Hindrance.CHECKED: "hardware may check that what leads here, or from here, lands on a pad",
}


@dataclass(frozen=True, slots=True)
class Decisions:
    """Columns, one row a site: a `JumpMethod`; a `Hindrance`; the address of the long jump of a RELAY, else 0; and the
    rows of the first and of the last instruction that its jump covers. Of INSIDE, `first` is the first row of those up
    to the site that are only in the trampoline."""

    method: NDArray[np.uint8]
    hindrance: NDArray[np.uint8]
    relay: NDArray[np.uint64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def why(self, row: int) -> str:
        """What the user reads of one site."""
        hindrance = Hindrance(int(self.hindrance[row]))
        text = JumpMethod(int(self.method[row])).text
        return f"{text}: {hindrance.text}" if hindrance else text

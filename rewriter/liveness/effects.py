"""What instructions read and write, as bits: what the search for dead registers needs to know of a machine.

Bit n is register n of the trap frame; flags have bits that no general register has.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.values import dataclass

Masks = NDArray[np.uint32]
EVERYTHING: Final = 0xFFFF_FFFF  # all registers and flags: read by an instruction of which nothing is known


@dataclass(frozen=True, slots=True)
class Effects:
    """Columns: what may be read, and what is overwritten in any case. A register that is written in part only is in
    neither: the rest stays."""

    reads: Masks
    writes: Masks


class Effector(Protocol):
    """One machine's answer. What it does not know reads `EVERYTHING`."""

    @property
    def flags(self) -> Mapping[str, int]:
        """The bit of each flag by its name; empty: the machine has none."""
        ...

    @property
    def held(self) -> int:
        """Registers that are never taken for dead: frames, threads and globals are found by them, by interrupt handlers
        too."""
        ...

    def effects(self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]) -> Effects:
        """The effects of the instructions at `offsets` of `code`, which has 32 spare bytes at its end."""
        ...


def effector(facts: ArchFacts) -> Effector:
    """The effector of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: Effector = import_module(f"kinst.rewriter.liveness.{facts.name}").EFFECTOR
    return found

"""What a machine's instructions have of code's addresses, and which of its jumps go elsewhere."""

from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts

Addresses = NDArray[np.uint64]


class References(Protocol):
    """One machine's answer, for those whose `JumpFacts.joins` is set."""

    def __call__(
        self, code: NDArray[np.uint8], base: int, address: Addresses, size: NDArray[np.uint8]
    ) -> list[Addresses]:
        """The addresses that instructions make: those of code among them, and others.

        Args:
            code: the bytes of a region, which is at the address `base`.
            base: that address.
            address: where its instructions are, ascending.
            size: their sizes.
        """
        ...


class Computed(Protocol):
    """One machine's answer, for the same machines."""

    def __call__(self, code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which indirect jumps may go to an address that is nowhere in memory: it was added up.

        Args:
            code: the bytes of a region, with 32 spare ones at its end.
            offsets: of the jumps.
        """
        ...


def references(facts: ArchFacts) -> References:
    """That of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: References = import_module(f"kinst.rewriter.jumps.{facts.name}").references
    return found


def computed(facts: ArchFacts) -> Computed:
    """That of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: Computed = import_module(f"kinst.rewriter.jumps.{facts.name}").computed
    return found

"""What a machine's instructions have of code's addresses."""

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


def references(facts: ArchFacts) -> References:
    """That of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: References = import_module(f"kinst.rewriter.jumps.{facts.name}").references
    return found

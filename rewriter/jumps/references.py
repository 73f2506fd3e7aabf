"""A machine's instructions -> the addresses of code that they make, and where its indirect jumps go."""

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.values import dataclass

Addresses = NDArray[np.uint64]


class References(Protocol):
    """One machine's answer, for those whose `JumpFacts.joins` is set."""

    def __call__(
        self, code: NDArray[np.uint8], base: int, address: Addresses, size: NDArray[np.uint8]
    ) -> list[Addresses]:
        """The addresses that instructions make: those of code among them, and others.

        Args:
            code: the bytes of a region.
            base: its address.
            address: of its instructions, ascending.
            size: of its instructions.
        """
        ...


@dataclass(frozen=True, slots=True)
class Jumps:
    """The instructions of a region, and which of them are indirect jumps.

    `code` has 32 spare bytes at its end; `base` is its address, and `offsets` count from there. `leads_on`: control
    falls through from the instruction to the next one, which is reached from nowhere else. `rows`: of the jumps.
    """

    code: NDArray[np.uint8]
    base: int
    offsets: NDArray[np.int64]
    sizes: NDArray[np.uint8]
    leads_on: NDArray[np.bool_]
    rows: NDArray[np.intp]


class Tables(Protocol):
    """One machine's answer, for the same machines."""

    def __call__(self, jumps: Jumps) -> Sequence[Sequence[int] | None]:
        """For each jump the addresses of the tables of 4-byte distances that it goes through; none if it goes to a
        whole pointer in memory; None if it may go anywhere, as far as is known."""
        ...


def references(facts: ArchFacts) -> References:
    """That of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: References = import_module(f"kinst.rewriter.jumps.{facts.name}").references
    return found


def tables(facts: ArchFacts) -> Tables:
    """That of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: Tables = import_module(f"kinst.rewriter.jumps.{facts.name}").tables
    return found

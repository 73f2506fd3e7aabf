"""What a machine's instructions have of code's addresses, and where its indirect jumps go."""

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Jumps:
    """The instructions of a region, and which of them are indirect jumps.

    `code` has 32 spare bytes at its end and is at the address `base`; `offsets` count from there. `leads_on`: control
    comes from the instruction to the one behind it, and from nowhere else to that. `rows`: of the jumps.
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
        """For each jump the addresses of tables that tell where it goes, as 4-byte distances from the table.

        None are needed if it goes where a whole word in memory says. None: it may go anywhere, as far as is known.
        """
        ...


def references(facts: ArchFacts) -> References:
    """That of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: References = import_module(f"kinst.rewriter.jumps.{facts.name}").references
    return found


def tables(facts: ArchFacts) -> Tables:
    """That of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: Tables = import_module(f"kinst.rewriter.jumps.{facts.name}").tables
    return found

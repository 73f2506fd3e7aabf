"""What a machine's dissector does: bytes of code -> classified instructions -> trampolines."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.relocations import References
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.instruction import Instructions
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Trampolines:
    """One row per site: (n, longest_trampoline) bytes, padded with the breakpoint, and a `Reason` or 0."""

    code: NDArray[np.uint8]
    reason: NDArray[np.uint8]


class Dissector(Protocol):
    """One machine's decoder. Everything is in bulk; a single instruction is an array of one."""

    @property
    def facts(self) -> ArchFacts:
        """The facts of the machine."""
        ...

    def dissect(self, code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64]) -> Instructions:
        """Decode and classify every instruction of some functions: kinst_instr_dissect.

        Args:
            code: the bytes of one executable region.
            address: the link address of ``code[0]``.
            ranges: (k, 2) offsets into `code`, [start, end) of each function, ascending and not overlapping.

        A function is swept linearly from its start. Where bytes do not decode, amd64 gives one row of size 1 with
        `Reason.UNDECODABLE` and continues with the next function; fixed-width machines give a row for each word (or
        halfword). Words that a PC-relative load of these functions reads are data, and are refused as DATA.
        """
        ...

    def slot_counts(self, sites: Instructions, span: tuple[int, int]) -> NDArray[np.uint8]:
        """How many slots each site needs, at whatever addresses in `span` its slots are."""
        ...

    def trampolines(self, sites: Instructions, original: NDArray[np.uint8], slots: NDArray[np.uint64]) -> Trampolines:
        """The code of the trampolines of `sites`, for the addresses `slots`: kinst_trampoline_populate.

        Args:
            sites: Copy or Emulate instructions. An emulated one gets a slot full of breakpoints.
            original: (n, 16) the instruction's bytes, zero-padded.
            slots: link addresses, one for each site.
        """
        ...

    def references(self, sites: NDArray[np.void]) -> References:
        """What the trampolines of `sites` (rows of SITE) hold of addresses, and of distances out of them."""
        ...

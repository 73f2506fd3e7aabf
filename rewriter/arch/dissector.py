"""What each machine's dissector answers: bytes of code -> classified instructions -> trampolines."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.instruction import Instructions


@dataclass(frozen=True, slots=True)
class Trampolines:
    """One row a site: `code` is (n, slot_size) bytes, filled up with the breakpoint; `reason` is a `Reason` or 0."""

    code: NDArray[np.uint8]
    reason: NDArray[np.uint8]


class Dissector(Protocol):
    """One machine's decoder. Everything is in bulk; a single instruction is an array of one."""

    @property
    def facts(self) -> ArchFacts:
        """What there is to know of the machine that it decodes."""
        ...

    def dissect(self, code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64]) -> Instructions:
        """Decode and classify every instruction of some functions: kinst_instr_dissect.

        Args:
            code: the bytes of one executable region.
            address: the link address of ``code[0]``.
            ranges: (k, 2) offsets into `code`, [start, end) of each function, ascending and not overlapping.

        A function is swept linearly from its start. Where bytes do not decode, amd64 gives one row of size 1 with
        `Reason.UNDECODABLE` and goes on with the next function; fixed-width machines give a row a word (or halfword).
        Data known from inside the code (a word that a PC-relative load of these functions reads) is refused as DATA.
        """
        ...

    def trampolines(self, sites: Instructions, original: NDArray[np.uint8], slots: NDArray[np.uint64]) -> Trampolines:
        """Code of the trampolines of `sites`, to live at the addresses `slots`: kinst_trampoline_populate.

        Args:
            sites: Copy or Emulate instructions. An emulated one gets a slot full of breakpoints.
            original: (n, 16) the instruction's bytes, zero-padded.
            slots: link addresses, one a site.
        """
        ...

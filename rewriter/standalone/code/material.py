"""A program -> the instructions of groups, as the columns that trampolines are made of."""

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.planning.plan import instruction_bytes
from kinst.rewriter.program import Program
from kinst.rewriter.standalone.code.groups import Groups
from kinst.rewriter.standalone.code.parts import Mask, Numbers, ranges
from kinst.rewriter.standalone.code.trampoline import Masks, Rows
from kinst.targets.instruction import Instructions
from kinst.targets.kernels.leading_records import LeadingRecords, no_records
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Material:
    """Columns for all instructions of a program."""

    program: Program
    found: Instructions
    dead: Masks
    has_no_stack: Mask
    led: LeadingRecords = field(default_factory=no_records)

    def rows(self, some: Groups) -> tuple[Numbers, Rows]:
        """The rows of the instructions of some groups, and what is known of each."""
        found, group = self.found, np.repeat(np.arange(len(some)), some.count)
        numbers = ranges(some.first, some.count)
        address, size = found.address[numbers], found.size[numbers]
        return numbers, Rows(
            address=address,
            size=size.astype(np.int64),
            target=found.target[numbers],
            kind=found.kind[numbers],
            flow=found.flow[numbers],
            code=instruction_bytes(self.program.image, address, size),
            dead=self.dead[numbers],
            dead_after=self._dead_at(numbers + 1, address + size),
            has_stack=~self.has_no_stack[numbers],
            group=group,
        )

    def _dead_at(self, numbers: Numbers, address: NDArray[np.uint64]) -> Masks:
        """What is dead at addresses, which are those of the rows `numbers` if anything is known of them."""
        numbers = np.minimum(numbers, len(self.found) - 1)
        return np.where(self.found.address[numbers] == address, self.dead[numbers], np.uint32(0))

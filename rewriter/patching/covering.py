"""A range of a program's code -> the end of the whole instructions that it touches, and who else writes there."""

from typing import Final

import numpy as np

from kinst.rewriter.naming.resolve import with_functions_at
from kinst.rewriter.program import Program, instructions_of
from kinst.targets.errors import PatchError
from kinst.targets.instruction import NO_CODE, Instructions, Reason
from kinst.targets.patch import LONGEST

_NOT_PATCHED: Final = (*NO_CODE, Reason.OTHER_MODE)


class Code:
    """The code of a program. Each function is decoded once, however many patches are in it."""

    def __init__(self, program: Program) -> None:
        """What lies between functions is known by its address, as it is for probes."""
        self.program = program
        self._decoded: dict[tuple[int, int], Instructions] = {}

    def end_of(self, address: int, size: int) -> int:
        """The end of the whole instructions that hold `size` bytes from an address on.

        Raises:
            PatchError: no instruction begins there, or what follows is no code.
        """
        if address + size >> 64:
            raise PatchError("it would pass the end of the address space")
        if size > LONGEST:
            raise PatchError(f"{size:,} bytes are too many for a patch, which has {LONGEST:,} at most")
        parts, at = [], address
        while at < address + size:
            found, at = self._from(at)
            parts.append(found)
        starts = np.concatenate([part.address for part in parts])
        ends = np.concatenate([part.address + part.size for part in parts])
        reasons = np.concatenate([part.reason for part in parts])
        first = int(np.searchsorted(starts, np.uint64(address)))
        last = int(np.searchsorted(ends, np.uint64(address + size)))
        held = slice(first, last + 1)
        is_whole = first <= last < len(ends) and int(starts[first]) == address
        if not is_whole or (ends[held][:-1] != starts[held][1:]).any():
            raise PatchError(f"no whole instructions lie between {address:#x} and {address + size:#x}")
        for reason, start in zip(reasons[held].tolist(), starts[held].tolist(), strict=True):
            if reason in _NOT_PATCHED:
                raise PatchError(f"{start:#x} is refused: {Reason(reason).text}")
        return int(ends[last])

    def _from(self, address: int) -> tuple[Instructions, int]:
        """The instructions of the function that holds an address, and its end."""
        program = with_functions_at(self.program, [address])
        row = program.functions.row_at(address)
        if row is None:
            raise PatchError(f"it would pass the end of the code at {address:#x}")
        bounds = int(program.functions.address[row]), int(program.functions.size[row])
        if bounds not in self._decoded:
            self._decoded[bounds] = instructions_of(program, np.array([row]))
        return self._decoded[bounds], sum(bounds)

    def written(self, address: int, end: int) -> tuple[Reason, int] | None:
        """Why someone else writes between two addresses, and where that ends."""
        boot = self.program.patched_at_boot
        relocated = np.insert(self.program.relocated, 2, np.uint64(Reason.RELOCATED), axis=1)
        ranges = np.concatenate([boot[boot[:, 2] != Reason.BREAKPOINT], relocated])  # those are looked up, not written
        start, size = ranges[:, 0], ranges[:, 1]
        rows = np.flatnonzero((start < np.uint64(end)) & (start + size > np.uint64(address)))
        if not len(rows):
            return None
        end = int((start[rows] + size[rows]).max())
        return Reason(int(ranges[rows[0], 2])), end

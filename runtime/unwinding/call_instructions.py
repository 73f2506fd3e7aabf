"""The code of an image -> the targets of its calls and jumps, by the addresses at which they begin and end."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from kinst.rewriter.program import Program
from kinst.targets.instruction import Flow

_LEADING: Final = (Flow.JUMP, Flow.BRANCH, Flow.CALL, Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL)


class Leading(NamedTuple):
    """A call or a jump."""

    is_call: bool
    target: int | None  # a link address; None: it is in a register or memory


class CallInstructions:
    """Reads a function when one of its instructions is needed. All addresses are link addresses."""

    def __init__(self, program: Callable[[], Program]) -> None:
        """`program` is the original image, never a patched one."""
        self._open = program
        self._starting: dict[int, Leading] = {}
        self._ending: dict[int, Leading] = {}
        self._known: set[int] = set()

    def at(self, address: int) -> Leading | None:
        """The call or jump that begins at an address; None if there is none."""
        if address not in self._starting:
            self._read(address)
        return self._starting.get(address)

    def starts(self, address: int, limit: int) -> range:
        """The other addresses in the first `limit` bytes of a function that begins at an address; empty if none begins
        there."""
        functions = self._open().functions
        row = functions.row_at(address)
        if row is None or int(functions.address[row]) != address:
            return range(0)
        return range(address + 1, address + min(limit, int(functions.size[row])))

    def before(self, address: int) -> Leading | None:
        """The call or jump that ends at an address, which may be just past its function; None if there is none."""
        if address not in self._ending:
            self._read(address - 1)
        return self._ending.get(address)

    def _read(self, address: int) -> None:
        program = self._open()
        row = program.functions.row_at(address)
        if row is None or row in self._known:
            return
        self._known.add(row)
        start, size = int(program.functions.address[row]), int(program.functions.size[row])
        offset = program.image.offset_of(start)
        if offset is None:
            return
        code = program.image.data[offset : offset + size]
        found = program.dissector.dissect(code, start, np.array([[0, size]], np.int64))
        rows = np.flatnonzero(np.isin(found.flow, _LEADING))
        columns = (found.address[rows], found.size[rows], found.flow[rows], found.target[rows])
        for at, length, flow, target in zip(*(one.tolist() for one in columns), strict=True):
            is_direct = flow not in (Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL)
            leading = Leading(flow in (Flow.CALL, Flow.INDIRECT_CALL), target if is_direct else None)
            self._starting[at] = self._ending[at + length] = leading

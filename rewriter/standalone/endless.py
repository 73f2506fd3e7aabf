"""A program -> its functions that never return: entries of exceptions, loops without an end, what stops the machine.

A tail call of one of them is no return, whatever it looks like: nothing comes back to the caller.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.planning.plan import without_sites
from kinst.rewriter.program import Program
from kinst.targets.columns import is_one_of
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.manifest.packed import Manifest, ProbeKind

_WHY: Final = "a jump to a function that never returns"
_ENDS: Final = (Flow.RETURN, Flow.INDIRECT_JUMP)
_GOES: Final = (Flow.JUMP, Flow.BRANCH)
_FALLS: Final = (Flow.NEXT, Flow.BRANCH, Flow.CALL, Flow.INDIRECT_CALL)


class Endless:
    """Which functions of a program never return, as far as its code shows: an indirect jump may lead to a return."""

    def __init__(self, program: Program, found: Instructions) -> None:
        """`found`: all instructions of its functions, in address order."""
        self._functions, self._found = program.functions, found
        # One more, which -1 leads to: what is in no function may return.
        may = np.append(np.zeros(len(self._functions), np.bool_), True)
        may[found.function[is_one_of(found.flow, _ENDS)]] = True
        source, target = self._leads(found)
        while True:
            more = source[may[target] & ~may[source]]
            if not len(more):
                break
            may[more] = True
        self._never = ~may

    def _leads(self, found: Instructions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """From which function control goes on to which other one, or to -1, which is none."""
        own = found.function.astype(np.int64)
        goes = np.flatnonzero(is_one_of(found.flow, _GOES))
        last = np.flatnonzero(np.append(own[1:] != own[:-1], True)[: len(own)] & is_one_of(found.flow, _FALLS))
        address = np.concatenate([found.target[goes], found.address[last] + found.size[last]])
        source, target = np.concatenate([own[goes], own[last]]), self._rows_at(address)
        leaves = source != target
        return source[leaves], target[leaves]

    def _rows_at(self, address: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The function that holds each address; -1: none."""
        start, size = self._functions.address, self._functions.size
        row = np.searchsorted(start, address, "right").astype(np.int64) - 1
        return np.where((row >= 0) & (address - start[row] < size[row]), row, -1)

    def left_out(self, manifest: Manifest) -> tuple[Manifest, dict[int, str]]:
        """A manifest without the sites of fbt's returns that lead to such a function; and these, by address, with the
        reason. What else is probed there stays."""
        sites, enablings = manifest.sites, manifest.enablings
        row = np.minimum(np.searchsorted(self._found.address, sites["address"]), len(self._found) - 1)
        to = self._rows_at(self._found.target[row])
        leads = (sites["flow"] == Flow.JUMP) & (self._found.address[row] == sites["address"])
        leads &= (to >= 0) & self._never[to]
        is_return = manifest.probes["kind"][enablings["probe"]] == ProbeKind.FBT_RETURN
        kept = enablings[~(is_return & leads[enablings["site"]])]
        gone = np.ones(len(sites), np.bool_)
        gone[kept["site"]] = False
        whys = dict.fromkeys(sites["address"][gone].tolist(), _WHY)
        return without_sites(replace(manifest, enablings=kept), gone), whys

"""Sites that the guest writes -> their records with the instructions that are there now, and trampolines for these."""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.dissector import Dissector
from kinst.runtime.machine.system import System
from kinst.runtime.patched.sites import SiteTable
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict

_WIDTH = 16  # bytes of a record's instruction


class WrittenSites:
    """Some sites of a table, one a row. `now` are their records, `target` where those that branch go, and `reason` why
    one cannot be probed as it is."""

    def __init__(self, records: NDArray[np.void], sites: SiteTable, dissector: Dissector, system: System) -> None:
        """With the instructions of `records`, which are from the table."""
        self.now = records.copy()
        self.target = np.zeros(len(records), np.uint64)
        self.reason = np.zeros(len(records), np.uint8)
        self._was_return = records["flow"] == Flow.RETURN
        self._sites, self._dissector = sites, dissector
        self._space, self._engine = system.space, system.engine

    def note(
        self, rows: NDArray[np.intp], code: NDArray[np.uint8], address: int, found: Instructions
    ) -> NDArray[np.intp]:
        """Take over the instructions that were found in `code`, which is linked to an address. Returns the rows at
        which one begins. A record stays what it was under a breakpoint of the guest's own."""
        wanted = self.now["address"][rows]
        at = np.minimum(np.searchsorted(found.address, wanted), max(len(found) - 1, 0))
        here = found.address[at] == wanted if len(found) else np.zeros(len(rows), np.bool_)
        rows, at = rows[here], at[here]
        self.reason[rows] = np.where(found.verdict[at] == Verdict.REFUSE, found.reason[at], Reason.NONE)
        every, is_other = rows, self.reason[rows] != Reason.BREAKPOINT
        rows, at = rows[is_other], at[is_other]
        for name in ("size", "kind", "verdict", "flow"):
            self.now[name][rows] = getattr(found, name)[at]
        self.target[rows] = found.target[at]
        # Linux writes a jump to its return thunk over a return: that is a return, not a tail call.
        self.now["flow"][rows[self._was_return[rows] & (found.flow[at] == Flow.JUMP)]] = Flow.RETURN
        padded = np.concatenate([code, np.zeros(_WIDTH, np.uint8)])
        places = (found.address[at] - np.uint64(address)).astype(np.int64)
        original = padded[places[:, None] + np.arange(_WIDTH)]
        original[np.arange(_WIDTH) >= found.size[at][:, None]] = 0
        self.now["original"][rows] = original.view("V16")[:, 0]
        return every

    def fill(self, row: int, slot: int) -> int | None:
        """Put a site's instruction into its own slot. None: it can have no trampoline there."""
        record = self.now[row : row + 1]
        # With breakpoints at the end the slot of the file serves: only its instruction is another.
        columns = {name: record[name] for name in ("address", "size", "kind", "flow", "verdict")}
        instruction = Instructions(
            target=self.target[row : row + 1], function=record["function"].view(np.int32),
            reason=np.zeros(1, np.uint8), **columns,
        )  # fmt: skip
        original = np.ascontiguousarray(record["original"]).view(np.uint8).reshape(1, _WIDTH)
        made = self._dissector.trampolines(instruction, original, np.array([slot], np.uint64))
        if made.reason[0]:
            return None
        code = self._sites.slot_bytes(made.code).tobytes()
        if self._space.fetch(slot, len(code)) != code:
            self._space.fill_overlay(slot, code)
            self._engine.forget_code(slot, len(code))
        return slot

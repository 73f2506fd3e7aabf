"""Why instructions are not probed: columns of arrays, and the texts that users see."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from kinst.targets.instruction import Reason
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Refusals:
    """Columns of the same length, with one row per refused site. `function` is a row of the image's functions.

    `inner` is what stood in the way where `reason` is NO_PROLOGUE, and NONE elsewhere.
    """

    address: NDArray[np.uint64]
    function: NDArray[np.int32]
    reason: NDArray[np.uint8]
    inner: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.address)

    def take(self, rows: NDArray[np.bool_]) -> "Refusals":
        """The rows chosen by a mask."""
        return Refusals(*(getattr(self, field.name)[rows] for field in fields(self)))

    def counts(self) -> dict[Reason, int]:
        """How many of each reason, the most frequent first. NO_PROLOGUE is counted as itself."""
        reasons, counts = np.unique(self.reason, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return {Reason(int(reasons[row])): int(counts[row]) for row in order}

    def text(self, row: int) -> str:
        """The reason of one refusal in words."""
        reason, inner = Reason(int(self.reason[row])), Reason(int(self.inner[row]))
        return f"{reason.text} ({inner.text})" if inner else reason.text


def no_refusals() -> Refusals:
    """A table without rows: nothing was refused."""
    return Refusals(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.uint8))


def join_refusals(parts: Sequence[Refusals]) -> Refusals:
    """All refusals of the parts, each (address, reason) once, in address order."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return no_refusals()
    columns = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Refusals)]
    if len(parts) == 1:
        return parts[0]
    joined = Refusals(*columns)
    order = np.lexsort((joined.reason, joined.address))
    address, reason = joined.address[order], joined.reason[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (address[1:] != address[:-1]) | (reason[1:] != reason[:-1])
    return Refusals(*(column[order[fresh]] for column in columns))


def summary(refusals: Refusals, total: int) -> str:
    """``12 of 340 refused: 9 inside an exclusive load/store region, 3 not supported``; empty if none was."""
    if not len(refusals):
        return ""
    pairs, counts = np.unique(refusals.reason.astype(np.uint16) << 8 | refusals.inner, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    details = ", ".join(f"{counts[row]:,} {_short(*divmod(int(pairs[row]), 256))}" for row in order)
    return f"{len(refusals):,} of {total:,} refused: {details}"


def _short(reason: int, inner: int) -> str:
    """A reason without its explanation; with what stood in the way of an entry."""
    text = Reason(reason).text.split(":")[0]
    return f"{text} ({Reason(inner).text.split(':')[0]})" if inner else text

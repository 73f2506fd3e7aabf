"""Where the parts of trampolines are: what `kinst.rewriter.frames.building` is told of them."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from kinst.targets.values import dataclass

ONE = -1  # the number of what is one instruction


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Code of trampolines, ascending within each: columns. From `address` to `end` it does what has the number
    `template` (`ONE`: it is the instruction that is displaced, or a jump), entered in the state that the guest has
    before the instruction at `origin`."""

    address: NDArray[np.uint64]
    end: NDArray[np.uint64]
    origin: NDArray[np.uint64]
    template: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.address)


def joined_spans(several: Sequence[Spans]) -> Spans:
    """All of them by address, less those that are empty."""
    if not several:
        nothing = np.zeros(0, np.uint64)
        return Spans(nothing, nothing, nothing, np.zeros(0, np.int64))
    columns = [np.concatenate([getattr(one, field.name) for one in several]) for field in fields(Spans)]
    order = np.argsort(columns[0], kind="stable")
    order = order[(columns[1] > columns[0])[order]]
    return Spans(*(column[order] for column in columns))

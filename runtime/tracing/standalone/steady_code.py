"""Trampolines of a standalone image -> what of them stays as it is: not the displaced instructions that the guest's
kernel writes over when it boots."""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.kernels.leading_records import LONGEST
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class SteadyCode:
    """Code, and which of its bytes may change."""

    address: int
    code: bytes
    may_change: NDArray[np.bool_]

    @classmethod
    def of(cls, address: int, code: bytes, written: NDArray[np.uint64]) -> "SteadyCode":
        """`written`: the addresses of instructions that the kernel writes over, ascending."""
        offset = (written - np.uint64(address)).view(np.int64)
        offset = offset[(offset > -LONGEST) & (offset < len(code))]
        within = (offset[:, None] + np.arange(LONGEST)).reshape(-1)
        may_change = np.zeros(len(code), np.bool_)
        may_change[within[(within >= 0) & (within < len(code))]] = True
        return cls(address, code, may_change)

    @property
    def beginning(self) -> bytes:
        """The bytes before the first that may change."""
        return self.code[: int(np.argmax(self.may_change))] if self.may_change.any() else self.code

    def difference(self, found: bytes) -> int | None:
        """The address of the first byte that has changed and must not; None: there is none."""
        if found == self.code:
            return None
        differs = np.frombuffer(found, np.uint8) != np.frombuffer(self.code, np.uint8)
        at = np.flatnonzero(differs & ~self.may_change)
        return self.address + int(at[0]) if len(at) else None

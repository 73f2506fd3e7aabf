"""Run-time faults of a clause: what aborts it and fires dtrace:::ERROR."""

from enum import IntEnum
from typing import Final


class FaultKind(IntEnum):
    """What kind of fault it is: DTrace's DTRACEFLT_* (docs/facts/dlang.md, Variables)."""

    # Programs see the numbers: they are arg4 of dtrace:::ERROR.
    UNKNOWN = 0
    BADADDR = 1
    BADALIGN = 2
    ILLOP = 3
    DIVZERO = 4
    NOSCRATCH = 5
    KPRIV = 6
    UPRIV = 7
    TUPOFLOW = 8
    BADSTACK = 9
    LIBRARY = 10


FAULT_TEXTS: Final = {
    FaultKind.UNKNOWN: "unknown fault",
    FaultKind.BADADDR: "invalid address",
    FaultKind.BADALIGN: "invalid alignment",
    FaultKind.ILLOP: "illegal operation",
    FaultKind.DIVZERO: "divide-by-zero",
    FaultKind.NOSCRATCH: "out of scratch space",
    FaultKind.KPRIV: "invalid kernel access",
    FaultKind.UPRIV: "invalid user access",
    FaultKind.TUPOFLOW: "tuple stack overflow",
    FaultKind.BADSTACK: "bad stack",
    FaultKind.LIBRARY: "library-level fault",
}
WITH_ADDRESS: Final = frozenset({FaultKind.BADADDR, FaultKind.BADALIGN, FaultKind.BADSTACK})  # the message shows it


class Fault(Exception):
    """A clause cannot continue. `value` is the address, if there is one. `text` is more specific than the kind, e.g.
    that an argument was optimised out."""

    def __init__(self, kind: FaultKind, value: int = 0, text: str = "") -> None:
        super().__init__(kind, value, text)
        self.kind = kind
        self.value = value
        self.text = text

"""Where a standalone image keeps what its probes find, and in which form: for whoever reads it out.

Such an image has jumps at its sites and needs no handler. All words are 64 bits, little-endian, as every machine of
these has them.

    count    a counter for each site, in the order of the manifest's sites
    record   a ring. First the number of records begun, then seven unused words. Behind that `capacity` places of
             `2 + len(fields)` words each; record n is in place n modulo `capacity`: n + 1, which is written last, the
             site's row, and a word for each field
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RING_HEAD: Final = 64  # bytes before the first place
TIME: Final = "time"  # the field that is the CPU's clock: rdtsc, cntvct_el0, rdtime
WORD: Final = 8


class Action(StrEnum):
    """What a probe does in the image itself."""

    COUNT = "count"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class Standalone:
    """What was asked for, and where it ends up. `address` is as linked, `load_address` physical."""

    action: Action
    address: int
    load_address: int
    size: int  # bytes
    capacity: int = 0  # of the ring: a power of two
    fields: tuple[str, ...] = ()  # arg0, arg1, ..., names of registers, TIME

    @property
    def stride(self) -> int:
        """Bytes of a record."""
        return WORD * (2 + len(self.fields))

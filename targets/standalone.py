"""Where a standalone image keeps what its probes find, and in which form, for the tools that read it.

Such an image has jumps at its sites and needs no handler. All words are 64 bits, little-endian, as every machine of
these has them.

    count    a counter for each site, in the order of the manifest's sites
    record   a ring. First the number of records begun, then seven unused words. After that `capacity` places of
             `2 + len(fields)` words each; record n is in place n modulo `capacity`: n + 1, which is written last, the
             site's row, and a word for each field

The section .note.kinst tells others where: a note of the owner kinst, of type 1. Its description has words, too: this
form's version, 1; 0 for count and 1 for record; link address, physical address and size of the data; the number of
sites; the capacity of the ring; and the names of its fields, separated by commas, padded with zeros.
"""

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RING_HEAD: Final = 64  # bytes before the first place
TIME: Final = "time"  # the field that is the CPU's clock: rdtsc, cntvct_el0, rdtime
WORD: Final = 8
MOST_FIELDS: Final = 16


class Action(StrEnum):
    """What a probe does in the image itself."""

    COUNT = "count"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class Standalone:
    """What was asked for, and where it was put. `address` is a link address, `load_address` physical."""

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

    def packed(self) -> list[int | str]:
        """The same for the manifest's head."""
        return [self.action.value, self.address, self.load_address, self.size, self.capacity, *self.fields]


_NOTE: Final = struct.Struct("<III8s")
_OWNER: Final = b"kinst"


def note_of(standalone: Standalone, sites: int) -> bytes:
    """The content of .note.kinst."""
    bounds = standalone.address, standalone.load_address, standalone.size
    words = struct.pack("<7Q", 1, tuple(Action).index(standalone.action), *bounds, sites, standalone.capacity)
    fields = ",".join(standalone.fields).encode()
    description = words + fields + bytes(-len(fields) % WORD)
    return _NOTE.pack(len(_OWNER) + 1, len(description), 1, _OWNER) + description

"""Code of trampolines before it has an address: bytes, and fixups for what depends on the address or on the site.

Fixups are filled in bulk: an `Encoding` has a function for any number of them.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import ranges as ranges
from kinst.targets.values import dataclass

Addresses = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Filled = tuple[Bytes, Mask]
# Addresses of fixups, the values that they shall hold, and the operand of each -> (n, size) bytes, and which of them
# can hold the value.
Fill = Callable[[Addresses, Addresses, Numbers], Filled]

# What a fixup holds. Of the instruction: its link address, that of the next one, of its branch target, of its operand
# in memory. Of its task: the counter, the ring, two words of it (`kinst.targets.standalone`), its first place, the
# number of the site. Of a jump: where it leads.
HERE: Final = "here"
NEXT: Final = "next"
TARGET: Final = "target"
OPERAND: Final = "operand"
CELL: Final = "cell"
RING: Final = "ring"
ROOM: Final = "room"
PATIENCE: Final = "patience"
FIRST: Final = "first"
SITE: Final = "site"
PER_CPU: Final = "per_cpu"  # of Linux: the table of where each CPU's own data are
CURRENT: Final = "current"  # where they have the address of the current task
GOAL: Final = "goal"


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """One way to hold an address or a number in `size` bytes. `follows`: the address of an instruction that is
    displaced in the same group becomes that of the displaced copy."""

    size: int
    fill: Fill
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Fixup:
    """Bytes that differ from place to place or from site to site. `operand` is for the encoding, such as a register.
    `fallback` replaces the fixup if the encoding cannot hold the value; a text is the reason why there is none."""

    encoding: Encoding
    value: str
    operand: int
    fallback: "tuple[bytes | Fixup, ...] | str"


Parts = tuple[bytes | Fixup, ...]


def joined(*several: Parts) -> Parts:
    """Parts back to back, as few as possible."""
    result: list[bytes | Fixup] = []
    for part in (part for parts in several for part in parts):
        last = result[-1] if result else None
        if isinstance(part, bytes) and isinstance(last, bytes):
            result[-1] = last + part
        elif part != b"":
            result.append(part)
    return tuple(result)


def size_of(parts: Parts) -> int:
    """The size in bytes of parts whose fixups have no longer encoding."""
    return sum(len(part) if isinstance(part, bytes) else part.encoding.size for part in parts)


def distances(start: Addresses, end: Addresses) -> Numbers:
    """The signed distances from some addresses to others, modulo 2**64."""
    found: Numbers = (end - start).view(np.int64)
    return found


def as_bytes(words: Numbers, size: int) -> Bytes:
    """(n, size): the lowest bytes of each word, little-endian."""
    found: Bytes = np.ascontiguousarray(words, "<i8").view(np.uint8).reshape(-1, 8)[:, :size]
    return found

"""Code of trampolines before it has its place: bytes, and fixups for what depends on the place, or on the site.

Fixups are filled in bulk: a `Encoding` says how many of them at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Addresses = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Filled = tuple[Bytes, Mask]
# Addresses of fixups, what they shall hold, and the operand of each -> (n, size) bytes, and which can hold it.
Fill = Callable[[Addresses, Addresses, Numbers], Filled]

# What fixups hold: link addresses of the instruction, of what is behind it, of where it leads, and of its operand in
# memory; of what its task writes to; and the number of its site. Where jumps lead.
HERE: Final = "here"
BEHIND: Final = "behind"
TARGET: Final = "target"
OPERAND: Final = "operand"
CELL: Final = "cell"
RING: Final = "ring"
FIRST: Final = "first"
SITE: Final = "site"
GOAL: Final = "goal"


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """One way in which `size` bytes hold an address or a number. `follows`: where the address is of an instruction that
    has moved within the same group, it is that of the moved one."""

    size: int
    fill: Fill
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Fixup:
    """Some bytes that differ. `operand` is the form's own. `otherwise` is what is there instead if the form cannot hold
    the value, or the reason why there is nothing."""

    encoding: Encoding
    value: str
    operand: int
    fallback: "tuple[bytes | Fixup, ...] | str"


Parts = tuple[bytes | Fixup, ...]


def joined(*several: Parts) -> Parts:
    """Parts behind one another, as few as possible."""
    result: list[bytes | Fixup] = []
    for part in (part for parts in several for part in parts):
        last = result[-1] if result else None
        if isinstance(part, bytes) and isinstance(last, bytes):
            result[-1] = last + part
        elif part != b"":
            result.append(part)
    return tuple(result)


def distances(start: Addresses, end: Addresses) -> Numbers:
    """From one address to another each: addresses wrap round."""
    found: Numbers = (end - start).view(np.int64)
    return found


def as_bytes(words: Numbers, size: int) -> Bytes:
    """(n, size): the lowest bytes of each word, the first one lowest."""
    found: Bytes = np.ascontiguousarray(words, "<i8").view(np.uint8).reshape(-1, 8)[:, :size]
    return found


def ranges(first: Numbers, count: Numbers) -> Numbers:
    """first, first + 1 and so on, as many as `count` says, for each."""
    behind = np.cumsum(count)
    found: Numbers = np.repeat(first - behind + count, count) + np.arange(behind[-1] if len(behind) else 0)
    return found

"""Code of trampolines before it has its place: bytes, and holes for what depends on the place, or on the site.

Holes are filled in bulk: a `Form` says how many of them at a time.
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
# Addresses of holes, what they shall hold, and the operand of each -> (n, size) bytes, and which can hold it.
Fill = Callable[[Addresses, Addresses, Numbers], Filled]

# What holes hold: link addresses of the instruction, of what is behind it, of where it leads, and of its operand in
# memory; of what its task writes to; and the number of its site. Where jumps lead.
HERE: Final = "here"
BEHIND: Final = "behind"
TARGET: Final = "target"
OPERAND: Final = "operand"
CELL: Final = "cell"
RING: Final = "ring"
FIRST: Final = "first"
SITE: Final = "site"
PER_CPU: Final = "per_cpu"  # of Linux: the table of where each CPU's own data are
CURRENT: Final = "current"  # where they have the address of the current task
GOAL: Final = "goal"


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One way in which `size` bytes hold an address or a number. `follows`: where the address is of an instruction that
    has moved within the same group, it is that of the moved one."""

    size: int
    fill: Fill
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Hole:
    """Some bytes that differ. `operand` is the form's own. `otherwise` is what is there instead if the form cannot hold
    the value, or the reason why there is nothing."""

    form: Form
    value: str
    operand: int
    otherwise: "tuple[bytes | Hole, ...] | str"


Parts = tuple[bytes | Hole, ...]


def joined(*several: Parts) -> Parts:
    """Parts behind one another, as few as possible."""
    result: list[bytes | Hole] = []
    for part in (part for parts in several for part in parts):
        last = result[-1] if result else None
        if isinstance(part, bytes) and isinstance(last, bytes):
            result[-1] = last + part
        elif part != b"":
            result.append(part)
    return tuple(result)


def size_of(parts: Parts) -> int:
    """Bytes of parts whose holes have no longer form."""
    return sum(len(part) if isinstance(part, bytes) else part.form.size for part in parts)


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

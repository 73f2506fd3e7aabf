"""The state of what the hook at blocks calls for each block that runs, and the rows in which those are counted."""

import ctypes
from typing import Annotated, Final

from kinst.runtime.engine.host.fields import HASH, Half, Word, layout, log2
from kinst.runtime.engine.host.routine import Routine

MOST_RANGES: Final = 8


@layout
class CodeRange(ctypes.Structure):
    """Addresses whose blocks are counted."""

    __slots__ = ()
    start: Word
    size: Word


@layout
class CoverState(ctypes.Structure):
    """What the function is called with."""

    __slots__ = ()
    fresh: Word  # Python's, which makes the row of a block that has none
    last: Word  # the address of the row of the last block; 0: it has none
    rows: Word  # the table, by address
    mask: Word  # the number of its rows less one
    next: Word  # where the number of the next block is stored with which a function begins: these two side by side
    end: Word  # where there is no more room for it
    full: Word  # Python's, which makes room and stores it
    count: Word  # how many ranges there are; 0: blocks are counted everywhere
    ranges: Annotated["ctypes.Array[CodeRange]", CodeRange * MOST_RANGES]


@layout
class BlockRow(ctypes.Structure):
    """A row of the table: a block."""

    __slots__ = ()
    address: Word
    size: Word  # in bytes; 0: the row is free
    runs: Word
    number: Half  # of the block, in the order in which they first ran
    call: Half  # that number and 1, if a function begins with it; else 0: it is not stored


COVER: Final = Routine(
    "cover",
    {"state": CoverState, "row": BlockRow, "range": CodeRange},
    {"HASH": HASH, "ROW_SHIFT": log2(ctypes.sizeof(BlockRow))},
)

"""The state of the hook that notes which block came after which: a byte for each pair, by a hash."""

import ctypes
from typing import Final

from kinst.runtime.engine.host.fields import HASH, Word, layout, log2
from kinst.runtime.engine.host.routine import Routine

EDGES: Final = 1 << 15  # bytes of the map


@layout
class EdgeState(ctypes.Structure):
    """What the hook is called with."""

    __slots__ = ()
    map: Word  # the address of a byte for each pair of blocks
    before: Word  # half of the hash of the block before


EDGE_HOOK: Final = Routine("edges", {"state": EdgeState}, {"HASH": HASH, "HASH_SHIFT": 64 - log2(EDGES)})

"""The state of the hook at instructions of which some are watched: those in the table are handled in Python."""

import ctypes
from typing import Final

from kinst.runtime.engine.host.fields import HASH, Word, layout
from kinst.runtime.engine.host.routine import Routine

HASH_SHIFT: Final = 20  # the lowest bit of the product that says where in the table an address is


@layout
class MarkState(ctypes.Structure):
    """What the hook is called with."""

    __slots__ = ()
    table: Word  # the host's address of addresses, each at its place or behind it before the next 0
    mask: Word  # the number of places, a power of two, less one
    callback: Word  # what is called for an address in the table, with the hook's own arguments


MARKS: Final = Routine("marks", {"state": MarkState}, {"HASH": HASH, "HASH_SHIFT": HASH_SHIFT})

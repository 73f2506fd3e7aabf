"""The state of the hook at every instruction: it counts, and ends the run before the one that exceeds the budget."""

import ctypes
from typing import Final

from kinst.runtime.engine.host.fields import Word, layout
from kinst.runtime.engine.host.routine import Routine


@layout
class BudgetState(ctypes.Structure):
    """What the hook is called with."""

    __slots__ = ()
    budget: Word  # instructions that may still be executed
    trampolines: Word  # their address
    trampolines_size: Word
    stop: Word  # the address of uc_emu_stop
    has_stopped: Word  # whether the hook called it
    slot_mask: Word  # the size of a trampoline's slot less one: the bits of an offset that are 0 where a slot begins


BUDGET: Final = Routine("budget", {"state": BudgetState})

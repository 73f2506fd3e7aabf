"""An access to a device that has stopped translated code in the middle of a block -> the CPU's state at that
instruction.

The PC of a callback for a device is where its block begins. Unicorn notes where in the translated code the access is,
and can restore the PC (and on amd64 what the flags are computed from) from that; the block goes on after it as before.
"""

import ctypes

from kinst.runtime.engine.emulator_code import emulator_code

_RESTORE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_bool)
_GOES_ON = False  # the block is not left


class AccessPlace:
    """Where the access comes from that a callback is called for."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p, suffix: str) -> None:
        """Between two runs; `suffix` is what the names of the library's functions for the machine end with. Where
        Unicorn's code is not known, `settle` leaves the PC at the start of the block."""
        code = emulator_code(library, handle.value or 0, suffix)
        self._is_known = code is not None
        if code is not None:
            self._place = ctypes.c_uint64.from_address(code.io_pc)
            self._restore, self._cpu = _RESTORE(code.restore), code.cpu

    def settle(self) -> None:
        """Set the PC to the instruction that accesses a device. Where instructions are counted by blocks, it is there
        already."""
        if self._is_known and self._place.value:
            self._restore(self._cpu, self._place.value, _GOES_ON)
            self._place.value = 0

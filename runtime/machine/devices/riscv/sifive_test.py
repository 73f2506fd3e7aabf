"""SiFive's test finisher, the power switch of QEMU's virt: a write -> the end of the run."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.configuration import End

_FAIL, _PASS, _RESET = 0x3333, 0x5555, 0x7777
_SIZE: Final = 0x1000


class SifiveTest:
    """The finisher, a device. A reset also ends the run, since nothing starts the image again."""

    size = _SIZE

    def __init__(self, power_off: Callable[[int, End], None]) -> None:
        """`power_off` gets the run's exit code, and whether it was switched off or reset."""
        self._power_off = power_off

    def read(self, offset: int, size: int) -> int:
        """0: there is nothing to read."""
        return 0

    def write(self, offset: int, size: int, value: int) -> None:
        """End the run. The low half says how; the high half is the exit code of a failure."""
        if offset == 0 and value & 0xFFFF in (_PASS, _RESET):
            self._power_off(0, End.POWER_OFF if value & 0xFFFF == _PASS else End.RESET)
        elif offset == 0 and value & 0xFFFF == _FAIL:
            self._power_off(value >> 16 & 0xFF, End.POWER_OFF)

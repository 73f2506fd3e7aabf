"""Where host code finds the registers of the guest's CPU: in the emulator's memory, in the trap frame, by number."""

from collections.abc import Callable, Sequence
from typing import Final

from kinst.targets.values import dataclass

_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class CpuPlaces:
    """Those of one engine. Registers are counted as in the trap frame."""

    live_pc: int | None  # the address of the CPU's PC (see `live_pc`); None if nobody knows
    read_batch: int  # the address of uc_reg_read_batch
    numbers: Sequence[int]  # Unicorn's numbers of the registers
    frame: int  # the address of the word of the first of them, which the others follow
    general: int  # where the emulator itself has those before the PC, in the same way; 0 if that is not known
    pc: int  # which of them is the PC
    number_of: Callable[[str], int]  # gives Unicorn's number of any register
    raised: int | None = None  # the address of the word that says that the last exception was a software interrupt

    @property
    def copied(self) -> Sequence[int]:
        """The addresses of the registers that the emulator is known to have in memory."""
        return range(self.general, self.general + _WORD * self.pc, _WORD) if self.general else ()

    @property
    def read(self) -> Sequence[int]:
        """The registers that it must be asked for, but for the PC."""
        first = self.pc + 1 if self.general else 0
        return [index for index in range(first, len(self.numbers)) if index != self.pc]

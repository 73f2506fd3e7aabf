"""riscv64: rdtime, which the engine does not have, and ecall."""

from typing import Final

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.machine.learning.arch.machine import Counters, ScratchMachine, needs_no_help

_ILLEGAL, _ECALL, _TIME = 2, 8, 0xC01


def _step_over(engine: QilingMachine, counters: Counters, number: int, pc: int, word: int) -> int | None:
    if number == _ECALL:
        engine.live.set("a0", 0)  # SBI_SUCCESS
        engine.live.set("a1", 0)
        return pc + 4
    # csrrs rd, time, x0 (Unprivileged ISA chapter 8)
    if number != _ILLEGAL or word >> 20 != _TIME or word & 0xFF07F != 0x2073:
        return None
    if word >> 7 & 31:
        engine.live.set(f"x{word >> 7 & 31}", counters.tick())
    return pc + 4


MACHINE: Final = ScratchMachine("a0", "ra", (), needs_no_help, _step_over)

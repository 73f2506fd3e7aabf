"""amd64: the engine has rdtsc itself, and nothing is called by an exception."""

from typing import Final

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.machine.learning.arch.machine import Counters, ScratchMachine, needs_no_help


def _nowhere(_engine: QilingMachine, _counters: Counters, _number: int, _pc: int, _word: int) -> int | None:
    return None


MACHINE: Final = ScratchMachine("rax", None, (), needs_no_help, _nowhere)

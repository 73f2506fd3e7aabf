"""The instruction by which a guest turns translation on, executed here where Unicorn does it too late.

It is searched in each page when code is first fetched from it without translation, so that its virtual address is the
physical one. One that lies on two pages is not found.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.machine.physical.frames import PAGE

TurnOn = Callable[[int], bool]


class TranslationSwitch:
    """Finds the instructions, and hooks them."""

    def __init__(self, engine: QilingMachine, bits: tuple[int, int], turn_on: TurnOn) -> None:
        """`bits` are those of the instruction, and their values; `turn_on` executes one."""
        self._engine = engine
        self._mask, self._value = bits
        self._turn_on = turn_on

    def search(self, memory: PhysicalMemory, page: int) -> None:
        """Search it in a physical page, whose code is about to be translated for the first time."""
        halves = np.frombuffer(memory.read(page * PAGE, PAGE), "<u2").astype(np.uint32)
        words = halves[:-1] | halves[1:] << np.uint32(16)
        for at in np.flatnonzero(words & np.uint32(self._mask) == np.uint32(self._value)).tolist():
            address = page * PAGE + 2 * at
            self._engine.on_code(address, partial(self._reached, address, int(words[at])))

    def _reached(self, address: int, instruction: int) -> None:
        if self._turn_on(instruction):
            self._engine.flush_tlb()
            self._engine.live.set("pc", address + 4)

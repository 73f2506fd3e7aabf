"""arm64: an image that gave up, in a loop of wfe or wfi with interrupts masked -> the end of the run, with the reason.

Timers continue, and nothing wakes the CPU, so that the run would not end otherwise. Hypervisors end this way at once if
there is no EL2.
"""

from typing import Final

import numpy as np

from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.machine import Cpu, Machine
from kinst.runtime.paging.walker import PageFault
from kinst.targets.errors import NothingLeftError

_INTERVAL: Final = 100_000_000  # ns between two checks
_WAITS: Final = frozenset({0xD503_205F, 0xD503_207F})  # wfe, wfi
_BACK: Final = 0x17FF_FFFF  # b .-4
_MASKED: Final = 0xC0  # PSTATE.I and F
# msr vbar_el2, Xt: a hypervisor's exception vectors (DDI 0487, C5.2).
_SET_EL2_VECTORS: Final = 0xD51C_C000


class EventLoopWatch:
    """A `Timed` device that checks a machine now and then, while only one of its CPUs is on."""

    def __init__(self, machine: Machine, image: Loaded, *, has_el2: bool) -> None:
        self._machine = machine
        self._image = image
        self._has_el2 = has_el2
        self._next = _INTERVAL

    def deadline(self) -> int | None:
        """When to check again, in ns."""
        return self._next

    def advance(self) -> None:
        """Raise NothingLeftError if the CPU is in such a loop, which it will never leave."""
        self._next = self._machine.clock.now() + _INTERVAL
        cpu = self._machine.current
        others = sum(cpu.is_on for cpu in self._machine.cpus) - 1
        if not others and cpu.registers.get("pstate") & _MASKED == _MASKED and _is_in_loop(cpu):
            hint = ": it is for EL2, which --machine virt-el2-arm64 has" if self._needs_el2(cpu) else ""
            raise NothingLeftError(f"the guest gave up: it loops over wfe with interrupts masked{hint}")

    def _needs_el2(self, cpu: Cpu) -> bool:
        """Whether the guest seems to be a hypervisor: its code can set EL2's vectors, and EL1's are not set."""
        if self._has_el2 or cpu.registers.get("vbar_el1"):
            return False
        data = self._image.image.data
        words = data[: len(data) & ~3].view("<u4")
        return bool(np.any(words & ~np.uint32(31) == _SET_EL2_VECTORS))


def _is_in_loop(cpu: Cpu) -> bool:
    """Whether the PC is at a wait before a branch back to it, or at that branch."""
    pc = cpu.registers.get("pc")
    try:
        before, here, behind = (_word(cpu, pc + distance) for distance in (-4, 0, 4))
    except PageFault:
        return False
    return (here in _WAITS and behind == _BACK) or (before in _WAITS and here == _BACK)


def _word(cpu: Cpu, address: int) -> int:
    return int.from_bytes(cpu.fetch(address, 4), "little")

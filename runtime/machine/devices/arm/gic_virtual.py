"""GICv2's virtual interface (IHI 0048B, chapter 5). Without stage 2, the machine's hypervisor runs no guests.

What the hypervisor writes is stored for each CPU. Nothing is ever signalled, and the guests' window has no interrupts.
"""

from collections.abc import Callable, Sequence
from typing import Final

HCR, VTR, VMCR, ELRSR, APR, LR = 0x000, 0x004, 0x008, 0x030, 0x0F0, 0x100
_LIST_REGISTERS: Final = 4
_STATE: Final = 3 << 28  # state bits of a list register: pending, active
_TYPE: Final = 0x9000_0000 | _LIST_REGISTERS - 1  # five bits of priority and five of preemption, as in QEMU
_KEPT: Final = (HCR, VMCR, APR, *range(LR, LR + 4 * _LIST_REGISTERS, 4))
_NO_INTERRUPT: Final = 1023
_IAR, _HPPIR = 0x0C, 0x18


class HypervisorInterface:
    """GICH, banked by CPU. `current` gives the CPU that accesses it."""

    size = 0x1000

    def __init__(self, cpus: int, current: Callable[[], int]) -> None:
        self._current = current
        self._banks: Sequence[dict[int, int]] = [dict.fromkeys(_KEPT, 0) for _ in range(cpus)]

    def read(self, offset: int, size: int) -> int:
        """A register of the current CPU. ELRSR has a bit for each free list register."""
        bank = self._banks[self._current()]
        if offset == VTR:
            return _TYPE
        if offset == ELRSR:
            return sum(1 << number for number in range(_LIST_REGISTERS) if not bank[LR + 4 * number] & _STATE)
        return bank.get(offset, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register of the current CPU; one that does not exist is ignored."""
        bank = self._banks[self._current()]
        if offset in bank:
            bank[offset] = value


class VirtualCpuInterface:
    """GICV: what a guest of the hypervisor would see as its CPU interface."""

    size = 0x2000

    def read(self, offset: int, size: int) -> int:
        """A register: no interrupt is ever pending."""
        return _NO_INTERRUPT if offset in (_IAR, _HPPIR) else 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Do nothing: there is no interrupt to acknowledge or end."""

"""riscv64: satp, and the tables of Sv39, Sv48 and Sv57 (The RISC-V Instruction Set Manual, volume II, 12.3)."""

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from kinst.runtime.live.room.regime import Cpu, Root
from kinst.runtime.live.room.tables import Entries
from kinst.targets.arch.code_shape import Pattern
from kinst.targets.values import dataclass

_V, _R, _W, _X, _A, _D = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 6, 1 << 7
_LEAF: Final = _R | _W | _X
_NUMBER: Final = (1 << 44) - 1  # of a page: bits 53 to 10 of an entry, 43 to 0 of satp
_ATTRIBUTES: Final = 0x3FF | 3 << 61  # flags, and the memory type (Svpbmt); not N, which joins pages
_LEVELS: Final = {8: 3, 9: 4, 10: 5}  # by satp's mode: Sv39, Sv48, Sv57
_SHIFT, _BITS = 12, 9


@dataclass(frozen=True, slots=True)
class _Format:
    """Of an entry:

    63 N   62:61 PBMT   53:10 page   7 D   6 A   5 G   4 U   3 X   2 W   1 R   0 V
    """

    shifts: tuple[int, ...]
    root_bits: int = _BITS

    def is_table(self, entry: int, level: int) -> bool:
        """See `Format`."""
        return entry & (_V | _LEAF) == _V and level < len(self.shifts) - 1

    def is_leaf(self, entry: int, level: int) -> bool:
        """See `Format`."""
        return bool(entry & _V and entry & _LEAF)

    def target(self, entry: int) -> int:
        """See `Format`."""
        return (entry >> 10 & _NUMBER) << _SHIFT

    def is_code(self, leaf: int) -> bool:
        """See `Format`."""
        return bool(leaf & _X)

    def pointer(self, table: int) -> int:
        """See `Format`."""
        return table >> _SHIFT << 10 | _V

    def pages(self, text: int, first: int, count: int, *, is_code: bool) -> Entries:
        """See `Format`."""
        kept = text & _ATTRIBUTES & ~(_W | _X)
        attributes = kept | _R | _A | _D | (_X if is_code else _W)
        numbers = np.arange(first >> _SHIFT, (first >> _SHIFT) + count, dtype=np.uint64)
        return numbers << np.uint64(10) | np.uint64(attributes)


class Riscv64:
    """See `kinst.runtime.live.room.regime.Regime`."""

    #      csr 31:20   rs1 19:15   001   rd 11:7   1110011: csrrw rd, satp, rs1
    load: Pattern = Pattern(0xFFF0_707F, 0x1800_1073)
    hypervisor_load: Pattern | None = None  # hypervisors have the same register
    enable: Pattern | None = None  # it is the same instruction
    is_among_modules = False  # the region for modules ends where the kernel begins, wherever that is
    step = 2

    def current(self, _cpu: Cpu, *, is_hypervisor: bool) -> Sequence[Root]:
        """None is asked for."""
        del is_hypervisor
        return ()

    def root(self, load: int, cpu: Cpu) -> Root | None:
        """All addresses have one."""
        number = load >> 15 & 0x1F
        satp = cpu.register(number) if number else 0
        levels = _LEVELS.get(satp >> 60)
        if levels is None:
            return None
        form = _Format(tuple(_SHIFT + _BITS * level for level in reversed(range(levels))))
        return Root((satp & _NUMBER) << _SHIFT, form, has_kernel=True, has_identity=True)

    def start(self, distance: int) -> bytes:
        """auipc t0, distance; jr t0: t0 has no value yet when a kernel is entered."""
        return struct.pack("<2I", distance & 0xFFFF_F000 | 5 << 7 | 0x17, 5 << 15 | 0x67)


REGIME: Final = Riscv64()

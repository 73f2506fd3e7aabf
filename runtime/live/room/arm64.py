"""arm64: TTBR0, TTBR1 and TCR, and the tables of the VMSAv8-64 (Arm ARM, D8.2 and D8.3)."""

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from kinst.runtime.live.room.regime import Cpu, Root
from kinst.runtime.live.room.tables import Entries
from kinst.targets.arch.code_shape import Pattern

_ADDRESS: Final = (1 << 48) - 1  # higher bits of physical addresses are elsewhere, and zero in all of QEMU's RAM
_READ_ONLY, _ACCESSED = 1 << 7, 1 << 10
_WRITABLE: Final = 1 << 51  # DBM, which Linux sets in all that it may write to: PIR_EL1 goes by it, too
_NEVER_KERNEL, _NEVER_USER = 1 << 53, 1 << 54  # PXN, UXN
_CONTIGUOUS: Final = 1 << 52
_TABLE: Final = 0b11  # also of a page; a block has 0b01
_GRANULES: Final = ({0: 12, 1: 16, 2: 14}, {1: 14, 2: 12, 3: 16})  # by TG0, and by TG1
_CPSR: Final = 33  # the register's number for gdb
_HIGH: Final = 1 << 5  # of the load: op2
_ZERO: Final = 31  # xzr
_HYPERVISOR: Final = 2  # the exception level


@dataclass(frozen=True, slots=True)
class _Format:
    """Of an entry:

    54 UXN   53 PXN   52 contiguous   51 DBM   47:12 address   10 AF   9:8 SH   7:6 AP   4:2 type   1:0 11, 01: block
    """

    shifts: tuple[int, ...]
    root_bits: int

    def is_table(self, entry: int, level: int) -> bool:
        """See `Format`."""
        return entry & 3 == _TABLE and level < len(self.shifts) - 1

    def is_leaf(self, entry: int, level: int) -> bool:
        """See `Format`."""
        return entry & 3 == (_TABLE if level == len(self.shifts) - 1 else 0b01)

    def target(self, entry: int) -> int:
        """See `Format`."""
        return entry & _ADDRESS & -(1 << self.shifts[-1])

    def is_code(self, leaf: int) -> bool:
        """See `Format`."""
        return not leaf & _NEVER_KERNEL

    def pointer(self, table: int) -> int:
        """See `Format`."""
        return table | _TABLE

    def pages(self, text: int, first: int, count: int, *, is_code: bool) -> Entries:
        """See `Format`."""
        kept = text & ~(self.target(-1) | _CONTIGUOUS | _READ_ONLY | _WRITABLE | _NEVER_KERNEL) | _ACCESSED | _TABLE
        attributes = kept | (_READ_ONLY if is_code else _WRITABLE | _NEVER_KERNEL | _NEVER_USER)
        size = 1 << self.shifts[-1]
        return np.arange(first, first + count * size, size, dtype=np.uint64) | np.uint64(attributes)


def _format(bits: int, granule: int) -> _Format:
    """Of tables for addresses of so many bits, and pages of a size whose logarithm is `granule`."""
    shifts = range(granule, bits, granule - 3)
    return _Format(tuple(reversed(shifts)), bits - shifts[-1])


class Arm64:
    """See `kinst.runtime.live.room.regime.Regime`."""

    #      1101 0101 0001 1   op1 000   CRn 0010   CRm 0000   op2 00x   Rt: msr ttbr0_el1, xt; ttbr1_el1 with op2 001
    load: Pattern = Pattern(0xFFFF_FFC0, 0xD518_2000)
    step = 4

    def root(self, load: int, cpu: Cpu) -> Root | None:
        """TTBR1 has high addresses, TTBR0 low ones."""
        # A kernel at EL2 writes to that level's registers by the names of EL1 (VHE).
        level = 2 if cpu.register(_CPSR) >> 2 & 3 == _HYPERVISOR else 1
        number, is_high = load & 0x1F, bool(load & _HIGH)
        control = cpu.named_register(f"tcr_el{level}") >> (16 if is_high else 0)
        granule = _GRANULES[is_high].get(control >> 14 & 3)
        if granule is None or number == _ZERO:
            return None
        form = _format(64 - (control & 0x3F), granule)
        address = cpu.register(number) & _ADDRESS & -max(8 << form.root_bits, 64)  # an ASID is above, CnP below
        return Root(address, form, has_kernel=is_high, has_identity=not is_high)

    def start(self, distance: int) -> bytes:
        """B distance."""
        return struct.pack("<2I", 0x1400_0000 | distance >> 2, 0)


REGIME: Final = Arm64()

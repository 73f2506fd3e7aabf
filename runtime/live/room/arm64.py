"""arm64: TTBR0, TTBR1 and TCR, and the tables of the VMSAv8-64 (Arm ARM, D8.2 and D8.3)."""

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from kinst.runtime.live.room.regime import Cpu, Root
from kinst.runtime.live.room.tables import Entries
from kinst.targets.arch.code_shape import Pattern
from kinst.targets.values import dataclass

_ADDRESS: Final = (1 << 48) - 1  # higher bits of physical addresses are elsewhere, and zero in all of QEMU's RAM
_READ_ONLY, _ACCESSED = 1 << 7, 1 << 10
_WRITABLE: Final = 1 << 51  # DBM, which Linux sets in all that it may write to: PIR_EL1 goes by it, too
_NEVER_KERNEL, _NEVER_USER = 1 << 53, 1 << 54  # PXN, UXN
_NEVER: Final = 1 << 54  # XN of a hypervisor's own tables, where bit 53 is reserved (D8.4.1.2.2)
_CONTIGUOUS: Final = 1 << 52
_TABLE: Final = 0b11  # also of a page; a block has 0b01
_GRANULES: Final = ({0: 12, 1: 16, 2: 14}, {1: 14, 2: 12, 3: 16})  # by TG0, and by TG1
_CPSR: Final = 33  # the register's number for gdb
_HIGH: Final = 1 << 5  # of the load: op2
_ZERO: Final = 31  # xzr
_HYPERVISOR: Final = 2  # the exception level
_OWN: Final = 4 << 16  # of the load: op1 of EL2's registers


@dataclass(frozen=True, slots=True)
class _Format:
    """Of an entry:

    54 UXN   53 PXN   52 contiguous   51 DBM   47:12 address   10 AF   9:8 SH   7:6 AP   4:2 type   1:0 11, 01: block

    `never` is the bit of what is not executed at the level that the tables are for, `never_any` at any level.
    """

    shifts: tuple[int, ...]
    root_bits: int
    never: int
    never_any: int

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
        return not leaf & self.never

    def pointer(self, table: int) -> int:
        """See `Format`."""
        return table | _TABLE

    def pages(self, text: int, first: int, count: int, *, is_code: bool) -> Entries:
        """See `Format`."""
        kept = text & ~(self.target(-1) | _CONTIGUOUS | _READ_ONLY | _WRITABLE | self.never) | _ACCESSED | _TABLE
        attributes = kept | (_READ_ONLY if is_code else _WRITABLE | self.never_any)
        size = 1 << self.shifts[-1]
        return np.arange(first, first + count * size, size, dtype=np.uint64) | np.uint64(attributes)


def _format(bits: int, granule: int, never: int, never_any: int) -> _Format:
    """Of tables for addresses of so many bits, and pages of a size whose logarithm is `granule`."""
    shifts = range(granule, bits, granule - 3)
    return _Format(tuple(reversed(shifts)), bits - shifts[-1], never, never_any)


class Arm64:
    """See `kinst.runtime.live.room.regime.Regime`."""

    #      1101 0101 0001 1   op1 000   CRn 0010   CRm 0000   op2 00x   Rt: msr ttbr0_el1, xt; ttbr1_el1 with op2 001
    load: Pattern = Pattern(0xFFFF_FFC0, 0xD518_2000)
    #      1101 0101 0001 1   op1 100   CRn 0010   CRm 0000   op2 000   Rt: msr ttbr0_el2, xt
    hypervisor_load: Pattern | None = Pattern(0xFFFF_FFE0, 0xD51C_2000)
    #      1101 0101 0001 1   op1 000   CRn 0001   CRm 0000   op2 000   Rt: msr sctlr_el1, xt
    enable: Pattern | None = Pattern(0xFFFF_FFE0, 0xD518_1000)
    is_among_modules = True  # it is mapped by vmalloc, in the middle of 128 MiB or 2 GiB that begin at random
    step = 4

    def root(self, load: int, cpu: Cpu) -> Root | None:
        """TTBR1 has high addresses, TTBR0 low ones; a hypervisor's has all."""
        number, is_own = load & 0x1F, bool(load & _OWN)
        if number == _ZERO:
            return None
        level = _HYPERVISOR if is_own else _level(cpu)
        control = cpu.named_register(f"tcr_el{level}")
        return _root(cpu.register(number), control, is_high=bool(load & _HIGH), is_own=is_own)

    def current(self, cpu: Cpu, *, is_hypervisor: bool) -> Sequence[Root]:
        """Both of a kernel, one of a hypervisor that translates."""
        level = _level(cpu)
        if is_hypervisor and not cpu.named_register(f"sctlr_el{level}") & 1:
            return ()
        control = cpu.named_register(f"tcr_el{level}")
        bases = [cpu.named_register(f"ttbr{number}_el{level}") for number in range(1 if is_hypervisor else 2)]
        found = (_root(base, control, is_high=row == 1, is_own=is_hypervisor) for row, base in enumerate(bases))
        return [one for one in found if one is not None]

    def start(self, distance: int) -> bytes:
        """B distance."""
        return struct.pack("<2I", 0x1400_0000 | distance >> 2, 0)


def _level(cpu: Cpu) -> int:
    """A kernel at EL2 writes to that level's registers by the names of EL1 (VHE)."""
    return 2 if cpu.register(_CPSR) >> 2 & 3 == _HYPERVISOR else 1


def _root(base: int, control: int, *, is_high: bool, is_own: bool) -> Root | None:
    """The root in a register; `is_own`: of EL2's that has one range of addresses. None: its granule is reserved."""
    control >>= 16 if is_high else 0
    granule = _GRANULES[is_high].get(control >> 14 & 3)
    if granule is None:
        return None
    never = (_NEVER, _NEVER) if is_own else (_NEVER_KERNEL, _NEVER_KERNEL | _NEVER_USER)
    form = _format(64 - (control & 0x3F), granule, *never)
    address = base & _ADDRESS & -max(8 << form.root_bits, 64)  # an ASID is above, CnP below
    return Root(address, form, has_kernel=is_high or is_own, has_identity=not is_high)


REGIME: Final = Arm64()

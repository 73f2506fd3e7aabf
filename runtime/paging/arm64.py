"""arm64 address translation: TTBRn, TCR, SCTLR and the tables in guest memory -> physical page and permissions.

Stage 1 of the EL1&0, EL2 and EL3 regimes of Armv8.0 (Arm ARM DDI 0487, chapter D8): 4, 16 and 64 KiB granules, blocks
and pages, hierarchical table attributes, access flag faults, WXN. There is no stage 2 and no hardware-managed access
flag, since the Cortex-A57 has no FEAT_HAFDBS. The contiguous bit is a hint to the TLB and changes nothing here.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from kinst.runtime.paging.walker import (
    Access,
    LoadPhysical,
    PageFault,
    Permission,
    Registers,
    StorePhysical,
    Translation,
)
from kinst.targets.values import dataclass

# Fault status codes of ESR_ELx.ISS (DFSC, IFSC); the two low bits are the table level.
ADDRESS_SIZE = 0x00
TRANSLATION = 0x04
ACCESS_FLAG = 0x08
PERMISSION = 0x0C

SCTLR_M = 1 << 0
SCTLR_WXN = 1 << 19

# TCR_ELx: TG0 is bits 15:14, TG1 bits 31:30, and the two fields count differently (D19.2.139).
GRANULE0 = (12, 16, 14, 12)  # the reserved value 3 means 4 KiB
GRANULE1 = (12, 14, 12, 16)
OUTPUT_BITS = (32, 36, 40, 42, 44, 48, 48, 48)  # TCR.IPS; the A57 has 44 bits, and its guests never use more
SMALLEST_BLOCK_LEVEL = {12: 1, 14: 2, 16: 2}  # lowest level at which a block descriptor is allowed

OUTPUT_ADDRESS = (1 << 48) - 1
LAST_LEVEL = 3
_ALL: Final = (1 << 64) - 1
_TABLES: Final = OUTPUT_ADDRESS  # without the ASID
_CONTROLS: Final = tuple((f"ttbr0_el{level}", f"tcr_el{level}", f"sctlr_el{level}") for level in (1, 2, 3))


@dataclass(frozen=True, slots=True)
class Layout:
    """How TCR_ELx lays out one half of the address space, for one exception level.

    `steps` has, for each table on the way, its level, the lowest address bit of its index, and the mask of its index.
    """

    above_mask: int  # the address bits that select the half, and the value that they must have
    above: int
    steps: tuple[tuple[int, int, int], ...]
    granule: int  # log2 of the page size
    table_mask: int  # the first table's address in TTBRn
    output_bits: int
    is_walk_disabled: bool
    exception_level: int
    is_write_never_execute: bool


class Leaf(NamedTuple):
    """The descriptor at which a walk ended, and the limits that the tables above it set."""

    descriptor: int
    level: int
    shift: int  # log2 of the size it maps
    table_limits: int  # bits 63:59 of all tables, combined


class Arm64Walker:
    """The MMU of a Cortex-A57 without stage 2."""

    tracer_bits: Final[Mapping[str, int]] = {}  # the CPU has no PAN
    kernel_bits: Final = MappingProxyType({"pstate": (3 << 2, 1 << 2)})
    regime = ("ttbr1_el1", *(name for names in _CONTROLS for name in names))
    context: Final = MappingProxyType(
        {
            "pstate": 3 << 2,
            "sctlr_el1": SCTLR_M | SCTLR_WXN,
            "tcr_el1": _ALL,
            "ttbr0_el1": _TABLES,
            "ttbr1_el1": _TABLES,
            "sctlr_el2": SCTLR_M | SCTLR_WXN,
            "tcr_el2": _ALL,
            "ttbr0_el2": _TABLES,
        }
    )

    def has_context(self, registers: Registers) -> bool:
        """Whether the CPU is not at EL3, whose registers are not in `context`: the engine compares 8 at most, and
        firmware at EL3 is small."""
        return registers.get("pstate") >> 2 & 3 != 3

    def tables(self, registers: Registers) -> int | None:
        """The tables of the lower half at the CPU's exception level; None unless SCTLR.M is set."""
        table, _, control = _CONTROLS[max(registers.get("pstate") >> 2 & 3, 1) - 1]
        return registers.get(table) if registers.get(control) & SCTLR_M else None

    def translate(
        self, registers: Registers, load: LoadPhysical, store: StorePhysical, address: int, access: Access
    ) -> Translation:
        """See `Walker`. The code of a PageFault is the fault status code (6 bits)."""
        get = registers.get
        level = get("pstate") >> 2 & 3
        table_name, tcr_name, control_name = _CONTROLS[max(level, 1) - 1]
        control = get(control_name)
        if not control & SCTLR_M:
            return Translation(address, Permission.ALL)
        is_upper = level < 2 and bool(address >> 55 & 1)  # D8.2.1
        layout = _layout(get(tcr_name), is_upper, level, bool(control & SCTLR_WXN))
        if address & layout.above_mask != layout.above or layout.is_walk_disabled:
            raise PageFault(address, access, TRANSLATION)
        table = get("ttbr1_el1" if is_upper else table_name)
        leaf = _walk(layout, table & layout.table_mask, load, address, access)
        return _leaf_translation(layout, leaf, address, access)


@lru_cache(maxsize=64)
def _layout(tcr: int, is_upper: bool, level: int, is_write_never_execute: bool) -> Layout:  # noqa: FBT001 - a cache's key
    """The layout of one half. The lower half uses T0SZ, TG0, EPD0 and TBI0, the upper one T1SZ, TG1, EPD1 and TBI1. EL2
    and EL3 have only the lower one."""
    if is_upper:
        size, granule, ignore_top, disabled = tcr >> 16, GRANULE1[tcr >> 30 & 3], tcr >> 38 & 1, tcr >> 23 & 1
    elif level >= 2:
        size, granule, ignore_top, disabled = tcr, GRANULE0[tcr >> 14 & 3], tcr >> 20 & 1, 0
    else:
        size, granule, ignore_top, disabled = tcr, GRANULE0[tcr >> 14 & 3], tcr >> 37 & 1, tcr >> 7 & 1
    input_bits = 64 - min(max(size & 0x3F, 16), 39)  # beyond these limits the CPU uses the limits
    above = (1 << (56 if ignore_top else 64)) - (1 << input_bits)  # TBI: the top byte is a tag
    steps = _steps(input_bits, granule)
    return Layout(
        above_mask=above,
        above=above if is_upper else 0,
        steps=steps,
        granule=granule,
        table_mask=OUTPUT_ADDRESS & ~1 & -(steps[0][2] + 1 << 3),  # a table is aligned to its size
        output_bits=OUTPUT_BITS[tcr >> (16 if level >= 2 else 32) & 7],
        is_walk_disabled=bool(disabled),
        exception_level=level,
        is_write_never_execute=is_write_never_execute,
    )


def _steps(input_bits: int, granule: int) -> tuple[tuple[int, int, int], ...]:
    """The tables on the way, as in `Layout.steps`. A table of one page has granule - 3 index bits; the first table has
    the rest."""
    stride = granule - 3
    levels = -(-(input_bits - granule) // stride)
    first = LAST_LEVEL + 1 - levels
    shifts = [(level, granule + stride * (LAST_LEVEL - level)) for level in range(first, LAST_LEVEL + 1)]
    return tuple((level, shift, (1 << min(stride, input_bits - shift)) - 1) for level, shift in shifts)


def _walk(layout: Layout, table: int, load: LoadPhysical, address: int, access: Access) -> Leaf:
    """Follow the tables to a block or page.

    Descriptor (D8.3), levels 0 to 3:
     63    59 58        48 47                       12 11  10 9  8 7  6 5    2  1     0
    +--------+------------+---------------------------+---+--+----+----+------+----+-----+
    | limits |            | next table or output      |nG |AF| SH | AP | attr |type|valid|
    +--------+------------+---------------------------+---+--+----+----+------+----+-----+
    """
    limits = 0
    for level, shift, index_mask in layout.steps:
        descriptor = load(table + (address >> shift & index_mask) * 8)
        if not _is_usable(descriptor, level, layout.granule):
            raise PageFault(address, access, TRANSLATION | level)
        if level == LAST_LEVEL or not descriptor & 2:
            return Leaf(descriptor, level, shift, limits)
        table = descriptor & OUTPUT_ADDRESS & -(1 << layout.granule)
        if table >> layout.output_bits:
            raise PageFault(address, access, ADDRESS_SIZE | level)
        limits |= descriptor >> 59
    raise AssertionError("a walk ends at level 3 at the latest")


def _is_usable(descriptor: int, level: int, granule: int) -> bool:
    """Whether a descriptor is valid and may be at this level: blocks not above a certain level, pages only at level
    3."""
    if not descriptor & 1:
        return False
    if level == LAST_LEVEL:
        return bool(descriptor & 2)
    return bool(descriptor & 2) or level >= SMALLEST_BLOCK_LEVEL[granule]


def _leaf_translation(layout: Layout, leaf: Leaf, address: int, access: Access) -> Translation:
    inside = (1 << leaf.shift) - 1
    base = leaf.descriptor & OUTPUT_ADDRESS & ~inside
    if base >> layout.output_bits:
        raise PageFault(address, access, ADDRESS_SIZE | leaf.level)
    if not leaf.descriptor >> 10 & 1:
        raise PageFault(address, access, ACCESS_FLAG | leaf.level)
    permissions = _permissions(layout, leaf)
    if not permissions >> access & 1:  # READ, WRITE, FETCH need bits 0, 1, 2 of Permission
        raise PageFault(address, access, PERMISSION | leaf.level)
    return Translation(base | (address & inside), PERMISSIONS[permissions], leaf.shift)


# An operation on an IntFlag takes a microsecond, and every TLB miss comes through here.
PERMISSIONS = tuple(Permission(bits) for bits in range(8))


def _permissions(layout: Layout, leaf: Leaf) -> int:
    """AP, UXN and PXN of the leaf under APTable, UXNTable and PXNTable (D8.4.1, D8.4.2), as bits of Permission.

    AP[2] (bit 7) forbids writes, and AP[1] (bit 6) admits EL0. APTable[1] and APTable[0] (limits 3 and 2) restrict
    both.
    """
    descriptor, limits = leaf.descriptor, leaf.table_limits
    is_writable = not (descriptor >> 7 & 1 or limits >> 3 & 1)
    is_user = bool(descriptor >> 6 & 1) and not limits >> 2 & 1
    is_readable = True
    if layout.exception_level == 1:
        # EL1 never executes what EL0 may write.
        never = bool(descriptor >> 53 & 1 or limits & 1) or (is_user and is_writable)
    else:
        never = bool(descriptor >> 54 & 1 or limits >> 1 & 1)
        if layout.exception_level == 0:
            is_readable = is_user
            is_writable = is_writable and is_user
    if layout.is_write_never_execute and is_writable:
        never = True
    return is_readable | is_writable << 1 | (not never) << 2


WALKER = Arm64Walker

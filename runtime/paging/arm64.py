"""arm64 address translation: TTBRn, TCR, SCTLR and the tables in guest memory -> physical page and permissions.

Stage 1 of the EL1&0 and EL2 regimes as Armv8.0 has it (Arm ARM DDI 0487, chapter D8): 4, 16 and 64 KiB granules, blocks
and pages, hierarchical table attributes, access flag faults, WXN. No stage 2 and no hardware-managed access flag: the
Cortex-A57 has no FEAT_HAFDBS. The contiguous bit is a hint to the TLB and changes nothing here.
"""

from dataclasses import dataclass

from kinst.runtime.paging.walker import (
    Access,
    LoadPhysical,
    PageFault,
    Permission,
    Registers,
    StorePhysical,
    Translation,
)

# Fault status codes of ESR_ELx.ISS (DFSC, IFSC); the two low bits are the table level.
ADDRESS_SIZE = 0x00
TRANSLATION = 0x04
ACCESS_FLAG = 0x08
PERMISSION = 0x0C

SCTLR_M = 1 << 0
SCTLR_WXN = 1 << 19

# TCR_ELx: TG0 is bits 15:14, TG1 bits 31:30, and the two fields count differently (D19.2.139).
GRANULE0 = (12, 16, 14, 12)  # reserved value 3: as 4 KiB
GRANULE1 = (12, 14, 12, 16)
OUTPUT_BITS = (32, 36, 40, 42, 44, 48, 48, 48)  # TCR.IPS; the A57 has 44, more bits never come from its guests
SMALLEST_BLOCK_LEVEL = {12: 1, 14: 2, 16: 2}  # lowest level at which a block descriptor is allowed

OUTPUT_ADDRESS = (1 << 48) - 1
LAST_LEVEL = 3


@dataclass(frozen=True, slots=True)
class Regime:
    """What one walk needs of the control registers, for the half of the address space that the address lies in."""

    table: int
    input_bits: int
    granule: int  # log2 of the page size
    output_bits: int
    is_walk_disabled: bool
    is_write_never_execute: bool
    exception_level: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """The descriptor a walk ended at, and the limits that the tables above it set."""

    descriptor: int
    level: int
    table_limits: int  # the tables' bits 63:59 together


class Arm64Walker:
    """The MMU of a Cortex-A57 without stage 2."""

    def translate(
        self, registers: Registers, load: LoadPhysical, store: StorePhysical, address: int, access: Access
    ) -> Translation:
        """Translate one virtual address; PageFault carries the fault status code (6 bits)."""
        level = registers.get("pstate") >> 2 & 3
        suffix = "_el2" if level == 2 else "_el1"
        control = registers.get("sctlr" + suffix)
        if not control & SCTLR_M or level == 3:
            return Translation(address, Permission.ALL)
        regime = _regime(registers, suffix, address, level, control)
        if regime is None or regime.is_walk_disabled:
            raise PageFault(address, access, TRANSLATION)
        leaf = _walk(regime, load, address, access)
        return _leaf_translation(regime, leaf, address, access)


def _regime(registers: Registers, suffix: str, address: int, level: int, control: int) -> Regime | None:
    """The half of the address space that bit 55 selects (D8.2.1); None for an address in neither half."""
    tcr = registers.get("tcr" + suffix)
    is_upper = suffix == "_el1" and bool(address >> 55 & 1)
    if is_upper:
        size, granule, ignore_top = tcr >> 16 & 0x3F, GRANULE1[tcr >> 30 & 3], tcr >> 38 & 1
    else:
        size, granule = tcr & 0x3F, GRANULE0[tcr >> 14 & 3]
        ignore_top = tcr >> (20 if level == 2 else 37) & 1
    input_bits = 64 - min(max(size, 16), 39)
    top = 56 if ignore_top else 64  # TBI: the top byte is a tag
    above = (address & ((1 << top) - 1)) >> input_bits
    if above != ((1 << (top - input_bits)) - 1 if is_upper else 0):
        return None
    return Regime(
        table=registers.get(("ttbr1" if is_upper else "ttbr0") + suffix),
        input_bits=input_bits,
        granule=granule,
        output_bits=OUTPUT_BITS[tcr >> (16 if level == 2 else 32) & 7],
        is_walk_disabled=level != 2 and bool(tcr >> (23 if is_upper else 7) & 1),  # EPD1, EPD0
        is_write_never_execute=bool(control & SCTLR_WXN),
        exception_level=level,
    )


def _walk(regime: Regime, load: LoadPhysical, address: int, access: Access) -> Leaf:
    """Follow the tables to a block or page.

    Descriptor (D8.3), levels 0 to 3:
     63    59 58        48 47                       12 11  10 9  8 7  6 5    2  1     0
    +--------+------------+---------------------------+---+--+----+----+------+----+-----+
    | limits |            | next table or output      |nG |AF| SH | AP | attr |type|valid|
    +--------+------------+---------------------------+---+--+----+----+------+----+-----+
    """
    stride = regime.granule - 3
    levels = -(-(regime.input_bits - regime.granule) // stride)
    top_index_bits = regime.input_bits - regime.granule - stride * (levels - 1)
    table = regime.table & OUTPUT_ADDRESS & ~1 & -(1 << (top_index_bits + 3))
    offset_bits = regime.input_bits
    limits = 0
    for level in range(LAST_LEVEL + 1 - levels, LAST_LEVEL + 1):
        shift = regime.granule + stride * (LAST_LEVEL - level)
        index = (address & ((1 << offset_bits) - 1)) >> shift
        descriptor = load(table + index * 8)
        if not _is_usable(descriptor, level, regime.granule):
            raise PageFault(address, access, TRANSLATION | level)
        if level == LAST_LEVEL or not descriptor & 2:
            return Leaf(descriptor, level, limits)
        table = descriptor & OUTPUT_ADDRESS & -(1 << regime.granule)
        if table >> regime.output_bits:
            raise PageFault(address, access, ADDRESS_SIZE | level)
        limits |= descriptor >> 59
        offset_bits = shift
    raise AssertionError("a walk ends at level 3 at the latest")


def _is_usable(descriptor: int, level: int, granule: int) -> bool:
    """Valid, and of a type that this level may hold: blocks not too high up, pages only at level 3."""
    if not descriptor & 1:
        return False
    if level == LAST_LEVEL:
        return bool(descriptor & 2)
    return bool(descriptor & 2) or level >= SMALLEST_BLOCK_LEVEL[granule]


def _leaf_translation(regime: Regime, leaf: Leaf, address: int, access: Access) -> Translation:
    shift = regime.granule + (regime.granule - 3) * (LAST_LEVEL - leaf.level)
    inside = (1 << shift) - 1
    base = leaf.descriptor & OUTPUT_ADDRESS & ~inside
    if base >> regime.output_bits:
        raise PageFault(address, access, ADDRESS_SIZE | leaf.level)
    if not leaf.descriptor >> 10 & 1:
        raise PageFault(address, access, ACCESS_FLAG | leaf.level)
    permissions = _permissions(regime, leaf)
    if not permissions >> access & 1:  # READ, WRITE, FETCH ask for bits 0, 1, 2 of Permission
        raise PageFault(address, access, PERMISSION | leaf.level)
    return Translation(base | (address & inside), PERMISSIONS[permissions])


# IntFlag arithmetic costs a microsecond an operation, and every TLB miss comes through here.
PERMISSIONS = tuple(Permission(bits) for bits in range(8))


def _permissions(regime: Regime, leaf: Leaf) -> int:
    """AP, UXN and PXN of the leaf under APTable, UXNTable and PXNTable (D8.4.1, D8.4.2), as bits of Permission.

    AP[2] (bit 7) forbids writes, AP[1] (bit 6) admits EL0; APTable[1] and APTable[0] (limits 3 and 2) take these away.
    """
    descriptor, limits = leaf.descriptor, leaf.table_limits
    is_writable = not (descriptor >> 7 & 1 or limits >> 3 & 1)
    is_user = bool(descriptor >> 6 & 1) and not limits >> 2 & 1
    is_readable = True
    if regime.exception_level == 1:
        # What EL0 may write, EL1 never executes.
        never = bool(descriptor >> 53 & 1 or limits & 1) or (is_user and is_writable)
    else:
        never = bool(descriptor >> 54 & 1 or limits >> 1 & 1)
        if regime.exception_level == 0:
            is_readable = is_user
            is_writable = is_writable and is_user
    if regime.is_write_never_execute and is_writable:
        never = True
    return is_readable | is_writable << 1 | (not never) << 2

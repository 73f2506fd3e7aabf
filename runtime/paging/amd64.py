"""Control registers and page tables of an x86 CPU -> physical page and permissions, in every mode it boots through.

No paging, 32-bit, PAE, 4-level and 5-level paging as in Intel SDM volume 3, chapter 4. Accessed and dirty bits are set
as the hardware sets them, and a fault has the error code of section 4.7.
"""

from types import MappingProxyType
from typing import Final

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

# CR0, CR4, EFER, RFLAGS: the bits that a walk depends on (SDM 2.5, 2.2.1).
CR0_WP: Final = 1 << 16
CR0_PG: Final = 1 << 31
CR4_PSE: Final = 1 << 4
CR4_PAE: Final = 1 << 5
CR4_LA57: Final = 1 << 12
CR4_SMEP: Final = 1 << 20
CR4_SMAP: Final = 1 << 21
EFER_LMA: Final = 1 << 10
EFER_NXE: Final = 1 << 11
RFLAGS_AC: Final = 1 << 18

# A table entry (SDM 4.5.4, table 4-15 and on); 32-bit entries have the same low bits:
#
#   63  62    52 51            12 11  9  8   7  6  5   4   3   2   1   0
#   XD  ignored  physical address  ign   G  PS  D  A  PCD PWT U/S R/W  P
PRESENT: Final = 1 << 0
WRITABLE: Final = 1 << 1
USER: Final = 1 << 2
ACCESSED: Final = 1 << 5
DIRTY: Final = 1 << 6
LARGE: Final = 1 << 7
NO_EXECUTE: Final = 1 << 63
PHYSICAL_BITS: Final = 40  # CPUID 0x80000008 of Unicorn's CPU
ADDRESS: Final = (1 << PHYSICAL_BITS) - (1 << 12)
_TOO_HIGH: Final = (1 << 52) - (1 << PHYSICAL_BITS)

# A page fault's error code (SDM figure 4-12):
#
#   4    3    2   1   0
#   I/D RSVD U/S W/R  P
ERROR_PROTECTION: Final = 1 << 0
ERROR_WRITE: Final = 1 << 1
ERROR_USER: Final = 1 << 2
ERROR_RESERVED: Final = 1 << 3
ERROR_FETCH: Final = 1 << 4

_RIGHTS: Final = WRITABLE | USER
_LEVELS_4: Final = (39, 30, 21, 12)
_LEVELS_5: Final = (48, 39, 30, 21, 12)
_LEVELS_PAE: Final = (21, 12)


class _WalkError(Exception):
    """The walk ended early. `code` has the low bits of the error code (P and RSVD)."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@dataclass(frozen=True, slots=True)
class _Leaf:
    """The end of a walk: what all tables together allow, and where the entry with the accessed and dirty bits is."""

    physical: int
    rights: int  # U/S and R/W of all levels, and _NEVER_EXECUTE
    entry_address: int  # address of the entry's 64-bit word
    entry: int  # that word
    shift: int  # the entry's first bit in the word: 32 for every second 32-bit entry


# A mode as an index: what the control registers say about permissions.
_USER_MODE, _WRITE_PROTECT, _NXE, _SMEP, _SMAP = 1, 2, 4, 8, 16
_NEVER_EXECUTE: Final = 1  # one of a leaf's rights, in the place of P
_READ, _WRITE, _EXECUTE = int(Permission.READ), int(Permission.WRITE), int(Permission.EXECUTE)
_NEEDED: Final = (_READ, _WRITE, _EXECUTE)  # indexed by Access


def _allowed(mode: int, rights: int) -> int:
    """What accesses in this mode may do with a page of these rights (SDM 4.6.1)."""
    user, user_page = mode & _USER_MODE, rights & USER
    if user and not user_page:
        return 0
    allowed = 0
    if user or not (user_page and mode & _SMAP):
        allowed |= _READ
        if rights & WRITABLE or not (user or mode & _WRITE_PROTECT):
            allowed |= _WRITE
    executable = not (rights & _NEVER_EXECUTE and mode & _NXE)
    if executable and not (mode & _SMEP and user_page and not user):
        allowed |= _EXECUTE
    return allowed


# An operation on an enumeration takes a microsecond, and a booting Linux misses the TLB a million times.
_ALLOWED: Final = tuple(tuple(_allowed(mode, rights) for rights in range(8)) for mode in range(32))
_PERMISSIONS: Final = tuple(Permission(bits) for bits in range(8))


class Amd64Walker:
    """The MMU of an x86 CPU."""

    tracer_bits: Final = MappingProxyType({"rflags": RFLAGS_AC})  # lifts SMAP
    kernel_bits: Final = MappingProxyType({"cs": (3, 0)})
    regime: tuple[str, ...] = ()
    context: Final = MappingProxyType(
        {
            "cr0": CR0_PG | CR0_WP,
            "cr3": ADDRESS | 0xFE0,  # PAE aligns its first table to 32 bytes
            "cr4": CR4_PSE | CR4_PAE | CR4_LA57 | CR4_SMEP | CR4_SMAP,
            "efer": EFER_LMA | EFER_NXE,
            "cs": 3,
            "rflags": RFLAGS_AC,
        }
    )

    def has_context(self, registers: Registers) -> bool:
        """True: the registers can be read in every mode."""
        return True

    def tables(self, registers: Registers) -> int | None:
        """CR3, while CR0.PG is set."""
        return registers.get("cr3") if registers.get("cr0") & CR0_PG else None

    def translate(
        self, registers: Registers, load: LoadPhysical, store: StorePhysical, address: int, access: Access
    ) -> Translation:
        """See `Walker`. An address that is not canonical raises PageFault as well; the exception model turns it into
        #GP."""
        get = registers.get
        cr0 = get("cr0")
        if not cr0 & CR0_PG:
            return Translation(address & 0xFFFF_FFFF, Permission.ALL)  # 64-bit mode needs paging (SDM 4.1.1)
        cr4, efer = get("cr4"), get("efer")
        mode = _mode(registers, cr0, cr4, efer)
        try:
            leaf = _walk(get("cr3"), cr4, efer, load, store, address)
        except _WalkError as error:
            raise PageFault(address, access, error.code | _access_code(mode, access)) from None
        allowed = _ALLOWED[mode][leaf.rights]
        if not allowed & _NEEDED[access]:
            raise PageFault(address, access, ERROR_PROTECTION | _access_code(mode, access))
        bits = (ACCESSED | DIRTY if access is Access.WRITE else ACCESSED) << leaf.shift
        entry = leaf.entry
        if entry & bits != bits:
            entry |= bits
            store(leaf.entry_address, entry)
        # The first store must come here to set the dirty bit (SDM 4.8).
        if not entry >> leaf.shift & DIRTY:
            allowed &= ~_WRITE
        return Translation(leaf.physical, _PERMISSIONS[allowed])


def _mode(registers: Registers, cr0: int, cr4: int, efer: int) -> int:
    mode = _USER_MODE if registers.get("cs") & 3 == 3 else 0
    if cr0 & CR0_WP:
        mode |= _WRITE_PROTECT
    if efer & EFER_NXE and cr4 & CR4_PAE:
        mode |= _NXE
    if cr4 & CR4_SMEP:
        mode |= _SMEP
    if cr4 & CR4_SMAP and not registers.get("rflags") & RFLAGS_AC:
        mode |= _SMAP
    return mode


def _access_code(mode: int, access: Access) -> int:
    """The bits of a page fault's error code that depend on the access. I/D needs XD or SMEP (SDM 4.7)."""
    code = ERROR_USER if mode & _USER_MODE else 0
    if access is Access.WRITE:
        code |= ERROR_WRITE
    elif access is Access.FETCH and mode & (_NXE | _SMEP):
        code |= ERROR_FETCH
    return code


def _walk(cr3: int, cr4: int, efer: int, load: LoadPhysical, store: StorePhysical, address: int) -> _Leaf:
    if efer & EFER_LMA:
        levels = _LEVELS_5 if cr4 & CR4_LA57 else _LEVELS_4
        if not is_canonical(address, levels[0] + 9):
            raise _WalkError(0)
        return _walk_wide(load, store, address, cr3 & ADDRESS, levels, efer)
    if cr4 & CR4_PAE:
        # SDM 4.4.1: the four entries of the first level have no rights. The CPU loads them when CR3 is written, and a
        # walk only tests bit 0; here they are read each time.
        pointer = load((cr3 & 0xFFFF_FFE0) + (address >> 30 & 3) * 8)
        if not pointer & PRESENT:
            raise _WalkError(0)
        return _walk_wide(load, store, address, pointer & ADDRESS, _LEVELS_PAE, efer)
    return _walk_narrow(load, store, address, cr3 & 0xFFFF_F000, cr4)


def is_canonical(address: int, width: int) -> bool:
    """Whether the bits above a linear address of `width` bits repeat its top bit (SDM volume 1, 3.3.7.1)."""
    return address >> (width - 1) in (0, (1 << (65 - width)) - 1)


def _walk_wide(
    load: LoadPhysical, store: StorePhysical, address: int, table: int, levels: tuple[int, ...], efer: int
) -> _Leaf:
    """Walk tables of 512 entries of 64 bits (SDM 4.4.2, 4.5.4)."""
    reserved = _RESERVED_NXE if efer & EFER_NXE else _RESERVED
    rights = -1
    for shift in levels:
        entry_address = table + (address >> shift & 511) * 8
        entry = load(entry_address)
        if not entry & PRESENT:
            raise _WalkError(0)
        rights &= entry ^ NO_EXECUTE  # U/S and R/W must be set, XD clear, in all levels (SDM 4.6.1)
        is_leaf = shift == 12 or (shift <= 30 and entry & LARGE != 0)
        if entry & reserved[shift, is_leaf]:
            raise _WalkError(ERROR_PROTECTION | ERROR_RESERVED)
        if is_leaf:
            offset = (1 << shift) - 1
            never_execute = 0 if rights & NO_EXECUTE else _NEVER_EXECUTE
            physical = entry & ADDRESS & ~offset | address & offset
            return _Leaf(physical, rights & _RIGHTS | never_execute, entry_address, entry, 0)
        if not entry & ACCESSED:
            store(entry_address, entry | ACCESSED)
        table = entry & ADDRESS
    raise AssertionError("the last level always is a leaf")


def _reserved(shift: int, *, is_leaf: bool) -> int:
    """The bits of an entry that must be clear: address bits beyond the CPU's, the low address bits of a large page
    except PAT, and PS above the level of 1 GiB pages."""
    if is_leaf:
        return _TOO_HIGH | ((1 << shift) - (1 << 13) if shift > 12 else 0)
    return _TOO_HIGH if shift <= 30 else _TOO_HIGH | LARGE


_SHIFTS: Final = tuple((shift, leaf) for shift in _LEVELS_5 for leaf in (False, True))
_RESERVED_NXE: Final = {(shift, leaf): _reserved(shift, is_leaf=leaf) for shift, leaf in _SHIFTS}
_RESERVED: Final = {key: bits | NO_EXECUTE for key, bits in _RESERVED_NXE.items()}


def _walk_narrow(load: LoadPhysical, store: StorePhysical, address: int, directory: int, cr4: int) -> _Leaf:
    """Walk tables of 1024 entries of 32 bits. Pages have 4 KiB, or 4 MiB with CR4.PSE (SDM 4.3)."""
    word_address, word, shift = _load_narrow(load, directory + (address >> 22 & 1023) * 4)
    entry = word >> shift & 0xFFFF_FFFF
    if entry & LARGE and cr4 & CR4_PSE:
        # PSE-36: bits 13 to 20 are bits 32 to 39 of the page's address.
        physical = entry & 0xFFC0_0000 | (entry >> 13 & 0xFF) << 32 | address & 0x3F_FFFF
        return _Leaf(physical, entry & _RIGHTS, word_address, word, shift)
    if not entry & ACCESSED:
        store(word_address, word | ACCESSED << shift)
    rights = entry & _RIGHTS
    word_address, word, shift = _load_narrow(load, (entry & 0xFFFF_F000) + (address >> 12 & 1023) * 4)
    entry = word >> shift & 0xFFFF_FFFF
    return _Leaf(entry & 0xFFFF_F000 | address & 0xFFF, rights & entry, word_address, word, shift)


def _load_narrow(load: LoadPhysical, address: int) -> tuple[int, int, int]:
    """The 64-bit word that holds a 32-bit entry, which must be present: its address, its value, the entry's first
    bit."""
    shift = (address & 4) * 8
    word = load(address & ~7)
    if not word >> shift & PRESENT:
        raise _WalkError(0)
    return address & ~7, word, shift


WALKER = Amd64Walker

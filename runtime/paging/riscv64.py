"""RISC-V address translation: satp, mstatus and the tables in guest memory -> physical page and permissions.

Privileged Architecture 1.12, 4.3 to 4.5: Sv39, Sv48 and Sv57, superpages, MPRV, SUM and MXR. As in QEMU, the walk sets
the accessed and dirty bits.

    satp   63:60 mode   59:44 ASID   43:0 physical page number of the root table
    PTE    63 N  62:61 PBMT  60:54 0  53:10 physical page number  9:8 RSW  7 D  6 A  5 G  4 U  3 X  2 W  1 R  0 V
"""

from collections.abc import Sequence
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

# Causes, Privileged Architecture table 3.6.
ACCESS_FAULT: Final = {Access.READ: 5, Access.WRITE: 7, Access.FETCH: 1}
PAGE_FAULT: Final = {Access.READ: 13, Access.WRITE: 15, Access.FETCH: 12}

_PERMISSION_BITS: Final = 0xF  # R, W, X and U, from bit 1 of an entry on
_V, _R, _W, _X, _U, _A, _D = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 6, 1 << 7
_POINTER: Final = _V | _R | _W | _X | _U | _A | _D  # of these bits, a pointer to the next table has only V
_RESERVED: Final = 54  # this bit and those above it; N and PBMT need extensions
_PPN_MASK: Final = (1 << 44) - 1
_TOP_SHIFTS: Final = {8: 30, 9: 39, 10: 48}  # satp.MODE -> bits below the index into the root table
_USER, _SUPERVISOR, _MACHINE = 0, 1, 3
_MSTATUS_MPRV, _MSTATUS_SUM, _MSTATUS_MXR = 1 << 17, 1 << 18, 1 << 19
_WORD: Final = (1 << 64) - 1


class Riscv64Walker:
    """The MMU of a RISC-V hart; implements `kinst.runtime.paging.walker.Walker`."""

    tracer_bits: Final = MappingProxyType(dict.fromkeys(("mstatus", "sstatus"), _MSTATUS_SUM | _MSTATUS_MXR))
    kernel_bits: Final = MappingProxyType({"priv": (_MACHINE, _SUPERVISOR)})
    regime: tuple[str, ...] = ()
    context: Final = MappingProxyType({"priv": 3, "sstatus": _MSTATUS_SUM | _MSTATUS_MXR, "satp": _WORD})

    def has_context(self, registers: Registers) -> bool:
        """False in M mode, where mstatus.MPRV decides whether loads and stores are translated."""
        return registers.get("priv") != _MACHINE

    def tables(self, registers: Registers) -> int | None:
        """satp; None if its mode is Bare or the hart is in M mode, which does not translate (4.1.11)."""
        privilege = registers.get("priv")
        satp = registers.get("satp") if privilege == _SUPERVISOR else _machine_registers(registers, privilege)[1]
        return satp if satp >> 60 in _TOP_SHIFTS and privilege != _MACHINE else None

    def translate(
        self, registers: Registers, load: LoadPhysical, store: StorePhysical, address: int, access: Access
    ) -> Translation:
        """See `Walker`. The code of a PageFault is the cause."""
        privilege = registers.get("priv")
        if privilege == _SUPERVISOR:  # MPRV is 0 here: mret clears it (3.1.6.3)
            status, satp = registers.get("sstatus"), registers.get("satp")
        else:
            status, satp = _machine_registers(registers, privilege)
            if status & _MSTATUS_MPRV and access is not Access.FETCH:
                privilege = status >> 11 & 3
        shift = _TOP_SHIFTS.get(satp >> 60)
        if privilege == _MACHINE or shift is None:
            return Translation(address, Permission.ALL)
        allowed = _ALLOWED[privilege, status & (_MSTATUS_SUM | _MSTATUS_MXR)]
        return _walk((satp & _PPN_MASK) << 12, shift, allowed, load, store, address, access)


def _machine_registers(registers: Registers, privilege: int) -> tuple[int, int]:
    """mstatus and satp. In U mode Unicorn gives garbage for them, so they are read in M mode."""
    if privilege != _MACHINE:
        registers.set("priv", _MACHINE)
    try:
        return registers.get("mstatus"), registers.get("satp")
    finally:
        if privilege != _MACHINE:
            registers.set("priv", privilege)


def _walk(
    table: int,
    shift: int,
    allowed: Sequence[int],
    load: LoadPhysical,
    store: StorePhysical,
    address: int,
    access: Access,
) -> Translation:
    """Walk from the root table on (4.3.2). `shift`: how many address bits are below the index into the table."""
    unused = address >> shift + 8  # these bits must all equal the highest one that is used (4.4.1)
    if unused and unused != _WORD >> shift + 8:
        raise PageFault(address, access, PAGE_FAULT[access])
    while True:
        place = table + (address >> shift & 0x1FF) * 8
        entry = load(place)
        if entry & _POINTER != _V or entry >> _RESERVED or shift == 12:
            break
        table = entry >> 10 << 12
        shift -= 9
    permissions = allowed[entry >> 1 & _PERMISSION_BITS]
    inside = (1 << shift) - 1
    page = entry >> 10 << 12
    # An entry without R and X that is not a pointer allows nothing.
    if not entry & _V or entry >> _RESERVED or page & inside or not permissions >> access & 1:
        raise PageFault(address, access, PAGE_FAULT[access])
    wanted = entry | _A | (_D if access is Access.WRITE else 0)
    if wanted != entry:
        store(place, wanted)
    if not wanted & _D:  # so that the first store comes here and sets it
        permissions &= ~_WRITE
    return Translation(page | address & inside, _PERMISSIONS[permissions])


def _allowed(privilege: int, status: int, entry: int) -> int:
    """What the R, W, X and U bits of a leaf allow this mode to do (4.3.1)."""
    is_user_page = bool(entry & _U)
    if privilege == _USER and not is_user_page:
        return 0
    if not entry & _R and entry & _W:
        return 0  # reserved
    readable = entry & _R or (entry & _X and status & _MSTATUS_MXR)
    permissions = (_READ if readable else 0) | (_WRITE if entry & _W else 0) | (_EXECUTE if entry & _X else 0)
    if privilege == _SUPERVISOR and is_user_page:
        return permissions & ~_EXECUTE if status & _MSTATUS_SUM else 0
    return permissions


# Every TLB miss comes through here, and an operation on an IntFlag takes a microsecond.
_READ, _WRITE, _EXECUTE = int(Permission.READ), int(Permission.WRITE), int(Permission.EXECUTE)
_PERMISSIONS: Final = tuple(Permission(bits) for bits in range(8))
_ALLOWED: Final = {
    (privilege, status): tuple(_allowed(privilege, status, bits << 1) for bits in range(_PERMISSION_BITS + 1))
    for privilege in (_USER, _SUPERVISOR)
    for status in (0, _MSTATUS_SUM, _MSTATUS_MXR, _MSTATUS_SUM | _MSTATUS_MXR)
}


WALKER = Riscv64Walker

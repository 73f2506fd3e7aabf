"""RISC-V address translation: satp, mstatus and the tables in guest memory -> physical page and permissions.

Privileged Architecture 1.12, 4.3 to 4.5: Sv39, Sv48 and Sv57, superpages, accessed and dirty bits set by the walk as
QEMU does, MPRV, SUM and MXR.

    satp   63:60 mode   59:44 ASID   43:0 physical page number of the root table
    PTE    63 N  62:61 PBMT  60:54 0  53:10 physical page number  9:8 RSW  7 D  6 A  5 G  4 U  3 X  2 W  1 R  0 V
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

# Causes, Privileged Architecture table 3.6.
ACCESS_FAULT: Final = {Access.READ: 5, Access.WRITE: 7, Access.FETCH: 1}
PAGE_FAULT: Final = {Access.READ: 13, Access.WRITE: 15, Access.FETCH: 12}

_LEVELS: Final = {8: 3, 9: 4, 10: 5}  # satp.MODE -> levels of tables
_V, _R, _W, _X, _U, _A, _D = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 6, 1 << 7
_PPN_MASK: Final = (1 << 44) - 1
_USER, _SUPERVISOR, _MACHINE = 0, 1, 3
_MSTATUS_MPRV, _MSTATUS_SUM, _MSTATUS_MXR = 1 << 17, 1 << 18, 1 << 19


class Riscv64Walker:
    """See `kinst.runtime.paging.walker.Walker`."""

    tracer_bits: Final = MappingProxyType({"mstatus": _MSTATUS_SUM | _MSTATUS_MXR})

    def translate(
        self, registers: Registers, load: LoadPhysical, store: StorePhysical, address: int, access: Access
    ) -> Translation:
        """Translate one address, or raise PageFault with the cause as its code."""
        privilege = actual = registers.get("priv")
        # M-mode CSRs read as garbage from other modes (and satp from U mode): look at them from M mode.
        if actual != _MACHINE:
            registers.set("priv", _MACHINE)
        try:
            status = registers.get("mstatus")
            satp = registers.get("satp")
        finally:
            if actual != _MACHINE:
                registers.set("priv", actual)
        if status & _MSTATUS_MPRV and access is not Access.FETCH:
            privilege = status >> 11 & 3
        levels = _LEVELS.get(satp >> 60)
        if privilege == _MACHINE or levels is None:
            return Translation(address, Permission.ALL)
        return _walk(satp, levels, status, privilege, load, store, address, access)


def _walk(
    satp: int,
    levels: int,
    status: int,
    privilege: int,
    load: LoadPhysical,
    store: StorePhysical,
    address: int,
    access: Access,
) -> Translation:
    fault = PageFault(address, access, PAGE_FAULT[access])
    unused = address >> (12 + 9 * levels - 1)  # must all equal the highest bit used
    if unused not in (0, (1 << 64) - 1 >> (12 + 9 * levels - 1)):
        raise fault
    table = (satp & _PPN_MASK) << 12
    for level in reversed(range(levels)):
        place = table + 8 * (address >> (12 + 9 * level) & 0x1FF)
        entry = load(place)
        if not entry & _V or (entry & _W and not entry & _R) or entry >> 54:
            raise fault
        if entry & (_R | _X):
            return _leaf(entry, level, place, status, privilege, store, address, access, fault)
        if entry & (_A | _D | _U):
            raise fault
        table = (entry >> 10 & _PPN_MASK) << 12
    raise fault


def _leaf(
    entry: int,
    level: int,
    place: int,
    status: int,
    privilege: int,
    store: StorePhysical,
    address: int,
    access: Access,
    fault: PageFault,
) -> Translation:
    page, offset_bits = entry >> 10 & _PPN_MASK, 12 + 9 * level
    permissions = _permissions(entry, status, privilege)
    if page & (1 << 9 * level) - 1 or not permissions >> access & 1:
        raise fault
    wanted = entry | _A | (_D if access is Access.WRITE else 0)
    if wanted != entry:
        store(place, wanted)
    if not wanted & _D:
        permissions &= ~Permission.WRITE
    mask = (1 << offset_bits) - 1
    return Translation(page << 12 & ~mask | address & mask, permissions)


def _permissions(entry: int, status: int, privilege: int) -> Permission:
    """4.3.1: what the leaf allows this mode to do."""
    is_user_page = bool(entry & _U)
    if privilege == _USER and not is_user_page:
        return Permission(0)
    permissions = Permission(0)
    if entry & _R or (entry & _X and status & _MSTATUS_MXR):
        permissions |= Permission.READ
    if entry & _W:
        permissions |= Permission.WRITE
    if entry & _X:
        permissions |= Permission.EXECUTE
    if privilege == _SUPERVISOR and is_user_page:
        permissions &= ~Permission.EXECUTE
        if not status & _MSTATUS_SUM:
            return Permission(0)
    return permissions

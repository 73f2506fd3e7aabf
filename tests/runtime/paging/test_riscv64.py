"""RISC-V page tables built in memory, walked in every mode: what is allowed, what faults and with which cause."""

from dataclasses import dataclass, field

import pytest

from kinst.runtime.paging.riscv64 import Riscv64Walker
from kinst.runtime.paging.walker import Access, PageFault, Permission

V, R, W, X, U, A, D = (1 << bit for bit in (0, 1, 2, 3, 4, 6, 7))
USER, SUPERVISOR, MACHINE = 0, 1, 3
MPRV, SUM, MXR = 1 << 17, 1 << 18, 1 << 19
ROOT = 0x8000_0000
SV39, SV48, SV57 = 8, 9, 10
LEVELS = {SV39: 3, SV48: 4, SV57: 5}


@dataclass
class Guest:
    """Registers and tables."""

    mode: int = SV39
    privilege: int = SUPERVISOR
    status: int = 0
    memory: dict[int, int] = field(default_factory=dict)
    next_table: int = ROOT + 0x1000

    def get(self, name: str) -> int:
        assert name != "sstatus" or self.privilege == SUPERVISOR
        assert name not in ("mstatus", "satp") or self.privilege != USER
        registers = {"mstatus": self.status, "sstatus": self.status & ~MPRV, "satp": self.mode << 60 | ROOT >> 12}
        return self.privilege if name == "priv" else registers[name]

    def set(self, name: str, value: int) -> None:
        assert name == "priv"
        self.privilege = value

    def map(self, virtual: int, physical: int, flags: int, level: int = 0) -> int:
        """Map a page of a level; where its entry is."""
        table = ROOT
        for depth in reversed(range(level + 1, LEVELS.get(self.mode, 3))):
            place = table + 8 * (virtual >> 12 + 9 * depth & 511)
            if place not in self.memory:
                self.memory[place] = self.next_table >> 2 | V
                self.next_table += 0x1000
            table = self.memory[place] >> 10 << 12
        place = table + 8 * (virtual >> 12 + 9 * level & 511)
        self.memory[place] = physical >> 2 | flags
        return place

    def translate(self, address: int, access: Access = Access.READ) -> tuple[int, Permission]:
        found = Riscv64Walker().translate(
            self, lambda place: self.memory.get(place, 0), self.memory.__setitem__, address, access
        )
        return found.physical, found.permissions


@pytest.mark.parametrize("mode", [SV39, SV48, SV57])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_pages_and_superpages(mode: int, level: int) -> None:
    guest = Guest(mode)
    high = -(1 << 12 + 9 * LEVELS[mode] - 1) & (1 << 64) - 1
    guest.map(high, 0x1_0000_0000, V | R | W | A | D, level)
    offset = 0x123 if level == 0 else (1 << 12 + 9 * level) - 8
    assert guest.translate(high + offset) == (0x1_0000_0000 + offset, Permission.READ | Permission.WRITE)


def test_machine_mode_and_bare_mode_do_not_translate() -> None:
    assert Guest(privilege=MACHINE).translate(0x1234, Access.FETCH) == (0x1234, Permission.ALL)
    assert Guest(mode=0, privilege=USER).translate(0x1234) == (0x1234, Permission.ALL)


@pytest.mark.parametrize(("access", "cause"), [(Access.READ, 13), (Access.WRITE, 15), (Access.FETCH, 12)])
def test_what_is_not_mapped_faults_with_the_cause_of_the_access(access: Access, cause: int) -> None:
    with pytest.raises(PageFault) as caught:
        Guest().translate(0x5000, access)
    assert (caught.value.address, caught.value.access, caught.value.code) == (0x5000, access, cause)


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(R | A | D, id="not valid"),
        pytest.param(V | W | A | D, id="writable but not readable is reserved"),
        pytest.param(V | R | A | D | 1 << 54, id="reserved bits"),
        pytest.param(V | A, id="a pointer at the last level"),
    ],
)
def test_malformed_entries_fault(flags: int) -> None:
    guest = Guest()
    guest.map(0x5000, 0x9000_0000, flags)
    with pytest.raises(PageFault):
        guest.translate(0x5000)


def test_a_misaligned_superpage_faults() -> None:
    guest = Guest()
    guest.map(0x20_0000, 0x9000_1000, V | R | A | D, level=1)
    with pytest.raises(PageFault):
        guest.translate(0x20_0000)


def test_addresses_that_are_not_canonical_fault() -> None:
    guest = Guest()
    guest.map(0, 0x9000_0000, V | R | A | D)
    with pytest.raises(PageFault):
        guest.translate(1 << 39)
    with pytest.raises(PageFault):
        guest.translate(1 << 38)


def test_the_walk_sets_accessed_and_dirty_and_write_needs_dirty() -> None:
    guest = Guest()
    place = guest.map(0x5000, 0x9000_0000, V | R | W)
    assert guest.translate(0x5000)[1] == Permission.READ
    assert guest.memory[place] & (A | D) == A
    assert guest.translate(0x5000, Access.WRITE)[1] == Permission.READ | Permission.WRITE
    assert guest.memory[place] & (A | D) == A | D


@pytest.mark.parametrize(
    ("privilege", "flags", "status", "allowed"),
    [
        (USER, U | R | W | X, 0, Permission.ALL),
        (USER, R | W | X, 0, Permission(0)),
        (SUPERVISOR, R | W | X, 0, Permission.ALL),
        (SUPERVISOR, U | R | W | X, 0, Permission(0)),
        (SUPERVISOR, U | R | W | X, SUM, Permission.READ | Permission.WRITE),
        (SUPERVISOR, X, 0, Permission.EXECUTE),
        (SUPERVISOR, X, MXR, Permission.READ | Permission.EXECUTE),
        (SUPERVISOR, R, 0, Permission.READ),
    ],
)
def test_permissions_of_modes(privilege: int, flags: int, status: int, allowed: Permission) -> None:
    guest = Guest(privilege=privilege, status=status)
    guest.map(0x5000, 0x9000_0000, V | A | D | flags)
    for access in Access:
        if allowed >> access & 1:
            assert guest.translate(0x5000, access) == (0x9000_0000, allowed)
        else:
            with pytest.raises(PageFault):
                guest.translate(0x5000, access)
    assert guest.privilege == privilege


def test_mprv_lets_machine_mode_load_as_another_mode() -> None:
    guest = Guest(privilege=MACHINE, status=MPRV | SUPERVISOR << 11)
    guest.map(0x5000, 0x9000_0000, V | R | A | D)
    assert guest.translate(0x5000)[0] == 0x9000_0000
    assert guest.translate(0x5000, Access.FETCH) == (0x5000, Permission.ALL)

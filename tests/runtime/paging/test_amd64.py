"""The x86 walker against tables built here, and against the rules of SDM volume 3, chapter 4."""

from dataclasses import dataclass, field

import pytest

from kinst.runtime.paging.amd64 import (
    ACCESSED,
    CR0_PG,
    CR0_WP,
    CR4_PAE,
    CR4_PSE,
    CR4_SMAP,
    CR4_SMEP,
    DIRTY,
    EFER_LMA,
    EFER_NXE,
    LARGE,
    NO_EXECUTE,
    PRESENT,
    RFLAGS_AC,
    USER,
    WRITABLE,
    Amd64Walker,
)
from kinst.runtime.paging.walker import Access, PageFault, Permission, Translation

READ, WRITE, EXECUTE, ALL = Permission.READ, Permission.WRITE, Permission.EXECUTE, Permission.ALL
ROOT, TABLE = 0x1000, PRESENT | WRITABLE | USER | ACCESSED
ADDRESS = 0xFFFF_8881_2345_6789


@dataclass
class Mmu:
    """Registers and physical memory of 64-bit words."""

    registers: dict[str, int] = field(default_factory=dict)
    words: dict[int, int] = field(default_factory=dict)

    def get(self, name: str) -> int:
        return self.registers.get(name, 0)

    def set(self, name: str, value: int) -> None:
        self.registers[name] = value

    def load(self, address: int) -> int:
        assert address % 8 == 0
        return self.words.get(address, 0)

    def translate(self, address: int, access: Access) -> Translation:
        return Amd64Walker().translate(self, self.load, self.words.__setitem__, address, access)

    def fault(self, address: int, access: Access) -> int:
        with pytest.raises(PageFault) as caught:
            self.translate(address, access)
        assert (caught.value.address, caught.value.access) == (address, access)
        return caught.value.code


def long_mode(leaf: int, shift: int = 12, *, levels: int = 4, table: int = TABLE, **registers: int) -> Mmu:
    """ADDRESS mapped by `leaf` at the level of `shift`; every table above it has the bits of `table`."""
    mmu = Mmu({"cr0": CR0_PG | CR0_WP, "cr3": ROOT, "cr4": CR4_PAE, "efer": EFER_LMA | EFER_NXE, "cs": 8} | registers)
    base = ROOT
    for level_shift in range(12 + 9 * (levels - 1), 11, -9):
        slot = base + (ADDRESS >> level_shift & 511) * 8
        if level_shift == shift:
            mmu.words[slot] = leaf
            break
        mmu.words[slot] = (base + 0x1000) | table
        base += 0x1000
    return mmu


def test_no_paging_is_identity_of_32_bits() -> None:
    assert Mmu().translate(0x1_0010_0123, Access.WRITE) == Translation(0x100123, ALL)


@pytest.mark.parametrize(
    ("shift", "bits", "physical"),
    [(12, 0, 0x5_5550_0789), (21, LARGE, 0x5_5545_6789), (30, LARGE, 0x5_6345_6789)],
)
def test_page_sizes(shift: int, bits: int, physical: int) -> None:
    base = 0x5_5550_0000 & ~((1 << shift) - 1)
    mmu = long_mode(base | PRESENT | WRITABLE | DIRTY | bits, shift)
    assert mmu.translate(ADDRESS, Access.READ) == Translation(physical, ALL)


def test_five_levels() -> None:
    mmu = long_mode(0x7000 | PRESENT | DIRTY, levels=5, cr4=CR4_PAE | 1 << 12)
    assert mmu.translate(ADDRESS, Access.READ) == Translation(0x7789, READ | EXECUTE)


# leaf bits, registers, access -> permissions or error code (SDM 4.6.1 and 4.7)
KERNEL, USER_MODE = {"cs": 0x08}, {"cs": 0x33}
RULES: list[tuple[int, dict[str, int], Access, Permission | int]] = [
    (0, KERNEL, Access.READ, 0),
    (0, KERNEL, Access.WRITE, 2),
    (0, KERNEL, Access.FETCH, 16),
    (0, USER_MODE, Access.READ, 4),
    (PRESENT, KERNEL, Access.READ, READ | EXECUTE),
    (PRESENT, KERNEL, Access.WRITE, 3),
    (PRESENT, KERNEL | {"cr0": CR0_PG}, Access.WRITE, ALL),
    (PRESENT | WRITABLE, KERNEL, Access.WRITE, ALL),
    (PRESENT | WRITABLE, USER_MODE, Access.READ, 5),
    (PRESENT | WRITABLE, USER_MODE, Access.WRITE, 7),
    (PRESENT | WRITABLE, USER_MODE, Access.FETCH, 21),
    (PRESENT | USER, USER_MODE, Access.READ, READ | EXECUTE),
    (PRESENT | USER, USER_MODE, Access.WRITE, 7),
    (PRESENT | USER, USER_MODE | {"cr0": CR0_PG}, Access.WRITE, 7),
    (PRESENT | USER | WRITABLE, USER_MODE, Access.WRITE, ALL),
    (PRESENT | NO_EXECUTE, KERNEL, Access.READ, READ),
    (PRESENT | NO_EXECUTE, KERNEL, Access.FETCH, 17),
    (PRESENT | NO_EXECUTE, KERNEL | {"efer": EFER_LMA}, Access.READ, 9),
    (PRESENT | USER, KERNEL | {"cr4": CR4_PAE | CR4_SMEP}, Access.READ, READ),
    (PRESENT | USER, KERNEL | {"cr4": CR4_PAE | CR4_SMEP}, Access.FETCH, 17),
    (PRESENT | USER, KERNEL | {"cr4": CR4_PAE | CR4_SMAP}, Access.READ, 1),
    (PRESENT | USER | WRITABLE, KERNEL | {"cr4": CR4_PAE | CR4_SMAP}, Access.WRITE, 3),
    (PRESENT | USER, KERNEL | {"cr4": CR4_PAE | CR4_SMAP, "rflags": RFLAGS_AC}, Access.READ, READ | EXECUTE),
    (PRESENT | 1 << 45, KERNEL, Access.READ, 9),
]


@pytest.mark.parametrize(("bits", "registers", "access", "expected"), RULES)
def test_rights(bits: int, registers: dict[str, int], access: Access, expected: Permission | int) -> None:
    mmu = long_mode(0x7000 | bits | (DIRTY if bits else 0), **registers)
    if isinstance(expected, Permission):
        assert mmu.translate(ADDRESS, access) == Translation(0x7789, expected)
    else:
        assert mmu.fault(ADDRESS, access) == expected


def test_rights_of_all_levels_count() -> None:
    mmu = long_mode(0x7000 | PRESENT | WRITABLE | USER | DIRTY, table=PRESENT | USER | ACCESSED)
    assert mmu.fault(ADDRESS, Access.WRITE) == 3
    mmu = long_mode(0x7000 | PRESENT | WRITABLE | USER | DIRTY, table=PRESENT | WRITABLE, cs=0x33)
    assert mmu.fault(ADDRESS, Access.READ) == 5


def test_large_page_with_low_address_bits_is_reserved() -> None:
    assert long_mode(0x20_2000 | PRESENT | LARGE, 21).fault(ADDRESS, Access.READ) == 9
    assert long_mode(0x20_1000 | PRESENT | LARGE | DIRTY, 21).translate(ADDRESS, Access.READ).physical == 0x25_6789
    assert long_mode(0x7000 | PRESENT, table=TABLE | LARGE).fault(ADDRESS, Access.READ) == 9


def test_not_canonical() -> None:
    assert long_mode(0x7000 | PRESENT).fault(0x8000_0000_0000, Access.READ) == 0


def test_accessed_and_dirty() -> None:
    mmu = long_mode(0x7000 | PRESENT | WRITABLE, table=PRESENT | WRITABLE)
    assert mmu.translate(ADDRESS, Access.READ).permissions == READ | EXECUTE
    *tables, leaf = mmu.words
    assert all(mmu.words[slot] & ACCESSED for slot in mmu.words)
    assert not mmu.words[leaf] & DIRTY
    assert mmu.translate(ADDRESS, Access.WRITE).permissions == ALL
    assert mmu.words[leaf] == 0x7000 | PRESENT | WRITABLE | ACCESSED | DIRTY
    assert not any(mmu.words[slot] & DIRTY for slot in tables)
    assert mmu.translate(ADDRESS, Access.READ).permissions == ALL


def test_fault_leaves_the_leaf_alone() -> None:
    mmu = long_mode(0x7000 | PRESENT)
    mmu.fault(ADDRESS, Access.WRITE)
    assert list(mmu.words.values())[-1] == 0x7000 | PRESENT


@pytest.mark.parametrize("address", [0x1234_5678, 0x1274_4678])
def test_32_bit_tables(address: int) -> None:
    """Two 32-bit entries share a 64-bit word; only the one that is used may change."""
    mmu = Mmu({"cr0": CR0_PG | CR0_WP, "cr3": 0x1000, "cs": 8})
    directory, table = 0x1000 + (address >> 22) * 4, 0x2000 + (address >> 12 & 1023) * 4
    mmu.words[directory & ~7] = (0x2000 | PRESENT | WRITABLE) << (directory & 4) * 8
    mmu.words[table & ~7] = (0x9000 | PRESENT | WRITABLE) << (table & 4) * 8
    assert mmu.translate(address, Access.WRITE) == Translation(0x9678, ALL)
    assert mmu.words[table & ~7] == (0x9000 | PRESENT | WRITABLE | ACCESSED | DIRTY) << (table & 4) * 8
    assert mmu.words[directory & ~7] == (0x2000 | PRESENT | WRITABLE | ACCESSED) << (directory & 4) * 8
    assert mmu.fault(address ^ 0x1000, Access.READ) == 0
    mmu.registers["cs"] = 0x1B
    assert mmu.fault(address, Access.READ) == 5


def test_4_mib_page() -> None:
    mmu = Mmu({"cr0": CR0_PG, "cr3": 0x1000, "cr4": CR4_PSE, "cs": 8}, {0x1000: 0x0040_2083})
    assert mmu.translate(0x12_3456, Access.WRITE) == Translation(0x1_0052_3456, ALL)
    assert mmu.words[0x1000] == 0x0040_2083 | ACCESSED | DIRTY


def test_pae() -> None:
    mmu = Mmu({"cr0": CR0_PG, "cr3": 0x1020, "cr4": CR4_PAE, "cs": 8})
    mmu.words[0x1038] = 0x2000 | PRESENT
    mmu.words[0x2008] = 0x1_0020_0000 | PRESENT | WRITABLE | LARGE
    assert mmu.translate(0xC020_1234, Access.WRITE) == Translation(0x1_0020_1234, ALL)
    assert mmu.words[0x1038] == 0x2000 | PRESENT
    assert mmu.fault(0x8020_1234, Access.READ) == 0

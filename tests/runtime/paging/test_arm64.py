"""Tables of descriptors -> page, permissions or fault status code; numbers are those of DDI 0487 chapter D8."""

from collections.abc import Mapping

import pytest

from kinst.runtime.paging.arm64 import Arm64Walker
from kinst.runtime.paging.walker import Access, PageFault, Permission, Translation

TABLE0, TABLE1, TABLE2, TABLE3 = 0x4010_0000, 0x4011_0000, 0x4012_0000, 0x4013_0000
AF = 1 << 10
USER, READ_ONLY = 1 << 6, 1 << 7
UXN, PXN = 1 << 54, 1 << 53
R, W, X = Permission.READ, Permission.WRITE, Permission.EXECUTE


class State:
    """Registers and physical memory as plain dictionaries."""

    def __init__(self, registers: Mapping[str, int], memory: Mapping[int, int]) -> None:
        self.registers = {"sctlr_el1": 1, "tcr_el1": 16 | 16 << 16 | 2 << 30 | 5 << 32, "pstate": 0x3C5, **registers}
        self.memory = dict(memory)

    def get(self, name: str) -> int:
        return self.registers[name]

    def set(self, name: str, value: int) -> None:
        raise AssertionError(f"a walk does not write {name}")

    def load(self, address: int) -> int:
        return self.memory.get(address, 0)

    def store(self, address: int, value: int) -> None:
        raise AssertionError("no hardware access flag on this CPU")

    def translate(self, address: int, access: Access = Access.READ) -> Translation:
        return Arm64Walker().translate(self, self.load, self.store, address, access)

    def fault(self, address: int, access: Access = Access.READ) -> int:
        with pytest.raises(PageFault) as caught:
            self.translate(address, access)
        assert (caught.value.address, caught.value.access) == (address, access)
        return caught.value.code


def four_levels(leaf: int, address: int = 0, limits: int = 0, base: str = "ttbr0_el1", **registers: int) -> State:
    """A 4 KiB granule, 48-bit walk of `address` that ends in page descriptor `leaf`."""
    index = [address >> shift & 0x1FF for shift in (39, 30, 21, 12)]
    memory = {
        TABLE0 + index[0] * 8: TABLE1 | 3 | limits,
        TABLE1 + index[1] * 8: TABLE2 | 3,
        TABLE2 + index[2] * 8: TABLE3 | 3,
        TABLE3 + index[3] * 8: leaf,
    }
    return State({"ttbr0_el1": 0, "ttbr1_el1": 0, base: TABLE0, **registers}, memory)


def test_mmu_off_is_the_identity() -> None:
    off = State({"sctlr_el1": 0x30C50838}, {})
    assert off.translate(0x1234_5678_9ABC, Access.FETCH) == Translation(0x1234_5678_9ABC, Permission.ALL)


@pytest.mark.parametrize(
    ("address", "base"), [(0x0000_0012_3456_7ABC, "ttbr0_el1"), (0xFFFF_8000_0812_3ABC, "ttbr1_el1")]
)
def test_four_levels_of_4k_pages(address: int, base: str) -> None:
    page = four_levels(0x4444_4000 | AF | 3, address, base=base)
    assert page.translate(address) == Translation(0x4444_4ABC, Permission.ALL)


@pytest.mark.parametrize("address", [0x0001_0000_0000_0000, 0xFFFE_FFFF_FFFF_F000, 0x0080_0000_0000_0000])
def test_between_the_two_halves_is_a_level_0_fault(address: int) -> None:
    assert four_levels(0x4444_4000 | AF | 3).fault(address) == 0x04


def test_a_tagged_address_needs_top_byte_ignore() -> None:
    page = four_levels(0x4444_4000 | AF | 3)
    assert page.fault(0xAB00_0000_0000_0010) == 0x04
    page.registers["tcr_el1"] |= 1 << 37
    assert page.translate(0xAB00_0000_0000_0010).physical == 0x4444_4010


def test_disabled_walks_fault_at_level_0() -> None:
    for bit, base, address in ((7, "ttbr0_el1", 0), (23, "ttbr1_el1", 0xFFFF_0000_0000_0000)):
        page = four_levels(0x4444_4000 | AF | 3, address, base=base)
        page.registers["tcr_el1"] |= 1 << (30 - bit)  # the other half's
        assert page.translate(address).physical == 0x4444_4000
        page.registers["tcr_el1"] |= 1 << bit
        assert page.fault(address) == 0x04


@pytest.mark.parametrize(
    ("tcr", "table", "descriptor", "address", "physical"),
    [
        # 4 KiB, 39 bits: starts at level 1; 1 GiB block, then a 2 MiB block behind a table
        (25, TABLE1, 0x8000_0000 | AF | 1, 0x2345_6789, 0x8000_0000 | 0x2345_6789),
        # 16 KiB, 36 bits: starts at level 2; 32 MiB block
        (28 | 2 << 14, TABLE2, 0x8200_0000 | AF | 1, 0x0123_4567, 0x8200_0000 | 0x0123_4567),
        # 64 KiB, 42 bits: starts at level 2; 512 MiB block
        (22 | 1 << 14, TABLE2, 0xA000_0000 | AF | 1, 0x1234_5678, 0xA000_0000 | 0x1234_5678),
    ],
)
def test_blocks_of_each_granule(tcr: int, table: int, descriptor: int, address: int, physical: int) -> None:
    state = State({"tcr_el1": tcr | 5 << 32, "ttbr0_el1": table}, {table: descriptor})
    assert state.translate(address).physical == physical


@pytest.mark.parametrize(
    ("tcr", "indexes", "address"),
    [
        (16 | 2 << 14, (1, 0x7FF, 2, 0x7FF), 0xFFFC_05FF_C123),  # 16 KiB, 48 bits: level 0 has two entries
        (22 | 1 << 14, None, 0x3FF_FFFF_1234),  # 64 KiB, 42 bits: levels 2 and 3
    ],
)
def test_pages_of_16k_and_64k(tcr: int, indexes: tuple[int, ...] | None, address: int) -> None:
    shifts = (47, 36, 25, 14) if indexes else (29, 16)
    width = 0x7FF if indexes else 0x1FFF
    tables = (TABLE0, TABLE1, TABLE2, TABLE3)[-len(shifts) :]
    memory = {}
    for shift, table, below in zip(shifts, tables, (*tables[1:], 0x5000_0000 | AF), strict=True):
        memory[table + (address >> shift & width) * 8] = below | 3
    page = 0x3FFF if indexes else 0xFFFF
    state = State({"tcr_el1": tcr | 5 << 32, "ttbr0_el1": tables[0] | 0x0012_0000_0000_0000}, memory)  # with an ASID
    assert state.translate(address).physical == 0x5000_0000 | (address & page)


def test_a_table_of_the_start_level_may_be_smaller_than_a_page() -> None:
    # 34 input bits over 4 KiB start at level 1 with 16 entries: 128 bytes, aligned to 128 bytes only (D8.2.8).
    state = State({"tcr_el1": 30 | 5 << 32, "ttbr0_el1": TABLE1 | 0x80}, {TABLE1 | 0x80: 0x4000_0000 | AF | 1})
    assert state.translate(0x1234).physical == 0x4000_1234


@pytest.mark.parametrize(
    ("level", "memory"),
    [
        (0, {}),
        (1, {TABLE0: TABLE1 | 3}),
        (2, {TABLE0: TABLE1 | 3, TABLE1: TABLE2 | 3}),
        (3, {TABLE0: TABLE1 | 3, TABLE1: TABLE2 | 3, TABLE2: TABLE3 | 3}),
    ],
)
def test_translation_fault_of_each_level(level: int, memory: Mapping[int, int]) -> None:
    assert State({"ttbr0_el1": TABLE0}, memory).fault(0x1000) == 0x04 | level


def test_reserved_descriptors_are_translation_faults() -> None:
    assert State({"ttbr0_el1": TABLE0}, {TABLE0: 0x4000_0000 | AF | 1}).fault(0) == 0x04  # no 512 GiB block
    assert four_levels(0x4444_4000 | AF | 1).fault(0) == 0x07  # a block at level 3


def test_access_flag_and_address_size() -> None:
    assert four_levels(0x4444_4000 | 3).fault(0) == 0x0B
    narrow = four_levels(0x20_4444_4000 | AF | 3)
    narrow.registers["tcr_el1"] &= ~(7 << 32)  # IPS 0: 32 bits
    assert narrow.fault(0) == 0x03
    narrow.memory[TABLE0] = TABLE1 | 3 | 1 << 40
    assert narrow.fault(0) == 0x00


PERMISSIONS = [
    # attributes of the page, EL0's view, EL1's view
    (0, X, R | W | X),
    (USER, R | W | X, R | W),
    (READ_ONLY, X, R | X),
    (READ_ONLY | USER, R | X, R | X),
    (USER | UXN, R | W, R | W),
    (READ_ONLY | USER | UXN, R, R | X),
    (READ_ONLY | USER | PXN, R | X, R),
    (UXN | PXN, Permission(0), R | W),
    (READ_ONLY | UXN | PXN, Permission(0), R),
]


@pytest.mark.parametrize(("attributes", "user", "kernel"), PERMISSIONS)
def test_permissions_of_both_levels(attributes: int, user: Permission, kernel: Permission) -> None:
    for pstate, expected in ((0, user), (0x3C5, kernel)):
        page = four_levels(0x4444_4000 | AF | 3 | attributes, pstate=pstate)
        for access, needed in ((Access.READ, R), (Access.WRITE, W), (Access.FETCH, X)):
            if expected & needed:
                assert page.translate(0, access).permissions == expected
            else:
                assert page.fault(0, access) == 0x0F


@pytest.mark.parametrize(
    ("limits", "user", "kernel"),
    [
        (1 << 59, R | W | X, R | W),  # PXNTable
        (1 << 60, R | W, R | W),  # UXNTable
        (1 << 61, X, R | W | X),  # APTable[0]: no EL0
        (1 << 62, R | X, R | X),  # APTable[1]: no writes
    ],
)
def test_limits_of_tables_above(limits: int, user: Permission, kernel: Permission) -> None:
    for pstate, expected in ((0, user), (0x3C5, kernel)):
        page = four_levels(0x4444_4000 | AF | 3 | USER, limits=limits, pstate=pstate)
        access = Access.READ if expected & R else Access.FETCH
        assert page.translate(0, access).permissions == expected


def test_writable_memory_does_not_execute_under_wxn() -> None:
    page = four_levels(0x4444_4000 | AF | 3, sctlr_el1=1 | 1 << 19)
    assert page.translate(0).permissions == R | W
    assert page.fault(0, Access.FETCH) == 0x0F


def test_el2_has_one_half_and_one_execute_never() -> None:
    registers = {"pstate": 0x3C9, "sctlr_el2": 1, "tcr_el2": 16 | 5 << 16, "ttbr0_el2": TABLE0, "tcr_el1": 0}
    page = four_levels(0x4444_4000 | AF | 3 | PXN | USER)
    page.registers |= registers
    assert page.translate(0x10) == Translation(0x4444_4010, Permission.ALL)
    assert page.fault(0xFFFF_0000_0000_0000) == 0x04
    closed = four_levels(0x4444_4000 | AF | 3 | UXN)
    closed.registers |= registers
    assert closed.translate(0).permissions == R | W

"""While user mode's own tables are in use, the kernel's addresses are found by the kernel's."""

from collections.abc import Mapping

from kinst.runtime.clauses.guest.kernel_tables import with_kernel

KERNEL = 0xFFFF_8000_0000_0000
TASK, OTHER = KERNEL + 0x1000, KERNEL + 0x2000
USER_BIT = 1 << 12
TABLES = {0x4000: {TASK: 1, OTHER: 2, 0x1000: 3}, 0x4000 | USER_BIT: {0x1000: 3}, 0x6000 | USER_BIT: {TASK: 4}}


def test_the_kernels_tables_have_what_user_modes_lack() -> None:
    cr3 = 0x4000
    known: int | None = TASK

    def without(bits: Mapping[str, int], address: int) -> int | None:
        return TABLES.get(cr3 & ~bits["cr3"], {}).get(address)

    def found(address: int) -> int | None:
        observe = with_kernel(lambda at: TABLES[cr3].get(at), without, lambda _: cr3, [("cr3", USER_BIT)], known)
        return observe(address)

    assert [found(at) for at in (TASK, OTHER, 0x1000, KERNEL)] == [1, 2, 3, None]
    cr3 |= USER_BIT
    assert [found(at) for at in (TASK, OTHER, 0x1000, 0x2000, KERNEL)] == [1, 2, 3, None, None]
    cr3 = 0x6000 | USER_BIT  # the bit is set by chance: these tables have the kernel
    assert [found(at) for at in (TASK, OTHER)] == [4, None]
    cr3, known = 0x4000 | USER_BIT, None
    assert found(TASK) is None

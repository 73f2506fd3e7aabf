"""What programs in ring 3 of the PC may do that concerns the kernel's tables and the debugger's registers."""

import pytest

from kinst.runtime.machine.exceptions.amd64_tables import reads_descriptors
from tests.runtime.machine.test_pc_amd64 import CODE, DIRECTORY, GDT, TO_USER, USER, USER_DATA, Guest

PAGES, FAULT, PROTECTION, DEBUG = 0x40_0000, 14, 13, 1


def guest_whose_gdt_is_the_kernels(user: str, before: str = "nop") -> Guest:
    """Only the supervisor may read the page with the GDT, which is not in the TLB when ring 3 begins."""
    guest = Guest(f"{before}; mov %cr3, %rax; mov %rax, %cr3; {TO_USER}").let_user_in(3)
    start = GDT >> 21 << 21
    for page in range(512):
        address = start + page * 4096
        guest.system.memory.store(PAGES + 8 * page, 8, address | (0x03 if address == GDT else 0x07))
    guest.system.memory.store(DIRECTORY + (GDT >> 21) * 8, 8, PAGES | 7)
    guest.write(USER, user)
    return guest


@pytest.mark.parametrize(
    "user",
    [
        f"mov ${USER_DATA:#x}, %eax; mov %eax, %es; int3",
        f"mov ${USER_DATA:#x}, %eax; mov %eax, %fs; mov %eax, %gs; mov %eax, %ss; int3",
        f"mov ${USER_DATA:#x}, %ecx; lsl %ecx, %eax; int3",
        f"mov ${USER_DATA:#x}, %ecx; lar %ecx, %eax; int3",
        f"mov ${USER_DATA:#x}, %eax; verr %ax; int3",
        f"mov ${USER_DATA:#x}, %eax; push %rax; lsl (%rsp), %eax; int3",
    ],
)
def test_descriptors_are_read_for_programs(user: str) -> None:
    report = guest_whose_gdt_is_the_kernels(user).run().report()
    assert report["vector"] == 3


@pytest.mark.parametrize(
    ("user", "error"),
    [
        pytest.param(f"mov {GDT + 8:#x}, %eax", 5, id="a load"),
        pytest.param(f"movb $0, {GDT + 8:#x}", 7, id="a store"),
        pytest.param(f"mov ${USER_DATA:#x}, %eax; mov %eax, %es; mov {GDT + 8:#x}, %eax", 5, id="after a descriptor"),
    ],
)
def test_programs_do_not_read_the_tables_themselves(user: str, error: int) -> None:
    report = guest_whose_gdt_is_the_kernels(user).run().report()
    assert (report["vector"], report["error"], report["cr2"]) == (FAULT, error, GDT + 8)


def test_a_descriptor_that_is_wrong_is_still_a_fault() -> None:
    report = guest_whose_gdt_is_the_kernels("mov $0x53, %eax; mov %eax, %es").run().report()
    assert (report["vector"], report["error"]) == (PROTECTION, 0x50)


def test_performance_counters_are_forbidden() -> None:
    guest = Guest(TO_USER).let_user_in()
    guest.write(USER, "xor %ecx, %ecx; rdpmc")
    report = guest.run().report()
    assert (report["vector"], report["error"], report["rip"]) == (PROTECTION, 0, USER + 2)


def test_breakpoints_of_debug_registers() -> None:
    guest = Guest(f"mov ${USER + 2:#x}, %rax; mov %rax, %dr1; mov $4, %eax; mov %rax, %dr7; {TO_USER}").let_user_in()
    guest.write(USER, "nop; nop; nop; nop")
    report = guest.run().report()
    assert (report["vector"], report["rip"]) == (DEBUG, USER + 2)
    assert guest.get("dr6") & 0xF == 2


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("8ec0", True), ("668ed8", True), ("488ed0", True), ("0f03c1", True), ("66410f02c1", True), ("0f00e0", True),
        ("0f00c8", False), ("cb", True), ("48cf", True), ("ff1b", True), ("ff13", False), ("0fb200", True),
        ("0fb600", False), ("8b00", False), ("ec", True), ("", False), ("0f", False), ("4889c0", False),
    ],
)  # fmt: skip
def test_which_instructions_read_descriptors(code: str, reads: bool) -> None:  # noqa: FBT001
    assert reads_descriptors(bytes.fromhex(code)) is reads


def test_the_kernel_itself_is_not_concerned() -> None:
    report = Guest(f"mov ${GDT + 8:#x}, %rax; mov (%rax), %rbx; int3").run().report()
    assert (report["vector"], report["rip"] > CODE) == (3, True)

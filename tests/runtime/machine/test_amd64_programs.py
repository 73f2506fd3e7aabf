"""What programs in ring 3 of the PC may do that concerns the kernel's tables and the debugger's registers."""

import pytest

from kinst.runtime.machine.exceptions.amd64_debug import Watched, is_write, watched
from kinst.runtime.machine.exceptions.amd64_tables import reads_descriptors
from tests.runtime.machine.test_pc_amd64 import CODE, DIRECTORY, GDT, STUBS, TO_USER, USER, USER_DATA, Guest

PAGES, FAULT, PROTECTION, DEBUG = 0x40_0000, 14, 13, 1
DATA = 0x50_0000
# Of DR7, for DR2: enabled, R/W and LEN.
ENABLED = 1 << 4
STORES, BOTH, FOUR, EIGHT = ENABLED | 1 << 24, ENABLED | 3 << 24, 3 << 26, 2 << 26


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


def watching(user: str, control: int, address: int = DATA, before: str = "nop") -> Guest:
    """A guest that has a data breakpoint in DR2 before `user` runs in ring 3, with RBX = DATA."""
    registers = f"mov ${address:#x}, %rax; mov %rax, %dr2; mov ${control:#x}, %eax; mov %rax, %dr7"
    guest = Guest(f"mov ${DATA:#x}, %rbx; {before}; {registers}; {TO_USER}").let_user_in(3)
    guest.write(USER, f"{user}; int3")
    return guest


@pytest.mark.parametrize(
    ("user", "control", "address", "behind"),
    [
        pytest.param("movl $1, (%rbx)", STORES | FOUR, DATA, 6, id="a store"),
        pytest.param("nop; addb $1, 3(%rbx)", STORES | FOUR, DATA, 5, id="to the last byte"),
        pytest.param("nop; addb $1, 3(%rbx)", STORES | FOUR, DATA + 1, 5, id="an address counts as aligned"),
        pytest.param("mov %rax, -7(%rbx)", STORES, DATA, 4, id="of more bytes than are watched"),
        pytest.param("mov (%rbx), %eax; mov %eax, (%rbx)", STORES | FOUR, DATA, 4, id="stores, not loads"),
        pytest.param("nop; mov (%rbx), %eax", BOTH | FOUR, DATA, 3, id="a load"),
        pytest.param("lea 8(%rbx), %rsp; push %rax", BOTH | EIGHT, DATA, 5, id="a push"),
        pytest.param("fnsave -100(%rbx)", STORES | FOUR, DATA, 3, id="of many words"),
        pytest.param("lea 2(%rbx), %rdi; mov $5, %ecx; std; rep stosb", STORES, DATA, 10, id="of a repeated one"),
    ],
)
def test_data_breakpoints(user: str, control: int, address: int, behind: int) -> None:
    guest = watching(user, control, address).run()
    report = guest.report()
    assert (report["vector"], report["rip"]) == (DEBUG, USER + behind)
    assert guest.get("dr6") & 0xF == 4


@pytest.mark.parametrize(
    ("user", "control"),
    [
        pytest.param("mov %eax, 4(%rbx); mov %al, -1(%rbx); mov 4(%rbx), %eax", BOTH | FOUR, id="beside it"),
        pytest.param("mov (%rbx), %eax", STORES | FOUR, id="a load of what is watched for stores"),
        pytest.param("movl $1, (%rbx)", (STORES | FOUR) & ~ENABLED, id="it is not enabled"),
    ],
)
def test_no_data_breakpoint(user: str, control: int) -> None:
    guest = watching(f"mov $7, %eax; {user}", control).run()
    assert guest.report()["vector"] == 3
    assert guest.get("dr6") & 0xF == 0


def test_data_breakpoints_end_with_dr7_and_are_the_kernels_too() -> None:
    """A store by ring 0 is met; the handler is gone on from with DR7 clear, and then nothing is met."""
    off = "xor %eax, %eax; mov %rax, %dr7"
    report = watching("movl $1, (%rbx)", STORES | FOUR, before="nop").run().report()
    assert report["vector"] == DEBUG
    registers = f"mov ${DATA:#x}, %rbx; mov %rbx, %dr0; mov $0xd0001, %eax; mov %rax, %dr7"
    guest = Guest(f"{registers}; {off}; movl $1, (%rbx); int3").run()
    assert guest.report()["vector"] == 3
    guest = Guest(f"{registers}; nop; movl $1, (%rbx); nop").run()
    assert (guest.report()["vector"], guest.get("dr6") & 0xF) == (DEBUG, 1)


def test_a_write_of_dr7_after_a_software_interrupt() -> None:
    """Unicorn takes the PC behind the last one for that of what comes next and is none, which an intercept is not."""
    guest = watching("movl $1, (%rbx)", STORES | FOUR, before="int $0x90; nop")
    stub = STUBS + 32 * 0x90
    guest.write(stub, "iretq")
    report = guest.run().report()
    assert (report["vector"], report["rip"]) == (DEBUG, USER + 6)


@pytest.mark.parametrize(
    ("control", "expected"),
    [
        (0x0000_0000, []),
        (0x0000_00FF, []),  # all four are for instructions
        (0x0001_0001, [Watched(0, 0x1003, 1, is_for_loads=False)]),
        (0x0001_0002, [Watched(0, 0x1003, 1, is_for_loads=False)]),  # G0
        (0x0050_0008, [Watched(1, 0x2002, 2, is_for_loads=False)]),
        (0x0B00_0010, [Watched(2, 0x3000, 8, is_for_loads=True)]),
        (0x2000_00C0, []),  # of ports
        (0xF00D_0041, [Watched(0, 0x1000, 4, is_for_loads=False), Watched(3, 0x4000, 4, is_for_loads=True)]),
    ],
)
def test_what_dr7_says(control: int, expected: list[Watched]) -> None:
    assert [*watched(control, (0x1003, 0x2003, 0x3007, 0x4002))] == expected


@pytest.mark.parametrize(
    ("code", "writes"),
    [("0f23f8", True), ("410f23ff", True), ("480f23f8", True), ("0f23f0", False), ("0f21f8", False), ("0f23", False)],
)
def test_which_instructions_write_dr7(code: str, writes: bool) -> None:  # noqa: FBT001
    assert is_write(bytes.fromhex(code)) is writes


def test_a_single_step_and_a_data_breakpoint_are_one_exception() -> None:
    guest = watching("pushfq; orl $0x100, (%rsp); popfq; movl $1, (%rbx)", STORES | FOUR).run()
    report = guest.report()
    assert (report["vector"], report["rsp"] != 0) == (DEBUG, True)
    assert guest.get("dr6") & 0x400F == 0x4004

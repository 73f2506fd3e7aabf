"""The PC as a guest sees it: small programs that take every kind of exception, and kernels up to their end."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

from kinst.rewriter.assemble import assemble
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.exceptions.amd64_segments import load_flat_code, load_flat_stack
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import PageFault
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.errors import GuestError, MachineError
from kinst.targets.image import open_image
from kinst.targets.machines.registry import machine_facts
from tests.images import at_hand, real_image

GOLDEN: Final = Path(__file__).parents[2] / "golden"
SAMPLES: Final = Path(__file__).parents[3] / "samples"

CODE, STUBS, IDT, GDT, TSS = 0x20_0000, 0x21_0000, 0x22_0000, 0x23_0000, 0x24_0000
USER, SYSCALL = 0x20_1000, 0x20_2000
STACK, RSP0, IST1, USER_STACK = 0x31_0000, 0x32_0000, 0x33_0000, 0x34_0000
HOLE = 0x1_0000_0018  # above the 4 GiB that are mapped
DIRECTORY = 0x7_3000  # of the first GiB, in pages of 2 MiB
KERNEL_CODE, KERNEL_DATA, USER_DATA, USER_CODE, TASK = 0x08, 0x10, 0x1B, 0x23, 0x28
WITH_ERROR = {8, 10, 11, 12, 13, 14, 17}
END = "outb %al, $0xf4"
# keystone reads numbers as hexadecimal, whatever they look like.
# Every stub leaves its vector in r15 and the frame in r8 to r14, and ends the run.
REPORT = f"pop %r14; pop %r13; pop %r12; pop %r11; pop %r10; pop %r9; mov %cr2, %r8; {END}"
COMMON = STUBS + 0x2000


def gate(vector: int, *, kind: int = 0x8E, stack: int = 0, selector: int = KERNEL_CODE) -> bytes:
    offset = STUBS + 32 * vector
    low = offset & 0xFFFF | selector << 16 | stack << 32 | kind << 40 | (offset >> 16 & 0xFFFF) << 48
    return low.to_bytes(8, "little") + (offset >> 32).to_bytes(8, "little")


@dataclass
class Guest:
    """A machine in 64-bit mode with a program at CODE, descriptor tables, and a stub for each vector."""

    program: str
    cpus: int = 1
    system: System = field(init=False)

    def __post_init__(self) -> None:
        facts = machine_facts("pc-amd64")
        self.system = System(facts, board_of("pc-amd64"), Configuration(cpus=self.cpus, clock=ClockKind.ICOUNT))
        image: Any = SimpleNamespace(data=np.zeros(0, np.uint8), segments=())
        self.system.board.start(Loaded(image, 0, CODE, ()))
        self.write(CODE, f"{self.program}; {END}")
        self.write(COMMON, REPORT)
        for vector in range(256):
            error = "" if vector in WITH_ERROR else "push $0;"
            self.write(STUBS + 32 * vector, f"{error} mov ${vector:#x}, %r15d; jmp {COMMON:#x}")
            self.system.memory.write(IDT + 16 * vector, gate(vector))
        self._tables()

    def _tables(self) -> None:
        low = TSS << 16 & 0xFF_FFFF_0000 | 0x8B << 40 | 103
        rows = (0, 0x00AF_9B00_0000_FFFF, 0x00CF_9300_0000_FFFF, 0x00CF_F300_0000_FFFF, 0x00AF_FB00_0000_FFFF, low)
        for number, row in enumerate(rows):
            self.system.memory.store(GDT + 8 * number, 8, row)
        self.system.memory.store(TSS + 4, 8, RSP0)
        self.system.memory.store(TSS + 36, 8, IST1)
        registers = self.system.cpus[0].registers
        load_flat_code(registers, KERNEL_CODE)
        load_flat_stack(registers, KERNEL_DATA)
        for name, base, limit in (("gdtr", GDT, 0x3F), ("idtr", IDT, 0xFFF), ("tr", TSS, 103)):
            registers.set(f"{name}.base", base)
            registers.set(f"{name}.limit", limit)
        registers.set("rsp", STACK)
        registers.set("r15", -1)

    def write(self, address: int, program: str) -> None:
        self.system.memory.write(address, assemble(AMD64, program, address))

    def set(self, name: str, value: int) -> None:
        self.system.cpus[0].registers.set(name, value)

    def get(self, name: str) -> int:
        return self.system.cpus[0].registers.get(name)

    def run(self) -> "Guest":
        assert self.system.run(10_000_000_000) is End.POWER_OFF
        return self

    def report(self) -> Mapping[str, int]:
        names = ("vector", "error", "rip", "cs", "rflags", "rsp", "ss", "cr2")
        registers = ("r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8")
        return {name: self.get(register) for name, register in zip(names, registers, strict=True)}

    def let_user_in(self, *vectors: int) -> "Guest":
        """Make the first GiB a user's, the code of USER its program, and let it call `vectors`."""
        for table in range(DIRECTORY - 0x3000, DIRECTORY + 1, 0x1000):
            for entry in range(table, table + 0x1000, 8):
                word = self.system.memory.load(entry, 8)
                self.system.memory.store(entry, 8, word | 4 if word else 0)
        for vector in vectors:
            self.system.memory.write(IDT + 16 * vector, gate(vector, kind=0xEE))
        return self


# The last instruction of a program faults or traps: vector, error code, RIP behind its start.
EXCEPTIONS = [
    ("nop", "int3", 3, 0, 1),
    ("nop", "int $0x80", 0x80, 0, 2),
    ("nop", "int $0xd", 13, None, 2),  # a software interrupt has no error code
    ("nop", "ud2", 6, 0, 0),
    ("xor %ecx, %ecx; xor %edx, %edx", "div %ecx", 0, 0, 0),
    ("mov $0x53, %eax", "mov %eax, %ds", 13, 0x50, 0),
    ("mov $0x8000000000000000, %rax", "mov (%rax), %rbx", 13, 0, 0),
    (f"mov ${HOLE:#x}, %rax", "mov (%rax), %rbx", 14, 0, 0),
    (f"mov ${HOLE:#x}, %rax", "movb $1, 3(%rax)", 14, 2, 0),
    (f"mov ${HOLE:#x}, %rax", "addq $1, (%rax)", 14, 0, 0),
    ("pushf; orl $0x100, (%rsp); popf", "nop", 1, 0, 1),
    ("mov $0x60, %eax", "ltr %ax", 13, 0x60, 0),
    ("mov %cr0, %rax; or $8, %rax; mov %rax, %cr0", "fninit", 7, 0, 0),
    ("mov %cr0, %rax; or $8, %rax; mov %rax, %cr0; mov $0x620, %ebx; mov %rbx, %cr4", "movaps %xmm0, %xmm1", 7, 0, 0),
]


@pytest.mark.parametrize(("before", "instruction", "vector", "error", "behind"), EXCEPTIONS)
def test_exceptions(before: str, instruction: str, vector: int, error: int | None, behind: int) -> None:
    guest = Guest(f"{before}; {instruction}")
    if error is None:
        guest.write(STUBS + 32 * vector, f"push $0; mov ${vector:#x}, %r15d; jmp {COMMON:#x}")
    report = guest.run().report()
    start = CODE + len(assemble(AMD64, before))
    assert (report["vector"], report["error"], report["rip"]) == (vector, error or 0, start + behind)
    assert (report["cs"], report["ss"]) == (KERNEL_CODE, KERNEL_DATA)
    if vector == 14:
        assert report["cr2"] == HOLE + (3 if "3(" in instruction else 0)


def test_a_jump_to_nowhere() -> None:
    report = Guest(f"mov ${HOLE:#x}, %rax; jmp *%rax").run().report()
    assert (report["vector"], report["error"], report["rip"], report["cr2"]) == (14, 0, HOLE, HOLE)


def test_the_frame_is_aligned_and_says_what_was() -> None:
    guest = Guest("sub $3, %rsp; stc; cld; int3").run()
    report = guest.report()
    assert report["rsp"] == STACK - 3
    assert report["rflags"] & 0x401 == 1
    assert guest.get("rsp") == STACK - 16  # five words below an aligned address, popped again


def test_gates_and_the_interrupt_flag() -> None:
    """An interrupt gate masks interrupts, a trap gate does not (SDM volume 3, 6.12.1.2); both clear TF and NT."""
    for kind, flag in ((0x8E, 0), (0x8F, 0x200)):
        guest = Guest("pushf; orl $0x4200, (%rsp); popf; int $0x41")
        guest.system.memory.write(IDT + 16 * 0x41, gate(0x41, kind=kind))
        report = guest.run().report()
        assert report["rflags"] & 0x4200 == 0x4200
        assert guest.get("rflags") & 0x4300 == flag


def test_exceptions_after_one_another_are_not_double_faults() -> None:
    """QEMU under Unicorn would make the second #GP a #DF: nobody tells it that the first was delivered."""
    guest = Guest("mov $0x53, %eax; mov %eax, %ds")
    for _ in range(4):
        guest.set("rip", CODE)
        guest.set("r15", -1)
        assert guest.run().report()["vector"] == 13


def test_interrupt_stack_table() -> None:
    guest = Guest("int3")
    guest.system.memory.write(IDT + 16 * 3, gate(3, stack=1))
    assert guest.run().report()["rsp"] == STACK
    assert guest.get("rsp") == IST1


def test_a_fault_in_delivery() -> None:
    missing = Guest("mov $0x53, %eax; mov %eax, %ds")
    missing.system.memory.write(
        IDT + 16 * 13, gate(13, kind=0x0E)
    )  # #GP, then its gate is not present: both contribute
    report = missing.run().report()
    assert (report["vector"], report["error"], report["rip"]) == (8, 0, CODE + 5)
    software = Guest("nop; int $0x41")
    software.system.memory.write(IDT + 16 * 0x41, gate(0x41, kind=0x0E))
    report = software.run().report()
    assert (report["vector"], report["error"], report["rip"]) == (11, 0x41 << 3 | 2, CODE + 1)
    stackless = Guest(f"mov ${HOLE - 8:#x}, %rsp; push %rax")
    stackless.system.memory.write(IDT + 16 * 8, gate(8, stack=1))
    report = stackless.run().report()
    assert (report["vector"], report["error"], report["rsp"]) == (8, 0, HOLE - 8)
    assert report["cr2"] == HOLE - 8 & ~15 - 8 or report["cr2"] < HOLE


def test_a_third_fault_ends_the_run() -> None:
    """With an IDT that has no entry it is a reset, on purpose; one that has some is a fault's."""
    guest = Guest("ud2")
    guest.set("idtr.limit", 0)
    assert guest.system.run(10_000_000_000) is End.RESET
    guest = Guest("ud2")
    guest.set("idtr.limit", 15)
    with pytest.raises(GuestError, match="cannot be delivered"):
        guest.run()


# What ring 3 does, and what the kernel sees: vector, error code, RIP behind the start of the instruction.
USERS = [
    ("int $0x80", 0x80, 0, 2),
    ("int3", 3, 0, 1),
    ("int $0x41", 13, 0x41 << 3 | 2, 0),
    ("hlt", 13, 0, 0),
    ("cli", 13, 0, 0),
    ("mov %cr3, %rax", 13, 0, 0),
    ("ud2", 6, 0, 0),
    ("mov 0x40000000, %eax", 14, 5, 0),
    ("mov %eax, 0x40000000", 14, 7, 0),
]
TO_USER = f"push ${USER_DATA:#x}; push ${USER_STACK:#x}; push $0x202; push ${USER_CODE:#x}; push ${USER:#x}; iretq"


@pytest.mark.parametrize(("instruction", "vector", "error", "behind"), USERS)
def test_ring_3(instruction: str, vector: int, error: int, behind: int) -> None:
    guest = Guest(TO_USER).let_user_in(3, 0x80)
    guest.write(USER, instruction)
    report = guest.run().report()
    assert (report["vector"], report["error"], report["rip"]) == (vector, error, USER + behind)
    assert (report["cs"], report["ss"], report["rsp"]) == (USER_CODE, USER_DATA, USER_STACK)
    assert (guest.get("cs"), guest.get("ss"), guest.get("rsp")) == (KERNEL_CODE, 0, RSP0)
    with pytest.raises(PageFault):
        guest.system.cpus[0].load(HOLE, 8)


def test_ring_3_cannot_read_what_the_kernel_just_read() -> None:
    """Tables are read as the supervisor while an interrupt is delivered; the user's TLB must not keep that."""
    guest = Guest(TO_USER).let_user_in(0x80)
    entry = DIRECTORY + (IDT >> 21) * 8
    assert IDT >> 21 == CODE >> 21
    table = 0x40_0000
    for page in range(512):
        address = (IDT >> 21 << 21) + page * 4096
        guest.system.memory.store(table + 8 * page, 8, address | (0x03 if address & ~0xFFF == IDT else 0x07))
    guest.system.memory.store(entry, 8, table | 7)
    guest.write(STUBS + 32 * 0x80, "iretq")
    guest.write(USER, f"int $0x80; mov {IDT:#x}, %eax")
    report = guest.run().report()
    assert (report["vector"], report["error"], report["cr2"]) == (14, 5, IDT)


def test_system_call_and_return() -> None:
    model_specific = (
        (0xC0000080, 0, 0x501),
        (0xC0000081, 0x00100008, 0),
        (0xC0000082, 0, SYSCALL),
        (0xC0000084, 0, 0x200),
    )
    guest = Guest(
        "".join(
            f"mov ${number:#x}, %ecx; mov ${high:#x}, %edx; mov ${low:#x}, %eax; wrmsr;"
            for number, high, low in model_specific
        )
        + TO_USER
    ).let_user_in()
    guest.write(USER, "stc; syscall; mov $0x4d, %ebx; ud2")
    guest.write(SYSCALL, "mov %cs, %edi; mov %ss, %esi; pushf; pop %rdx; mov %cr3, %rbp; sysretq")
    report = guest.run().report()
    assert (report["vector"], report["cs"], report["rip"]) == (6, USER_CODE, USER + 8)
    assert [guest.get(name) for name in ("rbx", "rdi", "rsi", "rbp")] == [77, 8, 0x10, 0x7_0000]
    assert guest.get("rcx") == USER + 3
    assert guest.get("rdx") & 0x201 == 1  # IF is in SFMASK
    assert report["rflags"] & 0x201 == 0x201  # SYSRET took R11 back


def out(*writes: tuple[int, int]) -> str:
    return "".join(f"mov ${port:#x}, %edx; mov ${value:#x}, %eax; outb %al, %dx;" for port, value in writes)


PICS = ((0x20, 0x11), (0x21, 0x30), (0x21, 4), (0x21, 1), (0xA0, 0x11), (0xA1, 0x38), (0xA1, 2), (0xA1, 1))
PIT = ((0x43, 0x34), (0x40, 0x00), (0x40, 0x10))


def test_the_time_stamp_counter_is_the_machine_s_clock() -> None:
    """At 1 GHz: the instruction clock's 10 ns an instruction, whatever the host's counter says."""
    auxiliary = "mov $0xc0000103, %ecx; mov $0x77, %eax; xor %edx, %edx; wrmsr;"
    guest = Guest(f"{auxiliary} rdtsc; mov %eax, %ebx; mov $0x10000, %edi; again: dec %edi; jnz again; rdtscp").run()
    assert guest.get("rax") - guest.get("rbx") == (2 * 0x10000 + 3) * 10
    assert (guest.get("rcx"), guest.get("rdx")) == (0x77, 0)


@pytest.mark.parametrize("instruction", ["rdtsc", "rdtscp"])
def test_the_time_stamp_counter_can_be_the_kernel_s(instruction: str) -> None:
    guest = Guest(f"mov %cr4, %rax; or $4, %eax; mov %rax, %cr4; {TO_USER}").let_user_in()
    guest.write(USER, instruction)
    assert guest.run().report()["vector"] == 13


def test_timer_interrupt_ends_hlt() -> None:
    guest = Guest(out(*PICS, (0x21, 0xFE), (0xA1, 0xFF), *PIT) + "sti; hlt; nop")
    report = guest.run().report()
    assert report["vector"] == 0x30
    assert report["rip"] == CODE + len(assemble(AMD64, guest.program)) - 1
    assert guest.system.clock.now() == pytest.approx(0x1000 * 1_000_000_000 / 1_193_182, rel=0.01)


@pytest.mark.parametrize(("window", "vector"), [("", (1 << 64) - 1), ("nop; nop;", 0x30)])
def test_the_shadow_of_sti_covers_one_instruction(window: str, vector: int) -> None:
    """With an interrupt pending all the time, `sti; cli` lets none in."""
    loop = f"mov $0x20000, %ecx; again: sti; {window} cli; dec %ecx; jnz again"
    guest = Guest(out(*PICS, (0x21, 0xFE), (0xA1, 0xFF), *PIT) + loop)
    assert guest.run().get("r15") == vector


def test_interrupt_from_the_local_apic() -> None:
    enable = "mov $0xfee000f0, %rbx; movl $0x1ff, (%rbx);"
    guest = Guest(enable + "movl $0x40055, 0x210(%rbx); sti; wait: jmp wait").run()
    assert guest.report()["vector"] == 0x55
    timer = Guest(enable + "movl $0x66, 0x230(%rbx); movl $0x2710, 0x290(%rbx); sti; hlt; nop").run()
    assert timer.report()["vector"] == 0x66


def test_nmi_is_taken_once_and_with_interrupts_off() -> None:
    guest = Guest("mov $0xfee00300, %rbx; movl $0, 0x10(%rbx); movl $0x4400, (%rbx); wait: jmp wait").run()
    assert (guest.report()["vector"], guest.report()["rflags"] & 0x200) == (2, 0)
    guest.write(CODE, f"mov $0x100, %ecx; again: dec %ecx; jnz again; {END}")
    guest.set("rip", CODE)
    guest.set("r15", 0)
    assert guest.run().get("r15") == 0


def test_hlt_with_interrupts_off_ends_the_run() -> None:
    with pytest.raises(MachineError, match="hlt with interrupts off"):
        Guest("cli; hlt").run()


START_SECOND: Final = (
    "mov $0xfee00310, %rbx; movl $0x01000000, (%rbx); movl $0x4500, -0x10(%rbx); movl $0x4608, -0x10(%rbx);"
)


def test_there_is_no_bios_to_call() -> None:
    """The second CPU starts in real mode, as a start-up IPI says."""
    guest = Guest(f"{START_SECOND} wait: jmp wait", cpus=2)
    guest.system.memory.write(0x8000, bytes.fromhex("cd15"))
    with pytest.raises(MachineError, match="int 0x15 in real mode calls the BIOS, which this machine does not have"):
        guest.run()


def test_unknown_ports_and_memory_float() -> None:
    read_port = "mov $0x1234, %edx; in %dx, %eax; mov %eax, %r15d;"
    read_cmos = "mov $0x5f, %al; out %al, $0x70; in $0x71, %al; mov %eax, %ecx"
    guest = Guest(f"{read_port} mov 0xfed00000, %ebx; {read_cmos}")
    guest.run()
    assert guest.get("r15") == guest.get("rbx") == 0xFFFF_FFFF
    assert guest.get("rcx") & 0xFF == 0


def test_each_cpu_has_its_number() -> None:
    for cpus, expected in ((1, 0), (4, 4 << 16)):
        guest = Guest("mov $1, %eax; cpuid", cpus=cpus).run()
        assert guest.get("rbx") & 0xFFFF_0000 == expected
        assert guest.get("rdx") >> 9 & 1


def registers_of_cpuid(guest: Guest) -> list[int]:
    return [guest.get(name) for name in ("rax", "rbx", "rcx", "rdx")]


def cpuid(leaf: int, part: int, cpus: int) -> list[int]:
    return registers_of_cpuid(Guest(f"mov ${leaf:#x}, %eax; mov ${part:#x}, %ecx; cpuid", cpus=cpus).run())


def test_cpus_are_cores_of_one_package() -> None:
    """Three of them have numbers of two bits."""
    assert [cpuid(0xB, part, 3) for part in range(3)] == [[0, 1, 0x100, 0], [2, 3, 0x201, 0], [0, 0, 2, 0]]
    assert [cpuid(4, part, 3)[0] >> 26 for part in range(4)] == [3, 3, 3, 0]
    for leaf, part in ((0xB, 0), (0xB, 1)):
        assert cpuid(leaf, part, 1) == [0, 0, 0, 0]
    (alone, *rest), (one_of_two, *same) = cpuid(4, 2, 1), cpuid(4, 2, 2)
    assert (alone | 1 << 26, rest) == (one_of_two, same)


def test_a_timer_interrupt_comes_through_the_io_apic() -> None:
    """The PIT is at pin 2; the PIC, whose inputs are masked, is out of the way."""
    enable = "mov $0xfee000f0, %rbx; movl $0x1ff, (%rbx); mov $0xfec00000, %rbx;"
    route = "movl $0x15, (%rbx); movl $0, 0x10(%rbx); movl $0x14, (%rbx); movl $0x44, 0x10(%rbx);"
    guest = Guest(enable + route + out(*PIT) + "sti; hlt; nop").run()
    assert guest.report()["vector"] == 0x44
    assert guest.system.clock.now() == pytest.approx(0x1000 * 1_000_000_000 / 1_193_182, rel=0.01)


def test_a_cpu_starts_again_after_an_init() -> None:
    """It counts its starts, in 16-bit mode, and waits."""
    wait = "movl ${count}, %ecx; wait{count}: cmpl %ecx, 0x9000; jne wait{count};"
    starts = "".join(START_SECOND + wait.format(count=count) for count in (1, 2, 3))
    guest = Guest(f"{starts} mov 0x9000, %r15d", cpus=2)
    guest.system.memory.write(0x8000, bytes.fromhex("66ff060090 f4"))  # incl 0x9000; hlt
    assert guest.run().get("r15") == 3


# In 16-bit mode: read IA32_APIC_BASE, and store it at 0x9000.
#                               mov $0x1b,%ecx  rdmsr  mov %edx,0x9004  mov %eax,0x9000  hlt
READ_BASE: Final = bytes.fromhex("66b91b000000    0f32   66891604 90      66a3 0090        f4")


def test_one_cpu_is_the_one_that_booted() -> None:
    """IA32_APIC_BASE tells which, and where the local APICs are; Linux 6.12 starts no other CPU if none is."""
    guest = Guest(f"{START_SECOND} wait: cmpl $0, 0x9000; je wait; nop; mov $0x1b, %ecx; rdmsr; rdmsr", cpus=2)
    guest.system.memory.write(0x8000, READ_BASE)
    guest.run()
    assert (guest.get("rax"), guest.get("rdx")) == (0xFEE0_0900, 0)
    assert guest.system.memory.load(0x9000, 8) == 0xFEE0_0800


def test_a_model_specific_register_is_read_behind_a_breakpoint() -> None:
    """Unicorn sets RIP behind the last software interrupt whatever the exception is."""
    guest = Guest("mov $0x1b, %ecx; int3; xor %eax, %eax; rdmsr; mov %eax, %r15d")
    guest.write(STUBS + 32 * 3, "iretq")
    assert guest.run().get("r15") == 0xFEE0_0900


def test_other_model_specific_registers_are_unicorn_s() -> None:
    read = "mov $0x277, %ecx; rdmsr; mov %rax, %rsi; mov $0xc0000080, %ecx; rdmsr"
    assert (guest := Guest(read).run()).get("rsi") == 0x0007_0406
    assert guest.get("rax") == 0x500


def test_no_cpu_offers_random_numbers_of_the_host() -> None:
    rdrand, rdseed = (Guest(f"mov ${leaf}, %eax; xor %ecx, %ecx; cpuid").run() for leaf in (1, 7))
    assert not rdrand.get("rcx") >> 30 & 1
    assert not rdseed.get("rbx") >> 18 & 1


@pytest.mark.parametrize("size", [512 << 10, 4 << 30])
def test_memory_that_no_pc_of_ours_has(size: int) -> None:
    facts, image = machine_facts("pc-amd64"), real_image("gnumach")
    system = System(facts, board_of("pc-amd64"), Configuration(memory=size))
    with pytest.raises(MachineError, match="pc-amd64"):
        system.board.start(load_image(open_image(image), facts, system.memory))


# -- kernels ----------------------------------------------------------------------------------------------------------


def console(
    path: Path, *, until: bytes, cpus: int = 1, clock: ClockKind = ClockKind.HOST, command_line: str | None = None
) -> bytes:
    """What an image prints until `until` is seen or it switches the machine off."""
    facts = machine_facts("pc-amd64")
    system = System(facts, board_of("pc-amd64"), Configuration(cpus=cpus, clock=clock, command_line=command_line))
    printed = bytearray()

    def sink(data: bytes) -> None:
        printed.extend(data)
        if printed.endswith(until):
            system.finish(End.UNTIL)

    system.board.start(load_image(open_image(path), facts, system.memory))
    assert system.run(60_000_000_000, hooks=MachineHooks(console=sink)) in (End.UNTIL, End.POWER_OFF)
    return bytes(printed)


def normalised(text: bytes) -> list[str]:
    """Without the time, the rows of the memory map that QEMU's ACPI tables take, and sizes that follow from them.

    The "cr2" of a trap that is no page fault is whatever the last interrupt left in that place of the stack.
    """
    lines = text.decode("latin1").replace("\r", "").split("\n")
    lines = [line for line in lines if not line.startswith("biosmem: 0")]
    numbers = re.compile(r"^(ELF section header table|vm_page:|RTC time is|Kernel Breakpoint trap.*cr2).*$")
    return [numbers.sub(r"\1", line) for line in lines]


def test_gnu_mach_prints_what_it_prints_under_qemu() -> None:
    printed = console(real_image("gnumach"), until=b"db> ")
    assert normalised(printed) == normalised((GOLDEN / "gnumach.console").read_bytes())


@pytest.mark.parametrize("cpus", [1, 2, 4])
@pytest.mark.parametrize("clock", ClockKind)
def test_sample_kernel_on_several_cpus(cpus: int, clock: ClockKind) -> None:
    printed = console(SAMPLES / "kernel-amd64.elf", until=b"never", cpus=cpus, clock=clock)
    assert f"cpu: {cpus} found" in printed.decode()
    assert printed.splitlines()[-1].startswith(b"kernel: all done, checksum ")


@pytest.mark.skipif(not at_hand("linux-amd64"), reason="linux-amd64 was not downloaded")
def test_linux_measures_the_same_clock_twice() -> None:
    """The TSC by the PIT, without a hypervisor to tell it. If they disagree, its delays last for ever."""
    printed = console(real_image("linux-amd64"), until=b" MHz processor", clock=ClockKind.ICOUNT)
    assert 999 < float(printed.split()[-3]) < 1001


@pytest.mark.skipif(not at_hand("linux-amd64"), reason="linux-amd64 was not downloaded")
def test_linux_prints_on_the_serial_line_without_being_told() -> None:
    printed = console(real_image("linux-amd64"), until=b"Kernel command line: earlyprintk=ttyS0 console=ttyS0")
    assert printed.startswith(b"[    0.000000] Linux version ")

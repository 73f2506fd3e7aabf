"""The arm64 machine as a guest sees it: small programs that take every exception, and firmware up to its prompt."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from kinst.rewriter.assemble import assemble
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.image import Image, open_image
from kinst.targets.machines.registry import machine_facts
from tests.gated import taking_turns
from tests.images import real_image

CODE, VECTORS, STACK = 0x4020_0000, 0x4021_0000, 0x4030_0000
HOLE = 0x3000_0000  # neither RAM nor a device
GOLDEN = Path(__file__).parents[2] / "golden"

EL1, EL0 = 0x3C5, 0x3C0
CURRENT_SP0, CURRENT, LOWER = 0x000, 0x200, 0x400
IRQ = 0x80
# Each vector stores its own offset in x20 and ends the run; x19 to x24 are nobody else's.
REPORT = "mov x20, #{offset}; mrs x21, esr_{el}; mrs x22, elr_{el}; mrs x23, spsr_{el}; mrs x24, far_{el}; {end}"
END = "mov w0, #8; movk w0, #0x8400, lsl #16; hvc #0"  # PSCI SYSTEM_OFF


def at_code(register: str, offset: int) -> str:
    """CODE + offset in a register."""
    return f"movz {register}, #{CODE >> 16}, lsl #16; movk {register}, #{offset}"


@dataclass
class Guest:
    """A machine with a program at CODE and vectors that report what they were entered for."""

    program: str
    cpus: int = 1
    machine: str = "virt-arm64"
    system: System = field(init=False)

    def __post_init__(self) -> None:
        facts = machine_facts(self.machine)
        self.system = System(facts, board_of(self.machine), Configuration(cpus=self.cpus, clock=ClockKind.ICOUNT))
        memory = self.system.memory
        level, end = ("el2", END.replace("hvc", "smc")) if "el2" in self.machine else ("el1", END)
        memory.write(CODE, assemble(ARM64, f"{self.program}; {end}", CODE))
        for offset in range(0, 0x800, 0x80):
            report = REPORT.format(offset=offset, el=level, end=end)
            memory.write(VECTORS + offset, assemble(ARM64, report, VECTORS + offset))
        # No image: the program is in memory already.
        self.system.board.start(Loaded(cast("Image", None), 0, CODE, ()))
        for name, value in (
            (f"vbar_{level}", VECTORS),
            ("sp", STACK),
            ("sp_el0", STACK - 0x8000),
            ("cpacr_el1", 3 << 20),
        ):
            self.set(name, value)

    def set(self, name: str, value: int) -> None:
        self.system.cpus[0].registers.set(name, value)

    def get(self, name: str) -> int:
        return self.system.cpus[0].registers.get(name)

    def run(self) -> "Guest":
        assert self.system.run(10_000_000_000) is End.POWER_OFF
        return self

    def report(self) -> Mapping[str, int]:
        names = {"vector": "x20", "esr": "x21", "elr": "x22", "spsr": "x23", "far": "x24"}
        return {what: self.get(register) for what, register in names.items()}


# A program that ends in its last instruction, and what the vector sees: ESR, and how far ELR is from that instruction.
SYNCHRONOUS = [
    ("brk #0x123", 0xF200_0123, 0),
    ("svc #0x456", 0x5600_0456, 4),
    ("nop; hlt #1", 0x0200_0000, 0),
    ("smc #0", 0x0200_0000, 0),
    ("mrs x0, hcr_el2", 0x0200_0000, 0),
    (f"mov x1, #{HOLE}; ldr x0, [x1, #0x18]", 0x9600_0010, 0),
    (f"mov x1, #{HOLE}; strb w0, [x1, #0x18]!", 0x9600_0050, 0),
    (f"mov x1, #{HOLE}; ldp x2, x3, [x1, #0x18]", 0x9600_0010, 0),
    (f"mov x1, #{HOLE}; add x1, x1, #0x18; dc zva, x1", 0x9600_0050, 0),
]


@pytest.mark.parametrize(("program", "esr", "behind"), SYNCHRONOUS, ids=lambda value: str(value))
def test_synchronous_exceptions_of_el1(program: str, esr: int, behind: int) -> None:
    report = Guest(program).run().report()
    last = CODE + len(assemble(ARM64, program)) - 4
    assert report["vector"] == CURRENT
    assert (hex(report["esr"]), report["elr"]) == (hex(esr), last + behind)
    assert report["spsr"] & 0x3FF == EL1
    if str(HOLE) in program:
        assert report["far"] == HOLE + 0x18


def test_an_undefined_word_and_a_jump_to_nowhere() -> None:
    undefined = Guest("nop; nop")
    undefined.system.memory.write(CODE + 4, bytes(4))
    assert undefined.run().report()["esr"] == 0x0200_0000
    assert undefined.get("x22") == CODE + 4
    nowhere = Guest(f"mov x1, #{HOLE}; add x1, x1, #0x40; br x1").run().report()
    assert (nowhere["vector"], nowhere["esr"]) == (CURRENT, 0x8600_0010)
    assert nowhere["elr"] == nowhere["far"] == HOLE + 0x40
    odd = Guest(f"{at_code('x1', 2)}; br x1").run().report()
    assert (odd["esr"], odd["far"], odd["elr"]) == (0x8A00_0000, CODE + 2, CODE + 2)


def test_misaligned_exclusives() -> None:
    report = Guest(f"{at_code('x1', 1)}; ldxr x0, [x1]").run().report()
    assert (report["esr"], report["far"]) == (0x9600_0021, CODE + 1)


def test_each_level_has_its_stack() -> None:
    guest = Guest("mov x25, sp; msr spsel, #0; mov x26, sp; sub sp, sp, #0x100; brk #1").run()
    assert guest.get("x20") == CURRENT_SP0
    assert guest.get("x23") & 0x3FF == 0x3C4
    assert (guest.get("x25"), guest.get("x26"), guest.get("sp")) == (STACK, STACK - 0x8000, STACK)
    assert guest.get("sp_el0") == STACK - 0x8100


USER = [
    ("svc #7", 0x5600_0007),
    ("brk #7", 0xF200_0007),
    ("wfi", 0x07E0_0000),
    ("mrs x5, cntvct_el0", 0x6232_F8A1 | 0),
    ("mrs x5, ctr_el0", 0x6232_00A1),
    ("msr daifset, #2", 0x620C_D3E4),
    ("dc civac, x3", 0x6212_DC7C),
    ("mrs x5, midr_el1", 0x0200_0000),
    ("eret", 0x0200_0000),
    (f"mov x1, #{HOLE}; ldr w0, [x1, #0x18]", 0x9200_0010),
    (f"mov x1, #{HOLE}; br x1", 0x8200_0010),
]


def system_trap(op0: int, op1: int, crn: int, crm: int, op2: int, register: int, read: int) -> int:
    """ESR of a trapped system access (DDI 0487, ISS encoding of EC 0x18)."""
    fields = op0 << 20 | op2 << 17 | op1 << 14 | crn << 10 | register << 5 | crm << 1 | read
    return 0x18 << 26 | 1 << 25 | fields


TRAPS = {
    "mrs x5, cntvct_el0": system_trap(3, 3, 14, 0, 2, 5, 1),
    "mrs x5, ctr_el0": system_trap(3, 3, 0, 0, 1, 5, 1),
    "msr daifset, #2": system_trap(0, 3, 4, 2, 6, 31, 0),
    "dc civac, x3": system_trap(1, 3, 7, 14, 1, 3, 0),
}


@pytest.mark.parametrize(("instruction", "esr"), USER, ids=lambda value: str(value))
def test_synchronous_exceptions_of_el0(instruction: str, esr: int) -> None:
    # nTWI clear: wfi traps; UCT, UMA, UCI clear: what TRAPS lists traps.
    start = "mov x0, #0x838; movk x0, #0xc4, lsl #16; msr sctlr_el1, x0"
    guest = Guest(f"{start}; {at_code('x0', 0x80)}; msr elr_el1, x0; mov x0, #{EL0}; msr spsr_el1, x0; isb; eret")
    guest.system.memory.write(CODE + 0x80, assemble(ARM64, instruction))
    report = guest.run().report()
    assert report["vector"] == LOWER
    assert hex(report["esr"]) == hex(TRAPS.get(instruction, esr))
    assert report["spsr"] & 0x3FF == EL0
    assert guest.get("sp") == STACK


def test_eret_comes_back_with_everything() -> None:
    guest = Guest("mov x9, #3; cmp x9, #3; brk #9; cset x10, eq; mov x11, sp")
    guest.system.memory.write(
        VECTORS + CURRENT, assemble(ARM64, "mrs x0, elr_el1; add x0, x0, #4; msr elr_el1, x0; eret")
    )
    guest.run()
    assert (guest.get("x10"), guest.get("x11")) == (1, STACK)


GIC_ON = (
    "mov x1, #0x8000000; mov w2, #1; str w2, [x1]; mov w2, #-1; str w2, [x1, #0x100]; str w2, [x1, #0x104]; "
    "mov x3, #0x8010000; mov w2, #1; str w2, [x3]; mov w2, #0xff; str w2, [x3, #4]"
)
TIMERS = {"cntv": (27, "cntv_tval_el0", "cntv_ctl_el0"), "cntp": (30, "cntp_tval_el0", "cntp_ctl_el0")}


@pytest.mark.parametrize("name", TIMERS)
def test_a_timer_interrupts_a_waiting_cpu(name: str) -> None:
    number, tval, ctl = TIMERS[name]
    guest = Guest(
        f"{GIC_ON}; mrs x8, cntvct_el0; mov w2, #5000; msr {tval}, x2; mov w2, #1; msr {ctl}, x2; "
        "msr daifclr, #2; wfi; nop; nop; nop"
    )
    handler = f"mrs x9, cntvct_el0; mov x3, #0x8010000; ldr w10, [x3, #0xc]; mov x20, #1; mrs x22, elr_el1; {END}"
    guest.system.memory.write(VECTORS + CURRENT + IRQ, assemble(ARM64, handler))
    guest.run()
    assert guest.get("x10") == number
    assert 5000 <= guest.get("x9") - guest.get("x8") < 5200
    wait = CODE + assemble(ARM64, guest.program, CODE).index(assemble(ARM64, "wfi"))
    assert guest.get("x22") == wait + 4


def test_a_masked_interrupt_ends_a_wait_and_stays_pending() -> None:
    guest = Guest(
        f"{GIC_ON}; mov w2, #100; msr cntv_tval_el0, x2; mov w2, #1; msr cntv_ctl_el0, x2; wfi; mrs x10, isr_el1"
    )
    guest.run()
    assert guest.get("x10") == 1 << 7
    assert guest.get("x20") == 0


def test_time_passes_for_the_counter_and_not_for_the_host() -> None:
    guest = Guest(
        "mrs x8, cntpct_el0; mov x2, #1000; back: subs x2, x2, #1; b.ne back; mrs x9, cntvct_el0; mrs x10, cntfrq_el0"
    )
    guest.run()
    assert guest.get("x10") == 62_500_000
    assert guest.get("x9") - guest.get("x8") == pytest.approx(2003 * 10 / 16, abs=1)


PSCI = [
    (0x8400_0000, 0, 0x1_0001),
    (0x8400_000A, 0xC400_0003, 0),
    (0x8400_000A, 0x8400_00FF, -1),
    (0x8400_0004, 0, 0),
    (0xC400_0004, 1, 1),
    (0xC400_0004, 2, -2),
    (0xC400_0003, 0, -4),
    (0xC400_0003, 9, -2),
    (0x8400_0006, 0, 2),
    (0x1234, 0, -1),
]


@pytest.mark.parametrize(("function", "argument", "answer"), PSCI)
def test_firmware_answers(function: int, argument: int, answer: int) -> None:
    guest = Guest("hvc #0; mov x27, x0", cpus=2)
    for name, value in (("x0", function), ("x1", argument), ("x2", 0)):
        guest.set(name, value)
    assert guest.run().get("x27") == answer & (1 << 64) - 1


def test_another_cpu_starts_with_its_own_identity() -> None:
    identity = "mrs x5, mpidr_el1; mrs x6, midr_el1; mrs x7, currentel"
    started = f"{identity}; stp x5, x6, [x0]; stp x7, x0, [x0, #16]; wait: wfi; b wait"
    guest = Guest(
        f"mov x0, #3; movk x0, #0xc400, lsl #16; mov x1, #1; {at_code('x2', 0x100)}; mov x3, #0x40400000; hvc #0; "
        "back: ldr x4, [x3, #24]; cbz x4, back",
        cpus=2,
    )
    guest.system.memory.write(CODE + 0x100, assemble(ARM64, started))
    guest.run()
    words = [guest.system.memory.load(0x4040_0000 + 8 * index, 8) for index in range(4)]
    assert words == [0x8000_0001, 0x411F_D070, 4, 0x4040_0000]


# -- the level of hypervisors -----------------------------------------------------------------------------------------

EL2 = 0x3C9
IDENTITY = "mrs x5, currentel; mrs x6, mpidr_el1; mrs x7, id_aa64pfr0_el1; mrs x8, id_aa64dfr0_el1; mrs x9, id_pfr1_el1"


def test_cpus_say_which_levels_they_have() -> None:
    names = ("x5", "x6", "x7", "x8", "x9")
    without = Guest(IDENTITY).run()
    assert [without.get(name) for name in names] == [4, 0x8000_0000, 0x0022, 0x1030_5006, 0x0001_0001]
    with_it = Guest(IDENTITY, machine="virt-el2-arm64").run()
    assert [with_it.get(name) for name in names] == [8, 0x8000_0000, 0x0222, 0x1030_5006, 0x0001_1001]


def test_cpus_say_that_they_have_pages_of_16_kib() -> None:
    """Kernels made for them wait for ever otherwise; beside 4 and 64 KiB, whose fields are 0."""
    guest = Guest("mrs x5, id_aa64mmfr0_el1").run()
    assert (guest.get("x5") >> 20 & 0xFFF, guest.get("x5") & 0xFFFF) == (0x001, 0x1124)


def test_hvc_at_el2_is_its_own_and_firmware_is_called_by_smc() -> None:
    guest = Guest("movz x0, #0x8400, lsl #16; smc #0; mov x27, x0; hvc #3", machine="virt-el2-arm64").run()
    assert guest.get("x27") == 0x1_0001
    report = guest.report()
    assert (report["vector"], report["esr"], report["spsr"] & 0x3FF) == (CURRENT, 0x5A00_0003, EL2)


def test_another_cpu_starts_at_el2() -> None:
    guest = Guest(
        f"mov x0, #3; movk x0, #0xc400, lsl #16; mov x1, #1; {at_code('x2', 0x100)}; mov x3, #0x40400000; smc #0; "
        "back: ldr x4, [x3, #8]; cbz x4, back",
        cpus=2,
        machine="virt-el2-arm64",
    )
    started = "mrs x5, mpidr_el1; mrs x6, currentel; stp x5, x6, [x0]; wait: wfi; b wait"
    guest.system.memory.write(CODE + 0x100, assemble(ARM64, started))
    guest.run()
    assert [guest.system.memory.load(0x4040_0000 + offset, 8) for offset in (0, 8)] == [0x8000_0001, 8]


# -- translation ------------------------------------------------------------------------------------------------------

TABLES, WINDOW, OLD, NEW = 0x4050_0000, 0x40A0_0000, 0x4060_0000, 0x4080_0000
BLOCK_SHIFT, PAGE_SHIFT = 21, 12
TCR = 25 | 1 << 23  # 39 bits in the lower half, no upper half
TLBI = [f"tlbi {name}{shared}, x3" for name in ("vae1", "vaae1", "vale1", "vaale1") for shared in ("", "is")]


def entry(physical: int, *, is_table: bool = False, level: int = 2) -> int:
    """A descriptor: valid, accessed, read and write at EL1."""
    return physical | (3 if is_table else 0x401 | (2 if level == 3 else 0))


def write_tables(guest: Guest, tables: int, target: int, shift: int) -> int:
    """Blocks that map the first 8 MiB of the RAM used here to itself, and WINDOW to `target` by a block or by pages.
    Returns the address of the entry of WINDOW."""
    memory = guest.system.memory
    level2, level3 = tables + 0x1000, tables + 0x2000
    memory.store(tables + 8, 8, entry(level2, is_table=True))  # 1 GiB at 0x40000000
    for block in range(0x4020_0000, WINDOW, 1 << BLOCK_SHIFT):
        memory.store(level2 + (block >> BLOCK_SHIFT & 511) * 8, 8, entry(block))
    of_window = level2 + (WINDOW >> BLOCK_SHIFT & 511) * 8
    if shift == BLOCK_SHIFT:
        memory.store(of_window, 8, entry(target))
        return of_window
    memory.store(of_window, 8, entry(level3, is_table=True))
    memory.store(level3, 8, entry(target, level=3))
    return level3


def with_translation(program: str, shift: int, cpus: int = 1) -> Guest:
    """With x0 = WINDOW, which is at OLD, and x1 = the address of its entry. OLD holds 1 every KiB, NEW 2."""
    guest = Guest(program, cpus)
    of_window = write_tables(guest, TABLES, OLD, shift)
    for offset in range(0, 1 << shift, 0x400):
        guest.system.memory.store(OLD + offset, 8, 1)
        guest.system.memory.store(NEW + offset, 8, 2)
    for name, value in (("tcr_el1", TCR), ("ttbr0_el1", TABLES), ("x0", WINDOW), ("x1", of_window)):
        guest.set(name, value)
    guest.set("sctlr_el1", guest.get("sctlr_el1") | 1)
    return guest


@pytest.mark.parametrize(
    ("shift", "instruction"),
    taking_turns(
        [PAGE_SHIFT, BLOCK_SHIFT],
        [*TLBI, "tlbi vmalle1", "tlbi vmalle1is", "tlbi aside1, x3", "tlbi aside1is, x3"],
    ),
)
def test_tlbi_drops_all_of_an_entry(instruction: str, shift: int) -> None:
    """A page, or the block that the page named is in: seen at its start, at 3 KiB, and at its end."""
    offsets = (0, 0xC00, (1 << shift) - 0x400)
    loads = "; ".join(f"mov x6, #{offset}; ldr x{{{index}}}, [x0, x6]" for index, offset in enumerate(offsets))
    program = (
        f"{loads.format(10, 11, 12)}; str x2, [x1]; dsb ish; {instruction}; dsb ish; isb; {loads.format(13, 14, 15)}"
    )
    guest = with_translation(program, shift)
    guest.set("x2", entry(NEW, level=3 if shift == PAGE_SHIFT else 2))
    guest.set("x3", WINDOW + (0x1000 if shift == BLOCK_SHIFT else 0) >> 12)
    guest.run()
    assert [guest.get(f"x{number}") for number in range(10, 16)] == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("is_shared", [False, True])
def test_each_cpu_has_its_own_translations(*, is_shared: bool) -> None:
    """Two CPUs in turns, with tables of their own or the same, count how often they see what is theirs."""
    count = "mov x9, #30000; back{0}: ldr x8, [x0]; cmp x8, x7; cinc x5, x5, eq; subs x9, x9, #1; b.ne back{0}"
    wait = "mov x4, #0x40400000; wait: ldr x8, [x4]; cbz x8, wait"
    guest = with_translation(
        "mov x28, x0; mov x0, #3; movk x0, #0xc400, lsl #16; mov x3, #0; hvc #0; mov x0, x28; mov x7, #1; "
        f"{count.format(1)}; {wait}; {count.format(2)}; ldr x6, [x4, #8]",
        PAGE_SHIFT,
        cpus=2,
    )
    other = TABLES if is_shared else TABLES + 0x1_0000
    write_tables(guest, other, OLD if is_shared else NEW, PAGE_SHIFT)
    start = (
        f"mov x0, #{TCR & 0xFFFF}; movk x0, #{TCR >> 16}, lsl #16; msr tcr_el1, x0; movz x0, #{other >> 16}, lsl #16; "
        "msr ttbr0_el1, x0; isb; mrs x0, sctlr_el1; orr x0, x0, #1; msr sctlr_el1, x0; isb; "
        f"movz x0, #{WINDOW >> 16}, lsl #16; mov x5, #0; mov x7, #{1 if is_shared else 2}; "
        f"{count.format(1)}; mov x4, #0x40400000; str x5, [x4, #8]; mov x8, #1; str x8, [x4]; end: wfi; b end"
    )
    guest.system.memory.write(CODE + 0x400, assemble(ARM64, start, CODE + 0x400))
    guest.set("x1", 1)
    guest.set("x2", CODE + 0x400)
    guest.set("x5", 0)
    guest.run()
    assert (guest.get("x5"), guest.get("x6")) == (60_000, 30_000)


# -- firmware ---------------------------------------------------------------------------------------------------------


def console(path: Path, *, until: bytes, typed: bytes = b"") -> bytes:
    """What an image prints until `until` is seen."""
    facts = machine_facts("virt-arm64")
    system = System(facts, board_of("virt-arm64"), Configuration())
    printed = bytearray()

    def sink(data: bytes) -> None:
        printed.extend(data)
        if printed.endswith(until):
            system.finish(End.UNTIL)

    system.serial_line.type(typed)
    system.board.start(load_image(open_image(path), facts, system.memory))
    assert system.run(60_000_000_000, hooks=MachineHooks(console=sink)) is End.UNTIL
    return bytes(printed)


def normalised(text: bytes) -> list[str]:
    """Without what differs from build to build, and the flash bank that QEMU has at address 0 and we have not."""
    lines = text.decode("latin1").replace("\r", "").split("\n")
    lines = [re.sub(r"^U-Boot 20\d\d\.\S+ \(.*\)$", "U-Boot", line) for line in lines]
    return [re.sub(r"^Flash: \d+ MiB$", "Flash: some", line) for line in lines]


def test_u_boot_prints_what_it_prints_under_qemu() -> None:
    printed = console(real_image("u-boot-arm64"), until=b"=> ")
    assert normalised(printed) == normalised((GOLDEN / "u-boot-arm64.console").read_bytes())


@pytest.mark.long  # the gate has aborts by instructions
def test_u_boot_reports_an_abort_of_its_own() -> None:
    printed = console(real_image("u-boot-arm64"), typed=b" md 0x30000000 1\r", until=b"Resetting CPU ...").decode()
    assert '"Synchronous Abort" handler, esr 0x96000010, far 0x30000000\r\n' in printed
    assert re.search(r"x22: 0{8}30000000", printed)


@pytest.mark.long  # the gate has each command of the flash: test_cfi_flash
def test_u_boot_saves_its_environment_to_flash() -> None:
    typed = b" setenv answer 42\rsaveenv\rsetenv answer\renv load\rprintenv answer\r"
    printed = console(real_image("u-boot-arm64"), typed=typed, until=b"answer=42\r\n").decode()
    assert "Erased 2 sectors" in printed
    assert "bad CRC" not in printed.split("env load")[1]

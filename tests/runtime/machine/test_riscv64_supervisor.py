"""virt-riscv64 under a guest that starts in S mode: what it finds, and every SBI call, by programs of a few lines."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.devices.riscv.sbi import Extension
from kinst.runtime.machine.exceptions.riscv64 import machine_mode
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.targets.image import Image, open_image
from kinst.targets.machines.registry import machine_facts
from tests.images import real_image
from tests.runtime.machine.riscv_words import (
    A0,
    A1,
    A2,
    A6,
    A7,
    EBREAK,
    ECALL,
    NOP,
    S0,
    S1,
    S2,
    S3,
    S4,
    S5,
    S6,
    SRET,
    T0,
    T1,
    T2,
    WFI,
    ZERO,
    addi,
    bne,
    code,
    csrc,
    csrr,
    csrs,
    csrw,
    jal,
    la,
    li,
    load,
    shift,
    store,
)
from tests.system.cases import BY_NAME
from tests.system.runs import run

GOLDEN = Path(__file__).parents[2] / "golden"
CODE, VECTOR, SECOND, DATA = 0x8020_0000, 0x8021_0000, 0x8022_0000, 0x8023_0000
WORD = (1 << 64) - 1
INTERRUPT = 1 << 63
SSI, STI = 1 << 1, 1 << 5  # bits of sie and sip
SIE = 1 << 1  # of sstatus
NOT_SUPPORTED, INVALID, ALREADY_AVAILABLE = -2 & WORD, -3 & WORD, -6 & WORD


def call(extension: int, function: int = 0, *arguments: int) -> tuple[int, ...]:
    """An SBI call with small arguments."""
    loads = [word for register, value in zip((A0, A1, A2), arguments, strict=False) for word in li(register, value)]
    return (*li(A7, extension), *li(A6, function), *loads, ECALL)


SHUTDOWN = call(Extension.SRST, 0, 0, 0)
KEEP = (addi(S1, A0, 0), addi(S2, A1, 0))  # a call's answer
REPORT = (csrr(S3, "scause"), csrr(S4, "sepc"), csrr(S5, "stval"))


@dataclass
class Guest:
    """A machine with a program where firmware would have put it, and a vector that reports and ends the run."""

    program: tuple[int, ...]
    cpus: int = 1
    console: bytearray = field(default_factory=bytearray, init=False)
    system: System = field(init=False)

    def __post_init__(self) -> None:
        facts = machine_facts("virt-riscv64")
        configuration = Configuration(cpus=self.cpus, clock=ClockKind.ICOUNT)
        self.system = System(facts, board_of("virt-riscv64"), configuration)
        self.write(CODE, *la(T0, VECTOR), csrw("stvec", T0), *self.program, *SHUTDOWN)
        self.write(VECTOR, *REPORT, *SHUTDOWN)
        # No image: the program is in memory already.
        self.system.board.start(Loaded(cast("Image", None), 0, CODE, ((CODE, CODE, 0x1000),)))

    @property
    def start(self) -> int:
        """Where the program begins."""
        return CODE + 4 * 5

    def write(self, address: int, *words: int) -> "Guest":
        self.system.memory.write(address, code(*words))
        return self

    def run(self) -> "Guest":
        assert self.system.run(1_000_000_000, hooks=MachineHooks(console=self.console.extend)) is End.POWER_OFF
        return self

    def get(self, name: str) -> int:
        return self.system.cpus[0].registers.get(name)

    @property
    def answer(self) -> tuple[int, int]:
        """Error and value of the call that was kept."""
        return self.get("s1"), self.get("s2")


def test_what_a_kernel_finds_when_it_starts() -> None:
    guest = Guest((addi(S1, A0, 0), load(S2, A1, size=2), csrr(S3, "sstatus"), csrr(S4, "satp"), csrr(S5, "time")))
    guest.run()
    assert guest.answer == (0, int.from_bytes(b"\xd0\x0d\xfe\xed", "little", signed=True) & WORD)  # an FDT
    assert guest.get("s3") & SIE == 0
    assert guest.get("s3") >> 13 & 3 == 3  # floating point: dirty, as OpenSBI leaves it
    assert guest.get("s4") == 0
    assert guest.get("priv") == 1


# As OpenSBI 1.1 and 1.6 leave them behind (test_riscv64_firmware.py asks OpenSBI itself).
LEFT = {
    "mstatus": 0x8000_0000_0000_6080, "medeleg": 0xB109, "mideleg": 0x222, "mie": 8, "mip": 0, "mcounteren": WORD,
    "scounteren": 7, "sstatus": 0x8000_0000_0000_6000, "sie": 0, "sip": 0, "sscratch": 0, "sepc": 0, "scause": 0,
    "stval": 0, "satp": 0, "fcsr": 0,
}  # fmt: skip


def test_a_hart_is_as_firmware_leaves_it() -> None:
    guest = Guest(())
    guest.write(CODE, jal(ZERO, 0))
    assert guest.system.run(1000) is End.TIMEOUT
    registers = guest.system.cpus[0].registers
    with machine_mode(registers):
        left = {name: registers.get(name) for name in (*LEFT, "stvec")}
    assert left == {**LEFT, "stvec": CODE}


@pytest.mark.parametrize(
    ("allowed", "cause"),
    [
        pytest.param(None, 8, id="by firmware"),
        pytest.param(2, 8, id="by the kernel"),
        pytest.param(5, 2, id="forbidden"),
    ],
)
def test_programs_read_the_time_where_they_may(allowed: int | None, cause: int) -> None:
    user = CODE + 0x800
    choice = () if allowed is None else (addi(T0, ZERO, allowed), csrw("scounteren", T0))
    guest = Guest((*choice, *la(T0, user), csrw("sepc", T0), SRET))
    guest.write(user, addi(S1, ZERO, -1), csrr(S1, "time"), ECALL).run()
    assert (guest.get("s3"), guest.get("s4")) == (cause, user + (8 if cause == 8 else 4))
    assert (guest.get("s1") < 1000) is (cause == 8)
    assert guest.get("s5") == (0 if cause == 8 else csrr(S1, "time"))


@pytest.mark.parametrize(
    ("word", "cause", "value"),
    [
        pytest.param(EBREAK, 3, None, id="ebreak"),
        pytest.param(0xFFFFFFFF, 2, 0xFFFFFFFF, id="illegal"),
        pytest.param(csrr(A0, "mstatus"), 2, csrr(A0, "mstatus"), id="a CSR of M mode"),
        pytest.param(load(A0, ZERO), 5, 0, id="load from nothing"),
        pytest.param(store(A0, ZERO, 8), 7, 8, id="store to nothing"),
    ],
)
def test_exceptions_are_all_for_the_kernel(word: int, cause: int, value: int | None) -> None:
    guest = Guest((NOP, word)).run()
    where = guest.start + 4
    assert (guest.get("s3"), guest.get("s4")) == (cause, where)
    assert guest.get("s5") == (where if value is None else value)


def test_system_calls_of_user_mode_are_for_the_kernel() -> None:
    user = CODE + 0x800
    guest = Guest((*la(T0, user), csrw("sepc", T0), SRET)).write(user, NOP, ECALL).run()
    assert (guest.get("s3"), guest.get("s4")) == (8, user + 4)


@pytest.mark.parametrize(
    ("function", "argument", "value"),
    [(0, 0, 2 << 24), *((3, extension, 1) for extension in Extension), (3, 9, 0), (3, 0x735048, 0), (4, 0, 0)],
)
def test_base(function: int, argument: int, value: int) -> None:
    assert Guest((*call(Extension.BASE, function, argument), *KEEP)).run().answer == (0, value)


@pytest.mark.parametrize(
    ("extension", "function"),
    [(Extension.BASE, 7), (Extension.TIME, 1), (Extension.RFENCE, 3), (Extension.HSM, 4), (Extension.DBCN, 3), (9, 0)],
)
def test_calls_that_do_not_exist(extension: int, function: int) -> None:
    assert Guest((*call(extension, function), *KEEP)).run().answer[0] == NOT_SUPPORTED


@pytest.mark.parametrize("wait", [WFI, jal(ZERO, 0)])
@pytest.mark.parametrize("extension", [Extension.TIME, Extension.LEGACY_SET_TIMER])
def test_the_timer_interrupts_the_kernel_and_is_set_anew(extension: Extension, wait: int) -> None:
    guest = Guest(
        (
            *li(T0, STI), csrs("sie", T0), addi(T0, ZERO, SIE), csrs("sstatus", T0),
            *call(extension, 0, 5000), wait, NOP,
        )
    )  # fmt: skip
    guest.write(
        VECTOR, *REPORT, csrr(S1, "sip"), csrr(S2, "time"), *li(A0, -1), *li(A7, extension), *li(A6, 0), ECALL,
        NOP, csrr(S5, "sip"), *SHUTDOWN,
    ).run()  # fmt: skip
    assert guest.get("s3") == INTERRUPT | 5
    assert guest.get("s1") & STI
    assert 5000 <= guest.get("s2") < 5010  # it comes when it is due
    assert guest.get("s5") & STI == 0


@pytest.mark.parametrize("interrupt", [call(Extension.IPI, 0, 1, 0), call(Extension.IPI, 0, 0, -1)])
def test_an_interrupt_to_itself_is_cleared_by_the_kernel(interrupt: tuple[int, ...]) -> None:
    guest = Guest(
        (addi(T0, ZERO, SSI), csrs("sie", T0), addi(T0, ZERO, SIE), csrs("sstatus", T0), *interrupt, WFI, *SHUTDOWN)
    )
    cleared = (addi(T0, ZERO, SSI), csrc("sip", T0), csrr(S2, "sip"))
    guest.write(VECTOR, *REPORT, csrr(S1, "sip"), *cleared, *SHUTDOWN).run()
    assert guest.get("s3") == INTERRUPT | 1
    assert (guest.get("s1") & SSI, guest.get("s2") & SSI) == (SSI, 0)


def test_a_pending_interrupt_ends_a_wait_at_once() -> None:
    guest = Guest(
        (
            addi(T0, ZERO, SSI),
            csrs("sie", T0),
            *call(Extension.IPI, 0, 1, 0),
            NOP,
            csrr(S1, "sip"),
            WFI,
            csrr(S2, "time"),
        )
    ).run()
    assert guest.get("s1") & SSI
    assert guest.get("s2") < 100


@pytest.mark.parametrize(("mask", "base"), [(2, 0), (1, 1), (0, 64), (1, 1000)])
def test_harts_that_do_not_exist_get_no_interrupt(mask: int, base: int) -> None:
    assert Guest((*call(Extension.IPI, 0, mask, base), *KEEP)).run().answer[0] == INVALID


def test_a_hart_is_started_interrupted_and_stopped() -> None:
    """s0 of hart 0 and a word of memory say how far hart 1 has come: 1 started, 2 interrupted."""
    status = call(Extension.HSM, 2, 1)
    wait = (*la(T2, DATA), load(T1, T2), bne(T1, S0, -4))
    guest = Guest(
        (
            *status, addi(S1, A1, 0),
            *la(A1, SECOND), addi(A0, ZERO, 1), addi(A2, ZERO, 77), *li(A7, Extension.HSM), *li(A6, 0), ECALL,
            addi(S2, A0, 0), addi(S0, ZERO, 1), *wait,
            *status, addi(S3, A1, 0),
            *call(Extension.HSM, 0, 1, 0, 0), addi(S4, A0, 0),
            *call(Extension.IPI, 0, 2, 0), addi(S0, ZERO, 2), *wait,
            *status, addi(T0, ZERO, 1), bne(A1, T0, -4 * (len(status) + 1)),  # until it is stopped
        ),
        cpus=2,
    ).write(
        SECOND,
        *la(T2, DATA), store(A0, T2, 8), store(A1, T2, 16), addi(T0, ZERO, SSI), csrs("sie", T0),
        addi(T0, ZERO, 1), store(T0, T2), WFI, csrr(T1, "sip"), store(T1, T2, 24), addi(T0, ZERO, 2), store(T0, T2),
        *call(Extension.HSM, 1),
    )  # fmt: skip
    guest.run()
    assert (guest.get("s1"), guest.get("s2"), guest.get("s3")) == (1, 0, 0)  # stopped, success, started
    assert guest.get("s4") == ALREADY_AVAILABLE
    progress, number, argument, pending = (guest.system.memory.load(DATA + 8 * index, 8) for index in range(4))
    assert (progress, number, argument) == (2, 1, 77)
    assert pending & SSI


@pytest.mark.parametrize("function", [0, 2])
def test_a_hart_that_does_not_exist(function: int) -> None:
    assert Guest((*call(Extension.HSM, function, 5), *KEEP)).run().answer[0] == INVALID


def test_a_suspended_hart_goes_on_when_it_is_interrupted() -> None:
    guest = Guest(
        (
            *li(T0, STI),
            csrs("sie", T0),
            *call(Extension.TIME, 0, 5000),
            *call(Extension.HSM, 3),
            *KEEP,
            csrr(S3, "time"),
        )
    ).run()
    assert guest.get("s1") == 0
    assert guest.get("s3") >= 5000
    assert Guest((*call(Extension.HSM, 3, 1), *KEEP)).run().answer[0] == NOT_SUPPORTED


FENCES = [call(Extension.RFENCE, function, 1, 0) for function in (1, 2)] + [call(Extension.LEGACY_SFENCE_VMA, 0, 0)]


@pytest.mark.parametrize("fence", FENCES)
def test_a_fence_drops_translations(fence: tuple[int, ...]) -> None:
    root, virtual = DATA, 0x4000_0000
    read = load(A0, S0, 0x100)
    guest = Guest(
        (
            *li(T0, 8), shift(T0, T0, 60, left=True), *li(T1, root >> 12), add(T0, T0, T1), csrw("satp", T0),
            *li(S0, virtual), read, addi(S1, A0, 0), *la(T1, root), store(ZERO, T1, 8), *fence, read,
        )
    )  # fmt: skip
    memory = guest.system.memory
    memory.store(root + 8 * 2, 8, 0x8000_0000 >> 2 | 0xCF)  # RAM as it is
    memory.store(root + 8 * 1, 8, 0x8000_0000 >> 2 | 0xCF)  # and once more at `virtual`: the entry that is removed
    memory.store(0x8000_0100, 8, 11)
    guest.run()
    assert guest.get("s1") == 11
    assert (guest.get("s3"), guest.get("s5")) == (13, virtual + 0x100)


@pytest.mark.parametrize("is_swapped", [False, True], ids=["csrw", "csrrw"])
def test_translation_is_on_at_once(*, is_swapped: bool) -> None:
    """Linux turns it on where its code is not mapped, and goes on at stvec: in memory that nothing else maps."""
    root, high = DATA, 0xFFFF_FFC0_0000_0000
    switch = csrw("satp", T0) | (S1 << 7 if is_swapped else 0)
    before = (
        *li(T0, 8), shift(T0, T0, 60, left=True), *li(T1, root >> 12), add(T0, T0, T1),
        *li(T2, -1), shift(T2, T2, 38, left=True), *la(T1, VECTOR - 0x8000_0000), add(T2, T2, T1), csrw("stvec", T2),
        *li(S1, 5), jal(ZERO, 4),
    )  # fmt: skip
    guest = Guest((*before, switch, addi(S6, S6, 1)))
    guest.system.memory.store(root + 8 * 256, 8, 0x8000_0000 >> 2 | 0xCF)
    guest.run()
    where = guest.start + 4 * (len(before) + 1)
    assert [guest.get(name) for name in ("s3", "s4", "s5", "s6")] == [12, where, where, 0]
    assert guest.get("pc") > high
    assert guest.get("satp") == 8 << 60 | root >> 12
    assert guest.get("s1") == (0 if is_swapped else 5)


def add(rd: int, rs1: int, rs2: int) -> int:
    return rs2 << 20 | rs1 << 15 | rd << 7 | 0x33


def console_call(function: int, size: int, address: int) -> tuple[int, ...]:
    registers = (*li(A0, size), *la(A1, address), *li(A2, 0))
    return (*registers, *li(A7, Extension.DBCN), *li(A6, function), ECALL)


def test_the_console_is_written_and_read() -> None:
    read = console_call(1, 3, DATA + 8)
    guest = Guest((*console_call(0, 5, DATA), *KEEP, *read, addi(S3, A1, 0), *read, addi(S4, A1, 0)))
    guest.system.memory.write(DATA, b"hello")
    guest.system.serial_line.type(b"wxyz")
    guest.run()
    assert guest.console == b"hello"
    assert guest.answer == (0, 5)
    assert (guest.get("s3"), guest.get("s4")) == (3, 1)
    assert guest.system.memory.read(DATA + 8, 3) == b"zxy"


@pytest.mark.parametrize("function", [0, 1])
def test_a_console_buffer_outside_memory(function: int) -> None:
    guest = Guest((*console_call(function, 5, 0x1000), *KEEP))
    guest.system.serial_line.type(b"x")
    assert guest.run().answer[0] == INVALID
    assert guest.console == b""


def test_single_characters() -> None:
    guest = Guest(
        (
            *call(Extension.DBCN, 2, ord("a")), *call(Extension.LEGACY_PUTCHAR, 0, ord("b")),
            *call(Extension.LEGACY_GETCHAR), addi(S1, A0, 0), *call(Extension.LEGACY_GETCHAR), addi(S2, A0, 0),
        )
    )  # fmt: skip
    guest.system.serial_line.type(b"k")
    guest.run()
    assert guest.console == b"ab"
    assert guest.answer == (ord("k"), WORD)


@pytest.mark.parametrize("mask", [0, DATA])
def test_the_old_interrupt_calls(mask: int) -> None:
    guest = Guest(
        (
            *la(A0, mask), *li(A7, Extension.LEGACY_SEND_IPI), ECALL, addi(S1, A0, 0), NOP, csrr(S2, "sip"),
            *call(Extension.LEGACY_CLEAR_IPI), NOP, csrr(S3, "sip"),
        )
    )  # fmt: skip
    guest.system.memory.store(DATA, 8, 1)
    guest.run()
    assert guest.get("s1") == 0
    assert (guest.get("s2") & SSI, guest.get("s3") & SSI) == (SSI, 0)


@pytest.mark.parametrize(
    ("call_", "end", "status"),
    [
        (call(Extension.SRST, 0, 0, 0), End.POWER_OFF, 0),
        (call(Extension.SRST, 0, 1, 0), End.RESET, 0),
        (call(Extension.SRST, 0, 2, 1), End.RESET, 1),
        (call(Extension.SRST, 0, 0, 1), End.POWER_OFF, 1),
        (call(Extension.LEGACY_SHUTDOWN), End.POWER_OFF, 0),
    ],
)
def test_the_end(call_: tuple[int, ...], end: End, status: int) -> None:
    guest = Guest((*call_, jal(ZERO, 0)))
    assert guest.system.run(1_000_000_000) is end
    assert guest.system.exit_code == status


@pytest.mark.parametrize(("kind", "reason"), [(3, 0), (0, 2)])
def test_resets_that_do_not_exist(kind: int, reason: int) -> None:
    assert Guest((*call(Extension.SRST, 0, kind, reason), *KEEP)).run().answer[0] == INVALID


def normalised(text: bytes) -> list[str]:
    """Without what differs from build to build, and where the device tree ends up: that depends on its size."""
    lines = text.decode("latin1").replace("\r", "").split("\n")
    lines = [re.sub(r"^U-Boot 20\d\d\.\S+ \(.*\)$", "U-Boot", line) for line in lines]
    return [re.sub(r"^Working FDT set to \w+$", "Working FDT", line) for line in lines]


@pytest.mark.parametrize("name", ["u-boot-riscv64", "u-boot-riscv64-smode"])
def test_u_boot_prints_what_it_prints_under_qemu(name: str) -> None:
    """In M mode it is told of the same devices."""
    facts = machine_facts("virt-riscv64")
    system = System(facts, board_of("virt-riscv64"), Configuration())
    printed = bytearray()

    def sink(data: bytes) -> None:
        printed.extend(data)
        if printed.endswith(b"=> "):
            system.finish(End.UNTIL)

    image = open_image(real_image(name))
    system.board.start(load_image(image, facts, system.memory))
    assert system.run(60_000_000_000, hooks=MachineHooks(console=sink)) is End.UNTIL
    assert normalised(bytes(printed)) == normalised((GOLDEN / f"{name}.console").read_bytes())


@pytest.mark.long  # the gate has each reading of a clock, and probes where code was moved to: test_deferred
def test_the_only_probe_is_on_rdtime_where_u_boot_moved_it_to() -> None:
    """Its four bytes are what tells where the copy is, and they are emulated as the guest wrote them."""
    case = BY_NAME["u-boot-riscv64-smode"]
    image = open_image(case.path)
    (address,) = (
        region.address + at
        for region in image.code_regions
        for at in range(0, region.size - 3, 2)
        if int.from_bytes(image.read(region.address + at, 4), "little") & 0xFFFF_F07F == 0xC010_2073
    )
    plain, probed = run(case), run(case, (f"kinst::{address:#x}:",))
    sites = {site for site, _ in probed.hits}
    assert sites - {address}
    assert probed.console == plain.console
    assert probed.time == plain.time

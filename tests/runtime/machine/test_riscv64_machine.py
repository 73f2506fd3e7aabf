"""virt-riscv64 as a guest sees it: small programs that take every trap and interrupt, and several harts."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.targets.errors import MachineError, UsageError
from kinst.targets.image import Image
from kinst.targets.machines.registry import machine_facts
from tests.runtime.machine.riscv_words import (
    A0,
    A1,
    EBREAK,
    ECALL,
    MRET,
    NOP,
    RA,
    S0,
    S1,
    S2,
    S3,
    S4,
    SFENCE_VMA,
    SRET,
    T0,
    T1,
    T2,
    WFI,
    ZERO,
    addi,
    bne,
    code,
    csrr,
    csrs,
    csrw,
    jal,
    jalr,
    la,
    li,
    load,
    store,
)

CODE, MACHINE_VECTOR, SUPERVISOR_VECTOR = 0x8000_0000, 0x8001_0000, 0x8002_0000
TEST, CLINT, PLIC, UART = 0x10_0000, 0x200_0000, 0xC00_0000, 0x1000_0000
MTIMECMP, MTIME = CLINT + 0x4000, CLINT + 0xBFF8
SATP_SV39 = 8 << 60
MIE, MPIE, SPIE = 1 << 3, 1 << 7, 1 << 5
POWER_OFF = (*li(T0, TEST), *li(T1, 0x5555), store(T1, T0, size=2), WFI)
# A vector says which one it is in s1, keeps cause, address and value in s2 to s4, and ends the run.
REPORT = {
    "m": (addi(S1, ZERO, 3), csrr(S2, "mcause"), csrr(S3, "mepc"), csrr(S4, "mtval"), *POWER_OFF),
    "s": (addi(S1, ZERO, 1), csrr(S2, "scause"), csrr(S3, "sepc"), csrr(S4, "stval")),
}
INTERRUPT = 1 << 63


@dataclass
class Guest:
    """A machine with a program at CODE and vectors that report."""

    program: tuple[int, ...]
    cpus: int = 1
    clock: ClockKind = ClockKind.ICOUNT
    system: System = field(init=False)

    def __post_init__(self) -> None:
        facts = machine_facts("virt-riscv64")
        self.system = System(facts, board_of("virt-riscv64"), Configuration(cpus=self.cpus, clock=self.clock))
        memory = self.system.memory
        memory.write(CODE, code(*li(T0, 0), *la(T0, MACHINE_VECTOR), csrw("mtvec", T0), *self.program))
        memory.write(MACHINE_VECTOR, code(*REPORT["m"]))
        # S mode may use the test device too.
        memory.write(SUPERVISOR_VECTOR, code(*REPORT["s"], *POWER_OFF))
        # No image: the program is in memory already.
        self.system.board.start(Loaded(cast("Image", None), 0, CODE, ()))

    @property
    def start(self) -> int:
        """Where the program begins."""
        return CODE + 4 * 7

    def run(self, timeout: float = 1.0) -> End:
        return self.system.run(int(timeout * 1e9))

    def get(self, name: str) -> int:
        return self.system.cpus[0].registers.get(name)

    @property
    def trap(self) -> tuple[int, int, int, int]:
        """Which vector, cause, address, value."""
        return self.get("s1"), self.get("s2"), self.get("s3") - self.start, self.get("s4")


def enter(privilege: int, *program: int, delegate: int = 0, interrupts: int = 0) -> tuple[int, ...]:
    """Drop to S or U mode and go on with `program`; where that is depends on the words before it."""
    before = (
        *la(T0, SUPERVISOR_VECTOR),
        csrw("stvec", T0),
        *li(T0, delegate),
        csrw("medeleg", T0),
        *li(T0, interrupts),
        csrw("mideleg", T0),
        *li(T0, privilege << 11),
        csrw("mstatus", T0),
        jal(RA, 4),
        addi(RA, RA, 12),
        csrw("mepc", RA),
        MRET,
    )
    return (*before, *program)


ENTERED = 4 * len(enter(0))  # offset of `program`


@pytest.mark.parametrize(
    ("word", "cause", "value"),
    [
        pytest.param(EBREAK, 3, None, id="the guest's own ebreak"),
        pytest.param(ECALL, 11, 0, id="ecall"),
        pytest.param(0xFFFFFFFF, 2, 0xFFFFFFFF, id="illegal: all ones, as sites are armed"),
        pytest.param(0x00006002, 2, 0x6002, id="illegal: two bytes, as sites are armed"),
        pytest.param(0, 2, 0, id="illegal: zero"),
        pytest.param(0x7A002573, 2, 0x7A002573, id="a CSR that does not exist"),
        pytest.param(load(A0, ZERO), 5, 0, id="load from nothing"),
        pytest.param(store(A0, ZERO, 8), 7, 8, id="store to nothing"),
    ],
)
def test_exceptions_of_machine_mode(word: int, cause: int, value: int | None) -> None:
    guest = Guest((NOP, word))
    assert guest.run() is End.POWER_OFF
    assert guest.trap == (3, cause, 4, guest.start + 4 if value is None else value)


def test_a_jump_to_nothing_faults_where_it_went() -> None:
    guest = Guest((*li(T0, 0x100), jalr(ZERO, T0)))
    guest.run()
    assert guest.trap[:2] == (3, 1)
    assert (guest.get("s3"), guest.get("s4")) == (0x100, 0x100)


@pytest.mark.parametrize(("privilege", "cause"), [(0, 8), (1, 9)])
def test_ecall_goes_to_machine_mode_and_remembers_where_from(privilege: int, cause: int) -> None:
    guest = Guest(enter(privilege, ECALL))
    guest.run()
    assert guest.trap == (3, cause, ENTERED, 0)
    assert guest.get("mstatus") >> 11 & 3 == privilege


def test_delegated_exceptions_go_to_supervisor_mode() -> None:
    guest = Guest(enter(0, NOP, EBREAK, delegate=1 << 3))
    guest.run()
    assert guest.trap == (1, 3, ENTERED + 4, guest.start + ENTERED + 4)
    assert not guest.get("sstatus") >> 8 & 1


def test_exceptions_of_machine_mode_are_never_delegated() -> None:
    guest = Guest((*li(T0, 1 << 3), csrw("medeleg", T0), EBREAK))
    guest.run()
    assert guest.trap[:2] == (3, 3)


def test_the_time_csr_counts_and_may_be_denied() -> None:
    allowed = Guest((csrr(A0, "time"), *(NOP,) * 100, csrr(A1, "time"), *POWER_OFF))
    allowed.run()
    assert allowed.get("a1") - allowed.get("a0") == 10  # 100 instructions of 10 ns at 10 MHz
    denied = Guest((csrw("mcounteren", ZERO), *enter(1, csrr(A0, "time"))))
    denied.run()
    assert denied.trap[:2] == (3, 2)


def test_the_timer_interrupts_when_interrupts_are_enabled() -> None:
    guest = Guest(
        (
            *li(S0, MTIMECMP), *li(T0, 20), store(T0, S0),
            *li(T0, 1 << 7), csrs("mie", T0),
            *(NOP,) * 300,
            addi(A0, ZERO, 5),
            *li(T1, MIE), csrs("mstatus", T1),
            addi(A0, ZERO, 6),
            *POWER_OFF,
        )
    )  # fmt: skip
    guest.run()
    assert guest.trap[:2] == (3, INTERRUPT | 7)
    assert guest.get("a0") == 5  # taken before the next instruction


def test_wfi_waits_for_the_timer_without_counting_instructions() -> None:
    guest = Guest(
        (
            *li(S0, MTIMECMP), *li(T0, 5_000_000), store(T0, S0),
            *li(T0, 1 << 7), csrs("mie", T0),
            WFI, csrr(A0, "time"), csrr(A1, "mip"), *POWER_OFF,
        )
    )  # fmt: skip
    guest.run()
    assert guest.get("a0") >= 5_000_000
    assert guest.get("a1") == 1 << 7
    counter = guest.system.engine.counter
    assert counter is not None
    assert counter.executed < 100


def test_a_vectored_interrupt_enters_its_own_place() -> None:
    guest = Guest(
        (
            *la(T0, MACHINE_VECTOR + 0x1001), csrw("mtvec", T0),
            *li(S0, CLINT), addi(T0, ZERO, 1), store(T0, S0, size=2),
            *li(T0, 1 << 3), csrs("mie", T0), csrs("mstatus", T0), NOP, NOP,
        )
    )  # fmt: skip
    guest.system.memory.write(MACHINE_VECTOR + 0x1000 + 4 * 3, code(addi(A0, ZERO, 42), *POWER_OFF))
    guest.run()
    assert guest.get("a0") == 42


def test_the_uart_interrupts_supervisor_mode_through_the_plic() -> None:
    context = PLIC + 0x20_1000
    program = enter(
        1,
        *li(S0, PLIC), addi(T0, ZERO, 1), store(T0, S0, 40, size=2),  # priority of source 10
        *li(S0, PLIC + 0x2080), *li(T0, 1 << 10), store(T0, S0, size=2),  # enabled for S mode
        *li(S0, UART), addi(T0, ZERO, 1), store(T0, S0, 1, size=0),  # received data
        *li(T0, 1 << 9), csrs("sie", T0), addi(T0, ZERO, 2), csrs("sstatus", T0),
        WFI, WFI,
        interrupts=1 << 9,
    )  # fmt: skip
    guest = Guest(program)
    guest.system.memory.write(
        SUPERVISOR_VECTOR,
        code(*REPORT["s"], *li(S0, context), load(A0, S0, 4, size=2), *li(S0, UART), load(A1, S0, size=0), *POWER_OFF),
    )
    guest.system.serial_line.type(b"k")
    guest.run()
    assert guest.trap[:2] == (1, INTERRUPT | 9)
    assert (guest.get("a0"), guest.get("a1")) == (10, ord("k"))


def test_pages_fault_at_the_exact_address_and_permissions_change_with_sfence() -> None:
    root, virtual = 0x8003_0000, 0x4000_0123
    guest = Guest(
        (
            *li(T0, 8), shift_left_60(T0), *li(T1, root >> 12), add(T0, T0, T1), csrw("satp", T0),
            *enter(1, *li(S0, virtual), load(A0, S0, size=0), store(A0, S0, size=0), delegate=1 << 13 | 1 << 15),
        )
    )  # fmt: skip
    table = guest.system.memory
    table.store(root + 8 * 2, 8, 0x8000_0000 >> 2 | 0xCF)  # 1 GiB of RAM as it is
    table.store(root, 8, 0xCF)  # devices
    table.store(root + 8 * 1, 8, 0x8000_0000 >> 2 | 0x43)  # RAM again, read-only and accessed
    assert guest.run() is End.POWER_OFF
    assert (guest.trap[0], guest.trap[1], guest.trap[3]) == (1, 15, virtual)


def shift_left_60(register: int) -> int:
    return 60 << 20 | register << 15 | 1 << 12 | register << 7 | 0x13


def add(rd: int, rs1: int, rs2: int) -> int:
    return rs2 << 20 | rs1 << 15 | rd << 7 | 0x33


def test_harts_start_together_and_know_themselves() -> None:
    park = 0x8004_0000
    guest = Guest(
        (
            csrr(T0, "mhartid"), *la(S0, park), addi(A1, ZERO, 1),
            shift_left_3(T1, T0), add(S0, S0, T1), store(A1, S0),
            bne(T0, ZERO, 4 * (1 + 4 + 2 + 4)),  # all but hart 0 wait
            *la(S0, park), load(T1, S0, 8), load(T2, S0, 16),
            bne(T1, A1, -12), bne(T2, A1, -16), *POWER_OFF[:-1], WFI, jal(ZERO, -4),
        ),
        cpus=3,
    )  # fmt: skip
    assert guest.run() is End.POWER_OFF
    assert [cpu.number for cpu in guest.system.cpus] == [0, 1, 2]


def shift_left_3(rd: int, rs1: int) -> int:
    return 3 << 20 | rs1 << 15 | 1 << 12 | rd << 7 | 0x13


def test_a_software_interrupt_wakes_another_hart() -> None:
    guest = Guest(
        (
            csrr(T0, "mhartid"), bne(T0, ZERO, 4 * 8),
            *li(S0, CLINT), addi(T0, ZERO, 1), store(T0, S0, 4, size=2), WFI, jal(ZERO, -4), NOP,
            *li(T0, 1 << 3), csrs("mie", T0), WFI, csrr(A0, "mip"), *POWER_OFF,
        ),
        cpus=2,
    )  # fmt: skip
    assert guest.run() is End.POWER_OFF
    assert guest.system.current.number == 1
    assert guest.system.current.registers.get("a0") == 1 << 3


@dataclass
class Observer:
    """What acts whenever `period` nanoseconds are over, and is none of the guest's affair."""

    period: int
    due: int = 0

    def deadline(self) -> int:
        return self.due

    def advance(self) -> None:
        self.due += self.period


@dataclass
class Watchdog:
    """What resets the machine at its time, as a device or in place of one."""

    system: System
    due: int | None = 2_000_000

    def deadline(self) -> int | None:
        return self.due

    def advance(self) -> None:
        self.due = None
        self.system.power_off(0, End.RESET)


@pytest.mark.parametrize("program", [(WFI, jal(ZERO, -4)), (jal(ZERO, 0),)], ids=["waiting", "busy"])
@pytest.mark.parametrize("is_device", [True, False])
def test_what_acts_by_itself_may_end_the_run_at_its_time(program: tuple[int, ...], is_device: bool) -> None:  # noqa: FBT001
    guest = Guest(program)
    attach = guest.system.attach_timed if is_device else guest.system.attach_observer
    attach(Watchdog(guest.system))
    attach(Observer(100_000_000, 100_000_000))
    assert guest.run() is End.RESET
    assert guest.system.clock.now() == pytest.approx(2_000_000, rel=0.001)


def test_a_run_that_ends_with_a_fault_ends_the_turn_though_an_observer_is_due() -> None:
    """Two harts write their numbers into one list, and a load that faults lets the other have a turn."""
    log, vector, rounds = 0x8004_0000, 0x8003_0000, 60
    amoadd, add = T1 << 20 | S0 << 15 | 3 << 12 | T2 << 7 | 0x2F, S0 << 20 | T2 << 15 | T2 << 7 | 0x33
    once = (addi(T1, ZERO, 1), amoadd, shift_left_3(T2, T2), add, store(S2, T2, 8), load(T1, ZERO), addi(S3, S3, -1))
    program = (
        *la(T0, vector), csrw("mtvec", T0), csrr(S2, "mhartid"), *la(S0, log), *li(S3, rounds),
        *once, bne(S3, ZERO, -4 * len(once)),
        bne(S2, ZERO, 4 * 5), *li(T1, 2 * rounds), load(T2, S0), bne(T1, T2, -4), jal(ZERO, 4 * 3),
        WFI, jal(ZERO, -4), *POWER_OFF,
    )  # fmt: skip
    written = []
    for period in (None, 1, 3, 50):
        guest = Guest(program, cpus=2)
        memory = guest.system.memory
        memory.write(vector, code(csrr(T0, "mepc"), addi(T0, T0, 4), csrw("mepc", T0), MRET))
        if period is not None:
            guest.system.attach_observer(Observer(period))
        assert guest.run() is End.POWER_OFF
        written.append(memory.read(log + 8, 16 * rounds)[::8])
    assert sorted(written[0]) == [0] * rounds + [1] * rounds
    assert {*written} == {written[0]}


@pytest.mark.parametrize("clock", list(ClockKind))
def test_a_guest_that_waits_for_nothing_ends_with_an_error(clock: ClockKind) -> None:
    guest = Guest((WFI, jal(ZERO, -4)), clock=clock)
    with pytest.raises(MachineError, match="waits for an interrupt"):
        guest.system.run()


def test_a_handler_that_faults_in_its_first_instruction_ends_with_an_error() -> None:
    guest = Guest((csrw("mtvec", ZERO), EBREAK))
    with pytest.raises(MachineError, match="again and again"):
        guest.run()


@pytest.mark.parametrize("clock", list(ClockKind))
def test_a_guest_that_loops_ends_at_the_timeout(clock: ClockKind) -> None:
    assert Guest((jal(ZERO, 0),), clock=clock).run(0.02) is End.TIMEOUT


def test_a_failure_reported_to_the_test_device_is_the_exit_code() -> None:
    guest = Guest((*li(T0, TEST), *li(T1, 7 << 16 | 0x3333), store(T1, T0, size=2), WFI))
    assert guest.run() is End.POWER_OFF
    assert guest.system.exit_code == 7


def test_too_many_cpus_are_refused() -> None:
    with pytest.raises(UsageError, match="1 to 8 CPUs"):
        Guest((NOP,), cpus=9)


def test_sret_returns_to_user_mode() -> None:
    program = enter(1, *li(T0, 0), jal(RA, 4), addi(RA, RA, 16), csrw("sepc", RA), SRET, NOP, NOP, ECALL)
    guest = Guest((SFENCE_VMA, *program))
    guest.run()
    assert guest.trap[:2] == (3, 8)

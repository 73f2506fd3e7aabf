"""How runs end, as a user is told: where the CPUs are, why, and what the guest executed that the emulator lacks."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.assemble import assemble
from kinst.runtime.cli import run
from kinst.targets.arch.amd64 import AMD64
from tests.runtime.machine.riscv_words import ZERO, code, jal
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

SAMPLE = Path(__file__).parents[3] / "samples" / "kernel-riscv64.elf"
BASES = {EM_RISCV: 0x8000_0000, EM_AARCH64: 0x4020_0000, EM_X86_64: 0x20_0000}
SH1ADD, CPOP, VSETVLI = 0x20B5_2533, 0x6025_1513, 0x0D05_7557
LDADD, PACIA, UDF = 0xF820_00E3, 0xDAC1_03E0, 0
BRANCH_TO_SELF = 0x1400_0000


def image(tmp_path: Path, machine: int, text: bytes) -> Path:
    """A function `start` that begins the RAM of its machine."""
    base, path = BASES[machine], tmp_path / "guest.elf"
    path.write_bytes(elf64(machine, base, [Part(".text", base, text, 5)], [Symbol("start", base, len(text))]))
    return path


def words(*instructions: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in instructions)


def kinst_run(*words: str | Path) -> Result:
    return CliRunner().invoke(run, [str(word) for word in words], prog_name="kinst-run")


def told(result: Result) -> list[str]:
    return [line.removeprefix("kinst-run: ") for line in result.stderr.splitlines()]


LOOPS = [
    (EM_RISCV, code(jal(ZERO, 0)), "0x80000000 (guest`start): j 0"),
    (EM_AARCH64, words(BRANCH_TO_SELF), "0x40200000 (guest`start): b #0x40200000"),
    (EM_X86_64, bytes.fromhex("ebfe"), "0x200000 (guest`start): jmp 0x200000"),
]


@pytest.mark.parametrize(("machine", "text", "place"), LOOPS)
@pytest.mark.parametrize("timeout", ["--timeout", "--wall-timeout"])
def test_a_run_that_was_stopped_says_where(tmp_path: Path, machine: int, text: bytes, place: str, timeout: str) -> None:
    path = image(tmp_path, machine, text)
    result = kinst_run(path, timeout, "50ms")
    assert (result.exit_code, result.stdout) == (0, "")
    assert told(result) == [f"{timeout.removeprefix('--')}: CPU 0 runs at {place}"]
    assert kinst_run(path, timeout, "50ms", "-n", "BEGIN", "-q").stderr == ""


def test_probes_do_not_change_where(tmp_path: Path) -> None:
    """Every address told is the original code's."""
    path = image(tmp_path, EM_AARCH64, words(0xD503_201F, 0x17FF_FFFF))  # nop; b start
    result = kinst_run(path, "--timeout", "100ms", "-n", "kinst:::{ @ = count(); }")
    assert told(result)[-1] in (
        "timeout: CPU 0 runs at 0x40200000 (guest`start): nop",
        "timeout: CPU 0 runs at 0x40200004 (guest`start+0x4): b #0x40200000",
    )


def test_a_cpu_that_waits(tmp_path: Path) -> None:
    """hlt with interrupts on, and nobody raises any."""
    path = image(tmp_path, EM_X86_64, assemble(AMD64, "sti; hlt; nop"))
    assert told(kinst_run(path, "--timeout", "50ms", "--cpus", "2")) == [
        "timeout: CPU 0 waits for an interrupt at 0x200002 (guest`start+0x2): nop",
        "timeout: CPU 1 is off",
        "the guest never started CPU 1: it did not find it",
    ]


WFE_LOOP = (0xD503_205F, 0x17FF_FFFF)  # wfe; b .-4
SET_EL2_VECTORS = 0xD51C_C000  # msr vbar_el2, x0
MASK = 0xD503_4FDF  # msr daifset, #15


@pytest.mark.parametrize(
    ("text", "board", "hint"),
    [
        ((MASK, *WFE_LOOP), "virt-arm64", ""),
        ((MASK, *WFE_LOOP, SET_EL2_VECTORS), "virt-arm64", ": it is for EL2, which --machine virt-el2-arm64 has"),
        ((MASK, *WFE_LOOP, SET_EL2_VECTORS), "virt-el2-arm64", ""),
    ],
)
def test_an_image_that_gives_up_ends_the_run(tmp_path: Path, text: Sequence[int], board: str, hint: str) -> None:
    """As hypervisors do where they find no EL2."""
    result = kinst_run(image(tmp_path, EM_AARCH64, words(*text)), "--machine", board, "--timeout", "20s")
    assert result.exit_code == 6
    assert told(result)[0] == f"the guest gave up: it loops over wfe with interrupts masked{hint}"


def test_a_loop_of_wfe_that_an_interrupt_can_end_goes_on(tmp_path: Path) -> None:
    path = image(tmp_path, EM_AARCH64, words(0xD503_42FF, *WFE_LOOP))  # msr daifclr, #2
    result = kinst_run(path, "--timeout", "300ms", "--clock", "icount")
    assert (result.exit_code, told(result)[0][:28]) == (0, "timeout: CPU 0 runs at 0x402")


def test_a_hypervisor_that_does_not_ask_is_told_of_too(tmp_path: Path) -> None:
    """There is nothing at EL1's vectors: the run ends there, and the first undefined instruction says why."""
    result = kinst_run(image(tmp_path, EM_AARCH64, words(SET_EL2_VECTORS)), "--timeout", "5s")
    assert result.exit_code == 5
    why = "msr vbar_el2, x0 needs EL2, which --machine virt-el2-arm64 has"
    assert told(result)[-1] == f"{why}: the guest executed it at 0x40200000 (guest`start)"


def test_a_call_runs_on_one_cpu() -> None:
    result = kinst_run(SAMPLE, "--call", "fibonacci(3)", "--cpus", "2")
    assert (result.exit_code, told(result)) == (
        2,
        ["--call runs a function on one CPU: --cpus is for an image that boots"],
    )


# An unmapped stack; and translation tables where there is no RAM, as the CPU finds at the next fetch.
PUSH = "push %rbp; mov $0x4000000000, %rsp; push %rbp; nop"
TABLES = "nop; mov $0x7000000000, %rax; mov %rax, %cr3; nop; nop"
NO_MEMORY = [
    (PUSH, "CPU 0 at 0x20000b: write of 0x3ffffffff8, code 0x2, which cannot be delivered", "0xb): pushq %rbp"),
    (TABLES, "no RAM at 0x7000000000, where the guest has a translation table", "0xe): nop"),
]


@pytest.mark.parametrize(("program", "why", "place"), NO_MEMORY)
def test_no_memory_is_told_with_the_instruction(tmp_path: Path, program: str, why: str, place: str) -> None:
    """And a run with probes ends as the plain one does."""
    path = image(tmp_path, EM_X86_64, assemble(AMD64, program))
    plain, probed = kinst_run(path), kinst_run(path, "-qn", "kinst:::{ @ = count(); }")
    assert (plain.exit_code, told(plain)[0]) == (5, why)
    assert told(plain)[1].endswith(f" (guest`start+{place}")
    assert (probed.exit_code, told(probed)) == (5, told(plain))


def test_a_machine_that_cannot_be_made_has_no_cpus_to_tell_of(tmp_path: Path) -> None:
    result = kinst_run(image(tmp_path, EM_X86_64, assemble(AMD64, "nop")), "--memory", "4g")
    assert (result.exit_code, len(told(result))) == (1, 1)

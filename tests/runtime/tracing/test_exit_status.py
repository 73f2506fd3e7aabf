"""How runs end, told by the exit status: as asked for, by a panic of the guest's kernel, without what was awaited; and
every way in which a guest resets its machine."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.assemble import assemble
from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.cli import run
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.host.exit_status import exit_status
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from tests.runtime.machine.riscv_words import A0, A1, A6, A7, ECALL, T0, T1, T2, WFI, ZERO, addi, code, jal, li, store
from tests.writers.boot_images import kallsyms
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

PAGE = Path("docs/guide/ends.md")
BASES = {EM_RISCV: 0x8000_0000, EM_AARCH64: 0x4020_0000, EM_X86_64: 0x20_0000}
UART, TEST = 0x1000_0000, 0x10_0000
VARIABLES, TABLES = 0x8000_6000, 0x8000_8000
SAID = b"---[ end Kernel panic - not syncing: so it is ]---\n"
LAST = b"and this is behind it\n"


def kinst_run(*words: str | Path) -> Result:
    return CliRunner().invoke(run, [str(word) for word in words], prog_name="kinst-run")


def guest(folder: Path, machine: int, text: bytes) -> Path:
    path, base = folder / "guest.elf", BASES[machine]
    path.write_bytes(elf64(machine, base, [Part(".text", base, text, 5)], [Symbol("start", base, len(text))]))
    return path


def printed(text: bytes) -> tuple[int, ...]:
    """Instructions that print."""
    return tuple(word for byte in text for word in (addi(T1, ZERO, byte), store(T1, T0, size=0)))


def kernel(folder: Path, *, panics: bool, is_stripped: bool = False) -> Path:
    """What looks like Linux, and prints what its panic ends with. If it `panics`, its variables say so, too, and
    another line comes behind that. If it `is_stripped`, only its kallsyms have names."""
    words = [*li(T0, UART), *printed(SAID)]
    if panics:
        words += [*li(T2, VARIABLES >> 1), 0x0013_9393]  # slli t2, t2, 1: VARIABLES
        words += [store(ZERO, T2, size=2), addi(T1, ZERO, 1), store(T1, T2, 4, size=2), *printed(LAST)]
    text = code(*words, jal(ZERO, 0))
    data = (0xFFFF_FFFF).to_bytes(4, "little") + bytes(12)
    names = {"panic_cpu": VARIABLES, "suppress_printk": VARIABLES + 4, "init_task": VARIABLES + 8}
    functions = [(BASES[EM_RISCV] + 16 * number, "t", f"function_{number}") for number in range(1100)]
    tables = kallsyms([*functions, *((at, "D", name) for name, at in names.items())], TABLES, "7.0")
    parts = [
        Part(".text", BASES[EM_RISCV], text.ljust(16 * 1100, b"\0"), 5),
        Part(".data", VARIABLES, data, 6),
        Part(".rodata", TABLES, tables if is_stripped else b"none", 4),
    ]
    symbols = [Symbol("start", BASES[EM_RISCV], len(text)), *(Symbol(name, at, 4) for name, at in names.items())]
    path = folder / "vmlinux"
    path.write_bytes(elf64(EM_RISCV, BASES[EM_RISCV], parts, [] if is_stripped else symbols))
    return path


@pytest.mark.parametrize("is_stripped", [False, True])
def test_a_panic_ends_the_run_behind_its_last_line(tmp_path: Path, *, is_stripped: bool) -> None:
    path = kernel(tmp_path, panics=True, is_stripped=is_stripped)
    result = kinst_run(path, "--timeout", "1s", "--clock", "icount")
    assert (result.exit_code, result.stdout) == (4, (SAID + LAST).decode())
    assert result.stderr.startswith("kinst-run: guest-panic: CPU 0 runs at 0x8000")
    quiet = kinst_run(path, "--timeout", "1s", "--clock", "icount", "-qn", "BEGIN")
    assert (quiet.exit_code, quiet.stderr) == (4, "")


@pytest.mark.parametrize("is_stripped", [False, True])
def test_what_a_program_prints_is_no_panic(tmp_path: Path, *, is_stripped: bool) -> None:
    result = kinst_run(
        kernel(tmp_path, panics=False, is_stripped=is_stripped), "--timeout", "100ms", "--clock", "icount"
    )
    assert (result.exit_code, result.stdout) == (0, SAID.decode())
    assert result.stderr.startswith("kinst-run: timeout: ")


@pytest.mark.parametrize("words", [("--on-panic", "continue"), ("--os", "none")])
def test_a_run_goes_on_after_a_panic_if_it_is_told_to(tmp_path: Path, words: tuple[str, str]) -> None:
    result = kinst_run(kernel(tmp_path, panics=True), "--timeout", "100ms", "--clock", "icount", *words)
    assert (result.exit_code, result.stdout) == (0, (SAID + LAST).decode())


def test_python_is_told_of_panics(tmp_path: Path) -> None:
    with open_image(kernel(tmp_path, panics=True)) as image:
        with image.trace("BEGIN", machine=Machine(clock="icount")) as trace:
            assert trace.run(seconds=1) is End.GUEST_PANIC
            assert trace.ending is not None
            assert (trace.ending.reason, trace.ending.status) == ("guest-panic", 4)
        with image.trace("BEGIN", machine=Machine(clock="icount", on_panic="continue")) as trace:
            assert trace.run(seconds=0.1) is End.TIMEOUT


def test_a_line_that_does_not_come_is_told(tmp_path: Path) -> None:
    path = kernel(tmp_path, panics=False)
    options = (path, "--timeout", "50ms", "--clock", "icount")
    result = kinst_run(*options, "--until", "login:")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        3,
        "kinst-run: --until login:: no line of the console matched",
    )
    assert kinst_run(*options, "--until", "end Kernel").exit_code == 0
    assert kinst_run(*options, "--until", "login:", "-n", "tick-10ms { exit(9) }").exit_code == 9


AMD64_RESETS = {
    "8042": "mov $0xfe, %al; out %al, $0x64",
    "0xcf9": "mov $0xcf9, %dx; mov $6, %al; out %al, %dx",
    "triple fault": "lidt 0x200040; int3",  # zeros: an IDT without an entry, as reboot=t of Linux
    "triple fault by ud2": "lidt 0x200040; ud2",
}
RESETS = {
    **{name: (EM_X86_64, assemble(AMD64, f"{text}; jmp .").ljust(0x50, b"\0")) for name, text in AMD64_RESETS.items()},
    "PSCI": (EM_AARCH64, assemble(ARM64, "mov w0, #9; movk w0, #0x8400, lsl #16; hvc #0; b .")),
    "sifive_test": (EM_RISCV, code(*li(T0, TEST), *li(T1, 0x7777), store(T1, T0, size=2), WFI, jal(ZERO, -4))),
}


@pytest.mark.parametrize("way", RESETS)
def test_a_reset_is_an_end_of_its_own(tmp_path: Path, way: str) -> None:
    path = guest(tmp_path, *RESETS[way])
    result = kinst_run(path, "-v", "--timeout", "5s")
    assert (result.exit_code, result.stderr.splitlines()) == (0, ["kinst-run: ended: reset"])


def test_sbi_resets_and_switches_off(tmp_path: Path) -> None:
    """The kernel is at 0x80200000, where SBI is answered by the machine; the reason 1 is a failure."""
    base = 0x8020_0000
    for kind, reason, ended in ((0, 0, "power-off"), (1, 0, "reset"), (2, 1, "reset")):
        call = code(
            *li(A7, 0x5352_5354), addi(A6, ZERO, 0), addi(A0, ZERO, kind), addi(A1, ZERO, reason), ECALL, jal(ZERO, 0)
        )  # fmt: skip
        path = tmp_path / "guest.elf"
        path.write_bytes(elf64(EM_RISCV, base, [Part(".text", base, call, 5)], [Symbol("init_task", base, 4)]))
        result = kinst_run(path, "-v", "--timeout", "5s", "--os", "none")
        assert (result.exit_code, result.stderr.splitlines()[-1]) == (reason, f"kinst-run: ended: {ended}")


def test_exit_of_a_program_is_not_lost_by_a_fault(tmp_path: Path) -> None:
    """What cannot be delivered comes in the same turn as exit(); or END says what to exit with."""
    text = assemble(AMD64, "nop; mov $0x4000000000, %rsp; ud2")
    path = guest(tmp_path, EM_X86_64, text)
    assert kinst_run(path).exit_code == 5
    result = kinst_run(path, "-qn", "kinst::start:0 { exit(7) }")
    assert (result.exit_code, result.stderr) == (7, "")
    result = kinst_run(path, "-qn", "END { exit(8) }")
    assert result.exit_code == 8
    assert "which cannot be delivered" in result.stderr


@pytest.mark.parametrize(
    ("end", "said", "code_", "is_unmet", "status"),
    [
        (End.POWER_OFF, None, 0, False, 0),
        (End.POWER_OFF, None, 3, False, 3),
        (End.POWER_OFF, None, 0, True, 3),
        (End.UNTIL, None, 0, False, 0),
        (End.TIMEOUT, None, 0, False, 0),
        (End.TIMEOUT, None, 0, True, 3),
        (End.EXIT, 263, 0, True, 7),
        (End.GUEST_PANIC, None, 0, True, 4),
        (End.GUEST_PANIC, 0, 0, False, 0),
        (End.PANIC, None, 0, False, 1),
        (End.RESET, None, 0, False, 0),
    ],
)
def test_the_status_of_an_end(end: End, said: int | None, code_: int, status: int, *, is_unmet: bool) -> None:
    assert exit_status(end, said=said, guest=code_, is_unmet=is_unmet) == status


def test_the_page_has_every_end() -> None:
    told = set(re.findall(r"^\| `([a-z-]+)`", PAGE.read_text(), re.MULTILINE))
    assert told == {end.value for end in End if end not in (End.STOPPED, End.RETURNED)} | {"fault", "error"}

"""--call: what is understood, what is passed, what comes back, what goes wrong, on each machine's sample kernel."""

from pathlib import Path

import pytest

from kinst.rewriter.assemble import assemble
from kinst.runtime.api import open_image
from kinst.runtime.machine.calling.template import parse_call
from kinst.runtime.machine.configuration import End
from kinst.runtime.trace import Trace
from kinst.runtime.tracing.given import Machine
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import KinstError, MachineError, UsageError
from tests.runtime.tracing.recorder import Recorder
from tests.writers.elf import EM_AARCH64, EM_X86_64, Part, Symbol, elf64

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.mark.parametrize(
    ("text", "function", "arguments"),
    [
        ("f()", "f", ()),
        (" f ( 1 , 0x10,-2 ) ", "f", (1, 16, -2)),
        (r'f("a, b)", "\n\x41\"", ' + "'c')", "f", (b"a, b)", b'\nA"', 99)),
        ("0xffffffff81000000(1)", "0xffffffff81000000", (1,)),
        ("f.isra.0(0b11)", "f.isra.0", (3,)),
        ('f("ä")', "f", ("ä".encode(),)),
    ],
)
def test_calls_are_read(text: str, function: str, arguments: tuple[int | bytes, ...]) -> None:
    call = parse_call(text)
    assert (call.function, call.arguments, call.text) == (function, arguments, text.strip())


@pytest.mark.parametrize(
    "text", ["", "f", "f(", "f(1", "f(1,,2)", "f(x)", 'f("a)', "f(1 2)", "1f()", "f(09)", "(1)", "f(,)"]
)
def test_what_is_no_call_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--call"):
        parse_call(text)


def call(arch: str, text: str, *descriptions: str) -> tuple[Trace, Recorder]:
    recorder = Recorder()
    with open_image(SAMPLES / f"kernel-{arch}.elf") as image:
        trace = image.trace(actions=dict.fromkeys(descriptions, recorder.fired), call=text)
    assert trace.run(seconds=10) is End.RETURNED
    return trace, recorder


@pytest.mark.parametrize("arch", NAMES)
def test_numbers_go_in_and_come_back(arch: str) -> None:
    assert call(arch, "fibonacci(15)")[0].result == 610


@pytest.mark.parametrize("arch", NAMES)
def test_texts_have_memory_of_their_own(arch: str) -> None:
    seed = 0x811C9DC5
    expected = seed
    for byte in b"hello":
        expected = (expected ^ byte) * 16777619 & 0xFFFFFFFF
    result = call(arch, f'hash_bytes({seed}, "hello", 5)')[0].result
    assert result is not None
    assert result & 0xFFFFFFFF == expected


@pytest.mark.parametrize("arch", NAMES)
def test_probes_fire_in_a_call(arch: str) -> None:
    _, recorder = call(arch, "fibonacci(5)", "fbt::fibonacci:entry", "fbt::fibonacci:return", "kinst::fibonacci:0")
    counts = {name.rsplit(":", 1)[1]: count for name, count in recorder.names.items()}
    assert counts["entry"] == counts["return"]
    assert counts["entry"] > 5
    arguments = [arguments[0] for probe, arguments in recorder.arguments if probe == min(recorder.counts)]
    assert 5 in arguments or counts["entry"] == counts.get("0")


@pytest.mark.parametrize("arch", NAMES)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hash_bytes(0, 0x123450000, 1)", "read of 0x123450000, where nothing is"),
        ("0x700000000010()", "fetch of 0x700000000010, where nothing is"),
        ("fibonaci(3)", "nearest are fibonacci"),
    ],
)
def test_what_goes_wrong_is_said(arch: str, text: str, message: str) -> None:
    with pytest.raises(KinstError, match=message):
        call(arch, text)


def test_a_breakpoint_that_nothing_handles() -> None:
    with pytest.raises(MachineError, match="which nothing handles"):
        call("riscv64", "trap_selftest()")


def test_a_timer_that_is_read_is_a_line_and_no_traceback(tmp_path: Path) -> None:
    text, path = 0x4008_0000, tmp_path / "timer.elf"
    code = assemble(ARM64, "mrs x0, cntvct_el0; ret", text)
    path.write_bytes(elf64(EM_AARCH64, text, [Part(".text", text, code, 5)], [Symbol("clock", text, 8)]))
    with open_image(path) as image, pytest.raises(MachineError, match=r"^at 0x40080000: the generic timer: a function"):
        image.call("clock")


def test_a_counter_that_needs_no_device_is_the_machines_time(tmp_path: Path) -> None:
    """amd64's, which begins at 0 with each call."""
    text, path = 0x4008_0000, tmp_path / "counter.elf"
    code = assemble(AMD64, "rdtsc; shl $32, %rdx; or %rdx, %rax; ret", text)
    path.write_bytes(elf64(EM_X86_64, text, [Part(".text", text, code, 5)], [Symbol("clock", text, len(code))]))
    with open_image(path) as image:
        machine = Machine(clock="icount")
        first, second = (image.call("clock", machine=machine) for _ in range(2))
    assert 0 < first == second < 1000

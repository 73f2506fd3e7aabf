"""What a guest and its user would not forgive: breakpoints and faults of the guest's own among probes, interrupts at
any instruction and CPUs in any turn, files patched once and run later, calls into kernels that are not booted."""

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import kinst.runtime.machine.clock
import kinst.runtime.machine.system
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.write import write_image
from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.machine.configuration import End
from kinst.targets.errors import KinstError
from kinst.targets.probe import parse_probe_names
from tests.gated import long_where, taking_turns
from tests.images import CACHE, real_image
from tests.system.cases import BY_NAME, CASES, SAMPLES, Case, shown
from tests.system.plain import drawn_functions, manifest_of, plain_run
from tests.system.runs import Run, run
from tests.system.state import differences

# The gate has one real image; those that move themselves it has in memory (tests/runtime/tracing/test_guest.py).
each_small_case = pytest.mark.parametrize(
    "case",
    long_where(CASES, lambda case: not case.is_sample and case.image != "gnumach"),
    ids=lambda case: case.image,
)
each_sample_first = pytest.mark.parametrize(
    "case", long_where(CASES, lambda case: not case.is_sample), ids=lambda case: case.image
)
each_sample = pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)


def fired(case: Case, descriptions: Sequence[str]) -> tuple[Run, list[str]]:
    """A run and its probes in the order in which they fired, as ``function:name``."""
    names: list[str] = []
    return run(case, descriptions, action=lambda hit: names.append(f"{hit.probe.function}:{hit.probe.name}")), names


# -- the guest's own traps ---------------------------------------------------------------------------------------------


def word(done: Run, symbol: str) -> int:
    """A 32-bit variable of the guest."""
    address = done.guest.loaded.image.symbols.address_of(symbol)
    assert address is not None
    physical = done.guest.loaded.physical(address)
    assert physical is not None
    return done.guest.system.memory.load(physical, 4)


@each_sample
def test_the_guests_breakpoints_reach_the_guest_among_probes(case: Case) -> None:
    patched, names = fired(case, ["kinst::trap_selftest:", "fbt::trap_breakpoint:", "fbt::trap_handler:"])
    assert word(patched, "breakpoints") == 3
    assert names.count("trap_breakpoint:entry") == names.count("trap_breakpoint:return") == 3
    assert differences(plain_run(case), patched) == []
    # The three breakpoints stand between probed instructions of one loop.
    own = [name for name in names if name.startswith("trap_selftest")]
    assert own[0] == "trap_selftest:0" or "trap_selftest:4" in own[:2]
    assert len(own) > 20


@each_sample
def test_a_fault_in_a_trampoline_is_the_sites(case: Case) -> None:
    """The kernel looks the faulting address up in its table, which knows the original instruction only."""
    probes = ["kinst::copyin_word:", "kinst::copyout_word:", "fbt::trap_fault:"]
    patched, names = fired(case, probes)
    assert word(patched, "fixups") == 2
    assert differences(plain_run(case), patched) == []
    once = ["trap_fault:entry", "trap_fault:return"]
    order = [name for name in names if name in once or name.endswith("_word:0")]
    assert order == ["copyin_word:0", "copyin_word:0", *once, "copyout_word:0", *once]


@pytest.mark.turns
@each_sample
def test_probes_in_interrupt_handlers_fire_between_probes_of_what_is_interrupted(case: Case) -> None:
    probes = ["kinst::trap_handler:", "kinst::clock_tick:", "kinst::hash_bytes:", "kinst::memset:", "kinst::fibonacci:"]
    patched, names = fired(case, probes)
    assert differences(plain_run(case), patched) == []
    functions = [name.partition(":")[0] for name in names]
    around = {functions[index - 1] for index in range(1, len(functions)) if names[index].startswith("trap_handler:0")}
    assert functions.count("clock_tick") > 20
    assert around & {"hash_bytes", "memset", "fibonacci"}


LATER_SEEDS = [pytest.param(case, seed, marks=pytest.mark.long) for case in SAMPLES for seed in range(2, 6)]


@pytest.mark.parametrize(("case", "seed"), [*taking_turns(SAMPLES, range(2)), *LATER_SEEDS], ids=shown)
def test_interrupts_at_any_instruction_and_cpus_in_any_turn(
    case: Case, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower the guest, the more ticks come in its way; a turn is a few dozen instructions."""
    chance = random.Random(f"{case.image} {seed}")
    instruction = chance.choice((7, 37, 61, 100, 230, 400))
    turn = instruction * chance.randrange(40, 400)
    monkeypatch.setattr(kinst.runtime.machine.clock, "NANOSECONDS_PER_INSTRUCTION", instruction)
    monkeypatch.setattr(kinst.runtime.machine.system, "_SLICE", turn)
    monkeypatch.setattr(kinst.runtime.machine.system, "_TURN", turn)
    cpus = chance.choice((2, 3, 4))
    plain = plain_run.__wrapped__(case, cpus)
    patched = run(case, ["kinst:::", "fbt:::"], cpus=cpus)
    assert differences(plain, patched) == []


@pytest.mark.turns
@each_sample
@pytest.mark.parametrize("cpus", [pytest.param(1, marks=pytest.mark.long), 3])
def test_real_time(case: Case, cpus: int) -> None:
    """By the host's clock no two runs are alike, but the kernel leaves the same memory and console behind."""
    patched = run(case, ["fbt:::", "kinst::k*:"], cpus=cpus, clock="host")
    unlike = ("CPU", "time")
    assert [text for text in differences(plain_run(case, cpus), patched) if not text.startswith(unlike)] == []


# -- files and commands ------------------------------------------------------------------------------------------------


@pytest.mark.turns
@each_sample_first
def test_a_file_patched_before_and_an_image_patched_in_memory_fire_alike(case: Case, tmp_path: Path) -> None:
    description = "fbt:::entry"
    _, plan = plan_probes(open_source(Source(case.path)), list(parse_probe_names(description)))
    file = tmp_path / case.path.name  # the boot loader tells the guest the name
    write_image(plan, file)
    in_memory = run(case, [description])
    in_file = run(case, image=file)
    by_probe: Counter[int] = Counter()
    for (_, identifier), count in in_memory.hits.items():
        by_probe[identifier] += count
    assert Counter(record.probe.identifier for record in in_file.trace.take()) == by_probe
    assert (in_file.end, in_file.time, in_file.console) == (in_memory.end, in_memory.time, in_memory.console)
    assert differences(plain_run(case), in_file) == []


def command(name: str, *arguments: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """One of our commands as it is installed beside Python."""
    program = Path(sys.executable).parent / name
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False)


@pytest.mark.long  # the gate does it as README and the tutorials show it
@pytest.mark.parametrize(
    "name",
    ["opensbi-1.6", "gnumach", "opensbi-1.1", "u-boot-riscv64", "u-boot-arm64"],
)
def test_the_main_job_on_real_images(name: str, tmp_path: Path) -> None:
    """Rewrite, run, explain, restore, in real time, as the issue has it."""
    case, patched, restored = BY_NAME[name], tmp_path / "p.elf", tmp_path / "r.elf"
    probes = [f"kinst::{function}:" for function in drawn_functions(case)[:8]]
    asked = [part for probe in (*probes, "fbt:::entry") for part in ("--probe", probe)]
    assert command("kinst-rewrite", case.path, *asked, "-o", patched).returncode == 0
    console, hits = tmp_path / "console", tmp_path / "hits"
    limits = ("--until", case.until or "", "--timeout", "60")
    ran = command("kinst-run", patched, *limits, "--console", console, "-o", hits)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr.count("matched") == len(probes) + 1
    assert case.until is not None
    assert case.until.strip("^ ") in console.read_text(errors="replace")
    assert hits.read_text().count("\n") > 10_000
    explained = command("kinst-diff", case.path, patched, "--format", "json")
    assert explained.returncode == 0, explained.stdout
    assert json.loads(explained.stdout)["explained"] is True
    assert command("kinst-rewrite", patched, "--restore", "-o", restored).returncode == 0
    assert restored.read_bytes() == case.path.read_bytes()


@pytest.mark.parametrize("attempt", [3, pytest.param(0, marks=pytest.mark.long)])
def test_control_c_and_a_reader_that_goes_away_leave_whole_lines(attempt: int, tmp_path: Path) -> None:
    """A run full of probes is cut off at several places."""
    program = Path(sys.executable).parent / "kinst-run"
    image = BY_NAME["u-boot-riscv64"].path
    hits = tmp_path / f"hits{attempt}"
    command = [str(part) for part in (program, image, "-n", "fbt:::", "-o", hits, "--console", tmp_path / "console")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not hits.exists() or hits.stat().st_size < 100_000 * attempt + 1:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"Traceback" not in errors
    lines = hits.read_bytes().split(b"\n")
    assert lines[-2:] == [b"", b""]  # whole lines, and dtrace's blank one at the end
    del lines[-2:]
    assert all(re.fullmatch(rb"  0 +\d+ +\w+:(entry|return) ", line) for line in lines[1:])


def test_a_timeout_is_of_the_machine(tmp_path: Path) -> None:
    """10 ns an instruction: two hundred thousand instructions and not one more."""
    case = BY_NAME["opensbi-1.6"]
    hits: Counter[int] = Counter()
    with open_image(case.path) as image:
        trace = image.trace(
            actions={"kinst:::": lambda hit: hits.update([hit.identifier])}, machine=Machine(clock="icount")
        )
    assert trace.run(seconds=0.002) is End.TIMEOUT
    assert trace.guest.system.clock.now() == 2_000_000
    assert 195_000 < sum(hits.values()) <= 200_000


# -- calls -------------------------------------------------------------------------------------------------------------


def called(path: Path, text: str, descriptions: tuple[str, ...] = ()) -> tuple[str, int]:
    """What a call comes to, value or error, and how many probes fired."""
    hits: Counter[int] = Counter()
    actions = dict.fromkeys(descriptions, lambda hit: hits.update([hit.identifier]))
    with open_image(path) as image:
        trace = image.trace(actions=actions, call=text, machine=Machine(clock="icount"))
    try:
        end = trace.run(seconds=0.01).value
    except KinstError as error:
        end = str(error)
    return end if trace.result is None else f"{trace.result:#x}", sum(hits.values())


@pytest.mark.turns
@each_small_case
def test_calls_come_to_the_same_among_probes(case: Case) -> None:
    """Of functions drawn by lot, with nothing but texts for arguments: to whatever that leads."""
    manifest = manifest_of(case, "kinst:::")
    instructions = np.bincount(manifest.sites["function"], minlength=len(manifest.functions))
    small = np.flatnonzero((instructions >= 4) & (instructions < 40))
    names = [manifest.function_name(row) for row in small.tolist()]
    outcomes = set()
    for name in random.Random(case.image).sample(names, 6):
        text = f'{name}("one", "two", "three", "four")'
        plain, _ = called(case.path, text)
        patched, hits = called(case.path, text, (f"kinst::{name}:",))
        assert patched == plain
        assert hits > 0
        outcomes.add(plain)
    assert len(outcomes) > 1


@pytest.mark.parametrize(
    ("name", "text", "result"),
    [
        ("gnumach", 'strlen("hello, world")', 12),
        ("gnumach", 'strcmp("same", "same")', 0),
        ("kernel-arm64", "fibonacci(12)", 144),
    ],
)
def test_a_call_at_a_kernels_own_addresses(name: str, text: str, result: int) -> None:
    function = text.partition("(")[0]
    plain, _ = called(BY_NAME[name].path, text)
    patched, hits = called(BY_NAME[name].path, text, (f"kinst::{function}:", f"fbt::{function}:"))
    assert plain == patched == f"{result:#x}"
    assert hits > 3


@each_sample
def test_a_call_that_runs_out_of_stack_says_so_among_probes(case: Case) -> None:
    """The store that fails is one that is emulated on arm64 and riscv64."""
    plain, _ = called(case.path, "fibonacci(100000000)")
    patched, hits = called(case.path, "fibonacci(100000000)", ("kinst::fibonacci:",))
    assert "where nothing is" in plain
    assert patched == plain
    assert hits > 10_000


@pytest.mark.skipif(not (CACHE / "linux-amd64" / "image.elf").exists(), reason="Linux is not in the cache")
def test_a_call_into_linux() -> None:
    path = real_image("linux-amd64")
    assert called(path, 'strlen("hello")', ("kinst::strlen:",))[0] == "0x5"

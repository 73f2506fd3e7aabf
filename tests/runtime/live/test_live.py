"""kinst-run --on: the same program under a real QEMU and in our own machine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from kinst.rewriter import rewriting
from kinst.rewriter.shell.cache_home import own_folder
from kinst.runtime.live.guest import LiveGuest, Started
from kinst.runtime.live.panic import ConsolePanic
from kinst.runtime.machine.configuration import ClockKind
from kinst.runtime.machine.idle_machine import IdleMachine
from tests.commands.in_process import command, kinst_run
from tests.runtime.live.qemus import LAUNCH, ends, needs, on
from tests.runtime.live.ticks import unexplained
from tests.runtime.tracing.test_foreign_stores import BASES, Spoiler
from tests.samples.machines import MACHINES, Sample, expected_console

COUNTED = "fbt:::entry { @calls[probefunc] = count(); }"
CREATED = "fbt::vfs_*:entry { @calls[probefunc] = count(); }"  # whatever the time


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture(params=[*MACHINES.values()], ids=[*MACHINES])
def sample(request: pytest.FixtureRequest) -> Sample:
    """A machine's sample kernel, if QEMU has the machine."""
    found: Sample = request.param
    needs(found.qemu[0])
    return found


def traced(*words: object) -> tuple[Mapping[tuple[Any, ...], Any], str]:
    """The values of the only aggregation by key, and the guest's console."""
    done = kinst_run("-q", "--format", "json", *words)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)["dtrace"]
    (found,) = document["aggregations"]
    console = "".join(one["console"] for one in document["probes"] if "console" in one)
    return {tuple(map(_plain, one["keys"])): one["value"] for one in found["aggregation-data"]}, console


def _by_name(counts: Mapping[tuple[Any, ...], Any]) -> dict[str, int]:
    return {name: count for (name,), count in counts.items()}


def _plain(key: Any) -> Any:
    """A key, which is a list if it is a stack."""
    return json.dumps(key) if isinstance(key, list) else key


@pytest.mark.each_machine
def test_counts_are_those_of_our_machine(sample: Sample) -> None:
    there, console = traced("--on", on(sample), "-n", COUNTED, sample.image)
    here, _ = traced("--clock", "icount", "-n", COUNTED, sample.image)
    assert console.replace("\r\n", "\n") == expected_console(1)
    assert len(there) > 0.8 * len(here)  # few functions begin with what no jump may cover
    assert unexplained(_by_name(there), _by_name(here)) == {}


def test_records_are_those_of_our_machine(sample: Sample) -> None:
    """In their order, with their arguments: each has a number, and one that follows from all before it."""
    program = """
        BEGIN { before = (uint64_t)0; }
        fbt::vfs_get:entry { n++; before += n * arg1; }
        fbt::vfs_get:entry { @[n, before, arg0, arg1] = count(); }
    """
    there, _ = traced("--on", on(sample), "-n", program, sample.image)
    assert len(there) == 176
    assert there == traced("-n", program, sample.image)[0]


@pytest.mark.parametrize(
    "program",
    [
        "fbt::vfs_get:entry { @[caller, execname, pid] = count(); }",
        "fbt::vfs_get:entry { @[stack(5), cpu] = count(); }",
    ],
    ids=["caller", "stack"],
)
def test_who_called_is_what_it_is_in_our_machine(sample: Sample, program: str) -> None:
    assert traced("--on", on(sample), "-n", program, sample.image) == traced("-n", program, sample.image)


def test_a_caller_is_right_or_unknown(sample: Sample) -> None:
    """Within a function it is on the stack, and what is in another page is not recorded."""
    program = "kinst::vfs_create: { @[probename, caller] = count(); }"
    there, _ = traced("--on", on(sample), "-n", program, sample.image)
    here, _ = traced("-n", program, sample.image)
    known = {key: count for key, count in there.items() if key[1]}
    assert all(count <= here[key] for key, count in known.items())
    assert sum(known.values()) > 0.2 * sum(here.values())
    totals = _by_function(there)
    assert totals == {name: count for name, count in _by_function(here).items() if name in totals}


def test_each_cpu_and_each_thread_has_its_own_hits(sample: Sample) -> None:
    machine = f"{on(sample)} -smp 3"
    program = "fbt::vfs_*:entry, fbt::work_*:entry { @[probefunc, cpu] = count(); }"
    there, _ = traced("--on", machine, "-n", program, sample.image)
    here, _ = traced("--cpus", 3, "-n", program, sample.image)
    assert {cpu for _, cpu in there} == {0, 1, 2}
    # Who takes which piece of work depends on the time, and some functions begin with what no jump covers.
    totals = _by_function(there)
    assert totals == {name: number for name, number in _by_function(here).items() if name in totals}
    program = """
        fbt::work_run:entry { self->cpu = cpu + 1; }
        fbt::vfs_get:entry /self->cpu/ { @[self->cpu == cpu + 1] = count(); }
    """
    assert traced("--on", machine, "-n", program, sample.image)[0] == {(1,): 176}


def _by_function(counts: Mapping[tuple[Any, ...], Any]) -> Mapping[str, int]:
    found = Counter[str]()
    for (name, _), number in counts.items():
        found[name] += number
    return found


def test_a_ring_that_is_too_small_tells_what_it_lost(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinst.runtime.live.keeping._MOST_RECORDS", 4)
    done = kinst_run("--on", on(sample), "-n", "fbt::vfs_get:entry { @[timestamp > 0] = count(); }", sample.image)
    drops = sum(int(one.split()[1]) for one in done.stderr.splitlines() if one.startswith("dtrace: "))
    kept = int(done.stdout.split()[-1])
    assert (kept + drops, drops > 0) == (176, True), done.stderr


def test_with_lossless_nothing_is_lost(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinst.runtime.live.keeping._MOST_RECORDS", 4)
    program = "fbt::vfs_get:entry { @[timestamp > 0, arg1] = count(); }"
    done = kinst_run("-q", "--lossless", "--on", on(sample), "-n", program, sample.image)
    assert "kinst-run" not in done.stderr
    assert "drop" not in done.stderr
    assert sum(int(one.split()[-1]) for one in done.stdout.splitlines() if one.split()[:1] == ["1"]) == 176


def test_a_guest_does_not_wait_for_ever(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinst.runtime.live.keeping._MOST_RECORDS", 4)
    monkeypatch.setattr("kinst.runtime.tracing.standalone.findings._LOOKS", 1)
    done = kinst_run(
        "--lossless", "--on", on(sample), "-n", "fbt::vfs_get:entry { @[timestamp > 0] = count(); }", sample.image
    )
    assert done.stderr.count("the guest would have stood still") == 1
    drops = sum(int(one.split()[1]) for one in done.stderr.splitlines() if one.startswith("dtrace: "))
    assert (int(done.stdout.split()[-1]) + drops, drops > 0) == (176, True), done.stderr


def test_lossless_is_for_qemu(sample: Sample) -> None:
    done = kinst_run("--lossless", "-n", "fbt::vfs_get:entry { @ = count(); }", sample.image)
    assert (done.returncode, done.stderr.count("nothing is lost in our own machine")) == (2, 1)


def test_a_second_run_takes_the_image_of_the_first(sample: Sample) -> None:
    first = traced("--on", on(sample), "-n", CREATED, sample.image)[0]
    (kept,) = own_folder("live").glob("*.elf")
    before = kept.stat().st_ino
    assert traced("--on", on(sample), "-n", CREATED, sample.image)[0] == first
    assert kept.stat().st_ino == before
    kept.write_bytes(kept.read_bytes()[:-4096])
    assert traced("--on", on(sample), "-n", CREATED, sample.image)[0] == first
    assert kept.stat().st_ino != before


@pytest.mark.parametrize("ending", ["", 'END { printf("the end"); }'], ids=["", "END"])
def test_a_second_run_finds_no_functions(ending: str, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """END is a name too, which means nothing in the image: why is kept with what names mean."""
    words = ("--on", on(sample), "-n", CREATED + ending, sample.image)
    first = traced(*words)[0]
    (plan,) = own_folder("live").glob("*.plan")
    with monkeypatch.context() as patched:
        patched.setattr(rewriting, "open_program", lambda *_words, **_named: pytest.fail("it was kept"))
        assert traced(*words)[0] == first
    whole = plan.read_bytes()
    for damaged in (b"", whole[:-9], bytes(8)) if ending else (whole[:3],):
        plan.write_bytes(damaged)
        assert traced(*words)[0] == first
        assert plan.read_bytes() == whole


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-n", "fbt:::entry { ustack(); }"), "fbt:::entry: ustack(): is not recorded under QEMU: leave --on out"),
        (("-n", "fbt:::entry { @[errno] = count(); }"), "errno: is not recorded"),
        (("-q", "-n", "fbt::vfs_read:return { @ = count(); }"), "nothing left: 1 of 1 sites cannot be jumps"),
        (
            ("-q", "-n", "fbt::vfs_get:entry, fbt::vfs_read:return { trace(1); } fbt::vfs_read:return {}"),
            "fbt::vfs_read:return: has no probe under QEMU: 1 of 2 sites cannot be jumps",
        ),
    ],
)
def test_what_cannot_be_is_one_line(words: tuple[str, ...], why: str) -> None:
    sample = MACHINES["riscv64"]
    needs(sample.qemu[0])
    done = kinst_run("--on", "qemu", *words, sample.image)
    assert done.returncode in (1, 2)
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_qemus_own_refusal_is_shown() -> None:
    sample = MACHINES["riscv64"]
    needs(sample.qemu[0])
    done = kinst_run("--on", "qemu-system-riscv64 -M nonsense", sample.image)
    assert (done.returncode, done.stderr) == (1, "kinst-run: qemu-system-riscv64: unsupported machine type\n")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("qemu-system-aarch64 -M none", "this board has no memory for an image"),
        ("qemu-system-aarch64 -M virt", "said nothing: perhaps its CPU is not one for this image"),
        ("qemu-system-aarch64 -M raspi3b", "and this board's memory is at 0x0-0x3f002fff: choose a board"),
    ],
)
def test_a_board_that_cannot_have_the_image_is_told_before_it_begins(command: str, why: str) -> None:
    needs(command.split()[0])
    done = kinst_run("-q", "--on", command, "-n", COUNTED, MACHINES["arm64"].image)
    assert done.returncode in (1, 2)
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("at", "what"), [(0x8_0004, "a trampoline at 0x80080004"), (0x9_0000, "a counter at 0x80090000")]
)
def test_a_guest_that_stores_there_is_found_out(at: int, what: str, tmp_path: Path) -> None:
    needs(MACHINES["riscv64"].qemu[0])
    out, base = tmp_path / "alone.elf", BASES["riscv64"]
    plain = Spoiler(at, value=1010, before=100_000).built("riscv64", tmp_path)
    places = ("--trampoline-base", f"{base + 0x8_0000:#x}", "--data-base", f"{base + 0x9_0000:#x}")
    done = command("rewrite", plain, "--standalone", *places, "--probe", "fbt::work:entry", "-q", "-o", out)
    assert done.returncode == 0, done.stderr
    limit = ("--wall-timeout", "20s")  # its stack of illegal instructions has no end
    done = kinst_run("-q", "--on", "qemu", *limit, "-n", "fbt::work:entry { @ = count(); }", out)
    assert done.returncode == 1
    assert done.stderr.startswith(f"kinst-run: the guest itself stored to {what}: what it did and counted then means")


# -- whoever is killed ------------------------------------------------------------------------------------------------


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A run that does not end by itself, U-Boot's prompt being none that anybody types at; and its QEMU's number."""
    needs(MACHINES["riscv64"].qemu[0])
    words = [
        "--on",
        "qemu-system-riscv64 -M virt -m 64M",
        "-n",
        'BEGIN { printf("begun"); } END { printf("over"); }',
    ]
    image = tmp_path / "loop.elf"
    _make_loop(image)
    command = [sys.executable, "-c", LAUNCH, *words, str(image)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            yield run, _child(run.pid)
        finally:
            run.kill()


def _make_loop(path: Path) -> None:
    """What jumps to itself."""
    source = path.with_suffix(".s")
    source.write_text(".globl _start\n_start: j _start\n")
    compiler = MACHINES["riscv64"].compiler
    needs(compiler)
    place = "-Wl,-Ttext=0x80000000,--build-id=none"
    subprocess.run([compiler, "-nostdlib", "-static", "-no-pie", place, str(source), "-o", str(path)], check=True)


def _child(process: int) -> int:
    """Its QEMU."""
    children = Path(f"/proc/{process}/task/{process}/children")
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for child in children.read_text().split():
            with suppress(FileNotFoundError):  # it has ended
                if Path(f"/proc/{child}/comm").read_text().startswith("qemu"):
                    return int(child)
        time.sleep(0.02)
    raise AssertionError("no QEMU")


def test_a_qemu_that_is_killed_ends_the_run(endless: tuple[subprocess.Popen[str], int]) -> None:
    run, qemu = endless
    assert run.stdout is not None
    run.stdout.readline()  # it has begun
    os.kill(qemu, signal.SIGKILL)
    output, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "over" in output
    assert errors.splitlines()[-1] == "kinst-run: qemu-system-riscv64: it ended with -9, and said nothing"


def test_qemu_ends_with_us(endless: tuple[subprocess.Popen[str], int]) -> None:
    run, qemu = endless
    run.kill()
    assert ends(qemu)


def test_ctrl_c_ends_both(endless: tuple[subprocess.Popen[str], int]) -> None:
    run, qemu = endless
    assert run.stdout is not None
    run.stdout.readline()  # it has begun
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 0
    assert "over" in output
    assert ends(qemu)


def test_a_report_is_of_the_guests_time(tmp_path: Path) -> None:
    """Its records are from between the beginning and the end."""
    sample, page = MACHINES["riscv64"], tmp_path / "report.html"
    needs(sample.qemu[0])
    program = "BEGIN { trace(timestamp); } fbt::vfs_create:entry { trace(timestamp); } END { trace(timestamp); }"
    done = kinst_run("-q", "--on", on(sample), "--format", "json", "--report", page, "-n", program, sample.image)
    assert done.returncode == 0, done.stderr
    probes = json.loads(done.stdout)["dtrace"]["probes"]
    times = [one["output"][0]["value"] for one in probes if "output" in one]
    assert times == sorted(times)
    assert len(times) == 25
    text = page.read_text()
    assert f"QEMU: {on(sample)}" in text
    assert "vfs_create" in text


def test_making_the_image_takes_no_time_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0
    monkeypatch.setattr("time.monotonic_ns", lambda: now)
    machine = IdleMachine(ClockKind.HOST)

    def start(_sites: object) -> Started:
        nonlocal now
        now += 15_000_000_000
        return cast(Started, None)

    now = 5
    guest = LiveGuest(machine, start, cast(ConsolePanic, None), None, None)
    guest.begin(None)
    assert machine.now() == 5


def test_a_run_that_is_refused_writes_no_table(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    needs(MACHINES["riscv64"].qemu[0])
    words = ("--format", "parquet", "-o", tmp_path / "out", "-n", "fbt::vfs_read:return { trace(1); }")
    done = kinst_run("-q", "--on", "qemu", *words, MACHINES["riscv64"].image)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)  # pyarrow printed what it failed at, after that
    assert "nothing left: 1 of 1 sites cannot be jumps" in done.stderr

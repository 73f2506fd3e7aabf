"""kinst-run --read gdb:... --every T: a guest that runs, and stands still only while it is read."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import open_image
from tests.runtime.attached.programs import COMPILERS
from tests.runtime.readout.qemu import Emulator, emulator
from tests.runtime.readout.standalone import PLACES, kinst_run

HERE = Path(__file__).parent
LAUNCH = "import sys; from kinst.runtime.cli import run; sys.exit(run(prog_name='kinst-run'))"
MACHINE = "riscv64"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that calls `work` again and again, with one number after another."""
    compiler, path = COMPILERS[MACHINE], tmp_path_factory.mktemp("endless") / "endless"
    if shutil.which(compiler) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {compiler}"
        pytest.skip(f"no {compiler}")
    options = ("-O1", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-mcmodel=medany")
    place = f"-Wl,-Ttext-segment={PLACES[MACHINE]:#x},--build-id=none"
    subprocess.run([compiler, *options, place, str(HERE / "endless.c"), "-o", str(path)], check=True)
    return path


def standalone(plain: Path, name: str, *words: str) -> Path:
    """The program, standalone."""
    path = plain.parent / name
    base = f"{PLACES[MACHINE] + 0x80000:#x}"
    words = ("--standalone", "--trampoline-base", base, "--probe", "fbt::work:entry", *words, "-o", str(path))
    result = CliRunner().invoke(rewrite, [str(plain), *words])
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture(scope="module")
def image(plain: Path) -> Path:
    """It counts each call."""
    return standalone(plain, "counting")


@contextmanager
def running(image: Path, folder: Path) -> Iterator[Emulator]:
    """It runs."""
    with emulator(MACHINE, folder, "-device", f"loader,file={image},cpu-num=0") as qemu:
        yield qemu


@pytest.fixture
def guest(image: Path, tmp_path: Path) -> Iterator[Emulator]:
    with running(image, tmp_path) as qemu:
        yield qemu


@contextmanager
def reading(image: Path, guest: Emulator, program: str) -> Iterator["subprocess.Popen[str]"]:
    """kinst-run, reading again and again."""
    words = (image, "--read", guest.source, "--every", "20ms", "-qn", program)
    path = os.environ | {"PYTHONPATH": str(HERE.parents[2] / ".typing")}
    command = [sys.executable, "-c", LAUNCH, *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=path)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_counts_grow_from_reading_to_reading_and_the_guest_goes_on(image: Path, guest: Emulator) -> None:
    program = """
        fbt::work:entry { @ = count(); }
        tick-50ms { printa("%@d\\n", @); }
        tick-50ms /++n == 8/ { exit(0); }
    """
    result = kinst_run(image, "--read", guest.source, "--every", "20ms", "-qn", program)
    assert (result.exit_code, result.stderr) == (0, "")
    counts = [int(line) for line in result.stdout.split()]
    assert counts == sorted(counts)
    assert counts[-1] > 0
    guest.wait_for("running")
    once = kinst_run(image, "--read", guest.source, "-qn", 'fbt::work:entry { @ = count(); } END { printa("%@d", @); }')
    assert int(once.stdout) > counts[-1]


def test_each_record_comes_once_and_in_order(plain: Path, tmp_path: Path) -> None:
    image = standalone(plain, "recording", "--action", "record:arg0", "--ring", "16384")
    program = """
        BEGIN { last = (int64_t)0; n = 0; }
        fbt::work:entry /n++ && arg0 != last + 1/ { printf("%d behind %d", arg0, last); }
        fbt::work:entry { last = arg0; }
        tick-50ms /n > 10/ { exit(0); }
        END { printf("%d", n > 10); }
    """
    with running(image, tmp_path) as qemu:
        result = kinst_run(image, "--read", qemu.source, "--every", "20ms", "-qn", program)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "1\n", "")
        qemu.wait_for("running")


TICKING = 'fbt::work:entry { @ = count(); } tick-20ms { printf("tick\\n"); } END { printa("end %@d\\n", @); }'


def test_an_interrupt_ends_it_with_what_there_is(image: Path, guest: Emulator) -> None:
    with reading(image, guest, TICKING) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "tick\n"
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, "")
    last = out.split()[-2:]
    assert last[0] == "end"
    assert int(last[1]) > 0
    guest.wait_for("running")


def test_a_guest_that_goes_away_ends_it_with_what_there_is(image: Path, guest: Emulator) -> None:
    with reading(image, guest, TICKING) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "tick\n"
        guest.tell("quit")
        out, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out.split()[-2] == "end"
    (line,) = error.splitlines()
    assert line.startswith(f"kinst-run: {guest.source}: ")


def test_an_image_that_was_loaded_elsewhere_is_found_through_a_stub(image: Path, tmp_path: Path) -> None:
    """As position-independent firmware is, which is linked at 0 and runs where RAM begins."""
    opened, place = open_image(image), PLACES[MACHINE] + (6 << 20)
    flat = tmp_path / "flat"
    with flat.open("wb") as file:
        for segment in (one for one in opened.segments if one.kind == PT_LOAD and one.file_size):
            file.seek(segment.load_address - PLACES[MACHINE])
            file.write(opened.read(segment.address, segment.file_size))
    entry = opened.entry - PLACES[MACHINE] + place
    devices = (f"loader,file={flat},addr={place:#x},force-raw=on", f"loader,addr={entry:#x},cpu-num=0")
    with emulator(MACHINE, tmp_path, *(word for one in devices for word in ("-device", one))) as qemu:
        while not (found := kinst_run(image, "--read", qemu.source)).stdout.split():
            assert (found.exit_code, found.stderr) == (0, "")
        core = kinst_run(image, "--read", qemu.dump())
    assert found.stdout.split()[1] == core.stdout.split()[1] == "fbt:endless:work:entry"
    assert 0 < int(found.stdout.split()[0]) <= int(core.stdout.split()[0])

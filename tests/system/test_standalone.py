"""Standalone images under QEMU, with nobody to help them: the plain console, and the counts that kinst-run tells."""

import platform
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.cli import diff, rewrite
from kinst.runtime.cli import run
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import Manifest, find_manifest
from tests.images import at_hand, real_image
from tests.linux_programs import qemu
from tests.runtime.readout.qemu import emulator
from tests.samples.machines import MACHINES, Sample, expected_console, missing, run_qemu

COUNTED = r'fbt:::entry { @[probefunc] = count(); } END { printa("%s %@d\n", @); }'
# What a kernel measures and what its threads say depends on how busy the host is; iPXE is the board's.
MEASURED = re.compile(
    r"APIC|PM-Timer|BogoMIPS|(?i:tsc)|clocksource|sched_clock|audit|rtc_cmos|input:|iPXE|hrtimer|random:"
)
TIME = re.compile(r"^\[ *\d+\.\d+\] ")
PROGRAMS = (
    *(
        "sha256sum text",
        "sort -n text",
        "gzip -c text",
        "seq 1 5000",
        "od -x text",
        "base64 text",
        "ls -R /usr/include",
    ),
    *("awk '{ s += $1 } END { print s }' text", "sh -c 'for i in 1 2 3; do echo $i | cat; done; wc -l < text'"),
)
PANIC = "console=ttyS0 panic=-1 nokaslr"


@pytest.fixture(params=MACHINES)
def sample(request: pytest.FixtureRequest) -> Sample:
    found = MACHINES[request.param]
    if why := missing(found.qemu[0]):
        pytest.skip(why)
    return found


def called(command: object, *words: object) -> Result:
    result = CliRunner().invoke(command, [str(word) for word in words])  # type: ignore[arg-type]
    assert result.exit_code == 0, result.output
    return result


def standalone(image: Path, out: Path, *words: str, alone: Sequence[str] = ("--standalone",)) -> Manifest:
    """A standalone image, explained and restored."""
    called(rewrite, image, *alone, "-o", out, "-q", *words)
    assert called(diff, image, out).stdout.endswith("every difference is explained\n")
    called(rewrite, out, "--restore", "-o", out.with_suffix(".back"))
    assert out.with_suffix(".back").read_bytes() == image.read_bytes()
    found = find_manifest(open_image(out))
    assert found is not None
    return found


def counts(text: str) -> dict[str, int]:
    return {name: int(count) for name, count in re.findall(r"^(\S+) (\d+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("cpus", [pytest.param(1, marks=pytest.mark.long), 2])
def test_every_instruction_counts_itself(sample: Sample, cpus: int, tmp_path: Path) -> None:
    manifest = standalone(sample.image, tmp_path / "alone.elf", "--probe", "kinst:::", alone=sample.alone)
    assert len(manifest.sites) > 2500
    assert run_qemu(sample, tmp_path / "alone.elf", "-smp", str(cpus)) == expected_console(cpus)


def test_every_entry_and_return_records_itself(sample: Sample, tmp_path: Path) -> None:
    words = ("--probe", "fbt:::", "--action", "record:arg0,arg1,time", "--ring", "256")
    standalone(sample.image, tmp_path / "alone.elf", *words, alone=sample.alone)
    assert run_qemu(sample, tmp_path / "alone.elf", "-smp", "2") == expected_console(2)


def test_it_counts_what_the_emulator_counts(sample: Sample, tmp_path: Path) -> None:
    out = tmp_path / "alone.elf"
    manifest = standalone(sample.image, out, "--probe", "fbt:::entry", alone=sample.alone)
    told = called(run, sample.image, "-q", "--console", "/dev/null", "--clock", "icount", "-n", COUNTED)
    known = {manifest.probe_fields(row)[2] for row in range(len(manifest.probes))} - {"power_off"}
    expected = {name: count for name, count in counts(told.stdout).items() if name in known}
    with emulator(sample.name, tmp_path, "-kernel", str(out), "-S", "-icount", "shift=4,sleep=off") as guest:
        end = open_image(out).symbols.address_of("power_off")
        assert end is not None
        guest.run_to(end)
        found = counts(called(run, out, "--read", guest.source, "-q", "-n", COUNTED).stdout)
    assert len(found) > 60
    assert found == expected


@pytest.mark.long  # the gate has every instruction of a kernel under QEMU, on each machine
@pytest.mark.parametrize("name", at_hand("opensbi-1.1"))
def test_firmware_starts(name: str, tmp_path: Path) -> None:
    if why := missing("qemu-system-riscv64"):
        pytest.skip(why)
    plain, out = real_image(name), tmp_path / "alone.elf"
    behind = ("--standalone", "--stays", "--trampoline-base", "0x80050000")  # its stack ends below
    manifest = standalone(plain, out, "--probe", "kinst:::", alone=behind)
    assert len(manifest.sites) > 20_000
    shown = [
        console(["qemu-system-riscv64", "-M", "virt", "-nographic", "-bios", str(image)]) for image in (plain, out)
    ]
    assert "Boot HART MEDELEG" in shown[0]
    assert shown[0] == shown[1]


def console(command: list[str], seconds: int = 8) -> str:
    """The console of a guest that may not end by itself."""
    try:
        return subprocess.run(command, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL).stdout.decode()
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode()


@pytest.mark.long  # the gate has a program on hardware: test_running
@pytest.mark.skipif(platform.machine() != "x86_64" or platform.system() != "Linux", reason="needs a CPU of its machine")
@pytest.mark.parametrize("name", at_hand("busybox-amd64"))
def test_a_program_on_hardware(name: str, tmp_path: Path) -> None:
    """It needs nothing of ours. `test_standalone_programs` does so with all instructions."""
    plain, out = real_image(name), tmp_path / "alone.elf"
    standalone(plain, out, "--probe", "fbt:::")
    (tmp_path / "text").write_text("\n".join(str(number * 7919 % 1000) for number in range(2000)))
    for command in PROGRAMS:
        told = [
            subprocess.run(program(path, command, tmp_path), cwd=tmp_path, capture_output=True) for path in (plain, out)
        ]
        assert told[0].stdout, command
        assert (told[1].returncode, told[1].stdout) == (told[0].returncode, told[0].stdout), command


def program(image: Path, command: str, folder: Path) -> list[str]:
    """Under a name by which it knows what it is."""
    place = folder / f"of-{image.name}" / "busybox"
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        shutil.copy(image, place)
        place.chmod(0o755)
    return [str(place), *shlex.split(command)]


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-6.12-amd64"))
def test_linux_boots(name: str, tmp_path: Path) -> None:
    """The entries of nearly all functions, in room that the kernel has inside."""
    if why := missing("qemu-system-x86_64"):
        pytest.skip(why)
    plain, out = real_image(name), tmp_path / "alone.elf"
    manifest = standalone(plain, out, "--probe", "fbt:::entry")
    assert len(manifest.sites) > 40_000
    shown = [lines(console(qemu("amd64", image, tmp_path, "-append", PANIC), seconds=120)) for image in (plain, out)]
    assert any("Kernel panic - not syncing: VFS" in line for line in shown[0])
    assert shown[0] == shown[1]


def lines(text: str) -> Counter[str]:
    """Of a kernel's console, in no order."""
    told = (TIME.sub("", line).strip() for line in text.splitlines())
    return Counter(line for line in told if not MEASURED.search(line))

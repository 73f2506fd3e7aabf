"""Debian's Linux for riscv64, from its first instruction to the panic over the missing root file system, beside QEMU,
where OpenSBI is below it: what firmware answers is the machine's own here."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import open_image
from tests.images import at_hand, real_image

QEMU = "qemu-system-riscv64"
# Without what Unicorn's CPU has not.
CPU = "rv64,h=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false"
COMMAND_LINE = "panic=-1"
LIMIT = 300  # seconds
PANIC = "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"
# Firmware's own, counters that only OpenSBI has, and a busy host's, whose time is QEMU's.
FIRMWARE = re.compile(r"SBI (?:spec|impl|DBCN)|PMU|riscv-pmu-sbi|hrtimer: interrupt took")
# Times and what is measured; where the kernel's first data are, and how much is left, follow the device tree's size.
CHANGING = (
    r"^\[ *\d+\.\d+\] ",
    r"(?<=audit\()[0-9.]+",
    r"(?<=word access is )[0-9.]+",
    r"(?<=setting system clock to ).*",
    r"(?<=^CPU: )\d",
    r"(?<=^NODE_DATA\(0\) allocated ).*",
    r"(?<=^Memory: )\d+(?=K)|\d+(?=K reserved)",
)

pytestmark = pytest.mark.skipif(not at_hand("linux-riscv64"), reason="linux-riscv64 was not downloaded")


def normalised(console: bytes) -> list[str]:
    """The kernel's lines without what is not the same in every run or under every firmware."""
    lines = console.decode().replace("\r", "").splitlines()
    for pattern in CHANGING:
        lines = [re.sub(pattern, "", line) for line in lines]
    start = next(index for index, line in enumerate(lines) if line.startswith("Linux version"))
    return [line for line in lines[start:] if not FIRMWARE.search(line)]


def assert_alike(ours: list[str], theirs: list[str]) -> None:
    """Some lines come from threads of the kernel, whenever they get to run; those of the panic do not."""
    assert sorted(ours) == sorted(theirs)
    panic = ours.index(PANIC)
    assert panic > 180
    assert ours[panic:] == theirs[panic:]


def under_qemu(folder: Path, cpus: int) -> list[str]:
    """The console under QEMU, which wants the kernel as boot loaders have it: memory from its first byte on."""
    if shutil.which(QEMU) is None:
        pytest.skip("needs QEMU")
    image = open_image(real_image("linux-riscv64"))
    path = folder / "Image"
    with path.open("wb") as file:
        for segment in image.segments:
            if segment.kind == PT_LOAD:
                file.seek(segment.load_address)
                file.write(image.data[segment.offset : segment.offset + segment.file_size].data)
    # One thread for all CPUs: with a thread each, QEMU 7.2 once stood still in the middle of a boot (1 of about 100).
    machine = ("-M", "virt", "-accel", "tcg,thread=single", "-cpu", CPU, "-smp", str(cpus), "-nographic", "-no-reboot")
    command = (QEMU, *machine, "-kernel", str(path), "-append", COMMAND_LINE)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=True)
    return normalised(done.stdout)


def ours(image: Path, folder: Path, *words: str) -> tuple[list[str], str]:
    """Console and output of a run that ends when the kernel resets the machine after its panic."""
    console = folder / "console"
    options = ("--clock", "icount", "--append", COMMAND_LINE, "--timeout", str(LIMIT), "--console", str(console))
    result = CliRunner().invoke(run, (*words, *options, str(image)), prog_name="kinst-run")
    assert result.exit_code == 0, result.stderr
    return normalised(console.read_bytes()), result.stdout


@pytest.mark.long
def test_linux_on_two_cpus_prints_what_it_prints_under_qemu(tmp_path: Path) -> None:
    printed, _ = ours(real_image("linux-riscv64"), tmp_path, "--cpus", "2")
    assert "smp: Brought up 1 node, 2 CPUs" in printed
    assert_alike(printed, under_qemu(tmp_path, 2))


PROGRAM = """
fbt::vfs_mknod:entry { @made[stringof(args[2]->d_name.name), args[3], args[4]] = count(); }
fbt::vfs_get_tree:entry, fbt::vfs_get_tree:return { @trees[probename] = count(); }
kinst::get_current:entry { @current = count(); }
fbt::panic:entry { printf("%s", stringof(args[0])); stack(); }
"""


@pytest.mark.long
def test_linux_runs_with_probes_in_its_file(tmp_path: Path) -> None:
    """Typed arguments are checked by what the kernel makes in its /dev, the stack by the one that it prints itself."""
    patched = tmp_path / "vmlinux"
    words = ("--probe", "fbt::vfs_*:", "--probe", "fbt::panic:entry", "--probe", "kinst::get_current:entry")
    result = CliRunner().invoke(
        rewrite, (str(real_image("linux-riscv64")), *words, "-o", str(patched)), prog_name="kinst-rewrite"
    )
    assert result.exit_code == 0, result.stderr
    printed, output = ours(patched, tmp_path, "-q", "--format", "json", "-n", PROGRAM)
    document = json.loads(output)["dtrace"]
    made, trees, current = (one["aggregation-data"] for one in document["aggregations"])
    # The console is character device 5, 1 (20 bits of minor number), readable and writable by its owner.
    assert ["console", 0o20600, 5 << 20 | 1] in [one["keys"] for one in made]
    assert len(made) > 80
    counts = {one["keys"][0]: one["value"] for one in trees}
    assert counts["entry"] == counts["return"] > 10
    assert current[0]["value"] > 1000
    assert_panic(document["probes"][-1]["output"], printed)
    assert_alike(printed, under_qemu(tmp_path, 1))


def assert_panic(output: list[dict[str, object]], printed: list[str]) -> None:
    """What the probe saw of it, and what the kernel prints: its trace begins inside the function."""
    text, frames = output[0]["message"], output[-1]["stack-frames"]
    assert text == "VFS: Unable to mount root fs on %s"
    assert isinstance(frames, list)
    trace = [line.split()[1].partition("/")[0] for line in printed if line.startswith("[<ffffffff")]
    after = trace.index(next(line for line in trace if line.startswith("panic+"))) + 1
    assert [frame["symbol"].partition("`")[2] for frame in frames[1:]] == trace[after:]
    assert len(frames) > 6

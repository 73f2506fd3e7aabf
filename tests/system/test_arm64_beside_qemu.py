"""Kernels for arm64 on our machines and on QEMU's: Linux to its panic over a missing root, Xen to its own."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import diff, rewrite
from kinst.runtime.cli import run
from kinst.targets.image import open_image
from tests.images import at_hand, real_image
from tests.linux_programs import flat
from tests.runtime.readout.qemu import emulator

QEMU = "qemu-system-aarch64"
# Both without what comes from outside: QEMU's random seed, its network card, performance counters that we have not.
COMMON = ("-cpu", "cortex-a57,pmu=off", "-nic", "none", "-m", "256", "-nographic", "-no-reboot")
MACHINE = "virt,gic-version=2,dtb-randomness=off"
COMMAND_LINE = "earlycon=pl011,0x9000000 panic=-1"
LIMIT = 300  # seconds
PANIC = "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"

needs_linux = pytest.mark.skipif(not at_hand("linux-arm64"), reason="linux-arm64 was not downloaded")


def normalised(console: bytes) -> list[str]:
    """Without time: stamps, durations and the date."""
    lines = console.decode().replace("\r", "").splitlines()
    lines = [re.sub(r"^\[ *\d+\.\d+\] ", "", line) for line in lines]
    lines = [re.sub(r"deferred pages initialised in \d+ms", "deferred pages initialised", line) for line in lines]
    lines = [re.sub(r"audit\(\d+\.\d+:1\)", "audit(1)", line) for line in lines]
    return [re.sub(r"setting system clock to .*", "setting system clock", line) for line in lines]


def assert_alike(ours: list[str], theirs: list[str]) -> None:
    """Some lines come from threads of the kernel, whenever they get to run; those of the panic do not."""
    assert sorted(ours) == sorted(theirs)
    panic = ours.index(PANIC)
    assert panic > 200
    assert ours[panic:] == theirs[panic:]


def ours(image: Path, folder: Path, *words: str) -> tuple[bytes, str]:
    """Console and output of a run; Linux resets the machine after its panic, which ends it."""
    console = folder / "console"
    options = ("--memory", "256m", "--timeout", str(LIMIT), "--console", str(console))
    result = CliRunner().invoke(run, (*words, *options, str(image)), prog_name="kinst-run")
    assert result.exit_code == 0, result.stderr
    return console.read_bytes(), result.stdout


def qemus(path: Path, folder: Path, machine: str, *words: str) -> bytes:
    """The console under QEMU, which wants a kernel as boot loaders have it: memory from its first byte on."""
    if shutil.which(QEMU) is None:
        pytest.skip("needs QEMU")
    command = (QEMU, "-M", machine, *COMMON, "-kernel", str(flat(path, folder / "Image")), *words)
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=True).stdout


@pytest.fixture(scope="module")
def under_qemu(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What Linux prints there."""
    folder = tmp_path_factory.mktemp("qemu")
    return normalised(qemus(real_image("linux-arm64"), folder, MACHINE, "-append", COMMAND_LINE))


@pytest.mark.long  # U-Boot's console and Xen's are compared with QEMU's in the gate
@needs_linux
def test_linux_prints_what_it_prints_under_qemu(under_qemu: list[str], tmp_path: Path) -> None:
    console, _ = ours(real_image("linux-arm64"), tmp_path, "--append", COMMAND_LINE)
    assert_alike(normalised(console), under_qemu)


PROGRAM = """
fbt::vfs_mknod:entry { @made[stringof(args[2]->d_name.name)] = count(); @stacks[stack(3)] = count(); }
fbt::vfs_get_tree:entry, fbt::vfs_get_tree:return { @trees[probename] = count(); }
kinst::file_inode:entry { @files[stringof(args[0]->f_path.dentry->d_name.name)] = count(); }
END
{
    printa("made %s %@d\\n", @made); printa("tree %s %@d\\n", @trees); printa("file %s %@d\\n", @files);
    printa("stack %k %@d\\n", @stacks);
}
"""


@pytest.mark.long
@needs_linux
def test_linux_runs_with_probes_in_its_file(under_qemu: list[str], tmp_path: Path) -> None:
    """The devices that the kernel makes in its own /dev, whose first open file is the console."""
    patched = tmp_path / "vmlinux"
    words = ("--probe", "fbt::vfs_*:", "--probe", "kinst::file_inode:entry", "-o", str(patched))
    result = CliRunner().invoke(rewrite, (str(real_image("linux-arm64")), *words), prog_name="kinst-rewrite")
    assert result.exit_code == 0, result.stderr
    console, output = ours(patched, tmp_path, "-q", "-n", PROGRAM, "--append", COMMAND_LINE)
    counts = {(what, name): int(count) for what, name, count in re.findall(r"(\w+) ([\w-]+) (\d+)\n", output)}
    assert {("made", name) for name in ("console", "null", "zero", "rtc0")} <= counts.keys()
    assert counts["tree", "entry"] == counts["tree", "return"] > 10
    assert counts["file", "console"] > 0
    stacks = [re.findall(r"`([\w.]+)\+", stack) for stack in output.split("stack ")[1:]]
    assert ["vfs_mknod", "devtmpfs_work_loop", "devtmpfsd"] in stacks
    assert_alike(normalised(console), under_qemu)


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-arm64", "linux-6.12-arm64"))
def test_linux_counts_by_itself(name: str, tmp_path: Path) -> None:
    """In what it is filled up with: the same console under QEMU, and as many devices are made as are traced."""
    plain, alone = real_image(name), tmp_path / "alone.elf"
    words = (str(plain), "--standalone", "--probe", "fbt::vfs_*:entry", "-q", "-o", str(alone))
    result = CliRunner().invoke(rewrite, words, prog_name="kinst-rewrite")
    assert result.exit_code == 0, result.stderr
    assert CliRunner().invoke(diff, (str(plain), str(alone))).exit_code == 0
    consoles = [normalised(qemus(image, tmp_path, MACHINE, "-append", COMMAND_LINE)) for image in (plain, alone)]
    assert_alike(*consoles)

    program = ("-q", "-n", 'fbt:::entry { @[probefunc] = count(); } END { printa("%s %@d\\n", @); }')
    _, told = ours(plain, tmp_path, *program[:2], program[2].replace("fbt:::", "fbt::vfs_*:"), "--append", COMMAND_LINE)
    kernel = ("-kernel", str(flat(alone, tmp_path / "Image")), "-append", f"{COMMAND_LINE} nokaslr", "-S")
    with emulator("arm64", tmp_path, *kernel, "-m", "256") as guest:
        end = open_image(alone).symbols.address_of("panic")
        assert end is not None
        guest.run_to(end)
        read = CliRunner().invoke(run, (str(alone), "--read", guest.source, *program), prog_name="kinst-run")
    assert read.exit_code == 0, read.stderr
    counted, traced = (dict(re.findall(r"^(\S+) (\d+)$", text, re.MULTILINE)) for text in (read.stdout, told))
    assert counted.keys() == traced.keys()
    assert counted["vfs_mknod"] == traced["vfs_mknod"]


# -- Xen --------------------------------------------------------------------------------------------------------------

PROBES = "fbt:::entry, fbt:::return { @[probename] = count(); @functions[probefunc] = count(); }"


@pytest.mark.long  # the gate has EL2 by instructions, and U-Boot beside QEMU: test_arm64_machine
def test_xen_prints_what_it_prints_under_qemu(tmp_path: Path) -> None:
    """In EL2, plain and with all its functions probed, until it finds no kernel to start."""
    xen = real_image("xen-arm64")
    theirs = qemus(xen, tmp_path, f"{MACHINE},virtualization=on").replace(b"\r", b"").splitlines()
    assert any(b"Could not set up DOM0 guest OS" in line for line in theirs)
    words = ("--machine", "virt-el2-arm64", "--until", "Reboot in five seconds...")
    plain, _ = ours(xen, tmp_path, *words)
    # TGran16 of ID_AA64MMFR0_EL1: we have pages of 16 KiB, which QEMU's cortex-a57 has not.
    seen = plain.replace(b"\r", b"").replace(b"0000000000101124", b"0000000000001124")
    assert seen.splitlines() == theirs
    probed, output = ours(xen, tmp_path, *words, "-q", "-n", PROBES)
    assert probed == plain
    counts = {row[0]: int(row[1]) for row in map(str.split, output.splitlines()) if len(row) == 2}
    assert min(counts["entry"], counts["return"]) > 50_000
    assert counts["pl011_putc"] == 2 * len(plain)

"""Linux that counts by itself, from a file and by --method jump, under QEMU and in our machine: the same counts."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.targets.image import open_image
from tests.images import at_hand, real_image
from tests.linux_programs import START, flat, initial_file_system
from tests.runtime.readout.qemu import emulator
from tests.runtime.readout.standalone import kinst_run

# Nothing that two processes do at the same time: how often they read from a pipe depends on who comes first.
FILES = """echo hello > /tmp/file; cat /tmp/file; cp /tmp/file /tmp/copy; ls /bin /tmp > /tmp/list
mkdir /tmp/folder; mv /tmp/copy /tmp/folder; rm -r /tmp/folder; ln -s file /tmp/link; cat /tmp/link
poweroff -f
"""
MOUNTS = re.compile("vfs_(kern_mount|get_tree|create_mount|parse_)")
APPEND = "console=ttyS0 nokaslr"
# Without what Unicorn's CPU has not: Linux has code for it.
RISCV = "rv64,h=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false"


# QEMU's machine, and whether it takes a kernel as boot loaders have it only.
MACHINES = {
    "amd64": (("-M", "pc", "-cpu", "qemu64"), False),
    "riscv64": (("-M", "virt", "-cpu", RISCV, "-bios", "default"), True),
}


def counted(text: str) -> list[str]:
    """The lines of what was counted, in an order of their own. Without mounts: Linux mounts tracefs once or twice, for
    two threads of its boot that need it (simple_pin_fs) may both find that it is not there."""
    return sorted(line for line in text.splitlines() if line and not MOUNTS.search(line))


@pytest.mark.long
@pytest.mark.parametrize("name", ["entry", "return"])
@pytest.mark.parametrize("arch", MACHINES)
def test_calls_of_the_file_system_are_counted(arch: str, name: str, tmp_path: Path) -> None:
    if not at_hand(f"linux-{arch}"):
        pytest.skip(f"linux-{arch} was not downloaded")
    image, initrd = tmp_path / "standalone.elf", tmp_path / "initrd"
    initrd.write_bytes(initial_file_system(arch, START + FILES))
    words = ("--standalone", "--probe", f"fbt::vfs_*:{name}", "-o", str(image))
    result = CliRunner().invoke(rewrite, [str(real_image(f"linux-{arch}")), *words])
    assert result.exit_code == 0, result.output
    end = open_image(image).symbols.address_of("kernel_power_off")
    assert end is not None
    machine, is_flat = MACHINES[arch]
    kernel = flat(image, tmp_path / "Image") if is_flat else image
    options = ("-m", "256M", "-kernel", str(kernel), "-initrd", str(initrd), "-append", APPEND, "-S")
    with emulator(arch, tmp_path, *machine, *options) as qemu:
        qemu.run_to(end)
        stub, core = (kinst_run(image, "--read", source) for source in (qemu.source, qemu.dump()))
    given = ("--clock", "icount", "--initrd", initrd, "--append", APPEND, "--memory", "256m", "--timeout", "100")
    here = kinst_run(image, *given, "--console", tmp_path / "console")
    said = [line for line in here.stderr.splitlines() if "cleared its .bss" not in line]  # amd64 has counters there
    assert (here.exit_code, said) == (0, [])
    assert len(here.stdout.splitlines()) > 20
    assert stub.stdout == core.stdout
    assert counted(stub.stdout) == counted(here.stdout)
    program = r'fbt::vfs_*:entry { @[probemod, probefunc] = count(); } END { printa("%@12d fbt:%s:%s:entry\n", @); }'
    asked = ("-q", "--method", "jump", "-n", program.replace("entry", name))
    in_memory = kinst_run(real_image(f"linux-{arch}"), *given, "--console", tmp_path / "console", *asked)
    assert counted(in_memory.stdout) == counted(here.stdout)

"""Linux that counts by itself, under plain QEMU and in our machine: the counters, read out of both, are the same."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.targets.image import open_image
from tests.images import at_hand, real_image
from tests.linux_programs import START, initial_file_system
from tests.runtime.readout.qemu import emulator
from tests.runtime.readout.standalone import kinst_run

# Nothing that two processes do at the same time: how often they read from a pipe depends on who comes first.
FILES = """echo hello > /tmp/file; cat /tmp/file; cp /tmp/file /tmp/copy; ls /bin /tmp > /tmp/list
mkdir /tmp/folder; mv /tmp/copy /tmp/folder; rm -r /tmp/folder; ln -s file /tmp/link; cat /tmp/link
poweroff -f
"""
APPEND = "console=ttyS0 nokaslr"


@pytest.mark.long
@pytest.mark.skipif(not at_hand("linux-amd64"), reason="linux-amd64 was not downloaded")
def test_calls_of_the_file_system_are_counted(tmp_path: Path) -> None:
    image, initrd = tmp_path / "standalone.elf", tmp_path / "initrd"
    initrd.write_bytes(initial_file_system("amd64", START + FILES))
    words = ("--standalone", "--probe", "fbt::vfs_*:entry", "-o", str(image))
    result = CliRunner().invoke(rewrite, [str(real_image("linux-amd64")), *words])
    assert result.exit_code == 0, result.output
    end = open_image(image).symbols.address_of("kernel_power_off")
    assert end is not None
    machine = ("-M", "pc", "-cpu", "qemu64", "-m", "256M")
    kernel = ("-kernel", str(image), "-initrd", str(initrd), "-append", APPEND, "-S")
    with emulator("amd64", tmp_path, *machine, *kernel) as qemu:
        qemu.run_to(end)
        stub, core = (kinst_run(image, "--read", source) for source in (qemu.source, qemu.dump()))
    options = ("--initrd", initrd, "--append", APPEND, "--memory", "256m", "--timeout", "100")
    here = kinst_run(image, *options, "--console", tmp_path / "console")
    assert (here.exit_code, here.stderr) == (0, "")
    assert len(here.stdout.splitlines()) > 20
    assert stub.stdout == core.stdout == here.stdout

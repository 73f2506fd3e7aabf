"""Debian's kernels with busybox and an init of ours, run with D programs: what is printed, and the guest's console."""

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import real_image

MKINITRD = Path("samples/linux/mkinitrd")
_STAMP = re.compile(r"^\[ *\d+\.\d+\] ", re.MULTILINE)


def initrd_of(machine: str, init: Path, folder: Path) -> Path:
    """An initial file system, made by the sample's script."""
    output = folder / "initrd.cpio"
    busybox = folder / "busybox"
    busybox.write_bytes(real_image(f"busybox-{machine}").read_bytes())
    subprocess.run([sys.executable, MKINITRD, busybox, init, output], check=True)
    return output


def run_linux(
    name: str, initrd: Path, programs: Iterable[str] = (), *, users: Sequence[Path] = (), more: Sequence[str] = ()
) -> tuple[str, str]:
    """What the programs print, each given as -n's or with `-s FILE` in `more`; and the console without time stamps."""
    console = initrd.with_name("console")
    options = ["-q", "--clock", "icount", "--memory", "256M", "--timeout", "120s", "--console", str(console)]
    for text in programs:
        options += ["-n", text]
    for path in users:
        options += ["--user", str(path)]
    result = CliRunner().invoke(run, [*options, *more, "--initrd", str(initrd), str(real_image(name))])
    assert result.exit_code == 0, result.stderr
    assert "error on enabled probe" not in result.stderr, result.stderr
    assert "drop" not in result.stderr, result.stderr
    return result.stdout, _STAMP.sub("", console.read_text(errors="replace").replace("\r\n", "\n"))

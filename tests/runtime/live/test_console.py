"""The console of a guest under QEMU: nothing of it is lost."""

import fcntl
import os
from pathlib import Path

import pytest

from kinst.runtime.live.console import Console
from tests.commands.in_process import kinst_run
from tests.images import real_image
from tests.runtime.live.qemus import needs, on
from tests.samples.machines import MACHINES, expected_console

_BURST = 50_000  # bytes between two looks at it: some UARTs of QEMU's drop what is not taken


def test_a_burst_of_single_bytes_is_taken_whole() -> None:
    console = Console()
    with console:
        os.set_blocking(console.its_output, False)  # as QEMU has it
        assert sum(os.write(console.its_output, bytes([place % 251])) for place in range(_BURST)) == _BURST
    assert console.heard() == bytes(place % 251 for place in range(_BURST))
    assert console.heard() == b""
    console.close()


def test_what_nobody_reads_is_not_taken() -> None:
    console = Console()
    with console:
        taken = [*iter(lambda: console.type(bytes(1 << 16)), 0)]
        assert sum(taken) == fcntl.fcntl(console.its_input, fcntl.F_GETPIPE_SZ)
    console.close()


def test_a_uart_that_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU's HTIF drops what is not taken: all that OpenSBI says is there."""
    needs("qemu-system-riscv64")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    image, last = real_image("opensbi-1.6"), "Boot HART MEDELEG"
    words = ("-q", "--until", last, "--wall-timeout", "60s", "-n", "fbt::sbi_*:entry { @ = count(); }", image)
    printed = kinst_run("--on", "qemu-system-riscv64 -M spike -m 256M", *words).stdout
    assert "\nPlatform HSM Device         : ---" in printed
    assert last in printed


def test_a_serial_line_that_the_command_has_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = MACHINES["riscv64"]
    needs(sample.qemu[0])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = kinst_run("-q", "--on", f"{on(sample)} -serial stdio", sample.image)
    assert done.stdout.replace("\r\n", "\n") == expected_console(1)

"""A QEMU that ends while it is asked something: its end is told, not that nobody answers."""

import os
import signal
from pathlib import Path

import pytest

from kinst.runtime.live.qemu import Qemu
from kinst.targets.errors import MachineError
from tests.runtime.live.qemus import needs


def test_its_end_is_why_it_does_not_answer() -> None:
    needs("qemu-system-riscv64")
    qemu = Qemu(["qemu-system-riscv64", "-M", "none"], None, wants_console=False)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (own,) = (int(child) for child in children if Path(f"/proc/{child}/comm").read_text().startswith("qemu"))
    qemu.resume()
    os.kill(own, signal.SIGKILL)
    qemu.pause()
    with pytest.raises(MachineError, match="it ended with -9"):
        qemu.end()
    assert qemu.close() == 0

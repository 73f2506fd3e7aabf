"""The numbers that QEMU gives its CPUs, and their places."""

import shutil

import pytest

from kinst.runtime.live.cpus import order_of_cpus
from kinst.runtime.live.qemu import Qemu


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("qemu-system-x86_64 -smp 6,sockets=2,cores=3", {0: 0, 1: 1, 2: 2, 4: 3, 5: 4, 6: 5}),
        ("qemu-system-aarch64 -M virt,gic-version=3 -smp 18", {n: n for n in range(16)} | {0x100: 16, 0x101: 17}),
        ("qemu-system-riscv64 -M virt -smp 2", {}),
    ],
)
def test_the_order_of_cpus(command: str, expected: dict[int, int]) -> None:
    words = command.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]}")
    qemu = Qemu(words, None, wants_console=False)
    try:
        assert order_of_cpus(qemu.monitor) == expected
    finally:
        qemu.close()

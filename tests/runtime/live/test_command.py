"""The value of --on: what starts QEMU."""

from pathlib import Path

import pytest

from kinst.runtime.live.command import qemu_command
from kinst.runtime.machine.configuration import Configuration
from kinst.targets.errors import UsageError

ONE = Configuration()
OWN = ("qemu-system-aarch64", "-M", "virt")


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of these names are there, whatever this host has."""
    for name in ("qemu-system-x86_64", "qemu-system-aarch64", "qemu-system-riscv64"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("qemu-system-riscv64 -M virt", None),
        ("qemu-system-riscv64 -m 64", 64 << 20),
        ("qemu-system-riscv64 -m 1G -m size=512M", 512 << 20),
        ("qemu-system-riscv64 -m size=1G,slots=2,maxmem=4G", None),
    ],
)
def test_memory_is_read_where_a_plain_size_says_it(text: str, memory: int | None) -> None:
    assert qemu_command(text, OWN, ONE).memory == memory


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("qemu-system-riscv64 -M virt", None),
        ("qemu-system-riscv64 -smp 4 -smp 5,maxcpus=8", 5),
        ("qemu-system-riscv64 -smp cpus=2,sockets=2", 2),
        ("qemu-system-riscv64 -smp sockets=2", None),
    ],
)
def test_cpus_are_counted_where_the_command_says_it(text: str, cpus: int | None) -> None:
    assert qemu_command(text, OWN, ONE).cpus == cpus


def test_qemu_alone_is_the_machine_that_fits() -> None:
    found = qemu_command("qemu", OWN, Configuration(cpus=2, memory=64 << 20))
    assert found.words == (*OWN, "-smp", "2", "-m", "64M")
    assert found.memory == 64 << 20


def test_the_word_image_stands_for_the_image() -> None:
    found = qemu_command("qemu-system-riscv64 -device loader,file=IMAGE,cpu-num=0 -name IMAGES", OWN, ONE)
    assert found.names_image
    assert found.with_image("/x")[1:] == ("-device", "loader,file=/x,cpu-num=0", "-name", "IMAGES")
    assert not qemu_command("qemu-system-riscv64 -name IMAGES", OWN, ONE).names_image


def test_the_console_is_ours_unless_the_command_has_one() -> None:
    plain = qemu_command("qemu-system-riscv64 -nographic", OWN, ONE)
    assert (plain.words, plain.has_console) == (("qemu-system-riscv64",), False)
    assert qemu_command("qemu-system-riscv64 -serial null", OWN, ONE).has_console


@pytest.mark.parametrize(
    ("text", "configuration", "why"),
    [
        ("", ONE, "an empty command"),
        ("'", ONE, "No closing quotation"),
        ("qemu-system-riscv64 -S", ONE, "-S cannot be there: the guest is started"),
        ("qemu-system-riscv64 -icount shift=1", ONE, "-icount cannot be there"),
        ("qemu-system-i386", ONE, "qemu-system-i386 is not installed: apt install qemu-system-x86"),
        ("no-such-program", ONE, "no-such-program is not installed: it must start a qemu-system program"),
        ("qemu-system-riscv64", Configuration(cpus=2), "says itself how many CPUs"),
    ],
)
def test_what_cannot_be_is_one_line(text: str, configuration: Configuration, why: str) -> None:
    with pytest.raises(UsageError, match=f"^--on.*{why}") as caught:
        qemu_command(text, OWN, configuration)
    assert "\n" not in str(caught.value)

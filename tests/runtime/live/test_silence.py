"""A guest that prints nothing, and the command line that a kernel needs to print."""

from pathlib import Path

import pytest

from kinst.runtime.live.command import QemuCommand
from kinst.runtime.live.loading import invocation
from kinst.runtime.live.silence import Silence, silence_reason
from kinst.runtime.machine.configuration import Configuration
from kinst.targets.image import Image, open_image
from kinst.targets.machines.registry import machine_facts

SAMPLES = Path(__file__).parents[3] / "samples"
SECOND = 1_000_000_000
OURS = QemuCommand(("qemu-system-x86_64", "-M", "q35"), None, None, has_console=False, is_ours=True)
THEIRS = QemuCommand(("qemu-system-x86_64", "-M", "q35"), None, None, has_console=False, is_ours=False)
WITH_LINE = QemuCommand((*OURS.words, "-append", "quiet"), None, None, has_console=False, is_ours=True)


@pytest.fixture(scope="module")
def pvh() -> Image:
    """An image with the note by which Linux is started."""
    return open_image(SAMPLES / "kernel-amd64.elf")


def _appended(command: QemuCommand, image: Image, configuration: Configuration, machine: str) -> list[str]:
    made = invocation(command, image, configuration, machine_facts(machine))
    for file in made.files:
        file.close()
    words = made.words
    return [words[at + 1] for at, word in enumerate(words) if word == "-append"]


def test_our_choice_of_a_machine_has_its_default_command_line(pvh: Image) -> None:
    default = ["earlyprintk=ttyS0 console=ttyS0"]
    assert _appended(OURS, pvh, Configuration(), "pc-amd64") == default
    assert _appended(OURS, pvh, Configuration(command_line=""), "pc-amd64") == [""]
    assert _appended(WITH_LINE, pvh, Configuration(), "pc-amd64") == ["quiet"]
    assert _appended(THEIRS, pvh, Configuration(), "pc-amd64") == []
    riscv64 = open_image(SAMPLES / "kernel-riscv64.elf")
    assert _appended(OURS, riscv64, Configuration(), "virt-riscv64") == []


def test_silence_is_said_once() -> None:
    said: list[str] = []
    watch = Silence("it waits", said.append)
    watch.check(9 * SECOND)
    assert not said
    watch.check(10 * SECOND)
    watch.check(30 * SECOND)
    assert said == ["the guest has printed nothing for 10 seconds: it waits"]


def test_what_prints_is_not_silent() -> None:
    said: list[str] = []
    watch = Silence("it waits", said.append)
    watch.on_console()
    watch.check(60 * SECOND)
    assert not said


def test_the_reason_is_the_command_line_if_that_names_no_console(pvh: Image) -> None:
    assert "--append 'earlyprintk=ttyS0 console=ttyS0'" in silence_reason(THEIRS, pvh, Configuration())
    for command in (OURS, WITH_LINE):
        assert "another device" in silence_reason(command, pvh, Configuration())
    assert "another device" in silence_reason(THEIRS, pvh, Configuration(command_line="console=ttyS1"))

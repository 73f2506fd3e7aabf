"""The value of --on -> the command that starts QEMU, without what we add to it."""

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kinst.runtime.machine.configuration import Configuration
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

IMAGE: Final = "IMAGE"  # the word of a command that stands for the image
_OURS: Final = "qemu"  # stands for a command: the machine that fits the image
_PACKAGES: Final = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-system-i386": "qemu-system-x86",
    "qemu-system-aarch64": "qemu-system-arm",
    "qemu-system-riscv64": "qemu-system-misc (or qemu-system-riscv)",
}
# What would take control of the guest, its memory or its clock away from us, and the reason that users get.
_TAKEN: Final = {
    "-S": "the guest is started as soon as its probes are there",
    "-daemonize": "QEMU ends with the run",
    "-incoming": "a guest that has begun cannot be rewritten",
    "-mem-path": "its memory is in a file of ours",
    "-icount": "its clock is the host's",
}
_DROPPED: Final = "-nographic"  # it would redirect the console; `_added` says -display none
_DEBUGGERS: Final = frozenset({"-s", "-gdb"})  # QEMU has one stub, and it is the user's
_SIZE: Final = re.compile(r"(?:size=)?([0-9]+)([kKmMgG]?)")
_CPUS: Final = re.compile(r"(?:cpus=)?([0-9]+)(?=,|$)")
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True)
class QemuCommand:
    """A command. `memory`: bytes of RAM by a -m that we can read; `cpus`: how many by such a -smp; None: QEMU has to be
    asked."""

    words: tuple[str, ...]  # the program first
    memory: int | None
    cpus: int | None
    has_console: bool  # whether it has a -serial of its own
    is_ours: bool  # whether it is the machine that fits the image

    @property
    def has_room(self) -> bool:
        """Whether we may load the image with a room in front of it, and map that by means of QEMU's gdb stub."""
        return not self.names_image and self.has_stub

    @property
    def has_stub(self) -> bool:
        """Whether QEMU's gdb stub is ours."""
        return _DEBUGGERS.isdisjoint(self.words)

    def with_memory(self, size: int) -> "QemuCommand":
        """The command with so many bytes of RAM, a multiple of 1 MiB."""
        return replace(self, words=(*self.words, "-m", f"{size >> 20}M"), memory=size)

    @property
    def names_image(self) -> bool:
        """Whether it has an option of its own that loads the image."""
        return any(IMAGE in re.split(r"[=,]", word) for word in self.words[1:])

    def with_image(self, path: str) -> tuple[str, ...]:
        """The words, with a path in place of `IMAGE`."""
        return tuple(re.sub(rf"(^|[=,]){IMAGE}(?=$|,)", rf"\g<1>{path}", word) for word in self.words)


def qemu_command(text: str, own: Sequence[str], configuration: Configuration) -> QemuCommand:
    """Read the value of --on.

    Args:
        text: a command line in a shell's syntax; the word qemu in place of a program is the words of `own`.
        own: the words for the machine that fits the image.
        configuration: CPUs and memory, for the word qemu.

    Raises:
        UsageError: it starts no QEMU, or one that is not installed, or has an option that is not possible here.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--on {text}: {error}") from None
    if not words:
        raise UsageError(f"--on: an empty command: give one such as '{' '.join(own)}'")
    is_ours = words[0] == _OURS
    if is_ours:
        words = [*_own(own, configuration), *words[1:]]
    elif configuration.cpus > 1 or configuration.memory is not None:
        raise UsageError("--on: a command says itself how many CPUs (-smp) and how much memory (-m) there are")
    for word in words[1:]:
        if word in _TAKEN:
            raise UsageError(f"--on: {word} cannot be there: {_TAKEN[word]}")
    if shutil.which(words[0]) is None:
        package = _PACKAGES.get(words[0].rpartition("/")[2])
        hint = f": apt install {package}" if package else ": it must start a qemu-system program"
        raise UsageError(f"--on: {words[0]} is not installed{hint}")
    kept = tuple(word for word in words if word != _DROPPED)
    return QemuCommand(kept, _memory(kept), _cpus(kept), "-serial" in kept, is_ours)


def _own(own: Sequence[str], configuration: Configuration) -> list[str]:
    words = [*own, "-smp", str(configuration.cpus)]
    return words if configuration.memory is None else [*words, "-m", f"{configuration.memory >> 20}M"]


def _memory(words: tuple[str, ...]) -> int | None:
    """The bytes of the last -m, if it is a plain size, in megabytes without a unit; else None."""
    found = _SIZE.fullmatch(_last(words, "-m"))
    return None if found is None else int(found[1]) * _UNITS[found[2].lower() or "m"]


def _cpus(words: tuple[str, ...]) -> int | None:
    """Of the last -smp, if it begins with their number."""
    found = _CPUS.match(_last(words, "-smp"))
    return None if found is None else int(found[1])


def _last(words: tuple[str, ...], option: str) -> str:
    """The value of an option that counts; empty: it is not there."""
    given = [words[place + 1] for place, word in enumerate(words[:-1]) if word == option]
    return given[-1] if given else ""

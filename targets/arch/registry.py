"""All machines, by name and by ELF number. This is the only place that lists them."""

from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.riscv64 import RISCV64
from kinst.targets.errors import ImageError, UsageError

ARCHES = (AMD64, ARM64, RISCV64)
NO_IMAGE_ARCH = AMD64  # whose types and R_ names a program without an image has
NAMES = tuple(facts.name for facts in ARCHES)


def arch_by_name(name: str) -> ArchFacts:
    """The machine called `name`. Raises UsageError if there is none."""
    for facts in ARCHES:
        if facts.name == name:
            return facts
    raise UsageError(f"{name}: no such machine; there are {', '.join(NAMES)}")


def arch_by_elf_machine(number: int) -> ArchFacts:
    """The machine of an ELF header's e_machine. Raises ImageError if it is not supported."""
    for facts in ARCHES:
        if facts.elf_machine == number:
            return facts
    raise ImageError(f"ELF machine {number}: not supported; {', '.join(NAMES)} are")

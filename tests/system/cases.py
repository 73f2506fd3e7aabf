"""The images that the system tests boot, plain and patched, and how each run ends."""

from dataclasses import dataclass
from pathlib import Path

from tests.gated import long_where
from tests.images import real_image

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Case:
    """One image on one machine; `until` is a pattern in a line of the console, None where the guest powers off.
    `asks` is what the guest prints before it waits for a key: U-Boot's countdown is two seconds of polling.
    """

    image: str
    machine: str
    until: str | None = None
    asks: bytes | None = None

    @property
    def path(self) -> Path:
        """The image, downloaded if it is not ours."""
        return ROOT / "samples" / f"{self.image}.elf" if self.is_sample else real_image(self.image)

    @property
    def is_sample(self) -> bool:
        """Whether it is the sample kernel."""
        return self.image.startswith("kernel-")


CASES = (
    Case("kernel-amd64", "pc-amd64"),
    Case("kernel-arm64", "virt-arm64"),
    Case("kernel-riscv64", "virt-riscv64"),
    Case("opensbi-1.1", "virt-riscv64", "Boot HART MEDELEG"),
    Case("opensbi-1.6", "virt-riscv64", "Boot HART MEDELEG"),
    Case("u-boot-riscv64", "virt-riscv64", "^=> ", b"Hit any key"),
    Case("u-boot-riscv64-smode", "virt-riscv64", "^=> ", b"Hit any key"),
    Case("u-boot-arm64", "virt-arm64", "^=> ", b"Hit any key"),
    Case("gnumach", "pc-amd64", "No bootstrap code"),
)
# What is too large for every day, as far as the kernel's own messages about memory.
KERNELS = (
    Case("linux-amd64", "pc-amd64", "Memory: "),
    Case("linux-arm64", "virt-arm64", "Memory: "),
    Case("linux-riscv64", "virt-riscv64", "Memory: "),
)
BY_NAME = {case.image: case for case in CASES}
SAMPLES = tuple(case for case in CASES if case.is_sample)


def shown(value: object) -> str | None:
    """A case's name among the parameters of a test."""
    return value.image if isinstance(value, Case) else None


def each_sample_and(*images: str) -> list[object]:
    """All cases as parameters: the gate has those of samples (one of them, where they take turns) and of these images.
    Tests of a file that boot each image have one or two each, so that the file has all."""
    return long_where(CASES, lambda case: not case.is_sample and case.image not in images)

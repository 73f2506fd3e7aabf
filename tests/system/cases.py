"""The images that the system tests boot, plain and patched, and how each run ends."""

from dataclasses import dataclass
from pathlib import Path

from tests.images import SMALL, real_image

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Case:
    """One image on one machine; `until` is a pattern on the console, None where the guest switches the machine off."""

    image: str
    machine: str
    until: str | None = None

    @property
    def path(self) -> Path:
        """The image, downloaded if it is not ours."""
        return real_image(self.image) if self.image in SMALL else ROOT / "samples" / f"{self.image}.elf"


CASES = (
    Case("kernel-amd64", "pc-amd64"),
    Case("kernel-arm64", "virt-arm64"),
    Case("kernel-riscv64", "virt-riscv64"),
    Case("opensbi-1.1", "virt-riscv64", "Boot HART MEDELEG.*\n"),
    Case("opensbi-1.6", "virt-riscv64", "Boot HART MEDELEG.*\n"),
    Case("u-boot-riscv64", "virt-riscv64", "\n=> "),
    Case("u-boot-arm64", "virt-arm64", "\n=> "),
    Case("gnumach", "pc-amd64", "No bootstrap code"),
)

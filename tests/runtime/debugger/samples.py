"""The sample kernels by machine."""

from pathlib import Path
from typing import Final

_SAMPLES: Final = Path(__file__).parents[3] / "samples"
SAMPLES: Final = {machine: _SAMPLES / f"kernel-{machine}.elf" for machine in ("amd64", "arm64", "riscv64")}

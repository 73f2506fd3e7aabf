"""C sources -> little linked images with debug information, made by the compilers that are there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kinst.targets.image import Image, open_image

COMPILERS = {"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}
FLAGS = ("-O1", "-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-Wl,-e,start", "-Wl,--build-id=none")


def compiled(folder: Path, machine: str, sources: dict[str, str], *options: str) -> Image:
    """The image that the sources, by file name, link to; skips the test where the compiler is not installed."""
    if shutil.which(COMPILERS[machine]) is None:
        pytest.skip(f"no {COMPILERS[machine]}")
    for name, text in sources.items():
        (folder / name).write_text(text)
    output = folder / "image.elf"
    command = [COMPILERS[machine], *FLAGS, *options, "-o", str(output), *(str(folder / name) for name in sources)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return open_image(output)

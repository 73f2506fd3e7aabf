"""C programs without libraries, built for a machine, and stock Qiling objects that run them."""

import atexit
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest
from qiling import Qiling
from qiling.const import QL_ARCH, QL_OS, QL_VERBOSE
from qiling.extensions.pipe import SimpleOutStream

from kinst.targets.elf.header import PF_X, PT_LOAD
from kinst.targets.image import Image, open_image

HERE: Final = Path(__file__).parent
COMPILERS: Final = {"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}
KINDS: Final = {"amd64": QL_ARCH.X8664, "arm64": QL_ARCH.ARM64, "riscv64": QL_ARCH.RISCV64}
OPTIONS: Final = ("-O1", "-g", "-fno-stack-protector", "-Wl,--build-id=none")
ALONE: Final = ("-ffreestanding", "-nostdlib")
RAM: Final = 0x2000_0000  # where a bare machine has its memory
RAM_SIZE: Final = 4 << 20
QUIET: Final = {"verbose": QL_VERBOSE.DISABLED, "console": False}
ARGUMENTS: Final = ("ab", "cde")


@cache
def built(machine: str, source: str, *options: str, hosted: bool = False) -> Path:
    """The ELF file of a C source here, made once; in a folder of its own, which may be a rootfs. `hosted`: with the
    compiler's own library."""
    compiler = COMPILERS[machine]
    if shutil.which(compiler) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {compiler}"
        pytest.skip(f"no {compiler}")
    folder = mkdtemp(prefix="attached-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    image = Path(folder, Path(source).stem)
    alone = () if hosted else ALONE
    subprocess.run([compiler, *OPTIONS, *alone, *options, str(HERE / source), "-o", str(image)], check=True)
    return image


def static(machine: str) -> Path:
    """The program for Linux, where it is linked."""
    return built(machine, "program.c", "-static", "-no-pie")


def moved(machine: str) -> Path:
    """The program for Linux, wherever it is loaded."""
    return built(machine, "program.c", "-static-pie", "-fPIE", "-Wl,--no-dynamic-linker")


def bare(machine: str) -> Path:
    """The program for no system."""
    return built(machine, "program.c", "-DBARE", "-static", "-no-pie", "-fno-pie", f"-Wl,-Ttext-segment={RAM:#x}")


def dynamic() -> Path:
    """A program with the host's C library, in a rootfs that has what it needs."""
    path = built("amd64", "dynamic.c", "-pie", "-fPIE", hosted=True)
    listed = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"/\S+", listed):
        copy = path.parent / library.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)
    return path


class Linux:
    """A program under Qiling's OS layer."""

    def __init__(self, program: Path, *arguments: str, multithread: bool = False) -> None:
        self.path = program
        words = [str(program), *(arguments or ARGUMENTS)]
        self.ql = Qiling(words, str(program.parent), multithread=multithread, **QUIET)
        self._stdout = SimpleOutStream(1)
        self.ql.os.stdout = self._stdout

    def run(self) -> tuple[bytes, int]:
        """What it prints, and its exit code."""
        self.ql.run()
        return self._stdout.read(), self.ql.os.exit_code

    def code(self) -> dict[int, bytes]:
        """The program's, as memory has it, by address."""
        known = self.ql.mem.map_info
        return _bytes(self.ql, [(at, end) for at, end, may, label, _ in known if may & 4 and label == self.path.name])


class Bare:
    """A bare image in a blob's memory, every segment at its address."""

    def __init__(self, path: Path, machine: str) -> None:
        self.image = open_image(path)
        profile = {"CODE": {"ram_size": RAM_SIZE, "entry_point": RAM, "heap_size": 0x1000, "load_address": RAM}}
        self.ql = Qiling(code=bytes(16), archtype=KINDS[machine], ostype=QL_OS.BLOB, profile=profile, **QUIET)
        for segment in self.image.segments:
            if segment.kind == PT_LOAD and segment.file_size:
                self._load(segment.address, self.image.read(segment.address, segment.file_size))

    def _load(self, address: int, content: bytes) -> None:
        if not self.ql.mem.is_mapped(address, len(content)):
            start = address & -4096
            self.ql.mem.map(start, -(start - address - len(content)) + 4095 & -4096)
        self.ql.mem.write(address, content)

    def run(self) -> tuple[bytes, int]:
        """What it wrote to its console, and the number it ended with."""
        self.ql.run(begin=self.image.entry, end=address_of(self.image, "stop"))
        used = int.from_bytes(self.ql.mem.read(address_of(self.image, "used"), 4), "little")
        content = bytes(self.ql.mem.read(address_of(self.image, "console"), used))
        return content[:-1], content[-1]

    def code(self) -> dict[int, bytes]:
        """As memory has it, by address."""
        code = [one for one in self.image.segments if one.kind == PT_LOAD and one.flags & PF_X]
        return _bytes(self.ql, [(one.address, one.address + one.file_size) for one in code])


def address_of(image: Image, symbol: str) -> int:
    """A link address."""
    found = image.symbols.address_of(symbol)
    assert found is not None, symbol
    return found


def _bytes(ql: Any, regions: Iterable[tuple[int, int]]) -> dict[int, bytes]:
    return {start: bytes(ql.mem.read(start, end - start)) for start, end in regions}

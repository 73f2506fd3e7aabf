"""Arguments of inlined copies that only the caller still knows, and that take computing, in what gcc and clang make:
at every instruction of the copies ours are what the program passes, and what gdb says of the same machine.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.system.inline_firings import Compared, Guest, compare

SOURCE: Final = Path(__file__).with_name("entry_values.c")
# What the parameters are given, in all; `first` may be an address on the stack, too.
PASSED: Final = {
    "first": {1111, 41, -42, 56, -48, 62, 33, 64, 71, 21, 91, 81, 84, 87, 95, 97},
    "second": {-2222, 124, -125, 12, 52, -53, 44, 65, 21, 2, 1, 0, 96, 98},
    "dead": {91, 93},
    "other": {92, 94},
    "small": {200, -0x2110},
    "wide": {-0x65432110},
    "tiny": {0xF3},
    "sum": {0xF0 - 5},
}
GCC: Final = {"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}
CLOBBERED: Final = {
    "amd64": "rax rcx rdx rsi rdi r8 r9 r10 r11",
    "arm64": "x0 x1 x2 x3 x4 x5 x6 x7 x8 x9",
    "riscv64": "a0 a1 a2 a3 a4 a5 a6 a7 t0 t1",
}
CLANG: Final = {
    "amd64": ("--target=x86_64-linux-gnu",),
    "arm64": ("--target=aarch64-linux-gnu",),
    "riscv64": ("--target=riscv64-linux-gnu", "-march=rv64gc", "-mabi=lp64d", "-mno-relax"),
}
# How many values at the functions' entries are told, at least; clang has none of inlined copies.
BUILDS: Final = {
    ("amd64", "gcc", 4): 130, ("amd64", "gcc", 5): 130, ("amd64", "clang", 5): 0,
    ("arm64", "gcc", 4): 15, ("arm64", "gcc", 5): 15, ("arm64", "clang", 5): 0,
    ("riscv64", "gcc", 4): 110, ("riscv64", "gcc", 5): 110, ("riscv64", "clang", 5): 0,
}  # fmt: skip

# The gate has each compiler and version on one machine, and each machine with one.
_IN_TURNS: Final = [
    pytest.param(*build, marks=[pytest.mark.long] * (build[0] != "amd64" and build[1:] != ("gcc", 5)))
    for build in BUILDS
]


def built(folder: Path, machine: str, compiler: str, version: int) -> Path:
    command = GCC[machine] if compiler == "gcc" else "clang"
    for tool in (command, GCC[machine], "gdb-multiarch"):
        if shutil.which(tool) is None:
            assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {tool}"
            pytest.skip(f"no {tool}")
    object_file, image = folder / "a.o", folder / "image.elf"
    words = ", ".join(f'"{name}"' for name in (*CLOBBERED[machine].split(), "memory"))
    options = (
        *("-O2", "-g", f"-gdwarf-{version}", "-ffreestanding", "-fno-pic", "-fno-stack-protector"),
        f"-DOUT=__attribute__(({'noipa' if compiler == 'gcc' else 'noinline'}))",
        "-DCOPY=static inline __attribute__((always_inline))",
        f'-DCLOBBER=asm volatile("" : : : {words})',
    )
    target = CLANG[machine] if compiler == "clang" else ()
    subprocess.run([command, *target, *options, "-c", str(SOURCE), "-o", str(object_file)], check=True)
    linked = ("-nostdlib", "-static", "-no-pie", "-Wl,-e,start", "-Wl,--build-id=none")
    subprocess.run([GCC[machine], *linked, "-o", str(image), str(object_file)], check=True)
    return image


@pytest.mark.parametrize(("machine", "compiler", "version"), _IN_TURNS)
def test_arguments_are_what_the_program_passes(machine: str, compiler: str, version: int, tmp_path: Path) -> None:
    image = built(tmp_path, machine, compiler, version)
    found = compare(Guest(image, call="start()"), ("work", "note", "shape", "narrowed"), most=2)
    assert not found.differ
    assert found.both["entry"] >= BUILDS[machine, compiler, version]
    assert found.both["plain"] > 40
    assert found.only_ours or (machine, compiler) != ("amd64", "gcc")  # by a pointer, then by a tail call
    count = passed(found)
    assert sum(count.values()) > 100
    assert count["dead"] >= 20 or compiler == "clang"  # DW_OP_GNU_parameter_ref


def passed(found: Compared) -> dict[str, int]:
    """How many values of each parameter were told: what gdb does not tell (a call by a pointer, then a tail call) must
    be right as well."""
    count = dict.fromkeys(PASSED, 0)
    for _, name, value in found.values:
        if name in PASSED and isinstance(value, int):
            signed = value - (value >> 63 << 64)
            assert signed in PASSED[name] or (name == "first" and signed > 1 << 40), (name, signed)
            count[name] += 1
    return count

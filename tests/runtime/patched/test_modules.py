"""Patched modules that a guest loads by itself, one over the other: their probes fire wherever they are."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run
from kinst.targets.image import open_image

KERNEL = Path(__file__).with_name("loads_modules.c")
BASES = {"amd64": 0x20_0000, "arm64": 0x4020_0000, "riscv64": 0x8000_0000}
PREFIXES = {"amd64": "", "arm64": "aarch64-linux-gnu-", "riscv64": "riscv64-linux-gnu-"}
OPTIONS = {"amd64": ("-fno-pic",), "arm64": (), "riscv64": ("-mcmodel=medany", "-mno-relax")}
MODULES = {
    "one": "int here = 3; __attribute__((noinline)) int apart(int value) { here += value; return here * 3; }\n"
    "int first(int value) { return apart(value) + apart(value + 1); }",
    "two": "int here = 9; __attribute__((noinline)) int apart(int value) { return value > 3 ? here / value : here; }\n"
    "int first(int value) { int sum = 0; while (value--) sum += apart(value); return sum; }",
}
# Two functions of arm64 in sections of their own, of which the first instruction is relocated.
ALIKE = "int here; " + "".join(
    f'asm(".section .text.{name}, \\"ax\\"\\n.globl {name}\\n.type {name}, @function\\n{name}: adrp x1, here\\n"'
    f'"add x0, x0, #{number}\\nret\\n.size {name}, . - {name}\\n.text");'
    for number, name in enumerate(("first", "second"))
)
PROGRAM = """
fbt:one:first:entry, fbt:two:first:entry { printf("%s %s %d\\n", probemod, probefunc, (int)arg0); }
fbt:one:apart:return, fbt:two:apart:return { printf("%s %s = %d\\n", probemod, probefunc, (int)arg1); }
fbt::report:entry { printf("report %d\\n", (int)arg0); }
kinst:one:first:, kinst:two:first: { hits++; }
END { printf("hits %d\\n", hits > 8); }
"""


def called(here: int, value: int) -> tuple[list[str], int, int]:
    """What the first module does: lines, its variable afterwards, and what `first` returns."""
    lines, total = [f"one first {value}"], 0
    for given in (value, value + 1):
        here += given
        total += here * 3
        lines.append(f"one apart = {here * 3}")
    return lines, here, total


def expected() -> list[str]:
    lines: list[str] = []
    here = 3
    for value in (5, 6):
        told, here, total = called(here, value)
        lines += [*told, f"report {total}"]
    lines.append("two first 7")
    for value in range(6, -1, -1):
        lines.append(f"two apart = {9 // value if value > 3 else 9}")
    lines.append(f"report {sum(9 // value if value > 3 else 9 for value in range(7))}")
    told, _, total = called(3, 8)
    return [*lines, *told, f"report {total}", "hits 1"]


def built(machine: str, tmp_path: Path, *probes: str, sources: Mapping[str, str] = MODULES) -> list[str]:
    """The arguments of kinst-run for a kernel that loads both modules with these probes."""
    prefix, options = PREFIXES[machine], ("-ffreestanding", "-fno-stack-protector", *OPTIONS[machine])
    if shutil.which(f"{prefix}gcc") is None:
        pytest.skip(f"no {prefix}gcc")

    def tool(*words: str) -> None:
        subprocess.run([prefix + words[0], *words[1:]], check=True, cwd=tmp_path, capture_output=True)

    place = BASES[machine] + 0x100_0000
    starts = {}
    for name, source in sources.items():
        (tmp_path / f"{name}.c").write_text(source)
        tool("gcc", "-O1", "-c", *options, f"{name}.c")
        done = CliRunner().invoke(
            rewrite,
            [f"{tmp_path}/{name}.o", *(f"-p{one}" for one in probes), "-o", f"{tmp_path}/{name}.k.o"],
        )
        assert done.exit_code == 0, done.output
        tool("ld", "-e", "first", f"-Ttext={place:#x}", "-o", name, f"{name}.k.o")
        tool("objcopy", "-O", "binary", "-R", ".note*", name, f"{name}.bin")
        start = open_image(tmp_path / name).symbols.address_of("first")
        assert start is not None
        starts[name.upper()] = start
    shutil.copy(KERNEL, tmp_path)
    defines = [f"-D{name}={value:#x}" for name, value in (("PLACE", place), *starts.items())]
    link = (
        "-fno-pic",
        "-no-pie",
        "-nostdlib",
        "-static",
        "-Wl,--build-id=none",
        "-Wl,-e,_start",
        f"-Wl,-Ttext-segment={BASES[machine]:#x}",
    )
    tool("gcc", "-O1", *options, *defines, *link, "-o", "kernel.elf", KERNEL.name)

    return [*(f"--module={name}={tmp_path}/{name}.k.o" for name in MODULES), str(tmp_path / "kernel.elf")]


@pytest.mark.parametrize("machine", BASES)
def test_probes_of_modules_fire_where_these_are_loaded(machine: str, tmp_path: Path) -> None:
    words = built(machine, tmp_path, "fbt:::", "kinst::first:*")
    result = CliRunner().invoke(run, ["-q", "-n", PROGRAM, *words, "--timeout", "5"])
    assert result.exit_code == 0, result.stderr
    assert [line for line in result.stdout.splitlines() if line] == expected()

    idle = CliRunner().invoke(
        run, ["-q", "-n", 'fbt::report:entry { printf("%d\\n", arg0); }', *words, "--timeout", "5"]
    )
    assert idle.exit_code == 0 and len(idle.stdout.split()) == 4  # breakpoints of no enabled probe do nothing


def test_it_is_said_if_nothing_tells_breakpoints_apart(tmp_path: Path) -> None:
    """Of arm64 code whose instructions are all probed nothing is left by which to find it."""
    words = built("arm64", tmp_path, "kinst:::", sources=dict.fromkeys(MODULES, ALIKE))
    result = CliRunner().invoke(run, ["-q", "-n", "kinst:one:: { hits++; }", *words, "--timeout", "5"])
    assert result.exit_code == 1
    assert "look alike: too little is left of its code to tell which" in result.stderr


def test_a_module_is_not_an_image_to_run(tmp_path: Path) -> None:
    words = built("amd64", tmp_path, "fbt:::")
    result = CliRunner().invoke(run, ["-n", "fbt:::entry", str(tmp_path / "one.k.o")])
    assert result.exit_code == 2 and "is a module: give the kernel that loads it" in result.stderr
    other = CliRunner().invoke(run, ["-n", "fbt:::entry", words[0], "samples/kernel-arm64.elf"])
    assert other.exit_code == 2 and "is a module for amd64, the image is for arm64" in other.stderr

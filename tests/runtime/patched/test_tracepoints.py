"""Tracepoints made as Linux makes them, asked for by code that gcc compiled: they fire with nobody else tracing, where
the kernel would call their functions and with the same arguments, and the code does what it does without them."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import diff, list_probes, rewrite
from kinst.runtime.cli import run
from kinst.targets.arch.registry import NAMES
from kinst.targets.image import open_image
from kinst.targets.tracepoints import tracepoints

SOURCE: Final = Path(__file__).with_name("tracepoints.c")
COMPILERS: Final = {
    "amd64": ("gcc", "-mno-red-zone"),
    "arm64": ("aarch64-linux-gnu-gcc",),
    "riscv64": ("riscv64-linux-gnu-gcc", "-mcmodel=medany"),
}
OPTIONS: Final = ("-O2", "-g", "-ffreestanding", "-fno-pic", "-no-pie", "-static", "-nostdlib")
LAYOUT: Final = ("-Wl,-Ttext=0x200000", "-Wl,-e,work", "-Wl,--build-id=none")
PROGRAM: Final = """
sdt:sample::step
{
    printf("%d %s %d %d/%d ", args[0], stringof(args[1]), args[2], args[3]->low, args[3]->high);
    printf("%d %d %d %d %d\\n", args[4], args[5], args[6], args[7], args[8]);
}
sdt:::odd, sdt:::looped, sdt:::helped { printf("%s %d\\n", probename, args[0]); }
sdt:::looked_at { printf("never\\n"); }
"""
FIRED: Final = """\
0 text 255 1/0 0 0 0 8 0
looped 0
helped 0
1 ext 0 1/1 3 9 -1 8 0
odd 1
looped 10
helped 2
2 text 1 1/2 10 100 -2 8 1
looped 20
helped 4
"""
RESULT: Final = "work(3) = 0xc\n"  # what it returns without probes, and nobody was called


def compiled(machine: str, folder: Path, *options: str) -> Path:
    compiler = COMPILERS[machine]
    if shutil.which(compiler[0]) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {compiler[0]}"
        pytest.skip(f"no {compiler[0]}")
    output = folder / "guest.elf"
    subprocess.run([*compiler, *OPTIONS, *LAYOUT, *options, "-o", str(output), str(SOURCE)], check=True)
    return output


@pytest.fixture(params=NAMES)
def image(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return compiled(request.param, tmp_path)


def called(image: Path, *options: str) -> str:
    result = CliRunner().invoke(run, ["-q", "--clock", "icount", "--call", "work(3)", *options, str(image)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_they_fire_where_the_kernel_would_call_and_change_nothing(image: Path) -> None:
    assert called(image) == RESULT
    assert called(image, "-n", PROGRAM) == f"{FIRED}\n{RESULT}"


def without_sizes(path: Path) -> Path:
    """The same with the sizes of all symbols gone, as kallsyms tells of them."""
    data = bytearray(path.read_bytes())
    table = open_image(path).section(".symtab")
    assert table is not None
    for at in range(table.offset, table.offset + table.size, 24):
        data[at + 16 : at + 24] = bytes(8)  # st_size
    path.write_bytes(data)
    return path


def test_they_are_found_by_symbols_without_sizes(image: Path) -> None:
    known = [(one.name, one.system, one.places) for one in tracepoints(open_image(image))]
    assert known
    found = tracepoints(open_image(without_sizes(image)))
    assert [(one.name, one.system, one.places) for one in found] == known


@pytest.mark.parametrize("machine", NAMES)
def test_they_fire_once_where_the_kernel_itself_traces(machine: str, tmp_path: Path) -> None:
    image = compiled(machine, tmp_path, "-DTRACED")  # its jumps are taken, and `help` is called
    result = called(image)
    assert result != RESULT
    assert called(image, "-n", PROGRAM) == f"{FIRED}\n{result}"


@pytest.mark.parametrize("options", [(), ("-DTRACED",)], ids=("nop", "jump"))
@pytest.mark.parametrize("machine", NAMES)
def test_they_fire_where_the_kernel_calls_a_list_of_its_own_tracers(
    machine: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    image = compiled(machine, tmp_path, "-DLISTED", *options)
    assert called(image, "-n", PROGRAM) == f"{FIRED}\n{called(image)}"


def test_a_patched_image_has_them_and_its_file_keeps_their_nops(image: Path) -> None:
    patched = image.with_name("patched.elf")
    done = CliRunner().invoke(rewrite, [str(image), "--probe", "sdt:::", "-o", str(patched)])
    assert done.exit_code == 0, done.output
    compared = CliRunner().invoke(diff, [str(image), str(patched)])
    assert compared.exit_code == 0, compared.output
    assert called(patched, "-n", PROGRAM) == f"{FIRED}\n{RESULT}"


def test_the_image_tells_its_tracepoints(image: Path) -> None:
    found = {one.name: one for one in tracepoints(open_image(image))}
    assert {name: one.system for name, one in found.items()} == {
        "step": "sample", "odd": "sample", "helped": "sample", "looked_at": "", "looped": ""
    }  # fmt: skip  # no code asks for `unused`
    assert len(found["helped"].places) > 1  # in `work`, and in the function that it calls
    listed = CliRunner().invoke(list_probes, [str(image), "sdt:sample::"])
    assert [line.split()[1:] for line in listed.stdout.splitlines()[1:]] == [
        ["sdt", "sample", name, "deferred"] for name in ("helped", "odd", "step")
    ]


def test_what_no_code_asks_for_is_no_probe(image: Path) -> None:
    result = CliRunner().invoke(list_probes, [str(image), "sdt:::unused"])
    assert result.exit_code == 1
    assert "no such static probe" in result.stderr

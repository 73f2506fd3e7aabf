"""Shared libraries as a compiler makes them: what the dynamic linker reads of them is still there."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from kinst.rewriter.rewriting import Source, open_source, plan_of, plan_probes
from kinst.rewriter.standalone.request import COUNT
from kinst.rewriter.writing.write import write_image
from kinst.targets.elf.dynamic import dynamic_entries, is_library
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image, open_image
from kinst.targets.probe import parse_probe_names
from tests.contract import check_contract
from tests.images import real_image

PT_GNU_STACK = 0x6474E551
SOURCE = "int answer(int n) { return n < 2 ? n : answer(n - 1) + answer(n - 2); }"
COMPILERS = {"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}


def built(machine: str, folder: Path, *options: str) -> Path:
    compiler, out = COMPILERS[machine], folder / "answer.so"
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    source = folder / "answer.c"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-O1", "-fPIC", "-Wl,--no-as-needed", "-o", out, source, *options], check=True)
    return out


def kinds(image: Image) -> list[int]:
    return [segment.kind for segment in image.segments]


@pytest.mark.parametrize("machine", COMPILERS)
@pytest.mark.parametrize("is_standalone", [True, False])
def test_a_library_keeps_what_it_says_of_the_stack(machine: str, is_standalone: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """glibc since 2.41 refuses to dlopen a library without PT_GNU_STACK, and makes all stacks executable before."""
    original, out = built(machine, tmp_path, "-shared"), tmp_path / "p.so"
    opened = open_source(Source(original))
    resolution, plan = plan_probes(opened, parse_probe_names("fbt:::entry"))
    write_image(plan_of(opened, resolution, alone=COUNT) if is_standalone else plan, out)
    before, after = kinds(open_image(original)), kinds(open_image(out))
    assert PT_GNU_STACK in after
    # Standalone: trampolines, counters, and what unwinders look for, with the program headers.
    assert sorted(after) == sorted([*before, *([PT_LOAD] * (3 if is_standalone else 1))])
    if not is_standalone:
        check_contract(original.read_bytes(), out.read_bytes())
    elif machine == "amd64":
        assert ctypes.CDLL(str(out)).answer(20) == 6765


def test_what_a_library_is(tmp_path: Path) -> None:
    def found(path: Path) -> bool:
        image = open_image(path)
        return is_library(image.data, image.segments)

    assert found(built("amd64", tmp_path, "-shared"))
    assert found(built("amd64", tmp_path, "-shared", "-Wl,-soname,answer.so", "-Wl,-dynamic-linker,/lib/ld.so"))
    assert not found(built("amd64", tmp_path, "-pie", "-nostartfiles"))
    assert not found(built("amd64", tmp_path, "-shared", "-nostdlib"))  # nobody's: as firmware that moves itself
    assert not found(real_image("opensbi-1.1"))


def test_entries_of_an_image_without_any() -> None:
    image = open_image(real_image("u-boot-amd64"))
    without = [segment for segment in image.segments if segment.kind == PT_LOAD]
    assert dynamic_entries(image.data, without) == {}

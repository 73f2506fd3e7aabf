"""Common inline functions of Linux kernels: every site is an instruction by objdump's sweep of its caller, and inside a
copy; each patched image's difference is explained. Only of kernels that are in the cache."""

import random
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from kinst.rewriter.diff import compare
from kinst.rewriter.inline_probes import Expansion
from kinst.rewriter.plan import make_plan
from kinst.rewriter.resolve import Resolution, resolve
from kinst.rewriter.rewriting import Opened, Source, open_source
from kinst.rewriter.write import write_image
from kinst.targets.image import open_image
from kinst.targets.probe import parse_probe_name
from tests.images import CACHE, real_image

OBJDUMP = {
    "amd64": "x86_64-linux-gnu-objdump",
    "arm64": "aarch64-linux-gnu-objdump",
    "riscv64": "riscv64-linux-gnu-objdump",
}
KERNELS = [arch for arch in OBJDUMP if (CACHE / f"linux-{arch}" / "image.elf").exists()]
FUNCTIONS = ("get_current", "list_empty", "vfs_create")
CALLERS = 25  # that objdump is asked for
each_kernel = pytest.mark.parametrize("arch", KERNELS)


@cache
def opened(arch: str) -> Opened:
    return open_source(Source(real_image(f"linux-{arch}")))


@cache
def resolved(arch: str) -> Resolution:
    names = [f"kinst::{function}:{name}" for function in FUNCTIONS for name in ("entry", "return")]
    return resolve(opened(arch).program, [parse_probe_name(name) for name in names], inlines=opened(arch).inlines())


def expansions(arch: str) -> list[Expansion]:
    found = [outcome.expansion for outcome in resolved(arch).outcomes]
    assert [outcome.error for outcome in resolved(arch).outcomes] == [None] * len(found)
    return [one for one in found if one is not None]


@each_kernel
def test_ways_out_are_in_copies_and_every_site_is_there_once(arch: str) -> None:
    for one in expansions(arch):
        addresses = [site.address for site in one.sites]
        assert len(set(addresses)) == len(addresses) > 0
        for site in one.sites if one.name.name == "return" else ():
            assert any(low <= site.address < high for copy in site.copies for low, high in copy.ranges)
    assert max(one.copies for one in expansions(arch)) > 500


@each_kernel
def test_every_site_is_an_instruction(arch: str) -> None:
    if shutil.which(OBJDUMP[arch]) is None:
        pytest.skip(f"no {OBJDUMP[arch]}")
    functions = opened(arch).program.functions
    by_caller: dict[int, list[int]] = {}
    for one in expansions(arch):
        for site in one.sites:
            row = functions.row_at(site.address)
            assert row is not None
            by_caller.setdefault(row, []).append(site.address)
    for row in random.Random(arch).sample(sorted(by_caller), CALLERS):
        start = int(functions.address[row])
        starts = instructions(arch, start, start + int(functions.size[row]))
        assert starts.issuperset(by_caller[row]), functions.names[row]


def instructions(arch: str, start: int, end: int) -> set[int]:
    """Where objdump sees instructions begin."""
    command = [OBJDUMP[arch], "-d", "--no-show-raw-insn", f"--start-address={start}", f"--stop-address={end}"]
    path = str(real_image(f"linux-{arch}"))
    text = subprocess.run([*command, path], check=True, capture_output=True, text=True).stdout
    return {int(line.partition(":")[0], 16) for line in text.splitlines() if ":\t" in line}


@each_kernel
def test_every_difference_is_explained(arch: str, tmp_path: Path) -> None:
    patched = tmp_path / "vmlinux"
    plan = make_plan(resolved(arch))
    write_image(plan, patched)
    found = compare(opened(arch).program.image, open_image(patched))
    assert found.is_explained
    assert len(plan.manifest.sites) > 1000

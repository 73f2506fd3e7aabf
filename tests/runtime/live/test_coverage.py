"""--coverage under QEMU: against QEMU's own plugin at every instruction, and against our machine."""

import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kinst.runtime.coverage.document import Coverage
from kinst.runtime.coverage.json_format import read_coverage
from kinst.targets.arch.registry import NAMES
from kinst.targets.image import open_image
from tests.commands.in_process import kinst_run
from tests.qemu_plugin.plugin import counting_plugin
from tests.runtime.live.qemus import needs, on
from tests.samples.machines import MACHINES, Sample

_PART = 0.9  # of the code that has to be counted


def covered(sample: Sample, file: Path, *options: str) -> Coverage:
    words = ("--console", file.parent / "console", "-q", "--coverage", file, *options)
    done = kinst_run(sample.image, *words)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return read_coverage(file)


def counts(coverage: Coverage) -> dict[str, dict[int, int]]:
    """By function, and by the address of the instruction."""
    return {
        one.name: {one.address + block.offset: block.runs for block in one.blocks} for one in coverage.images[0].ran
    }


def plain(sample: Sample, folder: Path, addresses: list[int]) -> dict[int, int]:
    """How often QEMU itself executed each of these, in a run without probes."""
    away = {one.load_address - one.address for one in open_image(sample.image).segments if one.file_size} | {0}
    every = np.array([at + by & (1 << 64) - 1 for at in addresses for by in away], np.uint64)
    plugin = counting_plugin(sample.qemu[0], every, folder)
    if plugin is None:
        pytest.skip(f"{sample.qemu[0]} has no plugins")
    words = [*sample.qemu, "-display", "none", "-serial", "null", "-no-reboot", "-plugin", plugin.option]
    subprocess.run([*words, "-kernel", sample.image], check=False, timeout=300, stdin=subprocess.DEVNULL)
    found = dict(zip(plugin.addresses.tolist(), plugin.counts().tolist(), strict=True))
    return {at: sum(found[at + by & (1 << 64) - 1] for by in away) for at in addresses}


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_counts_are_those_of_qemus_plugin(name: str, tmp_path: Path) -> None:
    """Where our machine and a plain QEMU agree, so that it does not depend on the time, what is counted under QEMU is
    the same, too."""
    sample = MACHINES[name]
    needs(sample.qemu[0])
    ours = counts(covered(sample, tmp_path / "own.json", "--coverage-of", "instructions"))
    live = covered(sample, tmp_path / "on.json", "--coverage-of", "instructions", "--on", on(sample))
    qemu = plain(sample, tmp_path, [at for function in ours.values() for at in function])
    # How late timers are is the host's; work waits for them, and kmalloc() walks a list that depends on their order.
    timed = ("callout", "clock", "timer", "critical", "interrupt", "work", "kmalloc", "kfree")
    functions = {one: runs for one, runs in ours.items() if not one.startswith(timed)}
    steady = {one: runs for one, runs in functions.items() if all(qemu[at] == count for at, count in runs.items())}
    assert len(steady) > 40
    (image,) = live.images
    unknown = {at for start, size in image.unknown for at in range(start, start + size)}
    there = counts(live)
    elf = open_image(sample.image)
    if name == "amd64":  # a repeated string instruction is executed once there, and each of its iterations here
        unknown |= {at for runs in ours.values() for at in runs if elf.read(at, 1)[0] in (0xF2, 0xF3)}
    for one, runs in steady.items():
        known = {at: count for at, count in runs.items() if at not in unknown and count}
        assert {at: count for at, count in there.get(one, {}).items() if count and at not in unknown} == known, one
    size = sum(size for _, size in image.unknown)
    assert size < (1 - _PART) * sum(one.size for one in image.functions)
    assert not live.has_order


@pytest.mark.long
def test_functions_are_counted_at_their_entries(tmp_path: Path) -> None:
    sample = MACHINES["riscv64"]
    needs(sample.qemu[0])
    live = covered(
        sample, tmp_path / "on.json", "--coverage-of", "functions", "--on", shlex.join(shlex.split(on(sample)))
    )
    ours = {one.name: one.runs for one in covered(sample, tmp_path / "own.json").images[0].ran}
    found = {one.name: one.runs for one in live.images[0].ran}
    unknown = {start for start, _ in live.images[0].unknown}
    names = [one.name for one in live.images[0].functions if one.name in ours and one.address not in unknown]
    steady = [name for name in names if name.startswith("vfs_")]
    assert len(steady) > 5
    assert {name: found.get(name, 0) for name in steady} == {name: ours[name] for name in steady}

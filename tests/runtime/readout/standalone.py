"""The sample kernels, standalone, and their memory when they were about to switch a real QEMU off."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run
from kinst.targets.image import Image, open_image
from kinst.targets.manifest.packed import Manifest, find_manifest
from kinst.targets.standalone import Standalone
from tests.runtime.readout.qemu import emulator
from tests.samples.machines import MACHINES

CLOCK = ("--clock", "icount")
PROBES = ("--probe", "fbt:::")
PLACES = {"amd64": 0x10_0000, "arm64": 0x4008_0000, "riscv64": 0x8000_0000}  # where their RAM has the sample kernel
_RAM = 3 << 20  # bytes that are saved


@dataclass(frozen=True, slots=True)
class Ran:
    """A kernel that ran."""

    machine: str
    image: Path
    manifest: Manifest
    kept: Standalone
    core: Path
    raw: Path
    told: str  # what was told through QEMU's stub without a program

    @property
    def dump(self) -> str:
        """The memory as --read takes it."""
        return f"{self.raw}@{PLACES[self.machine]:#x}"

    def read(self, *words: object) -> Result:
        """What kinst-run says over the core."""
        return kinst_run(self.image, "--read", self.core, *words)

    def whole(self) -> list[str]:
        """FUNCTION:NAME of the probes that fired wherever they do in a traced run: some returns may be no jumps, and
        the kernel stands where it would switch itself off."""
        _, traced = rewritten(self.machine, self.image.parent / "traced.elf", *PROBES)
        all_sites = sites_of(traced)
        same = {name for name, count in sites_of(self.manifest).items() if all_sites[name] == count}
        return sorted(same - {"power_off:entry"})

    def traced(self, program: str) -> str:
        """What a program prints of the original in our machine."""
        result = kinst_run(MACHINES[self.machine].image, "-qn", program, "--console", "/dev/null", *CLOCK)
        assert result.exit_code == 0, result.output
        return result.stdout


def kinst_run(*words: object) -> Result:
    return CliRunner().invoke(run, [str(word) for word in words], prog_name="kinst-run")


def rewritten(machine: str, image: Path, *words: str) -> tuple[Image, Manifest]:
    """The sample kernel with probes."""
    result = CliRunner().invoke(rewrite, [str(MACHINES[machine].image), *words, "-o", str(image)])
    assert result.exit_code == 0, result.output
    opened = open_image(image)
    manifest = find_manifest(opened)
    assert manifest is not None
    return opened, manifest


def sites_of(manifest: Manifest) -> dict[str, int]:
    """FUNCTION:NAME of each probe, and how many sites it has."""
    counts = np.bincount(manifest.enablings["probe"]).tolist()
    return {":".join(manifest.probe_fields(row)[2:]): count for row, count in enumerate(counts)}


@contextmanager
def ran(machine: str, folder: Path, *words: str, cpus: int = 1) -> Iterator[Ran]:
    """A kernel under QEMU, until it is about to switch itself off. A single CPU counts its instructions for time, so
    that interrupts come at the same places however much the host has to do. QEMU has ended when this is handed out: who
    reads its stub lets the guest go on, and some spin when they are off."""
    path = folder / "standalone.elf"
    image, manifest = rewritten(machine, path, *MACHINES[machine].alone, *PROBES, *words)
    end = image.symbols.address_of("power_off")
    assert manifest.standalone is not None and end is not None
    clock = ("-icount", "shift=7,sleep=off") if cpus == 1 else ()
    with emulator(machine, folder, *clock, "-kernel", str(path), "-S", "-smp", str(cpus)) as qemu:
        qemu.run_to(end)
        core, raw = qemu.dump(), qemu.save(PLACES[machine], _RAM)
        told = kinst_run(path, "--read", qemu.source)
        assert told.exit_code == 0, told.stderr
    yield Ran(machine, path, manifest, manifest.standalone, core, raw, told.stdout)

"""Sample machine -> how QEMU runs it, how it is rebuilt, and what its console must show."""

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "samples"


@dataclass(frozen=True, slots=True)
class Sample:
    """One machine's build of the sample kernel. `qemu` is the command line of samples/README.md without the image;
    `free` the link address of RAM that it maps and does not know."""

    name: str
    compiler: str
    qemu: tuple[str, ...]
    free: int

    @property
    def image(self) -> Path:
        """The committed image."""
        return SAMPLES / f"kernel-{self.name}.elf"

    @property
    def alone(self) -> tuple[str, ...]:
        """What `kinst-rewrite` is told to make it standalone."""
        return ("--standalone", "--trampoline-base", f"{self.free:#x}")


MACHINES = {
    sample.name: sample
    for sample in (
        Sample("amd64", "x86_64-linux-gnu-gcc", ("qemu-system-x86_64",), 0xFFFFFFFF80200000),
        Sample(
            "arm64",
            "aarch64-linux-gnu-gcc",
            ("qemu-system-aarch64", "-M", "virt,gic-version=2", "-cpu", "cortex-a57"),
            0x40180000,
        ),
        Sample("riscv64", "riscv64-linux-gnu-gcc", ("qemu-system-riscv64", "-M", "virt", "-bios", "none"), 0x80080000),
    )
}


def expected_console(cpus: int) -> str:
    """The golden console, which is that of one CPU, with the lines that tell how many CPUs there are."""
    lines = (SAMPLES / "kernel.out").read_text().splitlines()
    found, share = lines.index("cpu: 1 found"), lines.index("cpu0: 16 jobs")
    lines[share : share + 1] = [f"cpu{number}: {len(range(number, 16, cpus))} jobs" for number in range(cpus)]
    lines[found : found + 1] = [f"cpu: {cpus} found", *(f"cpu{number}: started" for number in range(1, cpus))]
    return "\n".join(lines) + "\n"


def run_qemu(sample: Sample, image: Path, *options: str) -> str:
    """The console of `image` under QEMU up to power-off, with the line ends of a text file."""
    command = [*sample.qemu, "-display", "none", "-serial", "stdio", "-kernel", str(image), *options]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL, cwd=image.parent
    )
    return result.stdout.replace("\r\n", "\n")


def memory_at_exit(sample: Sample, folder: Path, at: str, start: int, size: int, *options: str) -> bytes:
    """Memory as the kernel leaves it, read by gdb when it comes to `at`, an address as gdb writes one.

    QEMU's monitor could read it after power-off but on riscv64, whose test finisher ends QEMU at once.
    """
    stub, dump = folder / "gdb", folder / "memory"
    command = [*sample.qemu, "-display", "none", "-serial", "null", "-kernel", str(sample.image), "-S"]
    process = subprocess.Popen([*command, "-gdb", f"unix:{stub},server=on,wait=off", *options], cwd=folder)
    script = [
        "set confirm off",
        "set pagination off",
        f"target remote {stub}",
        f"hbreak {at}",
        "continue",
        f"dump binary memory {dump} {start:#x} {start + size:#x}",
    ]
    try:
        deadline = time.monotonic() + 20
        while not stub.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        gdb = ["gdb-multiarch", "-nx", "-batch", *(f"-ex={line}" for line in script), str(sample.image)]
        subprocess.run(gdb, check=True, capture_output=True, timeout=60, cwd=folder)
        return dump.read_bytes()
    finally:
        process.kill()
        process.wait()
        stub.unlink(missing_ok=True)


def missing(*tools: str) -> str | None:
    """The first of `tools` that this machine lacks, as a reason to skip."""
    absent = [tool for tool in tools if shutil.which(tool) is None]
    return f"{absent[0]} is not installed" if absent else None

"""What `kinst-run --on` costs: QEMU's boots of Linux beside plain ones, a hit in a loop, and jumps that are planned.

Seconds of CPU of everything that runs, QEMU and Python. Boots are to the panic without a root, with the entries of all
functions counted: the first makes the image (`anew`), the others take it from the cache (`kept`). A hit's nanoseconds
are QEMU's alone: what a loop of calls takes more with probes than without.
"""

import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from unittest.mock import patch

from click.testing import CliRunner

from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.rewriting import Source, open_source, plan_of
from kinst.rewriter.standalone.request import COUNT
from kinst.runtime.cli import run as kinst_run
from kinst.runtime.live.room.rooms import may_have_room
from kinst.targets.probe import parse_probe_name
from tests.bench.linux import RIVALS, kernel_for_qemu, user_seconds
from tests.images import CACHE
from tests.samples.machines import MACHINES

REPEATS: Final = 3
_CPUS: Final = (1, 4)
_MEMORY: Final = "512M"
_COUNTED: Final = "fbt:::entry { @[probefunc] = count(); }"
_CALLS: Final = 20_000_000
_FUNCTION: Final = """
.globl f
.type f, %function
f:
  {body}
  ret
.size f, . - f
"""
_BODY: Final = {
    "arm64": "stp x29, x30, [sp, #-16]!\n  mov x29, sp\n  add x0, x0, #1\n  ldp x29, x30, [sp], #16",
    "riscv64": "addi sp, sp, -16\n  sd ra, 8(sp)\n  addi a0, a0, 1\n  ld ra, 8(sp)\n  addi sp, sp, 16",
}
_LOOP: Final = {
    "arm64": """
.globl _start
.type _start, %function
_start:
  adrp x1, top
  mov sp, x1
  ldr x19, ={calls}
1:
  bl f
  subs x19, x19, #1
  b.ne 1b
  ldr w0, =0x84000008
  hvc #0
2:
  b 2b
.size _start, . - _start
.ltorg
""",
    "riscv64": """
.globl _start
.type _start, %function
_start:
  la sp, top
  li s0, {calls}
1:
  call f
  addi s0, s0, -1
  bnez s0, 1b
  li t0, 0x100000
  li t1, 0x5555
  sw t1, 0(t0)
2:
  j 2b
.size _start, . - _start
""",
}
_STACK: Final = ".bss\n.balign 4096\n.skip 4096\ntop:\n.skip 4096\n"
_PLACES: Final = {"arm64": 0x4008_0000, "riscv64": 0x8000_0000}
_HITS: Final = {
    "counted": "fbt::f:entry { @ = count(); }",
    "an argument": "fbt::f:entry { @ = sum(arg0); }",
    "two and the time": "fbt::f:entry { @ = sum(arg0); @b = sum(arg1); @t = max(timestamp); }",
}


def boots(machine: str, path: Path, cpus: int, folder: Path) -> Mapping[str, float]:
    """Medians of seconds, by way."""
    rival = RIVALS[machine]
    board = [rival.program, *rival.board, "-m", _MEMORY, "-smp", str(cpus)]
    kernel = str(kernel_for_qemu(machine, path, folder / f"{machine}-kernel"))
    plain = [*board, "-append", rival.command_line, "-nographic", "-no-reboot", "-kernel", kernel]
    run = str(Path(sys.executable).with_name("kinst-run"))
    traced = [run, "-q", "--on", shlex.join(board), "--append", rival.command_line, "-n", _COUNTED, str(path)]
    times: dict[str, list[float]] = {"plain": [], "anew": [], "kept": [], "QEMU": []}
    for repeat in range(REPEATS):
        with patch.dict(os.environ, XDG_CACHE_HOME=str(folder / f"cache-{cpus}-{repeat}")):
            times["plain"].append(user_seconds(plain))
            times["anew"].append(user_seconds(traced))
            times["kept"].append(user_seconds(traced))
            times["QEMU"].append(_of_qemu(traced[1:]))
    return {name: statistics.median(each) for name, each in times.items()}


def loop(machine: str, folder: Path) -> Path | None:
    """The image of a loop of calls that powers off; None: nothing here assembles it."""
    compiler = MACHINES[machine].compiler
    if shutil.which(compiler) is None:
        return None
    source, image = folder / f"{machine}.s", folder / f"{machine}.elf"
    source.write_text(_LOOP[machine].format(calls=_CALLS) + _FUNCTION.format(body=_BODY[machine]) + _STACK)
    place = f"-Wl,-Ttext={_PLACES[machine]:#x},--build-id=none"
    subprocess.run([compiler, "-nostdlib", "-static", "-no-pie", place, str(source), "-o", str(image)], check=True)
    return image


def hits(machine: str, image: Path) -> Mapping[str, float]:
    """Nanoseconds that a hit takes, by what is read."""
    command = shlex.join(word for word in MACHINES[machine].qemu if word not in ("-bios", "none"))

    def median(text: str) -> float:
        words = ["-q", "--on", command, "-n", text, str(image)]
        return statistics.median(_of_qemu(words) for _ in range(REPEATS))

    plain = median("BEGIN { 1; }")
    return {name: (median(text) - plain) * 1e9 / _CALLS for name, text in _HITS.items()}


def _of_qemu(words: Sequence[str]) -> float:
    """User seconds of the QEMU of a run, which is all that this process starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = CliRunner().invoke(kinst_run, [*words])
    assert done.exit_code == 0, done.output
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def planned(path: Path) -> tuple[int, float]:
    """How many entries of functions are planned as jumps, and seconds of CPU for that."""
    opened = open_source(Source(path))
    resolved = resolve(opened.program, [parse_probe_name("fbt:::entry")])
    # As for QEMU: beside the image where it may have a room, and without frames for debuggers.
    wanted = replace(COUNT, has_frames=False, has_room=may_have_room(opened.program.image))
    begun = time.process_time()
    plan = plan_of(opened, resolved, alone=wanted)
    return len(plan.manifest.sites), time.process_time() - begun


def main(names: Sequence[str] = tuple(RIVALS)) -> None:
    """Print the rows."""
    print("under QEMU by kinst-run --on: user seconds of a boot, all functions counted; ns a hit; jumps planned")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for machine in names:
            path = CACHE / f"linux-{machine}" / "image.elf"
            if not path.exists() or shutil.which(RIVALS[machine].program) is None:
                print(f"{machine:8} needs {RIVALS[machine].program} and `poe images linux-{machine}`")
                continue
            for cpus in _CPUS:
                print(_boot_row(machine, cpus, boots(machine, path, cpus, folder)), flush=True)
            count, seconds = planned(path)
            print(f"{machine:8} {count:,} jumps planned in {seconds:.1f} s of CPU, {count / seconds:,.0f} a second")
            if machine in _LOOP and (image := loop(machine, folder)) is not None:
                cells = (f"{name} {spent:.0f}" for name, spent in hits(machine, image).items())
                print(f"{machine:8} ns a hit: {', '.join(cells)}", flush=True)


def _boot_row(machine: str, cpus: int, found: Mapping[str, float]) -> str:
    plain, kept, anew = found["plain"], found["kept"], found["anew"]
    own = found["QEMU"]
    return (
        f"{machine:8} {cpus} CPUs: plain {plain:.2f} s; image kept {kept:.2f} s, {kept / plain:.1f}x, of which QEMU's "
        f"{own:.2f} s, {own / plain:.1f}x; made anew {anew:.2f} s, {anew / plain:.1f}x"
    )


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(RIVALS))

"""A breakpoint with commands, single steps, and steps backwards, in the sample kernel: gdb on QEMU's stub and on our
own door. QEMU's stub goes backwards only in a recording of a machine with a disk: there is no row of it."""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.samples.machines import MACHINES, Sample, missing

FUNCTION: Final = "console_putc"
REPEATS: Final = 3
STEPS: Final = 200
_TOGETHER: Final = """set confirm off
set pagination off
target remote {stub}
set $hits = 0
{counting}
hbreak power_off
continue
printf "hits %d\\n", $hits
disconnect
"""
_COUNTING: Final = f"""hbreak {FUNCTION}
commands
silent
set $hits = $hits + 1
continue
end
"""
_STEPPING: Final = f"stepi {STEPS}"
_STOPPED: Final = f"hbreak {FUNCTION}\ncontinue\ndelete 1"
_BACK: Final = 50
_REVERSING: Final = f"{_STOPPED}\nreverse-stepi {_BACK}"


def seconds(sample: Sample, counting: str, stub_of: Sequence[str] = ()) -> tuple[float, int]:
    """Of a run to its end under gdb, and the hits. `stub_of`: the command whose stub it is, with {stub} for the socket;
    default: QEMU's."""
    with tempfile.TemporaryDirectory() as folder:
        stub, script = Path(folder) / "stub", Path(folder) / "script"
        script.write_text(_TOGETHER.format(stub=stub, counting=counting))
        command = [word.format(stub=stub) for word in stub_of or _qemu(sample)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while not stub.exists():
                time.sleep(0.01)
            start = time.perf_counter()
            gdb = ["gdb-multiarch", "-nx", "-batch", "-x", str(script), str(sample.image)]
            told = subprocess.run(gdb, check=True, capture_output=True, text=True)
            spent = time.perf_counter() - start
            process.kill()
        found = re.search(r"^hits (\d+)$", told.stdout, re.MULTILINE)
        assert found is not None, told
        return spent, int(found[1])


def _qemu(sample: Sample) -> list[str]:
    command = [*sample.qemu, "-display", "none", "-serial", "null", "-kernel", str(sample.image), "-S"]
    return [*command, "-gdb", "unix:{stub},server=on,wait=off"]


def door(sample: Sample) -> list[str]:
    """The command of our own machine."""
    kinst_run = str(Path(sys.executable).with_name("kinst-run"))
    return [kinst_run, "-q", "--gdb", "unix:{stub}", "--console", "/dev/null", str(sample.image)]


def back(sample: Sample) -> float:
    """Seconds of a step backwards at our own door, with the instruction clock."""
    found, stub = list[float](), [*door(sample), "--clock", "icount"]
    for _ in range(REPEATS):
        found.append((seconds(sample, _REVERSING, stub)[0] - seconds(sample, _STOPPED, stub)[0]) / _BACK)
    return statistics.median(found)


def costs(sample: Sample, stub_of: Sequence[str] = ()) -> tuple[float, float, int]:
    """Seconds of a hit and of a step, and the hits."""
    hit, step, hits = list[float](), list[float](), 0
    for _ in range(REPEATS):
        plain = seconds(sample, "", stub_of)[0]
        counted, hits = seconds(sample, _COUNTING, stub_of)
        hit.append((counted - plain) / hits)
        step.append((seconds(sample, _STEPPING, stub_of)[0] - plain) / STEPS)
    return statistics.median(hit), statistics.median(step), hits


def main() -> None:
    """Print a row a machine."""
    print(
        f"us by gdb: a hit of a breakpoint with commands at {FUNCTION} of the sample kernel, a step, and one backwards"
    )
    print(f"{'':8} {'QEMU, hit':>12} {'ours, hit':>12} {'QEMU, step':>12} {'ours, step':>12} {'ours, back':>12}")
    for name, sample in MACHINES.items():
        if why := missing(sample.qemu[0], "gdb-multiarch"):
            print(f"{name:8} {why}")
            continue
        (qemu_hit, qemu_step, hits), (hit, step, _) = costs(sample), costs(sample, door(sample))
        row = " ".join(f"{one * 1e6:>12,.0f}" for one in (qemu_hit, hit, qemu_step, step, back(sample)))
        print(f"{name:8} {row}   {hits} hits", flush=True)


if __name__ == "__main__":
    main()

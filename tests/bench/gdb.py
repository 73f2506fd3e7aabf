"""A breakpoint with commands: gdb on QEMU's stub counts calls in the sample kernel, and what that adds to its run."""

import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.samples.machines import MACHINES, Sample, missing

FUNCTION: Final = "console_putc"
REPEATS: Final = 3
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


def seconds(sample: Sample, counting: str) -> tuple[float, int]:
    """Of a run to its end under gdb, and the hits."""
    with tempfile.TemporaryDirectory() as folder:
        stub, script = Path(folder) / "stub", Path(folder) / "script"
        script.write_text(_TOGETHER.format(stub=stub, counting=counting))
        command = [*sample.qemu, "-display", "none", "-serial", "null", "-kernel", str(sample.image), "-S"]
        with subprocess.Popen(
            [*command, "-gdb", f"unix:{stub},server=on,wait=off"], stderr=subprocess.DEVNULL
        ) as process:
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


def main() -> None:
    """Print a row a machine."""
    print(f"us a hit of a breakpoint with commands, by gdb on QEMU's stub, at {FUNCTION} of the sample kernel")
    for name, sample in MACHINES.items():
        if why := missing(sample.qemu[0], "gdb-multiarch"):
            print(f"{name:8} {why}")
            continue
        runs = [(seconds(sample, ""), seconds(sample, _COUNTING)) for _ in range(REPEATS)]
        costs = [(probed - plain) / hits for (plain, _), (probed, hits) in runs]
        print(f"{name:8} {statistics.median(costs) * 1e6:,.0f} us, {runs[0][1][1]} hits", flush=True)


if __name__ == "__main__":
    main()

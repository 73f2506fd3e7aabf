"""LIEF as it is imported when the first file is opened."""

import subprocess
import sys
from pathlib import Path

SAMPLE = Path(__file__).parents[3] / "samples" / "kernel-arm64.elf"
# Interrupts itself where LIEF's bindings make the first of their enums.
INTERRUPTED = """
import enum, signal, sys
from pathlib import Path
from kinst.targets.image import open_image

make, interrupts = enum.Enum.__init__, []

def interrupted(self, *values):
    if "lief" in sys.modules and not interrupts:
        interrupts.append(signal.raise_signal(signal.SIGINT))
    make(self, *values)

enum.Enum.__init__ = interrupted
try:
    open_image(Path(sys.argv[1]))
except KeyboardInterrupt:
    print(len(interrupts), "LIEF" if hasattr(sys.modules["lief"], "ELF") else "half of it")
"""


def test_control_c_waits_for_the_import() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(SAMPLE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 LIEF\n", "")

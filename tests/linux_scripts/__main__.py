"""Boot Debian's kernels once each, run the scripts of samples/d/linux over a workload, and compare what they say.

    python -m tests.linux_scripts [NAME...]        (`poe linux-scripts`)

Prints a row a figure: what the script said, what the guest says itself, and how far apart they may be.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.images import at_hand
from tests.linux_scripts.guest import KERNELS
from tests.linux_scripts.scripts import compared
from tests.linux_scripts.told import Figure

_LAYOUT = "{:8} {:20} {:50} {:>12} {:>12}  {}"


def row(script: str, figure: Figure) -> str:
    """A row of the table."""
    mark = "" if figure.agrees else "WRONG "
    bound = f"{mark}up to {figure.bound:,} apart: {figure.why}" if figure.bound else mark
    name = figure.what[:50]
    return _LAYOUT.format("", script, name, f"{figure.script:,}", f"{figure.guest:,}", bound).rstrip()


def main() -> int:
    """0 if all agree."""
    parser = argparse.ArgumentParser(prog="poe linux-scripts", description="Compare scripts for Linux with the guest.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(KERNELS)}; default: those in the cache"
    )
    names = parser.parse_args().names or at_hand(*KERNELS)
    agree = True
    for name in names:
        print(_LAYOUT.format(name, "script", "figure", "script", "guest", ""), flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for script, figure in compared(name, Path(folder)):
                agree &= figure.agrees
                print(row(script, figure), flush=True)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())

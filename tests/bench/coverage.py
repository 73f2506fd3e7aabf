"""What --coverage costs: a run plain, counted, and with the order of its calls, beside a hook of Unicorn's in Python at
each block, as Qiling's drcov extension has it.

    python -m tests.bench.coverage [IMAGE [SECONDS]]

Prints seconds of CPU with what is written at the end, and the ratio to the plain run of the same process. IMAGE is the
sample kernel for riscv64 if none is given.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kinst.runtime.api import open_image
from kinst.runtime.tracing.given import Machine, Options

_IMAGE: Final = Path(__file__).parents[2] / "samples" / "kernel-riscv64.elf"
_WAYS: Final = {"plain": "", "drcov": "a.drcov", "json, with the order of calls": "a.json"}


def measured(image: Path, seconds: float | None, file: Path | None, *, has_hook: bool = False) -> float:
    """Seconds of CPU of a run."""
    blocks = set[int]()
    with open_image(image) as opened:
        options = Options(coverage=file)
        with opened.trace(options=options, machine=Machine(clock="icount")) as trace:
            if has_hook:
                trace.ql.hook_block(lambda _ql, address, _size: blocks.add(address))
            start = time.process_time()
            trace.run(seconds=seconds)
            trace.finish()
            return time.process_time() - start


def main(image: Path = _IMAGE, seconds: float | None = None) -> None:
    """Measure, and print a row for each way."""
    measured(image, seconds, None)  # what is made once is made
    with TemporaryDirectory() as name:
        rows = {way: measured(image, seconds, Path(name) / file if file else None) for way, file in _WAYS.items()}
        rows["a hook of Unicorn's at each block"] = measured(image, seconds, None, has_hook=True)
    for way, spent in rows.items():
        print(f"{way:36} {spent:8.2f} s {spent / rows['plain']:6.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else _IMAGE, float(sys.argv[2]) if len(sys.argv) > 2 else None)

"""What records of a guest under QEMU cost us (--on): taken from memory, and clauses over them, one by one and together.

The records are drawn, of Linux's vfs functions; all ways are measured in turns.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from kinst.runtime.tracing.standalone.findings import Findings
from kinst.runtime.tracing.standalone.recorded import RecordedHits
from tests.commands.in_process import kinst_run
from tests.images import real_image
from tests.runtime.live.drawn import Drawn

CLAUSES = (
    "{ @[execname] = count(); }",
    "{ @[probefunc, execname] = count(); }",
    "/curthread != NULL/ { @[curthread->pid, pid] = count(); }",
    "{ @[cpu] = quantize(arg0); }",
    "{ @[probefunc] = sum(arg2); }",
    "{ @[stack()] = count(); }",
)
RECORDS = 1 << 16
ROUNDS = 3


def _seconds(clause: str, image: Path, *, is_together: bool) -> tuple[float, float]:
    """For taking a record from memory, and for firing it: the medians of some rounds."""
    taken, fired = list[float](), list[float]()

    def timed(spent: list[float], method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            start = time.perf_counter()
            found = method(*arguments, **named)
            spent.append(time.perf_counter() - start)
            return found

        return call

    with (
        mock.patch("kinst.runtime.live.building.LiveBuilding", lambda *_given, **_more: Drawn(1, RECORDS, ROUNDS)),
        mock.patch.object(Findings, "take", timed(taken, Findings.take)),
        mock.patch.object(RecordedHits, "fire", timed(fired, RecordedHits.fire)),
        mock.patch("kinst.runtime.tracing.tracer.takes_together", lambda _clauses, _providers: is_together),
    ):
        done = kinst_run("--on", "qemu", "-q", "-n", f"fbt::vfs_*:entry {clause}", image)
    assert done.returncode == 0, done.stderr
    return statistics.median(taken) / RECORDS, statistics.median(fired) / RECORDS


def main() -> None:
    """Print the table."""
    image = real_image("linux-amd64")
    print("\nrecords a second under --on: taken from memory; clauses over them one by one; and together")
    for clause in CLAUSES:
        taken, apart = _seconds(clause, image, is_together=False)
        _, together = _seconds(clause, image, is_together=True)
        print(f"{clause:52} {1 / taken:12,.0f}/s {1 / apart:12,.0f}/s {1 / together:12,.0f}/s", flush=True)

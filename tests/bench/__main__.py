"""``poe bench``: what a probe hit and a plain call cost, beside Qiling's own hooks in the same run, as ratios.

Runs of all ways are interleaved, and medians compared: this is the only thing that holds on a noisy machine. Times are
nanoseconds. A hit's cost is what it adds to the plain call of the same machine.

After that what clauses of D add to it: see `tests.bench.clauses`; what a hit costs in a Qiling object that its user
made: see `tests.bench.attached`; what a probe of memory costs: see `tests.bench.watched`, and of devices and
exceptions: see `tests.bench.accesses`; what a look into the debug information of a kernel costs: see
`tests.bench.debuginfo`; what gdb on QEMU's stub takes for one: see `tests.bench.gdb`; what rewriting takes: see
`tests.bench.bulk`; and what records of a guest under QEMU cost: see `tests.bench.records`. Last boots of Linux without
probes and with all functions counted, beside QEMU: see `tests.bench.linux`; what a start from a snapshot costs: see
`tests.bench.snapshots`, a call: `tests.bench.calls`, and what --coverage costs: `tests.bench.coverage`; and what these
and a hit take under QEMU (`kinst-run --on`): see `tests.bench.live`.

Each row says how many probes are enabled and how many functions are called in turn. With 10,000 functions called in
turn every call, plain or probed, misses Unicorn's cache of jump targets, and that shows in all columns.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from kinst.runtime.hits.actions import NOTHING, Reads
from tests.bench import (
    accesses,
    attached,
    bulk,
    calls,
    clauses,
    coverage,
    debuginfo,
    gdb,
    linux,
    live,
    records,
    snapshots,
    watched,
)
from tests.bench.alone import AloneRun
from tests.bench.baselines import QilingRun
from tests.bench.ours import OurRun
from tests.bench.workload import WORKLOADS, Workload

FUNCTIONS = 10_000
ROWS = ((1, 1), (100, 100), (1_000, 1_000), (10_000, 100), (10_000, 10_000))  # probes enabled, functions called
REPEATS = 7
HITS = 20_000
CALLS = 400_000
Run = OurRun | QilingRun


@dataclass(frozen=True, slots=True)
class Way:
    """One way to do it, ready to run: `calls` calls, of `functions` functions in turn."""

    name: str
    run: Run
    functions: int
    calls: int

    def seconds_per_call(self) -> float:
        """Time one run. The records of each run are checked: a way that misses hits is not a way."""
        rounds = max(1, self.calls // self.functions)
        self.run.records.clear()
        self.run.hits = 0
        start = time.perf_counter()
        self.run.run(self.functions, rounds)
        spent = time.perf_counter() - start
        expected = 0 if self.name.startswith("plain") else self.functions * rounds
        if len(self.run.records) + self.run.hits != expected:
            raise AssertionError(f"{self.name}: {len(self.run.records)} records, {self.run.hits} hits, not {expected}")
        return spent / (self.functions * rounds)


def measured(ways: list[Way]) -> dict[str, float]:
    """Median nanoseconds a call of each way, the runs interleaved. The first round translates and is not counted."""
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for repeat in range(REPEATS + 1):
        for way in ways:
            spent = way.seconds_per_call()
            if repeat:
                times[way.name].append(spent * 1e9)
    return {name: statistics.median(spent) for name, spent in times.items()}


def _sizes(count: int) -> range:
    """How many digits the numbers of the first `count` functions have."""
    return range(1, len(str(count)))


def entries(count: int) -> list[str]:
    """Descriptions of the entries of the first `count` functions (a power of ten)."""
    names = (
        ["f0"] if count == 1 else ["f" + "[1-9]" * (size > 1) + "[0-9]" * max(1, size - 1) for size in _sizes(count)]
    )
    return [f"fbt::{name}:entry" for name in names]


def hooked(workload: Workload, count: int, hook: Callable[[QilingRun, int], None]) -> QilingRun:
    """A Qiling machine with hooks on the first `count` functions."""
    run = QilingRun(workload, FUNCTIONS)
    hook(run, count)
    return run


def bench(workload: Workload, probes: int, called: int) -> dict[str, float]:
    """Nanoseconds: plain calls of both machines, and what a hit adds to them in each way."""
    few = max(2_000, called) if probes == 10_000 else HITS  # Unicorn walks all its code hooks at every hit
    names = entries(probes)
    times = measured(
        [
            Way("plain ours", OurRun(workload, FUNCTIONS), called, CALLS),
            Way("plain Qiling", QilingRun(workload, FUNCTIONS), called, CALLS),
            Way("trap", OurRun(workload, FUNCTIONS, *names), called, HITS),
            Way("record", OurRun(workload, FUNCTIONS, *names, counted_by=Reads(frozenset({0, 1}))), called, CALLS),
            Way("counter", OurRun(workload, FUNCTIONS, *names, counted_by=NOTHING), called, CALLS),
            Way("block", OurRun(workload, FUNCTIONS, *names, counted_by=NOTHING, method="block"), called, CALLS),
            Way("alone", AloneRun(workload, FUNCTIONS, *names), called, CALLS),
            Way("address", hooked(workload, probes, QilingRun.hook_addresses), called, few),
            Way("counting", hooked(workload, probes, QilingRun.count_by_hooks), called, few),
            Way("intr", hooked(workload, probes, QilingRun.hook_breakpoints), called, HITS),
            Way("unicorn", hooked(workload, probes, QilingRun.hook_unicorn), called, few),
        ]
    )
    for way in OURS:
        times[way] -= times["plain ours"]
    for way in THEIRS:
        times[way] -= times["plain Qiling"]
    return times


OURS = {"trap": "dispatched", "record": "batched", "counter": "counted", "block": "block", "alone": "alone"}
THEIRS = ("address", "counting", "intr", "unicorn")
LAYOUT = "{:8} {:>7} {:>7}  {:>10} {:>7} {:>8} {:>6} {:>6}  {:>9} {:>9} {:>7} {:>8}  {:>6} {:>8}"


def hits() -> None:
    """Print what a hit costs: a row a machine and number of probes."""
    print("ns a hit over the plain call. Ours: dispatched with five arguments, batched and counted by two of them,")
    print("counted; where blocks begin (--method block), and by the image itself, made standalone, in our machine.")
    print("Qiling's hook_address that records five arguments, and that counts; its hook_intr that records them;")
    print(f"hooks of Unicorn's binding that count. Last a plain call. Load of the host: {os.getloadavg()[0]:.1f}")
    print(LAYOUT.format("machine", "probes", "called", *OURS.values(), *THEIRS, "plain", "Qiling's"))
    for workload in WORKLOADS:
        for probes, called in ROWS:
            times = bench(workload, probes, called)
            cells = [f"{times[way]:,.0f}" for way in (*OURS, *THEIRS, "plain ours", "plain Qiling")]
            print(LAYOUT.format(workload.arch, f"{probes:,}", f"{called:,}", *cells), flush=True)


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(
        prog="poe bench", description=" ".join((__doc__ or "").split("\n\n")[0].split())
    ).parse_args()
    hits()
    clauses.main()
    gdb.main()
    attached.main()
    watched.main()
    accesses.main()
    debuginfo.main()
    bulk.main()
    records.main()
    linux.main()
    snapshots.main()
    calls.main()
    coverage.main()
    live.main()


if __name__ == "__main__":
    main()

"""What a hit costs in a Qiling object that a user made and attached to, beside Qiling's own hook that does the same."""

import statistics
import tempfile
import time
from pathlib import Path

import kinst.runtime
from tests.bench.baselines import QilingRun
from tests.bench.workload import WORKLOADS, Workload

REPEATS = 7
HITS = 20_000
FUNCTIONS = 16
PROGRAMS = {"count": "fbt::f0:entry { @ = count(); }", "argument": "fbt::f0:entry { @ = sum(arg0); }"}


def _hooked(workload: Workload, name: str) -> QilingRun:
    """A `hook_address` that counts, or adds the first argument up."""
    run, sums = QilingRun(workload, FUNCTIONS), [0]
    registers, first = run.ql.arch.regs, run.arguments[0]

    def count(_ql: object) -> None:
        sums[0] += 1

    def argument(_ql: object) -> None:
        sums[0] += getattr(registers, first)

    run.ql.hook_address(count if name == "count" else argument, workload.function_address(0))
    return run


def _attached(workload: Workload, name: str, folder: Path) -> QilingRun:
    run, path = QilingRun(workload, FUNCTIONS), folder / workload.arch
    path.write_bytes(workload.image(FUNCTIONS))
    kinst.runtime.attach(run.ql, PROGRAMS[name], image=path, bias=0)
    return run


def _seconds(run: QilingRun) -> float:
    start = time.perf_counter()
    run.run(1, HITS)
    return time.perf_counter() - start


def main() -> None:
    """Print a row for each machine and program."""
    print("\nns a hit of attach() on a user's Qiling object, over its plain call, and of hook_address")
    with tempfile.TemporaryDirectory() as folder:
        for workload in WORKLOADS:
            runs = {"plain": QilingRun(workload, FUNCTIONS)}
            runs |= {f"hook {name}": _hooked(workload, name) for name in PROGRAMS}
            runs |= {f"attach {name}": _attached(workload, name, Path(folder)) for name in PROGRAMS}
            times: dict[str, list[float]] = {name: [] for name in runs}
            for repeat in range(REPEATS + 1):
                for name, run in runs.items():
                    spent = _seconds(run)
                    if repeat:
                        times[name].append(spent / HITS * 1e9)
            cost = {name: statistics.median(spent) for name, spent in times.items()}
            for name in PROGRAMS:
                ours, theirs = cost[f"attach {name}"] - cost["plain"], cost[f"hook {name}"] - cost["plain"]
                print(f"{workload.arch:8} {name:9} {ours:7.0f} {theirs:7.0f} {ours / theirs:5.1f}x")

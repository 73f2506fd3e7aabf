"""What clauses of D cost: called directly, at a hit beside Qiling's hook, to compile, and with a million keys.

All ways of a table are measured in turns and medians compared, as in `tests.bench.__main__`.
"""

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from kinst.runtime.clauses.compile.clause import compile_clause
from kinst.runtime.dlang.check.checker import Checker
from kinst.runtime.dlang.context import CheckContext
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.syntax.cursor import Names
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.syntax.parser import parse
from kinst.runtime.trap.trap import Firing
from kinst.targets.c_types import NoImageTypes
from tests.bench.baselines import QilingRun
from tests.bench.ours import OurRun
from tests.bench.workload import AMD64
from tests.runtime.clauses.compile.running import AnyProbe, Bench, Script

REPEATS = 9
CALLS = 50_000
HITS = 20_000
CLAUSES = {
    "empty": "fbt:::entry { 0; }",
    "false predicate": "fbt:::entry /arg0 == 77/ { @ = count(); }",
    "false, records": "fbt:::entry /arg0 == 77/ { trace(arg0); }",
    "@ = count()": "fbt:::entry { @ = count(); }",
    "self->ts = timestamp": "fbt:::entry { self->ts = timestamp; }",
    "keyed sum": "fbt:::entry { self->ts = 1; } fbt:::entry { @[probefunc] = sum(timestamp - self->ts); }",
    "quantize": "fbt:::entry { @[probefunc] = quantize(arg0); }",
    "trace(arg0)": "fbt:::entry { trace(arg0); }",
    "printf": 'fbt:::entry { printf("%s %d\\n", probefunc, arg0); }',
    "assoc. array": "fbt:::entry { calls[arg0]++; }",
}


@dataclass(frozen=True, slots=True)
class Way:
    """Something to be called `CALLS` times; `tidy` takes away what it left, outside the time."""

    name: str
    call: Callable[[Firing], None]
    firing: Firing
    tidy: Callable[[], object]

    def nanoseconds(self) -> float:
        """Of one call."""
        call, firing = self.call, self.firing
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            call(firing)
        spent = time.perf_counter_ns() - start
        self.tidy()
        return spent / CALLS


def _nothing(_firing: Firing) -> None:
    """An empty function, as the trap path would call it."""


def medians(ways: list[Way]) -> dict[str, float]:
    """Nanoseconds a call."""
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for repeat in range(REPEATS + 1):
        for way in ways:
            spent = way.nanoseconds()
            if repeat:
                times[way.name].append(spent)
    return {name: statistics.median(spent) for name, spent in times.items()}


def _way(name: str, text: str) -> Way:
    """The last clause of a program; those before it fired once."""
    script = Script(text)
    for compiled in script.compiled[:-1]:
        compiled(script.bench.firing)

    def tidy() -> None:
        script.bench.buffers.take()
        script.bench.aggregations.take()

    return Way(name, script.compiled[-1], script.bench.firing, tidy)


def print_calls() -> None:
    """Clauses, called directly."""
    ways = [Way("nothing", _nothing, Bench().firing, lambda: None)]
    ways += [_way(name, text) for name, text in CLAUSES.items()]
    times = medians(ways)
    print("\nns a clause over calling an empty function, beside an empty clause; clauses a second, the loop included")
    for name in CLAUSES:
        added, empty = times[name] - times["nothing"], times["empty"] - times["nothing"]
        print(f"{name:22} {added:7.0f} {added / empty:7.1f}x {1e9 / times[name]:12,.0f}/s")


# -- at a hit ---------------------------------------------------------------------------------------------------------


def _seconds(run: OurRun | QilingRun) -> float:
    start = time.perf_counter()
    run.run(1, HITS)
    return time.perf_counter() - start


def _our_hits(text: str) -> OurRun:
    script = Script(text)
    return OurRun(AMD64, 16, "fbt::f0:entry", action=script.compiled[-1])


def _qiling_counts() -> QilingRun:
    """What a user of Qiling writes to count calls by function."""
    run, counts = QilingRun(AMD64, 16), dict[int, int]()

    def fired(_ql: object, number: int) -> None:
        counts[number] = counts.get(number, 0) + 1

    run.ql.hook_address(fired, AMD64.function_address(0), user_data=0)
    return run


def _qiling_records() -> QilingRun:
    """And to record the first argument."""
    run, values = QilingRun(AMD64, 16), list[tuple[int, int]]()
    registers = run.ql.arch.regs

    def fired(_ql: object, number: int) -> None:
        values.append((number, registers.rdi))

    run.ql.hook_address(fired, AMD64.function_address(0), user_data=0)
    return run


def print_hits() -> None:
    """The same at a probe of amd64, over the plain call."""
    runs: dict[str, OurRun | QilingRun] = {"plain": OurRun(AMD64, 16), "plain Qiling": QilingRun(AMD64, 16)}
    runs.update({"Qiling counts": _qiling_counts(), "Qiling records rdi": _qiling_records()})
    ours = ("empty", "false predicate", "@ = count()", "trace(arg0)", "printf")
    runs.update({name: _our_hits(CLAUSES[name]) for name in ours})
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(REPEATS + 1):
        for name, run in runs.items():
            spent = _seconds(run)
            if repeat:
                times[name].append(spent / HITS * 1e9)
    cost = {name: statistics.median(spent) for name, spent in times.items()}
    print("\nns a hit with a clause (amd64, over the plain call), and what the same costs in a hook_address of Qiling")
    for name in ours:
        theirs = {"@ = count()": "Qiling counts", "trace(arg0)": "Qiling records rdi"}.get(name)
        added = cost[name] - cost["plain"]
        beside = "" if theirs is None else f"{cost[theirs] - cost['plain Qiling']:7.0f}"
        print(f"{name:22} {added:7.0f} {beside}")


# -- compiling --------------------------------------------------------------------------------------------------------


def script_of(lines: int) -> str:
    """A program as toolkits have them, of about so many lines."""
    block = """uint64_t total{n};
fbt::f{n}:entry
/execname == "kernel.elf" && self->depth{n} < 10/
{{
	self->ts{n} = timestamp;
	self->depth{n}++;
	this->name = strjoin(probefunc, ":");
	printf("%Y %-16s %d %s\\n", walltimestamp, this->name, pid, probename);
	@calls{n}[execname, arg0 > 5 ? "large" : "small"] = count();
}}
fbt::f{n}:return
/self->ts{n}/
{{
	this->elapsed = (timestamp - self->ts{n}) / 1000;
	@times{n}[probefunc] = quantize(this->elapsed);
	total{n} += this->elapsed;
	self->ts{n} = 0;
}}
"""
    height = block.count("\n")
    return "".join(block.format(n=number) for number in range(lines // height))


def print_compilation() -> None:
    """A program of 500 lines through all stages."""
    text, bench = script_of(500), Bench()
    times: dict[str, list[float]] = {"parse": [], "check": [], "compile": []}
    for _ in range(REPEATS):
        checker = Checker(CheckContext(bench.environment.arch, NoImageTypes(), AnyProbe(), Options()))
        marks = [time.perf_counter()]
        unit = parse(text, names=Names(checker.is_type), macros=Macros(()))
        marks.append(time.perf_counter())
        clauses = checker.check(unit).clauses
        marks.append(time.perf_counter())
        for number, clause in enumerate(clauses):
            compile_clause(clause, number, bench.state, bench.environment)
        marks.append(time.perf_counter())
        for index, stage in enumerate(times):
            times[stage].append((marks[index + 1] - marks[index]) * 1e3)
    stages = {stage: statistics.median(spent) for stage, spent in times.items()}
    print(f"\nms for {text.count(chr(10))} lines, {len(clauses)} clauses: ", end="")
    print(", ".join(f"{stage} {spent:.0f}" for stage, spent in stages.items()), f"= {sum(stages.values()):.0f}")


# -- a million keys ---------------------------------------------------------------------------------------------------

_KEYS = """
import re, sys, time
from pathlib import Path
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
COUNT = 1_000_000
if sys.argv[1] == "dict":
    counts, base = {}, peak()
    def call(number): counts[(number,)] = counts.get((number,), 0) + 1
else:
    from tests.runtime.clauses.compile.running import Script
    script = Script("BEGIN { @[arg0] = count(); }")
    bench, compiled, base = script.bench, script.compiled[0], peak()
    def call(number):
        bench.arguments = (number,)
        compiled(bench.firing)
start = time.perf_counter_ns()
for number in range(COUNT): call(number)
print((time.perf_counter_ns() - start) / COUNT, (peak() - base) * 1024 / COUNT)
"""


def _million(way: str) -> tuple[float, float]:
    """Nanoseconds and bytes a key, of a process of its own."""
    command = [sys.executable, "-c", _KEYS, way]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(found[0]), float(found[1])


def print_million() -> None:
    """An aggregation of a million keys, beside a dictionary."""
    ours, theirs = _million("ours"), _million("dict")
    print("\na million keys: ns and bytes of peak memory a key, beside a Python dictionary of counts")
    time_ratio, memory_ratio = ours[0] / theirs[0], ours[1] / theirs[1]
    print(f"{'@[arg0] = count()':22} {ours[0]:7.0f} {time_ratio:7.1f}x {ours[1]:7.0f} {memory_ratio:7.1f}x")


def main() -> None:
    """Print all."""
    gc.collect()
    gc.freeze()  # as the runtime does before the machine runs
    print_calls()
    print_hits()
    gc.unfreeze()
    print_compilation()
    print_million()


if __name__ == "__main__":
    main()

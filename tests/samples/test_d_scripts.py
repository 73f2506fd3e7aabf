"""samples/d: every script prints what is expected on every machine, and what it prints agrees with figures that do not
come from it: the kernel's own report, plain traces whose sums Python makes, the kernel's source."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.samples.machines import MACHINES, SAMPLES
from tests.samples.scripts import FOLDER, SCRIPTS, printed, traced

REPORT = (SAMPLES / "kernel.out").read_text()
CLIENTS = 16
SIZES_OF_A_CLIENT = (16, 200, 128, 1_000_000, 16, 16)  # its script's reads that come as far as rpc_read
ROW = re.compile(r"^ +(-?\d+) \|(@* *) (\d+) +$", re.MULTILINE)


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def reported(pattern: str) -> list[int]:
    """The numbers of a line of the kernel's report."""
    found = re.search(pattern, REPORT)
    assert found is not None, pattern
    return [int(group) for group in found.groups()]


def rows(text: str) -> Iterator[list[str]]:
    """Lines of a table, as words."""
    yield from (line.split() for line in text.splitlines() if line)


def plain(symbol: str) -> str:
    """A function's name without its module."""
    return symbol.partition("`")[2]


@pytest.mark.parametrize("name", SCRIPTS)
def test_prints_what_is_expected(name: str, machine: str) -> None:
    assert printed(name, machine) == SCRIPTS[name].golden(machine).read_text()


@pytest.mark.parametrize("name", SCRIPTS)
def test_is_a_script_that_says_what_it_does(name: str) -> None:
    path = FOLDER / f"{name}.d"
    text = path.read_text()
    assert text.startswith(f"#!/usr/bin/env -S kinst-run -s\n/*\n * {name}.d - ")
    assert f" * USAGE: kinst-run -s samples/d/{name}.d IMAGE" in text
    assert path.stat().st_mode & 0o111 == 0o111
    assert f"| `{name}.d` |" in (SAMPLES / "README.md").read_text()


def test_no_output_is_left_over() -> None:
    used = {script.golden(machine) for script in SCRIPTS.values() for machine in MACHINES}
    assert set(FOLDER.glob("*.out")) == used


# -- callouts ---------------------------------------------------------------------------------------------------------

CALLOUTS = """
    callout_execute:::callout_start, callout_execute:::callout_end { printf("%s %a %d\\n", probename,
        (uintptr_t)args[0]->c_func, timestamp); }
    tick-5ms { printf("tick\\n"); }
    dtrace:::END { printf("tick\\n"); }
"""


def callouts(machine: str) -> list[list[tuple[str, int]]]:
    """Function and time of each call, by the 5 ms they ended in."""
    spans: list[list[tuple[str, int]]] = [[]]
    start = 0
    for words in rows(traced(machine, CALLOUTS)):
        match words:
            case ["callout_start", _, time]:
                start = int(time)
            case ["callout_end", function, time]:
                spans[-1].append((function, int(time) - start))
            case ["tick"]:
                spans.append([])
    return spans[:-1]


def test_callout_time(machine: str) -> None:
    spans = callouts(machine)
    sections = re.split(r"^\d+ us\n.*\n", printed("callout-time", machine), flags=re.MULTILINE)[1:]
    assert len(sections) == len(spans)
    for section, calls in zip(sections, spans, strict=True):
        shown = {function: (int(count), int(time)) for function, count, time in rows(section) if count != "0"}
        assert shown == {
            function: (
                sum(name == function for name, _ in calls),
                sum(time for name, time in calls if name == function),
            )
            for function in {name for name, _ in calls}
        }
    assert sum(map(len, spans)) == reported(r"(\d+) callouts executed")[0]


def test_callout_distributions(machine: str) -> None:
    expected: dict[str, Counter[int]] = defaultdict(Counter)
    for function, time in (call for span in callouts(machine) for call in span):
        expected[function][1 << (time.bit_length() - 1)] += 1
    sections = re.split(r"^(\S+`.*)\n", printed("callout-dist", machine), flags=re.MULTILINE)[1:]
    shown = dict(zip(sections[::2], sections[1::2], strict=True))
    assert {function: buckets(text) for function, text in shown.items()} == expected


def buckets(distribution: str) -> dict[int, int]:
    """Value -> count, of the rows that have one."""
    return {int(value): int(count) for value, _, count in ROW.findall(distribution) if count != "0"}


# -- remote procedure calls -------------------------------------------------------------------------------------------


def report_of_rpc() -> dict[tuple[str, str], tuple[int, int]]:
    """(version, operation) -> calls and errors, as the kernel counts them."""
    return {
        (version, operation): (int(calls), int(errors))
        for version, line in re.findall(r"^rpc: (v\d) (.*) \(calls/errors\)$", REPORT, re.MULTILINE)
        for operation, calls, errors in re.findall(r"(\w+) (\d+)/(\d+)", line)
    }


def test_rpc_functions(machine: str) -> None:
    table = {name: [int(word) for word in words] for name, *words in list(rows(printed("rpc-time", machine)))[1:]}
    calls = {name: numbers[0] for name, numbers in table.items()}
    rpc = report_of_rpc()
    assert calls["rpc_dispatch"] == calls["rpc_release"] == reported(r"clients: \d+, (\d+) calls")[0]
    assert calls["rpc_call"] == sum(count for count, _ in rpc.values())
    for function in ("null", "getattr", "lookup"):
        assert calls[f"rpc_{function}"] == rpc["v2", function][0] + rpc["v3", function][0]
    for function in ("read", "write"):  # version 2 checks its limits, and then jumps to version 3
        count, errors = rpc["v2", function]
        assert calls[f"rpc_{function}_v2"] == count
        assert calls[f"rpc_{function}"] == rpc["v3", function][0] + count - errors
    assert all(average == total // count for count, average, _, total in table.values())
    assert [total for *_, total in table.values()] == sorted(total for *_, total in table.values())


def test_rpc_operations(machine: str) -> None:
    table = list(rows(printed("rpc-operations", machine)))[1:]
    assert {(vers, name): (int(calls), int(errors)) for vers, name, calls, errors, _ in table} == report_of_rpc()


def test_rpc_errors(machine: str) -> None:
    """Each refused allocation is one failed request, and nothing of the others is printed."""
    failed = printed("rpc-errors", machine, "12", "1000").strip().split("\n\n")
    assert len(failed) == reported(r"(\d+) failures")[0]
    for request in failed:
        assert "  <- kmalloc = 0x0\n" in request
        assert request.endswith("\nfailed with 12")
    assert printed("rpc-errors", machine).startswith(failed[0])
    assert printed("rpc-errors", machine, "2", "3").count("failed with 2\n") == 3


def test_rpc_flow(machine: str) -> None:
    """A read, from its dispatch to its release; indentation follows the arrows."""
    depth, shown = 0, []
    for line in printed("rpc-flow", machine).splitlines()[1:]:
        found = re.match(r"  0( +)(->|<-) (\w+) +(\d+) ns", line)
        if found is None:
            assert line == ""
            continue
        indent, arrow, function, time = found.groups()
        shown.append((arrow, function, int(time)))
        if machine != "amd64":  # there kfree has no return: the instruction before it is sti
            depth -= arrow == "<-"
            assert len(indent) == 2 + 2 * depth
            depth += arrow == "->"
    assert [name for _, name, _ in shown[:: len(shown) - 1]] == ["rpc_dispatch", "rpc_release"]
    assert {"rpc_read_v2", "rpc_read", "vfs_read", "file_read"} <= {name for _, name, _ in shown}
    assert [time for *_, time in shown] == sorted(time for *_, time in shown)


def test_lookups(machine: str) -> None:
    table = list(rows(printed("lookups", machine)))[1:]
    rpc = report_of_rpc()
    assert sum(int(count) for count, *_ in table) == rpc["v2", "lookup"][0] + rpc["v3", "lookup"][0]
    failed = sum(int(count) for count, _, error, _ in table if error != "0")
    assert failed == rpc["v2", "lookup"][1] + rpc["v3", "lookup"][1]
    assert {path for *_, path in table if re.fullmatch(r"/home/c\d\d", path)} == {
        f"/home/c{client:02}" for client in range(CLIENTS)
    }


# -- packets and memory -----------------------------------------------------------------------------------------------


def test_packets(machine: str) -> None:
    table, *distributions = printed("packets", machine).split("\n\n")
    sizes: dict[str, Counter[int]] = defaultdict(Counter)
    program = 'fbt::if_input:entry { printf("%s %d\\n", stringof(args[0]->if_name), args[1]->m_len); }'
    for interface, size in rows(traced(machine, program)):
        sizes[interface][int(size)] += 1
    for interface, packets, size, average, largest in list(rows(table))[1:]:
        assert [int(packets), int(size)] == reported(rf"{interface}: (\d+) packets, (\d+) bytes")
        assert int(average) == int(size) // int(packets)
        assert int(largest) == max(sizes[interface])
    for distribution in filter(str.strip, distributions):
        expected: Counter[int] = Counter()
        for bytes_of_packet, count in sizes[distribution.strip().partition(":")[0]].items():
            expected[bytes_of_packet // 100 * 100] += count
        assert buckets(distribution) == expected


def test_sizes_asked_of_kmalloc(machine: str) -> None:
    granted, refused = printed("malloc-sizes", machine).split("refused, bytes")
    assert [sum(buckets(granted).values()), sum(buckets(refused).values())] == reported(
        r"(\d+) allocations, \d+ frees, (\d+) failures"
    )
    assert buckets(refused) == {1_000_000: CLIENTS}


def test_stacks_of_kmalloc(machine: str) -> None:
    *stacks, total = re.split(r" bytes\b", printed("malloc-stacks", machine))[:-1]
    total = total.split()[-1]
    largest = stacks[-1].split()
    assert int(largest.pop()) == CLIENTS * sum(SIZES_OF_A_CLIENT)
    assert [plain(frame).partition("+")[0] for frame in largest[:5]] == [
        "kmalloc",
        "rpc_read",
        "rpc_call",
        "client_run",
        "work_run",
    ]
    table = printed("instruction", machine).partition("COUNT\n")[2]
    sizes = {int(value, 16): int(count) for value, count in rows(table)}
    assert int(total) == sum(size * count for size, count in sizes.items())
    assert sum(sizes.values()) == sum(reported(r"(\d+) allocations, \d+ frees, (\d+) failures"))


# -- time -------------------------------------------------------------------------------------------------------------


def test_samples_of_the_clock(machine: str) -> None:
    *table, total = rows(printed("hot", machine))
    samples = int(total[-1])
    assert samples == sum(int(count) for _, count in table[1:])
    microseconds = int(re.findall(r"^(\d+) us$", printed("callout-time", machine), re.MULTILINE)[-1])
    assert abs(samples - microseconds * 4999 // 1_000_000) <= 1


def test_ticks(machine: str) -> None:
    output = printed("tick-jitter", machine)
    times = [int(time) for (time,) in rows(traced(machine, 'fbt::clock_tick:entry { printf("%d\\n", timestamp); }'))]
    intervals = [later - earlier for earlier, later in pairwise(times)]
    assert output.startswith(f"{len(times)} ticks\n")
    average = sum(intervals) // len(intervals)
    assert f"min {min(intervals)}, avg {average}, max {max(intervals)}\n" in output
    assert len(times) == reported(r"clock: (\d+) ticks")[0] == sum(buckets(output).values())


def test_first_calls(machine: str) -> None:
    table = list(rows(printed("first-calls", machine)))[1:]
    called = [function for function, _ in rows(traced(machine, "fbt:::entry { @[probefunc] = count(); }"))]
    functions = [function for *_, function in table]
    assert sorted(functions) == sorted(called)
    assert functions[-1] == "power_off"
    assert [int(time) for time, *_ in table] == sorted(int(time) for time, *_ in table)

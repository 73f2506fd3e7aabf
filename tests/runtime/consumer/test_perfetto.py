"""--format perfetto: spans, instants, counters and arguments, as Google's own classes read them."""

import os
import pty
import subprocess
import sys
from collections import Counter
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.runtime.clauses.tasks_seen import Task
from kinst.runtime.cli import run
from kinst.runtime.consumer.documents.json_values import JsonValues
from kinst.runtime.consumer.perfetto.output import PerfettoDocument
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang.options import Options
from tests.runtime.consumer.perfetto_reading import Track, tracks_of
from tests.runtime.consumer.recording import PROBES, NamedSymbols, clause
from tests.runtime.test_cli import COMMAND, ENVIRONMENT

SAMPLES = Path(__file__).parents[3] / "samples"
CPU = "CPU 0"


def kinst_run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(run, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def traced(folder: Path, program: str, image: str = "kernel-riscv64") -> dict[str, Track]:
    trace = folder / "t.pftrace"
    kinst_run(
        *(SAMPLES / f"{image}.elf", "-q", "--clock", "icount", "--console", os.devnull),
        *("--format", "perfetto", "-o", trace, "-n", program),
    )
    assert [path.name for path in folder.iterdir()] == ["t.pftrace"]
    return tracks_of(trace)


def test_calls_nest_as_the_indentation_of_flowindent_says(tmp_path: Path) -> None:
    program = "fbt::vfs_*:entry, fbt::vfs_*:return, fbt::file_*:entry, fbt::file_*:return {}"
    spans = traced(tmp_path, program)[CPU].spans
    shown = kinst_run(SAMPLES / "kernel-riscv64.elf", "-F", "--clock", "icount", "--console", os.devnull, "-n", program)
    entries = [line for line in shown.stdout.splitlines() if "-> " in line]
    assert len(spans) > 300
    assert [(span.name, 2 * span.depth) for span in spans] == [
        (line.split()[-1], line.index("->") - 5) for line in entries
    ]
    assert all(span.end > span.start and "unfinished" not in span.arguments for span in spans)


def test_what_the_clauses_of_a_probe_record_is_in_the_arguments(tmp_path: Path) -> None:
    program = """
        fbt::vfs_read:entry { trace(arg0); this->n = 7; trace(this->n); }
        fbt::vfs_read:entry { printf("%s %d", probefunc, 3); stack(2); trace("x"); }
        fbt::vfs_read:return { trace(arg1); }
        kinst::vfs_read:0 { @["k"] = count(); trace(pid + 1); }
    """
    track = traced(tmp_path, program)[CPU]
    arguments = track.spans[0].arguments
    assert list(arguments) == ["arg0", "this->n", "message", "probefunc", "value", "stack", "value 2", "arg1"]
    assert (arguments["this->n"], arguments["message"], arguments["value 2"]) == (7, "vfs_read 3", "x")
    assert next(frame["symbol"].partition("`")[2].partition("+")[0] for frame in arguments["stack"]) == "vfs_read"
    assert {instant.name for instant in track.instants} == {"vfs_read:0"}
    assert track.instants[0].arguments == {"value": 1}


def test_each_key_of_an_aggregation_is_a_counter(tmp_path: Path) -> None:
    tracks = traced(tmp_path, "fbt::vfs_*:entry { @calls[probefunc] = count(); @all = quantize(arg0) } END {}")
    expected = {"init": 1, "report": 1, "create": 23, "walk": 23, "write": 48, "read": 80, "lookup": 96, "get": 176}
    assert {name: track.values[-1][1] for name, track in tracks.items() if name.startswith("@calls/")} == {
        f"@calls/vfs_{name}": count for name, count in expected.items()
    }
    values = tracks["@all"].values
    assert values[-1][1] == sum(expected.values())
    assert len(values) == 3  # 20 ms passed, and the end
    assert values == sorted(values)


def test_a_printed_aggregation_counts_what_was_printed(tmp_path: Path) -> None:
    program = "fbt:::entry { @calls = count(); } tick-5ms { printa(@calls); clear(@calls); } END { clear(@calls); }"
    counts = [value for _, value in traced(tmp_path, program)["@calls"].values]
    assert len(counts) == 4  # and not at each sample
    assert counts != sorted(counts)


def test_a_function_that_never_returned_ends_with_the_run(tmp_path: Path) -> None:
    track = traced(tmp_path, "fbt::kmain:entry, fbt::vfs_walk:return {}")[CPU]
    (kmain,) = track.spans
    assert kmain.arguments == {"unfinished": True}
    assert kmain.end >= track.instants[-1].end
    assert Counter(instant.name for instant in track.instants) == {"vfs_walk:return": 23}  # where it began is not known


def test_a_trace_goes_through_a_pipe_with_the_console_on_stderr(tmp_path: Path) -> None:
    result = kinst_run(
        SAMPLES / "kernel-riscv64.elf", "--format", "perfetto", "-n", "fbt::vfs_*:entry,fbt::vfs_*:return"
    )
    (tmp_path / "t").write_bytes(result.stdout_bytes)
    assert len(tracks_of(tmp_path / "t")[CPU].spans) == 448
    assert "kernel: booting" in result.stderr


class Tasks:
    """CPU 0 runs init until 50 and then sh; CPU 1 its idle task."""

    def at(self, cpu: int, time: int) -> Task | None:
        return None if time < 10 else self.running(cpu, time)

    def running(self, cpu: int, time: int) -> Task:
        if cpu:
            return Task(0, 0, "swapper/1")
        return Task(1, 1, "init") if time < 50 or time > 90 else Task(71, 70, "worker")

    def changes(self) -> list[tuple[int, list[int], list[Task]]]:
        return [(0, [10, 50, 91], [self.running(0, 10), self.running(0, 50), self.running(0, 91)])]


def test_spans_belong_to_tasks_and_to_the_idle_task_of_each_cpu(tmp_path: Path) -> None:
    options, written = Options(), BytesIO()
    totals, values = Totals(options), JsonValues(NamedSymbols())
    document = PerfettoDocument(written, [clause()], totals, values, Tasks())  # type: ignore[arg-type]
    fired = [(0, 1, 5), (0, 10, 20), (1, 10, 30), (0, 20, 60), (0, 21, 70), (1, 11, 80), (0, 11, 95)]
    for cpu, probe, time in fired:
        document.record((cpu, probe, 0, time, ()), PROBES[probe], ())
    document.finish()
    (tmp_path / "t").write_bytes(written.getvalue())
    tracks = tracks_of(tmp_path / "t")
    spans = {name: [(one.name, one.start, one.end) for one in track.spans] for name, track in tracks.items()}
    assert spans == {
        "CPU 0": [],
        "init 1/init 1/1": [("vm_fault", 20, 95)],  # it slept while the worker ran
        "worker 70/worker 70/71": [("read", 60, 70)],
        "swapper/1": [("vm_fault", 30, 80)],
        "CPU 0: task at its probes": [("init 1", 10, 50), ("worker 71", 50, 91), ("init 1", 91, 95)],
    }
    assert [instant.name for instant in tracks["CPU 0"].instants] == ["BEGIN"]


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith(("perfetto", "kinst.runtime.consumer.perfetto"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "perfetto", None)
    result = CliRunner().invoke(run, ["--format", "perfetto", "-o", str(tmp_path / "t"), "-n", "BEGIN { exit(0) }"])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("kinst-run: --format perfetto: needs the Python package perfetto")
    assert line.endswith("pip install 'kinst-rewrite[perfetto]'")
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_is_spared_a_trace() -> None:
    """Nothing is loaded before: the image need not even be one."""
    primary, terminal = pty.openpty()
    command = [*COMMAND, "--format", "perfetto", "-n", "BEGIN", __file__]
    try:
        result = subprocess.run(
            command, stdout=terminal, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False
        )
    finally:
        os.close(terminal)
        os.close(primary)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "--format perfetto: a terminal cannot show it: give -o FILE, or a pipe" in result.stderr

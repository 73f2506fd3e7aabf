"""`Trace.call_each` gives what `kinst-run --call-each` prints of the same rows, and what clauses record in a call."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinst.runtime import Buffer, Machine, open_image
from kinst.runtime.tracing.calls.call_records import Row
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import UsageError
from tests.commands.in_process import kinst_run
from tests.runtime.tracing.live_calls import snapshot_of

pytestmark = pytest.mark.turns
_SAMPLES = Path(__file__).parents[3] / "samples"
each_machine = pytest.mark.parametrize("arch", NAMES)
_CALL = "hash_bytes(0, $data, $size)"
_PROGRAM = "BEGIN { trace(1); } fbt::hash_bytes:return { trace(arg1); } END { trace(2); }"


def _rows(draw: random.Random) -> list[tuple[Row, str]]:
    """Rows for Python, and the same as lines."""
    found = list[tuple[Row, str]]()
    for _ in range(8):
        data = bytes(draw.choices(b"abcxyz", k=draw.randrange(1, 9)))
        size = draw.randrange(len(data) + 2)  # one byte too many is a fault
        row: Row = {"size": size, "data": Buffer(data)} if draw.random() < 0.5 else {"data": Buffer(data), "size": size}
        found.append((row, f'hex"{data.hex()}", {size}'))
    return found


@pytest.mark.parametrize("state", ["loaded", "live"])
@each_machine
def test_records_are_what_the_command_prints(arch: str, state: str, tmp_path: Path) -> None:
    is_live = state == "live"
    path, rows = _SAMPLES / f"kernel-{arch}.elf", _rows(random.Random(arch))
    lines, file = ["data, size", *(line for _, line in rows)], tmp_path / "rows.csv"
    file.write_text("\n".join(lines))
    with open_image(path) as image:
        machine = snapshot_of(image, 0.02, tmp_path / "a.snap") if is_live else Machine(clock="icount")
        trace = image.trace(_PROGRAM, machine=machine, call=None if is_live else "hash_bytes(0, 0, 0)")
        found = [*trace.call_each(_CALL, (row for row, _ in rows))]
        last = [one.values for one in trace.take()]
    words = ("--from", str(tmp_path / "a.snap")) if is_live else ("--clock", "icount")
    done = kinst_run(path, "--call", _CALL, "--call-each", file, "--format", "jsonl", *words)
    assert done.returncode == 0, done.stderr
    said = [one["call"] for one in map(json.loads, done.stdout.splitlines()) if "call" in one]
    assert [one.text for one in found] == [f"{one['function']}({', '.join(one['arguments'])})" for one in said]
    results = [None if one.result is None else f"{one.result:#x}" for one in found]
    assert results == [one.get("result") for one in said]
    assert [(one.called.reason, one.called.instructions) for one in found] == [
        (one["end"], one["instructions"]) for one in said
    ]
    for number, one in enumerate(found):
        begun = [(1,)] if number == 0 else []
        assert [record.values for record in one.records] == [*begun, *([] if one.result is None else [(one.result,)])]
    assert any(one.result is None for one in found) and any(one.result is not None for one in found)
    assert last == [(2,)]


def test_rows_are_read_as_they_are_wanted_and_the_run_ends_with_them() -> None:
    asked = list[int]()

    def numbers() -> Iterator[int]:
        for number in range(1, 1000):
            asked.append(number)
            yield number

    with open_image(_SAMPLES / "kernel-riscv64.elf") as image:
        trace = image.trace("END { trace(1); }", call="fibonacci(1)", machine=Machine(clock="icount"))
        calls = trace.call_each("fibonacci($1)", numbers())
        assert [next(calls).result for _ in range(3)] == [1, 1, 2]
        calls.close()
        assert asked == [1, 2, 3]
        assert [one.values for one in trace.take()] == [(1,)]
        with pytest.raises(UsageError, match="the run is over"):
            trace.run()


def test_a_guest_that_has_stopped_is_called_as_it_is() -> None:
    with open_image(_SAMPLES / "kernel-riscv64.elf") as image:
        trace = image.trace(machine=Machine(clock="icount"))
        trace.run(seconds=0.02)
        ticks = trace["soft_ticks"].value_()
        assert ticks > 0
        assert [one.result for one in trace.call_each("fibonacci()", [7, (8,), [9]])] == [13, 21, 34]
        assert trace["soft_ticks"].value_() == ticks


@pytest.mark.parametrize(
    ("row", "why"),
    [(5, "row 1: has 1 of 2 arguments"), ((5, 1.5), "row 1: argument 2 is neither a number nor a text: 1.5")],
)
def test_a_row_that_does_not_fit_is_named(row: Row, why: str) -> None:
    with open_image(_SAMPLES / "kernel-riscv64.elf") as image:
        trace = image.trace(call="hash_bytes(0, 0, 0)")
        with pytest.raises(UsageError, match=why):
            next(trace.call_each("hash_bytes(0, $1, $2)", [row]))

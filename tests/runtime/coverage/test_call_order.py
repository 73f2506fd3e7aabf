"""The order of calls: against a hook of Unicorn at every instruction; and where two of them part, against lists."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinst.runtime.api import open_image
from kinst.runtime.coverage import call_order
from kinst.runtime.coverage.call_order import NOWHERE, CallOrder, call_orders
from kinst.runtime.coverage.call_parting import call_partings
from kinst.runtime.coverage.document import Coverage, CoveredImage, Function, Granularity
from kinst.runtime.coverage.json_format import read_coverage
from kinst.runtime.tracing.given import Machine
from kinst.targets.arch.registry import NAMES
from kinst.targets.compression import zstd_frame
from kinst.targets.errors import ImageError
from tests.commands.in_process import command, kinst_run

SAMPLES = Path(__file__).parents[3] / "samples"
SHORT = 0.0005  # seconds of the machine: 50,000 instructions


def ordered(arch: str, file: Path, *options: str) -> dict[int, list[str]]:
    """The names that a run called, by CPU."""
    words = ("-q", "--clock", "icount", "--console", file.parent / "console", "--coverage", file, *options)
    done = kinst_run(SAMPLES / f"kernel-{arch}.elf", *words)
    assert done.returncode == 0, done.stderr
    found = read_coverage(file)
    names = [name.partition("`")[2] for name in found.names]
    return {one.cpu: [names[call] for calls in one.calls(len(names)) for call in calls.tolist()] for one in found.calls}


def hooked(arch: str, cpus: int, seconds: float | None) -> dict[int, list[str]]:
    """The same, by a hook at each instruction, which is one at which a function begins."""
    found = dict[int, list[str]]()
    with open_image(SAMPLES / f"kernel-{arch}.elf") as image:
        functions = image.opened.program.functions
        names = dict(zip(functions.address.tolist(), functions.names, strict=True))
        low = {one.load_address - one.address for one in image.opened.image.segments if one.file_size}
        with image.trace(machine=Machine(clock="icount", cpus=cpus)) as trace:

            def ran(_ql: Any, address: int, _size: int) -> None:
                name = next((names[at] for at in (address, *(address - one for one in low)) if at in names), "")
                if name:
                    found.setdefault(trace.guest.system.current.number, []).append(name)

            trace.ql.hook_code(ran)
            trace.run(seconds=seconds)
    return found


@pytest.mark.turns
@pytest.mark.parametrize("arch", NAMES)
def test_calls_are_in_the_order_in_which_a_hook_sees_them(arch: str, tmp_path: Path) -> None:
    found = ordered(arch, tmp_path / "a.json", "--timeout", f"{SHORT}")
    assert found == hooked(arch, 1, SHORT)
    assert len(found[0]) > 50


@pytest.mark.long
@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("arch", NAMES)
def test_calls_of_each_cpu_are_in_order(arch: str, cpus: int, tmp_path: Path) -> None:
    found = ordered(arch, tmp_path / "a.json", "--cpus", str(cpus))
    assert found == hooked(arch, cpus, None)
    assert [len(found[cpu]) > 100 for cpu in found] == [True] * cpus


def coverage(*cpus: list[int], names: str = "abcdefgh") -> Coverage:
    """A run of functions with these names."""
    functions = tuple(Function(name, 16 * at, 16, 0, 0, 0, 0, ()) for at, name in enumerate(names))
    image = CoveredImage("m", "/m", "arm64", "d", 0, 0x9000, 0, functions, ())
    stream = [number for cpu, calls in enumerate(cpus) for number in (1 << 31 | cpu, *(call + 1 for call in calls))]
    parts = np.array_split(np.array(stream, np.uint32), 3)
    orders = call_orders(parts, np.append(np.arange(len(names), dtype=np.uint32), np.uint32(NOWHERE)))
    return Coverage(Granularity.BLOCKS, 1, (image,), 0, orders)


def test_runs_part_where_their_lists_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_order, "PIECE", 7)
    draw = random.Random(8)
    for _ in range(400):
        one = [draw.randrange(9) for _ in range(draw.choice((0, 1, 6, 7, 8, 20, 28)))]
        other = list(one)
        match draw.randrange(4):
            case 0 if other:
                other[draw.randrange(len(other))] = draw.randrange(8)
            case 1:
                other = other[: draw.randrange(len(other) + 1)]
            case 2:
                other += [draw.randrange(8) for _ in range(draw.randrange(9))]
        moved = {number: "hgfedcba".index("abcdefgh"[number]) for number in range(8)} | {8: 8}  # another table
        found = call_partings(
            coverage([1], one), coverage([moved[1]], [moved[call] for call in other], names="hgfedcba")
        )
        a, b = ([f"m`{'abcdefgh'[call]}" for call in calls if call < 8] for calls in (one, other))
        if not (a and b):
            assert found is not None and [part.cpu for part in found] == ([1] if a or b else [])
            continue
        number = next(
            (at for at, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b))
        )
        if a == b:
            assert found == ()
            continue
        assert found is not None
        ((cpu, at, before, then),) = [(part.cpu, part.number, part.before, part.then) for part in found]
        assert (cpu, at, list(before)) == (1, number, a[max(0, number - 8) : number])
        assert [list(calls) for calls in then] == [a[number : number + 4], b[number : number + 4]]


def test_a_run_without_an_order_is_compared_with_none(tmp_path: Path) -> None:
    ordered("arm64", tmp_path / "a.json", "--call", "heap_init()")
    assert command("diff", "--sum", tmp_path / "a.json", tmp_path / "a.json", "-o", tmp_path / "b.json").returncode == 0
    assert call_partings(read_coverage(tmp_path / "a.json"), read_coverage(tmp_path / "b.json")) is None


@pytest.mark.parametrize(
    ("count", "piece", "functions"),
    [(2, np.array([0, 9], "<u4").tobytes(), 9), (2, bytes(4), 9), (1, bytes(8), 9), (1, b"", 9)],
)
def test_calls_that_lie_are_refused(count: int, piece: bytes, functions: int) -> None:
    order = CallOrder(0, count, (zstd_frame(memoryview(piece)),))
    with pytest.raises(ImageError, match="damaged"):
        list(order.calls(functions))
    with pytest.raises(ImageError, match="damaged"):
        list(CallOrder(0, count, (piece,)).calls(functions))

"""Coverage of two runs: added up, and compared."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kinst.runtime.coverage.document import Block, Coverage, CoveredImage, Function, Granularity
from kinst.runtime.coverage.json_format import coverage_of, json_lines
from kinst.runtime.coverage.merging import merged
from kinst.targets.errors import ImageError
from tests.commands.in_process import command
from tests.runtime.coverage.test_formats import written

SIZES = (1, 2, 3, 4, 7)


def drawn(draw: random.Random, sizes: Sequence[int], rank: int) -> tuple[Function, dict[int, int]]:
    """A function with blocks of its instructions, and the count of each instruction by its offset."""
    blocks, counts, offset, row = [], {}, 0, 0
    while row < len(sizes):
        count, runs = draw.randint(1, min(4, len(sizes) - row)), draw.choice((0, 0, 1, 5))
        size = sum(sizes[row : row + count])
        blocks.append(Block(offset, size, row, count, runs))
        for at in range(row, row + count):
            counts[sum(sizes[:at])] = runs
        offset, row = offset + size, row + count
    executed = sum(runs > 0 for runs in counts.values())
    return Function("f", 0x1000, sum(sizes), len(sizes), executed, counts[0], rank, tuple(blocks)), counts


def coverage(*functions: Function) -> Coverage:
    image = CoveredImage("m", "/m", "arm64", "d", 0x1000, 0x9000, 0x1000, functions, ())
    return Coverage(Granularity.BLOCKS, 1, (image,), 0)


def test_sums_are_those_of_each_instruction() -> None:
    draw = random.Random(5)
    for _ in range(300):
        sizes = [draw.choice(SIZES) for _ in range(draw.randint(1, 12))]
        (one, here), (other, there) = drawn(draw, sizes, 1), drawn(draw, sizes, 1)
        found = merged(coverage(one), coverage(other))
        function, counts = found.images[0].functions[0], {}
        for block in function.blocks:
            for row in range(block.index, block.index + block.instructions):
                counts[sum(sizes[:row])] = block.runs
            assert block.size == sum(sizes[block.index : block.index + block.instructions])
        assert counts == {at: here[at] + there[at] for at in here}
        assert function.executed == sum(runs > 0 for runs in counts.values())
        text = "\n".join(json_lines(found))
        assert coverage_of(text.encode(), "it") == found


def test_an_image_of_the_same_name_is_another_one_where_that_may_be() -> None:
    one = coverage(drawn(random.Random(1), [4, 4], 1)[0])
    other = replace(one, images=(replace(one.images[0], digest="e"),))
    with pytest.raises(ImageError, match="different images of that name"):
        merged(one, other)
    both = merged(merged(one, other, has_others=True), other, has_others=True)
    assert both.images == (one.images[0], merged(other, other).images[0])


def test_functions_of_either_run_are_in_the_sum_in_the_order_of_the_first() -> None:
    def function(name: str, at: int, rank: int) -> Function:
        blocks = (Block(0, 4, 0, 1, rank),) if rank else ()
        return Function(name, at, 4, min(rank, 1), min(rank, 1), rank, rank, blocks)

    ranks = ((2, 0, 1, 0, 0), (0, 1, 3, 0, 2))
    runs = [coverage(*(function(name, 0x1000 + 4 * at, run[at]) for at, name in enumerate("abcde"))) for run in ranks]
    found = merged(*runs).images[0].functions
    assert [(one.name, one.rank, one.runs) for one in found] == [
        ("a", 2, 2),
        ("b", 3, 1),
        ("c", 1, 4),
        ("d", 0, 0),
        ("e", 4, 2),
    ]


def test_a_run_is_compared_with_another(tmp_path: Path) -> None:
    one = written(tmp_path / "one.json")
    other = written(tmp_path / "other.json", "--call", "kmalloc(100)")
    assert command("diff", "--runs", one, one).stdout == "1 functions did the same\n"
    done = command("diff", "--runs", one, other, "--format", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["same"]) == (1, False)
    assert [row["function"] for row in found["only_first"]] == ["kernel-arm64`hash_bytes"]
    assert "kernel-arm64`kmalloc" in [row["function"] for row in found["only_second"]]
    assert found["order"] == {"equal": 0, "before": "", "then": ["kernel-arm64`hash_bytes", "kernel-arm64`kmalloc"]}
    assert "only other.json called" in command("diff", "--runs", one, other).stdout
    command("diff", "--runs", one, other, "-o", tmp_path / "picture.svg")
    assert "kmalloc" in (tmp_path / "picture.svg").read_text()


def test_runs_are_added_up(tmp_path: Path) -> None:
    one, both = written(tmp_path / "one.json"), tmp_path / "both.json"
    assert command("diff", "--sum", one, one, "-o", both).returncode == 0
    done = command("diff", "--runs", one, both, "--format", "json")
    (row,) = json.loads(done.stdout)["counts"]
    assert (row["function"], row["runs"]) == ("kernel-arm64`hash_bytes", [1, 2])
    assert row["executed"][0] == row["executed"][1] > 1
    assert row["blocks"][0] == row["blocks"][1] > 1
    assert command("diff", "--sum", one, both, "-o", tmp_path / "both.info").returncode == 0
    wrong = command("diff", "--sum", one, written(tmp_path / "a.json", "--coverage-of", "functions"), "-o", both)
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (1, 1)

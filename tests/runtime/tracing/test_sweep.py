"""One function, called again and again: each call is as the first one, whatever the one before it did."""

from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from kinst.runtime.api import open_image
from kinst.runtime.machine.configuration import End
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import KinstError

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.mark.parametrize("arch", NAMES)
def test_calls_return_what_single_calls_do(arch: str) -> None:
    inputs: list[tuple[int, str | bytes, int]] = [(1, "hello", 5), (2, b"hello", 3), (3, "", 0), (1, "hello", 5)]
    with open_image(SAMPLES / f"kernel-{arch}.elf") as image:
        sweep = image.sweep("hash_bytes")
        found = [sweep.call(*arguments) for arguments in inputs]
        assert found[0] == found[3]
        assert [one.result for one in found[:2]] == [image.call("hash_bytes", *arguments) for arguments in inputs[:2]]
    assert {one.end for one in found} == {End.RETURNED}
    assert len(found[2].hits) < len(found[1].hits) == len(found[0].hits)
    assert max(found[0].hits.values()) == 5


@pytest.mark.parametrize("arch", NAMES)
def test_a_call_that_is_cut_short_anywhere_leaves_nothing_behind(arch: str) -> None:
    """kmalloc takes a lock, with interrupts masked: a second call would wait for it forever."""
    with open_image(SAMPLES / f"kernel-{arch}.elf") as image:
        sweep = image.sweep("kmalloc")
        whole = sweep.call(100, seconds=0.01)
        ends = set()
        for instructions in range(1, 60, 3):
            ends.add(sweep.call(100, seconds=instructions * 1e-8).end)
            assert sweep.call(100, seconds=0.01) == whole
    assert whole.end is End.RETURNED
    assert ends == {End.TIMEOUT, End.RETURNED}


@pytest.mark.parametrize("arch", NAMES)
def test_a_call_that_faults_is_told_and_leaves_nothing_behind(arch: str) -> None:
    with open_image(SAMPLES / f"kernel-{arch}.elf") as image:
        sweep = image.sweep("memcpy")
        good = sweep.call("abc", "def", 3, seconds=0.01)
        bad = sweep.call("abc", 0x10, 3, seconds=0.01)
        assert sweep.call("abc", "def", 3, seconds=0.01) == good
    assert (bad.result, bad.end) == (None, None)
    assert "read of 0x10, where nothing is" in bad.error
    assert 0 < len(bad.hits) < len(good.hits)


def test_more_pages_than_are_looked_at_each_time_are_undone() -> None:
    stack, size = 0x8000_0020_000, 80 << 12  # free pages of the call's own stack
    with open_image(SAMPLES / "kernel-riscv64.elf") as image:
        sweep = image.sweep("memset", coverage="")
        for byte in (1, 2, 1):
            assert sweep.call(stack, byte, size, seconds=1).result == stack
            assert not any(sweep.calls._system.memory.read(stack, size))


def test_what_is_no_function_or_argument_is_refused() -> None:
    with open_image(SAMPLES / "kernel-arm64.elf") as image:
        with pytest.raises(KinstError, match="nosuch"):
            image.sweep("nosuch")
        sweep = image.sweep("fibonacci", coverage="")
        for call in (sweep.call, partial(image.call, "fibonacci")):
            with pytest.raises(KinstError, match="argument 2 is neither a number nor a text: None"):
                call(1, cast("Any", None))
        assert sweep.call(10).result == 55

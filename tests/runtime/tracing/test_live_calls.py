"""Functions that are called one after another in a machine that has run: each call comes to what it comes to in a
machine that makes no other, and leaves nothing behind."""

import random
from pathlib import Path

import pytest

from kinst.runtime.api import ImageFile, open_image
from kinst.runtime.machine.calling.arguments import Buffer
from kinst.runtime.machine.calling.template import call_of
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.given import Machine
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import UsageError
from tests.runtime.tracing.live_calls import TIMEOUT, calls_in, digest, drawn, outcome_of, snapshot_of

SAMPLES = Path(__file__).parents[3] / "samples"
each_machine = pytest.mark.parametrize("arch", NAMES)


def sample(arch: str) -> ImageFile:
    return open_image(SAMPLES / f"kernel-{arch}.elf")


def agree(image: ImageFile, machine: Machine, draw: random.Random, count: int) -> None:
    calls = drawn(image, draw, count)
    with calls_in(image, machine) as kept:
        before = digest(kept)
        found = [outcome_of(kept, call) for call in calls]
        again = [outcome_of(kept, call) for call in reversed(calls)]
        assert digest(kept) == before
    assert again[::-1] == found
    for call, outcome in zip(calls, found, strict=True):
        with calls_in(image, machine) as fresh:
            assert outcome_of(fresh, call) == outcome, call.text


@each_machine
def test_a_call_comes_to_what_it_comes_to_in_a_machine_of_its_own(arch: str, tmp_path: Path) -> None:
    with sample(arch) as image:
        agree(image, snapshot_of(image, 0.02, tmp_path / "a.snap"), random.Random(arch), 3)


@pytest.mark.long
@pytest.mark.each_machine
@each_machine
def test_many_calls_come_to_that(arch: str, tmp_path: Path) -> None:
    with sample(arch) as image:
        draw = random.Random(f"{arch} many")
        for number in range(4):
            machine = snapshot_of(image, draw.uniform(0.001, 0.04), tmp_path / f"{number}.snap")
            agree(image, machine, draw, 40)


@each_machine
def test_a_buffer_ends_where_memory_ends(arch: str, tmp_path: Path) -> None:
    """One byte too many faults, wherever the buffer is, and in a live machine, too."""
    with sample(arch) as image:
        for machine in (Machine(clock="icount"), snapshot_of(image, 0.02, tmp_path / "a.snap")):
            sweep = image.sweep("memcpy", coverage="", machine=machine)
            for size in (1, 5, 4096, 4097):
                source, room = Buffer(bytes(range(256)) * 17), Buffer(bytes(size))
                assert sweep.call(room, source, size).end is End.RETURNED
                over = sweep.call(room, source, size + 1)
                assert (over.end, over.what.partition(" of ")[0]) == (None, "write")
                assert over.where.startswith(f"kernel-{arch}`memcpy")
                past = sweep.call(Buffer(bytes(9000)), Buffer(bytes(size)), size + 1)
                assert past.what.startswith("read of ")


@each_machine
def test_what_the_function_prints_and_devices_are_undone(arch: str, tmp_path: Path) -> None:
    with sample(arch) as image, calls_in(image, snapshot_of(image, 0.02, tmp_path / "a.snap")) as calls:
        first, *others = (outcome_of(calls, call_of("printk", ("%d %s\n", 7, "seven"))) for _ in range(3))
    assert first.console.replace(b"\r", b"") == b"7 seven\n"
    assert others == [first, first]


def test_a_call_ends_in_time_and_its_instructions_are_counted(tmp_path: Path) -> None:
    with sample("arm64") as image, calls_in(image, snapshot_of(image, 0.02, tmp_path / "a.snap")) as calls:
        whole = calls.call(call_of("fibonacci", (9,)), TIMEOUT)
        assert whole.instructions is not None
        for count in (1, 7, whole.instructions - 1):
            cut = calls.call(call_of("fibonacci", (9,)), count * 10)
            assert (cut.end, cut.instructions) == (End.TIMEOUT, count)
        assert calls.call(call_of("fibonacci", (9,)), TIMEOUT) == whole


def test_there_is_space_for_arguments_or_an_error(tmp_path: Path) -> None:
    with sample("riscv64") as image:
        sweep = image.sweep("memcpy", coverage="")
        with pytest.raises(UsageError, match="at most 8 of them"):
            sweep.call(*[Buffer(b"a")] * 9)
        with pytest.raises(UsageError, match="at most 1,048,576 bytes"):
            sweep.call(Buffer(bytes((1 << 20) + 1)))
        with pytest.raises(UsageError, match="longer than 65536 bytes"):
            sweep.call(bytes(1 << 16))

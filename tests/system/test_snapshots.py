"""A run that continues from a snapshot is the run itself: console, time, registers of all CPUs, memory."""

from dataclasses import replace
from pathlib import Path

import pytest

from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.runtime.machine.device import Timed
from kinst.runtime.machine.snapshots.devices import graph_of
from kinst.targets.errors import KinstError
from tests.commands.in_process import kinst_run
from tests.gated import taking_turns
from tests.system.cases import BY_NAME, KERNELS, SAMPLES, Case, shown
from tests.system.snapshots import differences, drawn_times, taken_at, taken_at_hits, whole

_PANIC = "Kernel panic - not syncing: VFS: Unable to mount root fs"
FIRMWARE = tuple(BY_NAME[name] for name in ("u-boot-arm64", "u-boot-riscv64"))
each_sample = pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)


@pytest.mark.parametrize(("cpus", "case"), taking_turns([1, 2], SAMPLES), ids=shown)
def test_a_snapshot_at_any_instruction(case: Case, cpus: int, tmp_path: Path) -> None:
    for taken in taken_at(case, cpus, drawn_times(case, cpus, 1), tmp_path):
        assert differences(case, cpus, taken) == []


@pytest.mark.long
@each_sample
@pytest.mark.parametrize("cpus", [1, 2])
def test_snapshots_at_many_instructions(case: Case, cpus: int, tmp_path: Path) -> None:
    for taken in taken_at(case, cpus, drawn_times(case, cpus, 34), tmp_path):
        assert differences(case, cpus, taken) == []


@pytest.mark.long
@pytest.mark.parametrize("case", FIRMWARE, ids=lambda case: case.image)
@pytest.mark.parametrize("cpus", [1, 2])
def test_snapshots_of_firmware_that_moves_itself(case: Case, cpus: int, tmp_path: Path) -> None:
    for taken in taken_at(case, cpus, drawn_times(case, cpus, 8), tmp_path):
        assert differences(case, cpus, taken) == []


@pytest.mark.long
@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.image)
def test_snapshots_of_kernels(case: Case, tmp_path: Path) -> None:
    for taken in taken_at(case, 1, drawn_times(case, 1, 2), tmp_path):
        assert differences(case, 1, taken) == []


@pytest.mark.long
@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.image)
@pytest.mark.parametrize("cpus", [1, 2])
def test_snapshots_of_kernels_with_all_their_cpus(case: Case, cpus: int, tmp_path: Path) -> None:
    """As far as the panic of a kernel that has no root."""
    booted = replace(case, until=_PANIC)
    for taken in taken_at(booted, cpus, drawn_times(booted, cpus, 2), tmp_path):
        assert differences(booted, cpus, taken) == []


@pytest.mark.turns
@each_sample
def test_a_snapshot_at_a_probe_is_of_the_guest_alone(case: Case, tmp_path: Path) -> None:
    hits = {"vfs_create:entry": 1, "fibonacci:entry": 20, "fibonacci:return": 7, "printk:return": 3}
    taken = taken_at_hits(case, 1, hits, tmp_path)
    assert len(taken) == len(hits)
    for one in taken:
        assert differences(case, 1, one) == []


@pytest.mark.turns
@each_sample
def test_any_program_starts_from_a_snapshot(case: Case, tmp_path: Path) -> None:
    """What clauses print of the rest is what they print of it in the whole run."""
    program = 'fbt::fibonacci:entry { printf("%d %d", timestamp, arg0); @[probefunc] = count(); }'
    (taken,) = taken_at_hits(case, 1, {"fibonacci:entry": 20}, tmp_path)
    with open_image(case.path) as image:
        first = image.trace(program, machine=Machine(board=case.machine, clock="icount"))
        first.run()
        rest = image.trace(program, machine=Machine(board=case.machine, clock="icount", start=taken.path))
        rest.run()
    # The probe at which the snapshot was taken fires again: the snapshot is before its instruction.
    assert [one.values for one in rest.take()] == [one.values for one in first.take()][19:]
    (before,), (after,) = first.aggregation().values(), rest.aggregation().values()
    assert after == before - 19


@pytest.mark.turns
@each_sample
def test_a_trace_goes_back(case: Case) -> None:
    with open_image(case.path) as image:
        trace = image.trace(
            "fbt::fibonacci:entry { @ = count(); }", machine=Machine(board=case.machine, clock="icount")
        )
        trace.run(seconds=0.005)
        before, printed = trace.snapshot(), len(trace.console)
        for _ in range(2):
            trace.run(seconds=0.01)
            rest = trace.console[printed:]
            trace.restore(before)
            trace.run(seconds=0.01)
            assert trace.console.endswith(rest)
            assert trace.guest.system.clock.now() == before.time + 10_000_000
            trace.restore(before)


@pytest.mark.turns
@each_sample
def test_what_acts_at_a_time_is_kept(case: Case) -> None:
    with open_image(case.path) as image:
        guest = image.trace(machine=Machine(board=case.machine, clock="icount")).guest
    guest.snapshots.begin()
    graph, acting = graph_of(guest.system), list[Timed]()
    guest.system.timed.each(acting.append)
    assert acting
    kept = [*graph.objects.values(), *guest.system.kept.values()]
    assert [one for one in acting if not any(one is other for other in kept)] == []


@pytest.mark.turns
@each_sample
def test_a_program_writes_what_snapshot_at_writes(case: Case, tmp_path: Path) -> None:
    one, other = tmp_path / "one.snap", tmp_path / "other.snap"
    program = f'fbt::fibonacci:return {{ snapshot("{other}"); snapshot(strjoin("{other}", "")); }}'
    done = kinst_run(case.path, "-wn", program, "--clock", "icount", "--snapshot-at", f"fbt::fibonacci:return={one}")
    assert done.returncode == 0, done.stderr
    assert one.read_bytes() == other.read_bytes()
    assert [done.stderr.count(f"{path}: has the guest at ") for path in (one, other)] == [1, 1]


@pytest.mark.parametrize(
    ("words", "probe", "why"),
    [
        (("--method", "jump", str(SAMPLES[0].path)), "fbt::kmalloc:entry", "use another method"),
        ((), "BEGIN", "there are snapshots of our own machine only, with an image"),
    ],
)
def test_what_has_no_snapshots_says_so_at_once(words: tuple[str, ...], probe: str, why: str, tmp_path: Path) -> None:
    done = kinst_run("-wn", f'{probe} {{ snapshot("{tmp_path}/file"); exit(0); }}', *words)
    assert done.returncode == 2
    assert why in done.stderr
    assert not [*tmp_path.iterdir()]


def test_one_that_was_not_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    program = "fbt::kmain:entry { exit(0); }"
    done = kinst_run(SAMPLES[0].path, "-qn", program, "--snapshot-at", f"fbt::kmain:entry={file}")
    assert done.returncode == 0
    assert f"{file}: not written: the run ended before --snapshot-at fbt::kmain:entry fired" in done.stderr
    assert not file.exists()


def test_the_image_is_not_replaced(tmp_path: Path) -> None:
    image = tmp_path / "image.elf"
    image.write_bytes(SAMPLES[1].path.read_bytes())
    done = kinst_run(image, "-qwn", f'BEGIN {{ snapshot("{image}"); exit(0); }}')
    assert done.returncode == 2
    assert "is a file that this run reads" in done.stderr
    assert image.read_bytes() == SAMPLES[1].path.read_bytes()


def test_another_image_or_machine_is_refused(tmp_path: Path) -> None:
    case, other = SAMPLES[:2]
    (taken,) = taken_at(case, 1, [whole(case, 1)[0].time // 2 // 10 * 10], tmp_path)
    path = taken.path

    def message(case: Case, machine: Machine) -> str:
        with open_image(case.path) as image, pytest.raises(KinstError) as caught:
            image.trace(machine=machine)
        return str(caught.value)

    assert message(other, Machine(start=path)) == (
        f"{path}: is of another image: {case.path.name}, as it was, and {other.path.name} is not that"
    )
    for machine, why in (
        (Machine(start=path, cpus=2, clock="icount"), "its number of CPUs is 1, and here 2"),
        (Machine(start=path), "its clock is icount, and here host"),
        (Machine(start=path, clock="icount", rng_seed=7), "its --rng-seed is not given, and here 7"),
        (
            Machine(start=path, clock="icount", memory=64 << 20),
            f"its bytes of RAM is {128 << 20:,}, and here {64 << 20:,}",
        ),
    ):
        assert message(case, machine) == f"{path}: is of another machine: {why}"

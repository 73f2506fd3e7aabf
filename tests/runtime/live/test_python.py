"""Machine(on=...): the Python API with QEMU as its machine."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kinst.runtime import End, Hit, ImageFile, KinstError, Machine, Options, open_image
from kinst.targets.errors import MachineError, UsageError
from tests.runtime.live.qemus import children, endless, ends, needs, on
from tests.samples.machines import MACHINES, Sample, expected_console

GET = "fbt::vfs_get:entry"


@pytest.fixture(params=[*MACHINES.values()], ids=[*MACHINES])
def sample(request: pytest.FixtureRequest) -> Sample:
    """A machine's sample kernel, if QEMU has the machine."""
    found: Sample = request.param
    needs(found.qemu[0])
    return found


@pytest.fixture
def riscv64() -> ImageFile:
    needs(MACHINES["riscv64"].qemu[0])
    return open_image(MACHINES["riscv64"].image)


def seen(image: ImageFile, machine: Machine) -> tuple[list[tuple[object, ...]], object, list[object]]:
    """What an action, an aggregation and records have of the same run."""
    hits = list[tuple[object, ...]]()

    def act(hit: Hit) -> None:
        hits.append((str(hit.probe), hit.cpu, hit.argument(0), hit.argument(1), hit.symbol(hit.caller), hit.address))

    program = f"{GET} {{ @[arg0] = count(); }} fbt::vfs_create:entry {{ trace(arg1); }}"
    with image.trace(program, actions={GET: act}, machine=machine) as trace:
        assert trace.run(seconds=60) is End.POWER_OFF
        assert trace.console.decode().replace("\r\n", "\n") == expected_console(1)
        return hits, trace.aggregation(), [record.values[0] for record in trace.take()]


def test_values_are_those_of_our_machine(sample: Sample) -> None:
    with open_image(sample.image) as image:
        there = seen(image, Machine(on=on(sample)))
        assert there == seen(image, Machine(clock="icount"))
    assert len(there[0]) == 176


def test_times_are_those_of_one_clock(riscv64: ImageFile) -> None:
    program = f"BEGIN {{ trace(timestamp); }} {GET} {{ trace(timestamp); }} END {{ trace(timestamp); }}"
    with riscv64 as image, image.trace(program, machine=Machine(on="qemu -m 64M")) as trace:
        trace.run(seconds=60)
        times = [record.values[0] for record in trace.take()]
    assert len(times) == 178
    assert times == sorted(times)


def test_it_stops_and_goes_on(tmp_path: Path) -> None:
    machine = Machine(on="qemu -m 64M")
    program = "fbt::work:entry { @ = count(); } fbt::work:entry /n++ == 50/ { stop(); }"
    with (
        open_image(endless(tmp_path)) as image,
        image.trace(program, options=Options(d={"destructive": True}), machine=machine) as trace,
    ):
        assert trace.run(seconds=60) is End.PAUSED
        assert any("the guest is paused: run() lets it go on" in line for line in trace.messages)
        first = trace.aggregation()[()]
        assert first >= 50
        assert trace.run(seconds=0.1) is End.TIMEOUT
        assert trace.aggregation()[()] > first
        assert trace.finish().reason == "timeout"
        assert trace.machine == "riscv64"


def test_records_come_while_it_runs_and_an_action_stops_it(tmp_path: Path) -> None:
    calls = Counter[str]()
    with open_image(endless(tmp_path)) as image:

        def act(hit: Hit) -> None:
            calls[hit.probe.function] += 1
            if calls["work"] == 100:
                trace.stop()

        machine = Machine(on="qemu -m 64M")
        with image.trace(
            "fbt::work:entry { trace(arg0); }", actions={"fbt::work:entry": act}, machine=machine
        ) as trace:
            values = [record.values[0] for record in trace.records(seconds=60)]
            assert calls["work"] >= 100
            assert values[:100] == list(range(100))
            assert trace.ending is None
            (process,) = children()
        assert ends(process)


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (
            lambda hit: hit.stack(),
            f"{GET[:5]}kernel-riscv64:vfs_get:entry: stack: was not recorded: a clause that reads",
        ),
        (lambda hit: hit.register("s3"), "register s3 was not recorded"),
        (lambda hit: hit.memory.word(hit.argument(1)), "memory that changes was not recorded"),
    ],
)
def test_what_was_not_recorded_is_an_error(riscv64: ImageFile, read: Callable[[Hit], object], why: str) -> None:
    with riscv64 as image, image.trace(actions={GET: read}, machine=Machine(on="qemu -m 64M")) as trace:
        with pytest.raises(MachineError) as error:
            trace.run(seconds=60)
        assert why.removeprefix("fbt::") in str(error.value)


def test_a_clause_has_the_stack_recorded_for_an_action(riscv64: ImageFile) -> None:
    names = Counter[str]()
    machine = Machine(on="qemu -m 64M")
    take = lambda hit: names.update(str(place).partition("`")[2] for place in hit.stack(2))  # noqa: E731
    with (
        riscv64 as image,
        image.trace(f"{GET} {{ @[stack()] = count(); }}", actions={GET: take}, machine=machine) as trace,
    ):
        trace.run(seconds=60)
    assert names["vfs_get"] == sum(count for name, count in names.items() if name != "vfs_get") == 176


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (Machine(on="qemu", clock="icount"), "--clock icount: is for our own machine"),
        (Machine(on="qemu", rng_seed=1), "--rng-seed: is for our own machine"),
        (Machine(on="qemu-system-riscv64 -m 64M", cpus=2), "a command says itself how many CPUs"),
        (Machine(on="qemu-system-riscv64 -M nonsense"), "unsupported machine type"),
    ],
)
def test_what_it_cannot_do_is_refused(riscv64: ImageFile, machine: Machine, why: str) -> None:
    with riscv64 as image, pytest.raises(KinstError, match=why):
        image.trace(machine=machine)


def test_what_needs_our_machine_says_so(riscv64: ImageFile) -> None:
    machine = Machine(on="qemu -m 64M")
    with riscv64 as image:
        for call in (
            lambda: image.call("fibonacci", 3, machine=machine),
            lambda: image.sweep("fibonacci", machine=machine),
        ):
            with pytest.raises(UsageError, match="--call: is for our own machine"):
                call()
        with image.trace(machine=machine) as trace:
            assert trace.result is None
            for read in (lambda: trace.guest, lambda: trace.ql, lambda: trace.physical_address("kmain")):
                with pytest.raises(UsageError, match="runs under QEMU: its machine is not here"):
                    read()


def test_it_runs_where_asyncio_does(riscv64: ImageFile) -> None:
    """A Jupyter notebook runs each cell inside a loop."""

    async def cell() -> End:
        with riscv64 as image, image.trace(machine=Machine(on="qemu -m 64M")) as trace:
            return trace.run(seconds=60)

    assert asyncio.run(cell()) is End.POWER_OFF


def test_a_trace_that_is_forgotten_leaves_no_qemu(riscv64: ImageFile) -> None:
    trace = riscv64.trace(f"{GET} {{ @ = count(); }}", machine=Machine(on="qemu -m 64M"))
    (process,) = children()
    del trace
    gc.collect()
    assert ends(process)

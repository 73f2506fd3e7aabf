"""The Python API on the sample kernels: what it lists, writes, records, calls, stops at and gives back."""

import gc
import math
import os
import platform
import re
import signal
import time
import weakref
from collections import Counter
from pathlib import Path

import pytest
import unicorn
from qiling import Qiling

from kinst.runtime import End, Hit, ImageFile, KinstError, Machine, Options, Place, open_image
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import MachineError, UsageError

SAMPLES = Path(__file__).parents[2] / "samples"
COUNTED = "fbt::vfs_*:entry { @calls[probefunc] = count(); @ = sum(1); }"
CREATED = "fbt::vfs_create:entry"


def sample(arch: str = "riscv64") -> ImageFile:
    return open_image(SAMPLES / f"kernel-{arch}.elf")


def test_probes_are_listed_with_the_identifiers_of_the_commands() -> None:
    with sample() as image:
        (probe,) = image.probes("fbt::rpc_call:entry")
        everything = image.probes()
    assert (str(probe), probe.identifier) == ("fbt:kernel-riscv64:rpc_call:entry", 1120)
    assert probe in everything
    assert len(everything) > 150
    with pytest.raises(UsageError, match="was closed"):
        image.probes()
    with sample() as image, pytest.raises(KinstError, match="no_such"):
        image.probes("fbt::no_such:")


def test_a_file_is_rewritten_and_fires_by_itself(tmp_path: Path) -> None:
    patched = tmp_path / "patched.elf"
    with sample() as image:
        assert image.rewrite(patched, "fbt::rpc_call:entry") == ()
    with open_image(patched) as image, image.trace(machine=Machine(clock="icount")) as trace:
        assert [str(probe) for probe in image.probes()] == ["fbt:kernel-riscv64:rpc_call:entry"]
        trace.run(seconds=5)
        assert {str(record.probe) for record in trace.take()} == {"fbt:kernel-riscv64:rpc_call:entry"}


def test_aggregations_are_dicts() -> None:
    actions = "@largest[cpu, probefunc] = max(arg0); @q = quantize(arg0); @l = lquantize(arg0, 2, 4);"
    with (
        sample() as image,
        image.trace(COUNTED, f"fbt::fibonacci:entry {{ {actions} }}", machine=Machine(clock="icount")) as trace,
    ):
        assert trace.aggregations == {name: {} for name in ("calls", "_", "largest", "q", "l")}
        assert trace.run(seconds=5) is End.POWER_OFF
        calls = trace.aggregation("calls")
        assert calls["vfs_get"] == 176
        assert list(calls.values()) == sorted(calls.values())  # dtrace's order
        assert trace.aggregation("_") == {(): sum(calls.values())}
        assert set(trace.aggregation("largest")) == {(0, "fibonacci")}
        buckets, linear = (trace.aggregation(name)[()] for name in ("q", "l"))
        with pytest.raises(UsageError, match="@none: no such aggregation; there are"):
            trace.aggregation("none")
    assert set(buckets) <= {0, 1, 2, 4, 8, 16, 32}
    assert set(linear) == {-math.inf, 2, 3, 4}
    assert sum(buckets.values()) == sum(linear.values()) > 100
    with pytest.raises(UsageError, match="was closed"):
        trace.aggregation("calls")


def test_records_come_while_the_guest_runs() -> None:
    """The guest waits for who looks at them, and goes on."""
    program = 'fbt::vfs_get:entry { printf("%x of %s", arg0, probefunc); trace(stackdepth); stack(1); }'
    with (
        sample() as image,
        image.trace(program, machine=Machine(clock="icount"), options=Options(d={"switchrate": "1ms"})) as trace,
    ):
        clock, times, texts = trace.guest.system.clock, [], set()
        for record in trace.records(seconds=5):
            times.append((record.time, clock.now()))
            first, function, depth, stack = record.values
            assert (record.text, function) == (f"{first:x} of vfs_get", "vfs_get")
            assert depth > 0
            assert isinstance(stack[0], Place)
            assert str(stack[0]).startswith("kernel-riscv64`vfs_get")
            texts.add(record.text)
        assert trace.ending is not None and trace.ending.end is End.POWER_OFF
    seen, now = zip(*times, strict=True)
    assert list(seen) == sorted(seen)
    assert len(set(now)) >= 3  # it was stopped that often
    assert len(times) == 176 and len(texts) > 3


def test_an_action_sees_the_cpu_and_its_memory() -> None:
    names: Counter[str] = Counter()
    hits: list[Hit] = []

    def entered(hit: Hit) -> None:
        text, size = hit.argument(1), hit.argument(2)
        if not size:
            return
        names[hit.memory.text(text, size)] += 1
        assert hit.register("a1") == text
        assert hit.memory.read(text, 4) == hit.memory.word(text, 4).to_bytes(4, "little")
        assert hit.probe.function in hit.symbol(hit.address)
        assert hit.stack(2)[0].address == hit.address
        assert hit.stack(2)[1].address == hit.caller
        with pytest.raises(UsageError, match="no such register"):
            hit.register("rdi")
        with pytest.raises(MachineError, match="0x10"):
            hit.memory.word(0x10)
        hits.append(hit)

    with (
        sample() as image,
        image.trace(actions={"fbt::hash_bytes:entry": entered}, machine=Machine(clock="icount")) as trace,
    ):
        trace.run(seconds=5)
    assert names.total() > 20
    assert any(name.isprintable() and len(name) > 4 for name in names)
    with pytest.raises(UsageError, match="a hit is over"):
        _ = hits[0].cpu


def test_an_action_stops_the_guest_which_goes_on() -> None:
    stops = []
    with sample() as image:

        def entered(hit: Hit) -> None:
            stops.append(hit.time)
            trace.stop()

        trace = image.trace(COUNTED, actions={"fbt::vfs_create:entry": entered}, machine=Machine(clock="icount"))
        plain = image.trace(COUNTED, machine=Machine(clock="icount"))
    with trace, plain:
        ends = [trace.run() for _ in range(24)]
        assert ends == [End.STOPPED] * 23 + [End.POWER_OFF]
        assert plain.run() is End.POWER_OFF
        assert trace.aggregations == plain.aggregations
        assert trace.console == plain.console != b""
        assert trace.guest.system.clock.now() == plain.guest.system.clock.now()
        with pytest.raises(UsageError, match="the run is over: power-off"):
            trace.run()
    assert len(stops) == 23


def test_control_c_is_an_exception_after_which_the_guest_goes_on() -> None:
    with sample() as image:
        interrupt = {"fbt::vfs_create:entry": lambda _hit: os.kill(os.getpid(), signal.SIGINT)}
        trace = image.trace(COUNTED, actions=interrupt, machine=Machine(clock="icount"))
    with trace:
        for _ in range(23):
            with pytest.raises(KeyboardInterrupt):
                trace.run()
        assert trace.run() is End.POWER_OFF
        assert trace.aggregation("calls")["vfs_get"] == 176


def test_control_c_before_the_guest_has_begun_is_not_lost() -> None:
    interrupt = {"BEGIN": lambda _hit: os.kill(os.getpid(), signal.SIGINT)}
    with sample() as image, image.trace(COUNTED, actions=interrupt, machine=Machine(clock="icount")) as trace:
        with pytest.raises(KeyboardInterrupt):
            trace.run()
        assert trace.guest.system.clock.now() == 0
        assert trace.run() is End.POWER_OFF
        assert trace.aggregation("calls")["vfs_get"] == 176


def test_the_machine_is_a_qiling_object() -> None:
    addresses = []
    with sample() as image, image.trace(COUNTED, machine=Machine(clock="icount")) as trace:
        start = trace.guest.loaded.image.symbols.address_of("vfs_get")
        trace.ql.hook_address(lambda ql: addresses.append(ql.arch.regs.arch_pc), start)
        trace.run()
        assert addresses == [start] * trace.aggregation("calls")["vfs_get"]


@pytest.mark.parametrize("arch", NAMES)
def test_who_asks_for_the_engine_in_the_middle_sees_each_instruction_once(arch: str) -> None:
    """An action puts a hook below Qiling. From then on instructions are counted one by one; nothing else changes."""
    seen: list[tuple[int, int]] = []  # address, and how many were counted by then: none in trampolines

    def hooked(_hit: Hit) -> None:
        if seen:
            return
        counter = trace.guest.system.engine.counter
        assert counter is not None
        trace.ql.uc.hook_add(unicorn.UC_HOOK_CODE, lambda _uc, address, *_: seen.append((address, counter.executed)))

    with (
        sample(arch) as image,
        image.trace(COUNTED, actions={CREATED: hooked}, machine=Machine(clock="icount")) as trace,
        image.trace(COUNTED, actions={CREATED: lambda _hit: None}, machine=Machine(clock="icount")) as plain,
    ):
        assert trace.run() is plain.run() is End.POWER_OFF
        assert len(set(seen)) == len(seen) > 10_000
        assert trace.console == plain.console != b""
        assert trace.aggregations == plain.aggregations
        assert trace.guest.system.clock.now() == plain.guest.system.clock.now()
        assert plain.guest.system.engine._counting.is_by_blocks or platform.machine() != "x86_64"


@pytest.mark.parametrize("arch", ["amd64", "riscv64"])
def test_a_hook_of_qiling_watches_a_variable(arch: str) -> None:
    """Whoever writes it is one instruction of the function that is called as often; amd64's is linked elsewhere."""
    writers: Counter[str] = Counter()
    with (
        sample(arch) as image,
        image.trace("fbt::total:entry { @calls[probefunc] = count(); }", machine=Machine(clock="icount")) as trace,
    ):
        start = trace.physical_address("checksum")

        def written(ql: Qiling, *_access: int) -> None:
            writers[trace.symbol(ql.arch.regs.arch_pc)] += 1

        trace.ql.hook_mem_write(written, begin=start, end=start + 3)
        trace.run()
        (writer,) = writers
        assert re.fullmatch(rf"kernel-{arch}`total\+0x[0-9a-f]+", writer)
        assert writers[writer] == trace.aggregation("calls")["total"]
        with pytest.raises(UsageError, match=r"chekcsum: no function or variable .* nearest checksum"):
            trace.physical_address("chekcsum")


def test_it_runs_until_and_for_as_long_as_is_said_by_either_clock() -> None:
    for clock in ("icount", "host"):
        with sample() as image, image.trace("END { trace(1); }", machine=Machine(clock=clock)) as trace:
            assert trace.run(until="^kernel: boo") is End.UNTIL
            assert trace.console == b"kernel: booting\r\n"
            assert trace.run(seconds=0.0001) is End.TIMEOUT
            assert not trace.take()
            assert trace.run(until="no such line") is End.POWER_OFF
            assert [record.values for record in trace.take()] == [(1,)]


def test_a_line_that_several_runs_print_is_found() -> None:
    with sample() as image, image.trace(machine=Machine(clock="icount")) as trace:
        ends = [trace.run(until="^kernel: booting", seconds=2e-6)]
        while ends[-1] is End.TIMEOUT:
            ends.append(trace.run(until="^kernel: booting", seconds=2e-6))
        assert ends[-1] is End.UNTIL
        assert len(ends) > 10


def test_what_an_action_raises_ends_the_run() -> None:
    with sample() as image, image.trace(actions={"fbt::vfs_get:entry": lambda _hit: 1 // 0}) as trace:
        with pytest.raises(ZeroDivisionError):
            trace.run(seconds=5)
        assert trace.ending is not None


def test_one_function_is_called() -> None:
    with sample("arm64") as image:
        assert image.call("fibonacci", 10) == 55
        assert image.call("hash_bytes", 7, "h\n\0", 3) == image.call("hash_bytes", 7, b"h\n\0", 3)
        with pytest.raises(KinstError, match="nearest are fibonacci"):
            image.call("fibonaci", 1)


def test_what_is_wrong_is_an_error_and_what_dtrace_says_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    with sample() as image:
        with pytest.raises(KinstError, match="no_such"):
            image.trace("fbt::no_such:entry { trace(1); }")
        with pytest.raises(KinstError, match="does not match any probes"):
            image.trace(actions={"fbt::no_such:entry": lambda _hit: None})
        with pytest.raises(KinstError, match="nosuchoption"):
            image.trace("BEGIN", options=Options(d={"nosuchoption": True}))
        with image.trace("BEGIN { trace(*(int *)16); } BEGIN { exit(7); }") as trace:
            assert trace.run() is End.EXIT
            assert trace.exit_status == 7
            (message,) = trace.messages
    assert "invalid address (0x10)" in message
    assert capfd.readouterr() == ("", "")


def test_guests_run_side_by_side_and_give_their_memory_back() -> None:
    with sample("amd64") as one, sample("arm64") as other:
        first, second = (image.trace(COUNTED, machine=Machine(clock="icount")) for image in (one, other))
    for milliseconds in range(20):
        for trace in (first, second):
            if trace.ending is None:
                trace.run(seconds=milliseconds / 100)
    assert first.aggregation("calls") == second.aggregation("calls")
    machines = [weakref.ref(trace.guest.system) for trace in (first, second)]
    first.close()
    second.close()
    gc.collect()
    assert [machine() for machine in machines] == [None, None]
    with pytest.raises(UsageError, match="was closed"):
        _ = first.guest


def test_the_hosts_time_is_limited_however_often_records_come() -> None:
    """Each time that records come the guest stops; the limit is that of all of it."""
    with (
        sample("arm64") as image,
        image.trace("fbt:::entry { trace(1); }", options=Options(d={"switchrate": "10ms"})) as trace,
    ):
        for number, _ in enumerate(trace.records(wall_seconds=0.2)):
            time.sleep(0.1 if number < 3 else 0)
        assert trace.finish().end is End.WALL_TIMEOUT

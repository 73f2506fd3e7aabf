"""`ImageFile.call` in a machine that is kept: each call comes to what it comes to in a machine of its own."""

import gc
import os
import random
import shutil
import threading
import weakref
from itertools import pairwise
from pathlib import Path

import pytest

from kinst.rewriter.assemble import assemble
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.write import write_image
from kinst.runtime.api import ImageFile, open_image
from kinst.runtime.machine.calling.template import call_of
from kinst.runtime.tracing.given import Machine
from kinst.runtime.tracing.guests.guest import Guest
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.arch.registry import NAMES
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import KinstError, MachineError, UsageError
from kinst.targets.probe import parse_probe_name
from tests.writers.elf import EM_AARCH64, Part, Symbol, elf64

SAMPLES = Path(__file__).parents[3] / "samples"
ICOUNT = Machine(clock="icount")
SECONDS = 0.0005  # 50,000 instructions

Argument = int | str | bytes
Call = tuple[str, tuple[Argument, ...]]


def sample(arch: str) -> Path:
    return SAMPLES / f"kernel-{arch}.elf"


def outcome(image: ImageFile, call: Call) -> int | str:
    """What the call returns, or the words of its error."""
    try:
        return image.call(call[0], *call[1], machine=ICOUNT, seconds=SECONDS)
    except KinstError as error:
        return f"{type(error).__name__}: {error}"


def witness(path: Path, call: Call) -> int | str:
    """The slow way to the same."""
    text = call_of(*call).text
    try:
        with open_image(path) as image, image.trace(call=text, machine=ICOUNT) as trace:
            end = trace.run(seconds=SECONDS)
            return f"MachineError: {text}: did not return: {end.value}" if trace.result is None else trace.result
    except KinstError as error:
        return f"{type(error).__name__}: {error}"


def drawn(image: ImageFile, source: random.Random, count: int) -> list[Call]:
    """Functions of the image, whatever they do, with arguments that they may or may not expect."""
    functions = image.opened.program.functions
    segments = [one for one in image.opened.image.segments if one.kind == PT_LOAD and one.size]

    def argument() -> Argument:
        segment = source.choice(segments)
        inside = segment.address + source.randrange(segment.size) & -8
        text = source.randbytes(source.randrange(40))
        choices: list[Argument] = [source.randrange(16), source.getrandbits(64), inside, inside, text, "abc", 1 << 43]
        return source.choice(choices)

    names = source.choices(functions.names, k=count)
    return [(name, tuple(argument() for _ in range(source.randrange(5)))) for name in names]


def guest_of(image: ImageFile) -> Guest:
    """The one whose machine is kept."""
    return image._calls._idle[0].guest


def contents(guest: Guest) -> list[bytes]:
    """What a call can reach."""
    regions = [one for one in guest.system.memory.regions if one.base >= 1 << 42]
    return [bytes(one.view) for one in regions]


def agree(path: Path, seed: int, count: int, compared: int) -> None:
    source = random.Random(seed)
    with open_image(path) as image:
        image.call("fibonacci", 1, machine=ICOUNT)
        before, guest = contents(guest_of(image)), guest_of(image)
        calls = drawn(image, source, count)
        found = [outcome(image, call) for call in calls]
        assert guest_of(image) is guest or any("GuestError" in str(one) for one in found)
        assert contents(guest_of(image)) == before
        kinds = {one.partition(":")[0] if isinstance(one, str) else "returned" for one in found}
        assert {"returned", "MachineError"} <= kinds
        for number in source.sample(range(count), compared):
            assert found[number] == witness(path, calls[number]), (seed, number, calls[number])
        again = [*range(count)]
        source.shuffle(again)
        assert [outcome(image, calls[number]) for number in again] == [found[number] for number in again]


@pytest.mark.parametrize("arch", NAMES)
def test_drawn_calls_agree_with_machines_of_their_own(arch: str) -> None:
    agree(sample(arch), seed=25, count=120, compared=12)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("arch", NAMES)
def test_many_drawn_calls_agree_with_machines_of_their_own(arch: str, seed: int) -> None:
    agree(sample(arch), seed, count=400, compared=60)


def test_registers_that_the_machine_keeps_are_set_back(tmp_path: Path) -> None:
    """Which bytes arm64's watchpoint watches depends on its value register: with bit 2 set, these are none."""
    text, path = 0x4008_0000, tmp_path / "debug.elf"
    code = assemble(ARM64, "msr dbgwvr0_el1, x0; ret; msr dbgwcr0_el1, x0; ret", text)
    path.write_bytes(elf64(EM_AARCH64, text, [Part(".text", text, code, 5)], [Symbol("value", text, 8)]))
    control = f"{text + 8:#x}", (0xF0 << 5 | 0x1F,)
    with open_image(path) as image:
        found = [outcome(image, call) for call in (control, ("value", (4,)), control)]
    assert found[0] == found[2] == witness(path, control)
    assert "a watchpoint: a function that is called without booting has none" in str(found[0])


@pytest.mark.parametrize("arch", NAMES)
def test_the_time_begins_anew(arch: str) -> None:
    with open_image(sample(arch)) as image:
        times = set()
        for number in (10, 12, 10):
            image.call("fibonacci", number, machine=ICOUNT)
            times.add(guest_of(image).system.clock.now())
    assert len(times) == 2


def test_what_is_another_machine_or_file_makes_another_machine(tmp_path: Path) -> None:
    path = tmp_path / "kernel.elf"
    shutil.copyfile(sample("riscv64"), path)
    with open_image(path) as image:
        seen = []
        for machine in (None, Machine(), ICOUNT, Machine(clock="icount", memory=1 << 27), Machine(clock="icount")):
            assert image.call("fibonacci", 10, machine=machine) == 55
            seen.append(guest_of(image))
        assert [one is other for one, other in pairwise(seen)] == [True, False, False, False]
        other = path.with_suffix(".new")
        shutil.copyfile(path, other)
        other.replace(path)
        assert image.call("fibonacci", 10, machine=ICOUNT) == 55
        assert guest_of(image) is not seen[-1]
        for wrong in (Machine(load={0: b"x"}), Machine(board="pc-amd64"), Machine(cpus=2)):
            with pytest.raises(KinstError):
                image.call("fibonacci", 10, machine=wrong)
            assert image.call("fibonacci", 10) == 55


def test_probes_of_a_patched_image_do_not_fire_for_nobody(tmp_path: Path) -> None:
    opened = open_source(Source(sample("amd64")))
    _, plan = plan_probes(opened, [parse_probe_name("fbt::fibonacci:")])
    write_image(plan, tmp_path / "patched.elf")
    with open_image(tmp_path / "patched.elf") as image:
        assert [image.call("fibonacci", number) for number in (10, 11)] == [55, 89]
        assert not guest_of(image).system.trap.hits


def test_threads_have_a_machine_each() -> None:
    """A call that runs keeps no other from it, and one machine is kept in the end."""
    found: list[int] = []
    with open_image(sample("riscv64")) as image:
        image.call("fibonacci", 1)
        calls = [threading.Thread(target=lambda: found.append(image.call("fibonacci", 20))) for _ in range(4)]
        for one in calls:
            one.start()
        for one in calls:
            one.join()
        assert found == [6765] * 4
        assert len(image._calls._idle) == 1


def test_the_host_s_time_ends_a_kept_call_and_a_forked_one() -> None:
    """The thread that ends runs is kept as well; a process that was forked has none."""
    with open_image(sample("arm64")) as image:
        image.call("fibonacci", 1)
        for _ in range(2):
            with pytest.raises(MachineError, match="did not return: timeout"):
                image.call("fibonacci", 40, seconds=0.02)
        child = os.fork()
        if not child:
            try:
                image.call("fibonacci", 40, seconds=0.02)
            except MachineError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("end", ["close", "forget"])
def test_the_machine_s_memory_is_given_back(end: str) -> None:
    image = open_image(sample("amd64"))
    assert image.call("fibonacci", 10) == 55
    machine = weakref.ref(guest_of(image).system)
    if end == "close":
        image.close()
        with pytest.raises(UsageError, match="was closed"):
            image.call("fibonacci", 10)
    gc.disable()
    try:
        del image
        assert machine() is None
    finally:
        gc.enable()

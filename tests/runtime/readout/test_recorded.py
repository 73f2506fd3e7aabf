"""kinst-run --read: what a standalone image recorded under a real QEMU."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kinst import runtime
from kinst.runtime import Machine
from kinst.targets.image import open_image
from tests.runtime.readout.standalone import CLOCK, Ran, kinst_run, ran
from tests.samples.machines import MACHINES


@pytest.fixture(scope="module", params=MACHINES)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Every record of the run."""
    machine, folder = request.param, tmp_path_factory.mktemp("recorded")
    with ran(machine, folder, "--action", "record:arg1,arg0,time", "--ring", "16384") as found:
        yield found


@pytest.fixture(scope="module", params=MACHINES)
def overwritten(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """The last records of the run."""
    machine, folder = request.param, tmp_path_factory.mktemp("overwritten")
    with ran(machine, folder, "--action", "record:arg0", "--ring", "64") as found:
        yield found


UNTIMED = ("rpc_", "vfs_", "vattr_", "hash_", "fibonacci")  # what no interrupt handler calls


def test_records_are_the_hits_of_a_traced_run_in_their_order(recorded: Ran) -> None:
    """With their arguments: the kernel puts everything at the same addresses. One function returns nothing, and what is
    left of the time."""
    form = '{{ printf("{} %x %x\\n", arg0, arg1); }}\n'
    names = [name for name in recorded.whole() if name.startswith(UNTIMED) and name != "rpc_release:return"]
    program = "".join(f"fbt::{name} {form.format(name)}" for name in names)
    there = recorded.read("-qn", program)
    assert (there.exit_code, there.stderr) == (0, "")
    assert len(there.stdout.splitlines()) > 1000
    assert there.stdout == recorded.traced(program)
    assert kinst_run(recorded.image, "--console", "/dev/null", *CLOCK, "-qn", program).stdout == there.stdout


@pytest.mark.parametrize("machine", MACHINES)
def test_cpus_that_record_at_the_same_time_lose_nothing(machine: str, tmp_path: Path) -> None:
    """How often they call what they call does not depend on how many they are."""
    with ran(machine, tmp_path, "--action", "record", "--ring", "16384", cpus=4) as found:
        names = [f"fbt::{name}" for name in found.whole() if name.startswith(UNTIMED)]
        program = f'{",".join(names)} {{ @[probefunc, probename] = count(); }} END {{ printa("%s:%s %@d\\n", @); }}'
        there = found.read("-qn", program)
        assert (there.exit_code, there.stderr) == (0, "")
        assert there.stdout == found.traced(program)
        assert len(there.stdout.splitlines()) > 10


def test_time_passes_from_record_to_record(recorded: Ran) -> None:
    program = """
        BEGIN { begun = last = timestamp; n = 0; }
        fbt::rpc_*:, END /timestamp < last/ { printf("back at %s", probefunc); }
        fbt::rpc_*:, END { last = timestamp; n++; }
        END { printf("%d %d", n > 1000, timestamp - begun > 0); }
    """
    assert recorded.read("-qn", program).stdout == "1 1\n"
    lines = recorded.read("-n", "fbt::kmain:entry { }", "--format", "json").stdout
    assert '"timestamp": ' in lines


def test_arguments_have_types_and_strings_that_never_change_are_there(recorded: Ran) -> None:
    there = recorded.read("-qn", 'fbt::printk:entry { printf("%s|", stringof((char *)arg0)); }')
    assert (there.exit_code, there.stderr) == (0, "")
    assert there.stdout.startswith("kernel: booting\n|")


def test_memory_that_changes_is_a_fault_of_the_clause(recorded: Ran) -> None:
    there = recorded.read("-qn", "fbt::kfree:entry { trace(*(int *)arg0); } ERROR { @[arg4] = count(); }")
    assert "memory that changes was not recorded" in there.stderr
    assert int(there.stdout.split()[0]) == 1  # DTRACEFLT_BADADDR


MISSING = {
    "fbt::kmalloc:entry { trace(arg2); }": "fbt::kmalloc:entry: the image does not record arg2: {} arg1,arg0,time,arg2",
    "fbt::: { @[pid] = count(); }": "fbt:::: no image records pid",
    "fbt::: { trace(walltimestamp); }": "fbt:::: no image records walltimestamp",
    "fbt::: { self->x = stackdepth; }": "fbt:::: no image records stackdepth",
}


@pytest.mark.parametrize("program", MISSING)
def test_what_was_not_recorded_is_refused_by_its_name(recorded: Ran, program: str) -> None:
    there = recorded.read("-qn", program)
    why = MISSING[program].format("kinst-rewrite --standalone --action record:").replace(": arg", ":arg")
    assert (there.exit_code, there.stdout) == (1, "")
    assert there.stderr.startswith(f"kinst-run: {why}")


def test_a_register_that_was_not_recorded_is_refused_by_its_name(recorded: Ran) -> None:
    arch = open_image(recorded.image).facts
    name = arch.registers[9]
    there = recorded.read("-n", f"fbt::kfree:entry /regs[R_{name.upper()}]/ {{ }}")
    action = f"kinst-rewrite --standalone --action record:arg1,arg0,time,{name} keeps it"
    assert there.stderr == f"kinst-run: fbt::kfree:entry: the image does not record {name}: {action}\n"


def test_threads_are_not_told_from_each_other_and_that_is_said(recorded: Ran) -> None:
    program = "fbt:::entry { self->n++; } fbt:::return { self->n = 0; } END { trace(self->n); }"
    there = recorded.read("-qn", program)
    assert there.stderr == (
        "kinst-run: records do not tell threads from each other: self-> is the same in all of them\n"
    )


def test_records_that_were_overwritten_are_drops(overwritten: Ran) -> None:
    there = overwritten.read("-qn", "fbt::: { @ = count(); }")
    drops = int(there.stderr.split()[1])
    assert there.stdout.split() == ["64"]
    assert there.stderr == f"dtrace: {drops} drops on CPU 0\n"
    assert drops > 1000


def test_what_is_left_are_the_last_records(overwritten: Ran) -> None:
    program = '{ printf("%s:%s %x\\n", probefunc, probename, arg0); }'
    everything = kinst_run(
        overwritten.image, "--console", "/dev/null", *CLOCK, "-qn", f"fbt::: {program}"
    ).stdout.split("\n")
    there = overwritten.read("-qn", f"fbt::: {program}").stdout.split("\n")
    last = [line for line in everything if line.startswith("power_off")]
    assert there[len(last) : 64] == everything[: 64 - len(last)]


def test_an_action_in_python_gets_what_was_recorded(recorded: Ran) -> None:
    sizes: list[int] = []

    def note(hit: runtime.Hit) -> None:
        sizes.append(hit.argument(0))
        with pytest.raises(runtime.KinstError, match=r": register .* was not recorded$"):
            hit.register(open_image(recorded.image).facts.registers[9])

    with (
        runtime.open_image(recorded.image) as image,
        image.trace(actions={"fbt::kmalloc:entry": note}, machine=Machine(clock="icount")) as trace,
    ):
        trace.run()
    program = 'fbt::kmalloc:entry { printf("%d\\n", arg0); }'
    assert sorted(sizes) == sorted(map(int, recorded.read("-qn", program).stdout.split()))
    assert sizes

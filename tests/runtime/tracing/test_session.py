"""Sessions on the sample kernels and on real firmware: patched in the file, patched in memory, relocated, ended."""

import re
from collections import Counter
from pathlib import Path

import pytest

from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.write import write_image
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.providers.fbt import caller
from kinst.runtime.tracing.session import Session, Wanted
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import KinstError, UsageError
from kinst.targets.image import open_image
from kinst.targets.probe import parse_probe_name
from tests.images import real_image
from tests.runtime.tracing.recorder import Recorder

SAMPLES = Path(__file__).parents[3] / "samples"
ICOUNT = Configuration(clock=ClockKind.ICOUNT)


def sample(arch: str) -> Path:
    return SAMPLES / f"kernel-{arch}.elf"


def run(wanted: Wanted, recorder: Recorder | None = None) -> tuple[Session, Recorder, End]:
    recorder = recorder or Recorder()
    session = Session(wanted)
    list(session.enable(recorder.fired))
    return session, recorder, session.run(recorder)


def names(session: Session, recorder: Recorder) -> Counter[str]:
    return Counter({str(session.providers.probe(probe)): count for probe, count in recorder.counts.items()})


def patch(image: Path, out: Path, *descriptions: str) -> Path:
    opened = open_source(Source(image))
    _, plan = plan_probes(opened, [parse_probe_name(text) for text in descriptions])
    write_image(plan, out)
    return out


@pytest.mark.parametrize("arch", NAMES)
def test_a_patched_file_and_an_image_patched_in_memory_fire_alike(arch: str, tmp_path: Path) -> None:
    descriptions = ("fbt::fibonacci:", "kinst::rpc_dispatch:", "fbt::rpc_*:return")
    patched = patch(sample(arch), tmp_path / "patched.elf", *descriptions)
    in_file = run(Wanted(patched, configuration=ICOUNT, timeout=5))
    in_memory = run(Wanted(sample(arch), configuration=ICOUNT, timeout=5, descriptions=descriptions))
    plain = run(Wanted(sample(arch), configuration=ICOUNT, timeout=5))
    assert in_file[2] is in_memory[2] is plain[2] is End.POWER_OFF
    assert names(in_file[0], in_file[1]) == names(in_memory[0], in_memory[1])
    assert sum(in_file[1].counts.values()) > 100
    assert in_file[1].arguments == in_memory[1].arguments
    assert in_file[1].output == in_memory[1].output == plain[1].output
    assert not plain[1].counts


@pytest.mark.parametrize("arch", NAMES)
def test_a_patched_file_runs_with_some_of_its_probes(arch: str, tmp_path: Path) -> None:
    patched = patch(sample(arch), tmp_path / "patched.elf", "fbt:::entry")
    session, recorder, _ = run(Wanted(patched, configuration=ICOUNT, timeout=5, descriptions=("fbt::kmalloc:entry",)))
    assert set(names(session, recorder)) == {f"fbt:{session.loaded.image.module}:kmalloc:entry"}


@pytest.mark.parametrize("arch", NAMES)
def test_entry_and_return_see_arguments_results_and_callers(arch: str) -> None:
    session = Session(Wanted(sample(arch), configuration=ICOUNT, timeout=5, descriptions=("fbt::fibonacci:",)))
    seen: list[tuple[str, int, int]] = []
    callers = []

    def action(firing: Firing) -> None:
        probe = session.providers.probe(firing.enabling.probe)
        assert probe is not None
        seen.append((probe.name, firing.argument(0), firing.argument(1)))
        if probe.name == "entry":
            callers.append(caller(firing, session.system.arch))

    list(session.enable(action))
    session.run(Recorder())
    expected = [0, 1]
    while len(expected) < 40:
        expected.append(expected[-1] + expected[-2])
    stack: list[int] = []
    for name, first, second in seen:
        if name == "entry":
            stack.append(first & 0xFFFFFFFF)
            continue
        assert first > 0  # the offset of the return in the function
        assert expected[stack.pop()] == second & 0xFFFFFFFF
    assert not stack
    symbols = session.loaded.image.symbols
    start = symbols.address_of("fibonacci")
    assert start is not None
    assert len(set(callers)) >= 2  # itself and someone else
    assert sum(start <= address < start + 0x200 for address in callers) >= len(callers) // 2


@pytest.mark.parametrize("cpus", [2, 4])
@pytest.mark.parametrize("arch", NAMES)
def test_every_cpu_fires(arch: str, cpus: int) -> None:
    wanted = Wanted(
        sample(arch),
        configuration=Configuration(cpus, clock=ClockKind.ICOUNT),
        timeout=5,
        descriptions=("fbt:::entry",),
    )
    session = Session(wanted)
    by_cpu: Counter[int] = Counter()
    list(session.enable(lambda firing: by_cpu.update([firing.cpu])))
    recorder = Recorder()
    assert session.run(recorder) is End.POWER_OFF
    assert set(by_cpu) == set(range(cpus))
    assert re.search(rf"cpu: {cpus} found".encode(), recorder.output)


@pytest.mark.parametrize("image", ["u-boot-riscv64", "u-boot-arm64"])
def test_an_image_that_moves_itself_fires_before_and_after(image: str) -> None:
    wanted = Wanted(
        real_image(image), configuration=ICOUNT, until="Loading Environment", timeout=60, descriptions=("fbt:::entry",)
    )
    session = Session(wanted)
    sites: set[int] = set()
    list(session.enable(lambda firing: sites.add(firing.site)))
    recorder = Recorder()
    assert session.run(recorder) is End.UNTIL
    start, end = session.loaded.segments[0][0], session.loaded.end
    before = {site for site in sites if start <= site < end}
    assert before
    assert len(sites - before) > 100
    plain = Recorder()
    unpatched = Session(Wanted(real_image(image), configuration=ICOUNT, until="Loading Environment", timeout=60))
    assert unpatched.run(plain) is End.UNTIL
    assert plain.output == recorder.output


def test_position_independent_firmware_is_moved_to_ram() -> None:
    wanted = Wanted(
        real_image("opensbi-1.6"), configuration=ICOUNT, until="HART MEDELEG", timeout=5, descriptions=("fbt:::",)
    )
    session, recorder, end = run(wanted, Recorder(keeps_arguments=False))
    assert end is End.UNTIL
    assert session.loaded.bias == 0x8000_0000
    assert recorder.output.endswith(b"0x000000000000b109\r\n")
    assert sum(recorder.counts.values()) > 50_000


def test_until_is_looked_for_in_lines_that_are_not_complete_yet() -> None:
    _, recorder, end = run(Wanted(sample("riscv64"), configuration=ICOUNT, until=r"^kernel: boo", timeout=5))
    assert end is End.UNTIL
    assert recorder.output == b"kernel: booting\r\n"


def test_begin_and_end_are_fired_by_the_session() -> None:
    session, recorder, _ = run(
        Wanted(sample("riscv64"), configuration=ICOUNT, timeout=5, descriptions=("BEGIN", "END"))
    )
    assert dict(names(session, recorder)) == {"dtrace:::BEGIN": 1, "dtrace:::END": 1}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"descriptions": ("fbt::no_such_function:entry",)}, KinstError, "no_such_function"),
        ({"descriptions": ("ERRORS",)}, KinstError, "ERRORS"),
        ({"machine": "pc-amd64"}, UsageError, "is for riscv64"),
        ({"machine": "vax"}, UsageError, "no such machine"),
        ({"until": "("}, UsageError, "not a regular expression"),
        ({"configuration": Configuration(memory=0x2000)}, KinstError, "try --memory 1m or more"),
        ({"configuration": Configuration(memory=0x10_0001)}, KinstError, "multiples"),
        ({"configuration": Configuration(cpus=0)}, UsageError, "1 to 8"),
    ],
)
def test_what_cannot_be_run_is_said(changes: dict[str, object], error: type[KinstError], message: str) -> None:
    with pytest.raises(error, match=message):
        run(Wanted(sample("riscv64"), **changes))  # type: ignore[arg-type]


def test_the_guest_reads_what_was_armed_but_fetches_look_pristine_to_the_machine() -> None:
    session = Session(Wanted(sample("riscv64"), configuration=ICOUNT, descriptions=("kinst::fibonacci:",)))
    list(session.enable(lambda _firing: None))
    image = open_image(sample("riscv64"))
    start = image.symbols.address_of("fibonacci")
    assert start is not None
    size = 24
    session.system.board.start(session.system, session.loaded)
    assert session.system.memory.read(start, size) != image.read(start, size)
    assert session.system.current.fetch(start, size) == image.read(start, size)
    assert session.system.current.fetch(start + 1, 7) == image.read(start + 1, 7)

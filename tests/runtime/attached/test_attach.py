"""attach(): probes on stock Qiling objects. A run with probes says and ends as the plain one does, every count is
right, and what was there before is there again after detach()."""

import io
import platform as host
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from qiling import Qiling
from qiling.const import QL_ARCH, QL_ENDIAN, QL_OS

import kinst.runtime
from kinst.rewriter.naming.probe_choice import probe_names
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.write import write_image
from kinst.runtime import Options
from kinst.runtime.attached.attach import Attached
from kinst.runtime.tracing.hits import Hit
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import KinstError, MachineError, UsageError
from kinst.targets.image import open_image
from tests.runtime.attached.programs import (
    KINDS,
    QUIET,
    RAM,
    Bare,
    Linux,
    address_of,
    bare,
    built,
    dynamic,
    moved,
    static,
)

Run = Linux | Bare
RUNS: Final[dict[str, Callable[[str], Run]]] = {
    "static": lambda machine: Linux(static(machine)),
    "moved": lambda machine: Linux(moved(machine)),
    "bare": lambda machine: Bare(bare(machine), machine),
}
RESULT: Final = b"ab\ncde\n", 98
CALLS: Final = {"each": 1, "total": 2, "depth": 5, "say": 4}


def attached(run: Run, *programs: str, **options: Any) -> Attached:
    """A bare image's file has to be named: Qiling was given bytes."""
    if isinstance(run, Bare):
        options.setdefault("image", run.image.path)
    tracing: Attached = kinst.runtime.attach(run.ql, *programs, **options)
    return tracing


@pytest.fixture(params=NAMES)
def machine(request: pytest.FixtureRequest) -> str:
    """Each one."""
    name: str = request.param
    return name


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest, machine: str) -> Run:
    """A program in each kind of Qiling object."""
    return RUNS[request.param](machine)


def test_functions_are_counted(run: Run) -> None:
    """Entries and returns, by name."""
    with attached(
        run, "fbt:::entry { @entries[probefunc] = count(); } fbt:::return { @returns[probefunc] = count(); }"
    ) as tracing:
        assert run.run() == RESULT

    entries, returns = tracing.aggregation("entries"), tracing.aggregation("returns")
    assert {name: entries[name] for name in CALLS} == CALLS
    assert {name: returns[name] for name in CALLS} == CALLS


def test_every_instruction_has_a_probe_and_the_guest_does_not_notice(run: Run) -> None:
    """What it says and ends with is as without; the code is its own again afterwards."""
    before = run.code()
    with attached(
        run, "kinst::total:, kinst::depth:, kinst::say:, kinst::each:, kinst::start: { @ = count(); }"
    ) as tracing:
        assert run.code() != before
        assert run.run() == RESULT

    assert tracing.aggregation("_")[()] > 100
    assert run.code() == before


def test_clauses_see_the_guest(run: Run) -> None:
    """Arguments, memory, types from debug information, the stack and what Qiling's system knows."""
    program = """fbt::total:entry { printf("%s %s %d", copyinstr(arg0), stringof(args[0]), pid); stack(); }
                 fbt::total:return { printf("%d", arg1); }"""
    with attached(run, program) as tracing:
        run.run()

    called, returned, *_ = tracing.take()
    pid = getattr(run.ql.os, "pid", 0)
    assert called.text == f"ab ab {pid}"
    assert returned.text == str(ord("a") + ord("b"))
    frames = [str(place).split("`")[1].split("+")[0] for place in called.values[-1]]
    assert frames[:3] == ["total", "each", "start"]


def test_functions_return_what_a_clause_says(machine: str) -> None:
    """each() adds total() and depth() of two arguments, and the program ends with the sum."""
    run, program = Linux(static(machine)), "fbt::total:entry { override(7); } fbt::depth:entry /!n++/ { override(0); }"
    with attached(run, program, options=Options(d={"destructive": True})):
        assert run.run() == (RESULT[0], 7 + 0 + 7 + 2)


def test_registers_are_those_at_the_site(machine: str) -> None:
    """`regs[]` and Python's actions see what a hook of Qiling's sees there."""
    run = Linux(static(machine))
    name = {"amd64": "rdi", "arm64": "x0", "riscv64": "a0"}[machine]
    seen, ours = [], []
    run.ql.hook_address(
        lambda ql: seen.append(ql.arch.regs.read(name)), address_of(open_image(static(machine)), "depth")
    )
    register = {"amd64": "R_RDI", "arm64": "R_X0", "riscv64": "R_A0"}[machine]

    program = f"fbt::depth:entry {{ trace(regs[{register}]); }}"
    with attached(run, program, actions={"fbt::depth:entry": lambda hit: ours.append(hit.register(name))}) as tracing:
        run.run()

    assert seen == ours == [record.values[0] for record in tracing.take()] == [1, 0, 2, 1, 0]


def test_the_text_is_dtraces() -> None:
    """Where an output is given: records, BEGIN and END, aggregations."""
    output = io.BytesIO()
    run = Linux(static("riscv64"))
    program = (
        'BEGIN { printf("begun\\n"); } fbt::say:entry { @[copyinstr(arg0)] = count(); } END { printf("ended\\n"); }'
    )
    with attached(run, program, options=Options(d={"quiet": True}), output=output):
        assert output.getvalue() == b""
        run.run()

    lines = output.getvalue().decode().split("\n")
    assert lines[:2] == ["begun", "ended"]
    assert [line.split() for line in lines if "cde" in line] == [["cde", "1"]]


def test_exit_ends_tracing_and_the_guest_goes_on(machine: str) -> None:
    """As dtrace leaves the system that it traced."""
    run = Linux(static(machine))
    with attached(run, "fbt::depth:entry { @ = count(); } fbt::depth:entry /++n == 2/ { exit(3); }") as tracing:
        assert run.run() == RESULT

    assert tracing.aggregation("_") == {(): 2}
    assert tracing.exit_status == 3


def test_a_detached_guest_is_its_own(run: Run) -> None:
    """It runs on without us; another tracing begins anew."""
    tracing = attached(run, "fbt::total:entry { @ = count(); }")
    tracing.detach()
    assert not tracing.is_attached

    again = attached(run, "fbt::say:entry { @ = count(); }")
    assert run.run() == RESULT
    again.detach()

    assert tracing.aggregation("_") == {}
    assert again.aggregation("_") == {(): 4}


def test_two_runs_of_one_tracing(machine: str) -> None:
    """A bare image is run again from its start."""
    run = Bare(bare(machine), machine)
    with attached(run, "fbt::total:entry { @ = count(); }") as tracing:
        run.run()
        assert tracing.aggregation("_") == {(): 2}
        run.run()

    assert tracing.aggregation("_") == {(): 4}


def test_snapshots_hold_the_guests_own_code(machine: str) -> None:
    """One that is taken while probes are enabled has none in it; going back to one keeps them."""
    run = Linux(static(machine))
    early = run.ql.save(cpu_context=True)
    with attached(run, "fbt::total:entry { @ = count(); }") as tracing:
        late = run.ql.save(cpu_context=True)
        run.run()
        run.ql.restore(early)
        run.run()
        assert tracing.aggregation("_") == {(): 4}
    run.ql.restore(late)
    assert run.run()[1] == RESULT[1]
    assert tracing.aggregation("_") == {(): 4}


@pytest.mark.parametrize("machine", ["amd64", "arm64"])  # Qiling has no threads for riscv64
def test_threads_each_have_their_own(machine: str) -> None:
    """Qiling switches them anywhere, in trampolines too: what is thread-local does not mix, and the sums are right."""
    program = built(machine, "threads.c", "-static", "-no-pie")
    plain = Linux(program, multithread=True).run()
    run = Linux(program, multithread=True)
    clauses = """fbt::step:entry { self->n++; @[tid] = max(self->n); } kinst::step: { @all = count(); }"""
    with attached(run, clauses) as tracing:
        assert run.run() == plain

    assert sorted(tracing.aggregation("_").values()) == [2000, 2000]
    assert tracing.aggregation("all")[()] >= 4 * 2000


@pytest.mark.skipif(host.machine() != "x86_64" or sys.platform != "linux", reason="the host's own library is traced")
def test_a_program_with_shared_libraries() -> None:
    """The dynamic loader runs first, the program where it put it; libraries can be traced by their own image."""
    path = dynamic()
    plain = Linux(path).run()
    run = Linux(path)
    with attached(
        run, "fbt::weight:entry { @[copyinstr(arg0)] = count(); } fbt::main:return { trace(arg1); }"
    ) as tracing:
        assert run.run() == plain == (b"2 words weigh 15\n", 15)

    assert tracing.aggregation("_") == {"ab": 1, "cde": 1}
    assert [record.values for record in tracing.take()] == [(15,)]
    run = Linux(path)
    loader = run.ql.loader.images[1].path
    with kinst.runtime.attach(run.ql, "fbt:::entry { @ = count(); }", image=loader) as tracing:
        assert run.run() == plain
    assert tracing.aggregation("_")[()] > 10


def test_an_action_that_fails_ends_the_run(machine: str) -> None:
    """What it raises comes out of `ql.run()`; the guest can still be detached from."""

    def fail(_hit: Hit) -> None:
        raise LookupError("in an action")

    run = Bare(bare(machine), machine)
    with pytest.raises(LookupError, match="in an action"), attached(run, actions={"fbt::total:entry": fail}):
        run.run()
    with attached(run, "fbt::total:entry { @ = count(); }") as tracing:
        run.run()
    assert tracing.aggregation("_") == {(): 2}


def test_time_passes(machine: str) -> None:
    """A guest that does nothing else is left by a timer, which sees where it is."""
    run = Bare(bare(machine), machine)
    places = []

    def tick(hit: Hit) -> None:
        places.append(hit.address)
        run.ql.stop()

    stop = address_of(run.image, "stop")
    with attached(run, actions={"tick-5ms": tick}):
        run.ql.run(begin=stop, end=0)  # for ever

    assert {place - stop in range(64) for place in places} == {True}


# -- what is not ours -------------------------------------------------------------------------------------------------


def test_the_users_hooks_go_on(run: Run) -> None:
    """At a probed address, and everywhere."""
    function, instructions = [], []
    address = address_of(open_image(run.image.path if isinstance(run, Bare) else run.path), "total")

    def executed(_ql: object, at: int, _size: int) -> None:
        instructions.append(at)

    with attached(run, "fbt::total:entry { @ = count(); }") as tracing:
        loaded = address + tracing.bias
        run.ql.hook_address(lambda ql: function.append(ql.arch.regs.arch_pc), loaded)
        run.ql.hook_code(executed)
        assert run.run() == RESULT

    assert function == [loaded] * 2
    assert instructions.count(loaded) == 2


BREAKPOINTS: Final = {"amd64": (b"\xcc", 3), "arm64": (b"\x00\x00\x20\xd4", 7), "riscv64": (b"\xff\xff\xff\xff", 2)}


@pytest.mark.parametrize("is_hooked", [False, True])
def test_the_guests_own_breakpoint_is_not_ours(machine: str, is_hooked: bool) -> None:  # noqa: FBT001
    """The user's hook for it is called where it is the guest's; without one the run fails as it does without us."""
    breakpoint_, number = BREAKPOINTS[machine]
    ends = []
    for is_traced in (False, True):
        run = Bare(bare(machine), machine)
        seen: list[int] = []
        stop = address_of(run.image, "stop")
        run.ql.mem.write(stop, breakpoint_)

        def on_breakpoint(ql: Any, seen: list[int] = seen) -> None:
            seen.append(ql.arch.regs.arch_pc)
            ql.stop()

        if is_hooked:
            run.ql.hook_intno(lambda ql, _number: on_breakpoint(ql), number)
        tracing = attached(run, "fbt:::entry { @ = count(); }") if is_traced else None
        try:
            run.ql.run(begin=run.image.entry, end=0)
            ends.append(("", seen))
        except Exception as error:
            ends.append((f"{type(error).__name__} {error}", seen))
        if tracing is not None:
            tracing.detach()
            assert tracing.aggregation("_")[()] > 10

    assert ends[0] == ends[1]
    assert bool(ends[0][1]) is is_hooked


def test_faults_are_the_users(machine: str) -> None:
    """A hook that maps memory on demand sees the same accesses as without probes, of emulated instructions too."""
    seen: list[list[int]] = []
    for is_traced in (False, True):
        run = Bare(bare(machine), machine)
        accesses: list[int] = []

        def on_unmapped(ql: Any, _access: int, address: int, _size: int, _value: int, found: Any = accesses) -> bool:
            found.append(address)
            ql.mem.map(address & -4096, 4096)
            return True

        run.ql.hook_mem_unmapped(on_unmapped)
        run.ql.arch.regs.arch_sp = 0x6000_1000
        tracing = attached(run, "kinst::each:, kinst::start: { @ = count(); }") if is_traced else None
        assert run.run() == RESULT
        if tracing is not None:
            tracing.detach()
        seen.append(accesses)

    assert seen[0] == seen[1]
    assert seen[0]


def test_an_image_that_was_patched_before(machine: str) -> None:
    """Its breakpoints are in the file: Qiling alone cannot run it, attached it fires what it was patched with."""
    path = static(machine)
    patched = path.with_name("patched")
    opened = open_source(Source(path))
    _, plan = plan_probes(opened, probe_names(["fbt::total:", "kinst::depth:"], opened.image))
    write_image(plan, patched)
    run = Linux(patched)
    before = run.code()

    with kinst.runtime.attach(run.ql) as tracing:
        assert run.run() == RESULT

    functions = [record.probe.function for record in tracing.take()]
    assert functions.count("total") == 4
    assert functions.count("depth") > 10
    assert run.code() == before


def test_the_image_is_found_where_it_was_put(machine: str) -> None:
    """Position-independent code that the user loads somewhere, by hand."""
    path = built(machine, "program.c", "-DBARE", "-static-pie", "-fPIE", "-Wl,--no-dynamic-linker")
    image, place = open_image(path), RAM + 0x10_0000
    profile = {"CODE": {"ram_size": 4 << 20, "entry_point": RAM, "heap_size": 0x1000, "load_address": RAM}}
    ql = Qiling(code=bytes(16), archtype=KINDS[machine], ostype=QL_OS.BLOB, profile=profile, **QUIET)
    for segment in image.segments:
        if segment.kind == 1 and segment.file_size:
            ql.mem.write(place + segment.address, image.read(segment.address, segment.file_size))

    with pytest.raises(MachineError, match="its code is not in the memory"):
        kinst.runtime.attach(ql, "fbt:::entry", image=path)
    with kinst.runtime.attach(ql, "fbt::total:entry { @ = count(); }", image=path, bias=place) as tracing:
        ql.run(begin=place + image.entry, end=place + address_of(image, "stop"))

    assert tracing.aggregation("_") == {(): 2}


def test_an_opened_image_says_where_its_names_come_from(machine: str, tmp_path: Path) -> None:
    """And the options are those that a trace takes."""
    run, names = Linux(static(machine)), tmp_path / "System.map"
    names.write_text(f"{address_of(open_image(static(machine)), 'total'):x} T sum_of_all\n")
    opened = kinst.runtime.open_image(static(machine), name="mine", symbols=names)
    options = Options(d={"strsize": 16}, method="emulate")

    with kinst.runtime.attach(
        run.ql, "fbt:mine:sum_of_all:entry { @ = count(); }", options=options, image=opened
    ) as it:
        assert run.run() == RESULT

    assert it.aggregation() == {(): 2}


# -- what cannot be ---------------------------------------------------------------------------------------------------


def refused(ql: Any, *arguments: Any, **options: Any) -> str:
    """The line that the user sees."""
    with pytest.raises(KinstError) as raised:
        kinst.runtime.attach(ql, *arguments, **options)
    return str(raised.value)


def test_machines_that_we_do_not_have() -> None:
    """32 bits, big-endian, other machines, and what is no Qiling object."""
    profile = {"CODE": {"ram_size": 0x1000, "entry_point": 0x1000, "heap_size": 0x1000, "load_address": 0x1000}}
    for kind, what in ((QL_ARCH.X86, "X86"), (QL_ARCH.ARM, "ARM"), (QL_ARCH.MIPS, "MIPS")):
        ql = Qiling(code=bytes(4), archtype=kind, ostype=QL_OS.BLOB, profile=profile, **QUIET)
        assert refused(ql, "fbt:::entry").startswith(f"Qiling emulates {what} here: there is no machine for it")
    ql = Qiling(code=bytes(4), archtype=QL_ARCH.ARM64, endian=QL_ENDIAN.EB, ostype=QL_OS.BLOB, profile=profile, **QUIET)
    assert "big-endian" in refused(ql, "fbt:::entry") or ql.arch.endian is QL_ENDIAN.EL
    assert refused(object(), "fbt:::entry") == "object: not a Qiling object"


def test_images_that_do_not_fit(machine: str) -> None:
    """No file, another machine's, and one that is not in memory; nothing of the guest was changed."""
    run = Bare(bare(machine), machine)
    before, hooks = run.code(), dict(run.ql._hook_fuc)
    other = NAMES[NAMES.index(machine) - 1]

    assert "name the ELF file" in refused(run.ql, "fbt:::entry")
    assert "Qiling emulates" in refused(run.ql, "fbt:::entry", image=static(other))
    assert "not in the memory of this Qiling object" in refused(run.ql, "fbt:::entry", image=static(machine))
    assert "does not match any probes" in refused(run.ql, "fbt::nothing:entry", image=run.image.path)
    assert run.code() == before
    assert run.ql._hook_fuc == hooks
    assert run.run() == RESULT


def test_one_tracing_at_a_time(machine: str) -> None:
    """Two would take each other's breakpoints for the guest's own code."""
    run = Linux(static(machine))
    with attached(run, "fbt::total:entry { @ = count(); }") as tracing:
        assert "is traced already" in refused(run.ql, "fbt::say:entry")
        assert run.run() == RESULT

    assert tracing.aggregation("_") == {(): 2}


def test_a_program_that_is_wrong_is_one_line(machine: str) -> None:
    """With where and why."""
    run = Linux(static(machine))

    assert "nobody" in refused(run.ql, "fbt:::entry { trace(nobody); }")
    assert "method jump: is for open_image" in refused(run.ql, "BEGIN", options=Options(method="jump"))
    assert "report: is for open_image" in refused(run.ql, "BEGIN", options=Options(report="r.html"))
    with pytest.raises(UsageError, match="option nonsense"):
        kinst.runtime.attach(run.ql, "BEGIN", options=Options(d={"nonsense": True}))
    assert run.run() == RESULT

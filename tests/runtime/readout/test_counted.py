"""kinst-run --read: what a standalone image counted under a real QEMU."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinst import runtime
from tests.runtime.readout.standalone import CLOCK, PLACES, Ran, kinst_run, ran
from tests.runtime.test_report import data
from tests.samples.machines import MACHINES

COUNTED = '{ @hits[probefunc, probename] = count(); } END { printa("%s:%s %@d\\n", @hits); }'
TIMED = {"critical_exit_preempt:entry", "critical_exit_preempt:return"}  # what depends on when an interrupt comes
REFUSED = {
    "{ }": ("it records that its probe fired", "record"),
    "{ @ = quantize(arg0); }": ("it reads arguments or registers", "record:arg0"),
    "/arg1 > timestamp/ { @ = count(); }": (
        "its predicate depends on more than the probe, the CPU, arguments and registers",
        "record:arg1,time",
    ),
    "{ trace(args[0]); }": ("it does more than to aggregate", "record:arg0"),
}
WRONG = {
    ("{original}", "--read", "{core}"): "{original}: is not standalone, and keeps nothing: kinst-rewrite --standalone",
    ("{image}", "--read", "{original}"): "--read {original}: no core: e_type is 2 and not 4",
    (
        "{image}",
        "--read",
        "{raw}",
    ): "--read {raw}: not an ELF core: --read takes a core, FILE@ADDRESS for bytes of memory,",
    ("{image}", "--read", "{raw}.no@0"): "--read {raw}.no@0: cannot be read: No such file or directory",
    ("{image}", "--read", "gdb:1234"): "--read gdb:1234: gdb:HOST:PORT, for example gdb:localhost:1234",
    ("{image}", "--read", "gdb:localhost:99999"): "--read gdb:localhost:99999: gdb:HOST:PORT, for example",
    ("{image}", "--read", "{core}", "--every", "1s"): "--every 1s: a core stays as it is: it is for gdb:, qmp:",
    ("{image}", "--every", "1s"): "--every: there is nothing to read again: give --read",
    ("{image}", "--read", "{core}", "--append", "x"): "--read runs nothing: --append is for an image that runs",
    ("--read", "{core}", "-n", "BEGIN"): "--read: give the standalone IMAGE whose memory it is",
    ("{image}", "--read", "{short}@{place}"): "{image}: is not in this memory: {short}: has ",
    (
        "{image}",
        "--read",
        "{other}@{place}",
    ): "{image}: is not in this memory: other bytes than its trampolines are",
}


@pytest.fixture(scope="module", params=MACHINES)
def counted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran(request.param, tmp_path_factory.mktemp("counted")) as found:
        yield found


def without(names: set[str], table: str) -> set[str]:
    """The lines of a table that are of other probes."""
    return {line for line in table.splitlines() if ":".join(line.split(":")[2:]) not in names}


def hits(text: str) -> dict[str, int]:
    """What COUNTED printed."""
    pairs = (line.split() for line in text.splitlines() if line)
    return {name: int(count) for name, count in pairs}


def test_counts_are_those_of_a_traced_run(counted: Ran) -> None:
    """The kernel does the same under QEMU as here."""
    names = set(counted.whole()) - TIMED
    program = f"{','.join(f'fbt::{name}' for name in sorted(names))} {COUNTED}"
    here = counted.traced(program)
    assert len(hits(here)) > 50
    assert sum(hits(here).values()) > 1000
    assert counted.read("-qn", program).stdout == here
    assert kinst_run(counted.image, "--read", counted.dump, "-qn", program).stdout == here


def test_a_report_of_what_was_read_has_its_hits(counted: Ran, tmp_path: Path) -> None:
    page = tmp_path / "t.html"
    result = counted.read("-qn", f"fbt::: {COUNTED}", "--report", page)
    assert result.exit_code == 0, result.stderr
    found = {f"{row[1]}:{name}": count for row in data(page)["functions"] for name, count, _ in row[5] if count}
    assert found == hits(result.stdout)


def test_without_a_program_all_probes_that_were_hit_are_listed(counted: Ran) -> None:
    table = [line.split() for line in counted.told.splitlines() if line]
    found = hits(counted.read("-qn", f"fbt::: {COUNTED}").stdout)
    assert {":".join(name.split(":")[2:]): int(count) for count, name in table} == found
    assert [int(count) for count, _ in table] == sorted(found.values(), reverse=True)


def test_probes_can_be_listed_without_reading_anything(counted: Ran) -> None:
    listed = kinst_run("-l", counted.image, "--read", "gdb:localhost:1", "-n", "fbt:::").stdout.splitlines()
    assert len(listed) == 1 + len(counted.manifest.probes)


def test_clauses_of_the_tracer_itself_run_as_ever(counted: Ran) -> None:
    program = """
        BEGIN { printf("from %d to ", ++n); }
        END { printf("%d", ++n); }
        fbt::kmalloc:entry /probefunc == "kfree"/ { @ = count(); }
    """
    assert counted.read("-qn", program).stdout == "from 1 to 2\n"
    assert "was not recorded" in counted.read("-qn", "BEGIN { trace(regs[0]); }").stderr
    assert counted.read("-qn", "BEGIN { exit(3); } fbt::kmalloc:entry { @ = count(); }").exit_code == 3


def test_a_clause_that_looks_at_a_hit_is_refused_with_what_would_keep_it(counted: Ran) -> None:
    for body, (why, action) in REFUSED.items():
        result = counted.read("-n", f"fbt::kmalloc:entry {body}")
        remedy = f"kinst-rewrite --standalone --action {action} keeps it"
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == f"kinst-run: fbt::kmalloc:entry: {why}, and the image only counts: {remedy}\n"


@pytest.mark.parametrize("what", ["execname", "pid", "stack()", "ustack(3)", "caller", "uregs[0]"])
def test_what_no_image_keeps_is_refused(counted: Ran, what: str) -> None:
    result = counted.read("-n", f"fbt::kmalloc:entry {{ @[{what}] = count(); }}")
    name = re.sub(r"(?<=[(\[])\d", "", what)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"kinst-run: fbt::kmalloc:entry: no image records {name}\n"


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_read_is_told_in_one_line(counted: Ran, words: tuple[str, ...], tmp_path: Path) -> None:
    short, other = tmp_path / "short", tmp_path / "other"
    short.write_bytes(counted.raw.read_bytes()[:4096])
    other.write_bytes(bytes(3 << 20))
    files = {"image": counted.image, "original": MACHINES[counted.machine].image, "core": counted.core}
    known = {**files, "raw": counted.raw, "short": short, "other": other, "place": hex(PLACES[counted.machine])}
    result = kinst_run(*(word.format(**known) for word in words))
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"kinst-run: {WRONG[words].format(**known)}")


def test_the_cells_alone_are_enough(counted: Ran, tmp_path: Path) -> None:
    """Then nobody can tell whose they are."""
    kept, cells = counted.kept, tmp_path / "cells"
    start = kept.load_address - PLACES[counted.machine]
    cells.write_bytes(counted.raw.read_bytes()[start : start + kept.size])
    assert kinst_run(counted.image, "--read", f"{cells}@{kept.load_address:#x}").stdout == counted.told
    assert kinst_run(counted.image, "--read", f"{cells}@{kept.address:#x}").stdout == counted.told


def test_an_image_that_was_moved_is_found_in_a_dump(counted: Ran) -> None:
    """As Linux is under KASLR, or firmware that copies itself."""
    assert kinst_run(counted.image, "--read", f"{counted.raw}@0x12340000").stdout == counted.told


def test_in_our_machine_it_finds_what_it_found_elsewhere(counted: Ran) -> None:
    """The last function that is called switches the machine off."""
    here = kinst_run(counted.image, "--console", "/dev/null", *CLOCK)
    assert (here.exit_code, here.stderr) == (0, "")
    assert without(TIMED | {"power_off:entry"}, here.stdout) == without(TIMED, counted.told)
    program = "fbt:::entry { @ = sum(arg0); }"
    assert "the image only counts" in kinst_run(counted.image, "--console", "/dev/null", "-n", program).stderr


def test_an_action_in_python_is_refused(counted: Ran) -> None:
    why = r"^an action in Python is called for each hit, and the image only counts$"
    with runtime.open_image(counted.image) as image, pytest.raises(runtime.KinstError, match=why):
        image.trace(actions={"fbt::kmalloc:entry": print}).run(seconds=1)

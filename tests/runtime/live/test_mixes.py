"""Programs some of whose clauses count and some of which record: each site keeps what is read there, and what is
printed is what our own machine prints, and what is printed if all sites record what any of them does."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.shell.cache_home import own_folder
from kinst.runtime.live.wanted import Wanted
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from kinst.targets.standalone import Action, Standalone
from tests.commands.in_process import kinst_run
from tests.runtime.live.qemus import needs, on
from tests.samples.machines import MACHINES, Sample

Forms = tuple[tuple[tuple[str, ...], ...], bytes]
# Each can be a jump on all machines, and does the same whatever the time.
_PROBES = ("fbt::vfs_get:entry", "fbt::vfs_create:entry", "fbt::vfs_walk:entry", "fbt::vfs_lookup:entry")
_COUNTING = ("@c{}[probefunc] = count()", "@c{} = count()", "@c{}[probename, 7] = sum(3)")
_RECORDING = (
    *("@r{}[arg1 & 7] = count()", "@r{}[stack(2)] = count()", "@r{}[caller, cpu] = count()", "@r{} = sum(arg1)"),
    *("@r{}[execname, pid] = count()", "@r{}[timestamp > 0] = count()", "@r{}[n++ % 5] = count()"),
    *("self->x++; @r{}[self->x & 3] = count()", 'printf("%s %d\\n", probefunc, arg1)', "@c0[probefunc] = count(); m++"),
)
_WATCHING = (
    "/k++ == 9/ { printa(@c0); }",
    "/k++ == 9/ { clear(@c0); }",
    "/k++ == 9/ { exit(3); }",
    "/k++ == 9/ { exit(0); }",
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def program(draw: random.Random) -> str:
    """Clauses of several probes, some of which have more than one."""
    each = [f"{_probes(draw)} {{ {draw.choice(_COUNTING).format(number)}; }}" for number in range(draw.randint(1, 3))]
    each += [f"{_probes(draw)} {{ {draw.choice(_RECORDING).format(number)}; }}" for number in range(draw.randint(1, 4))]
    if draw.random() < 0.3:
        each.append(f"{draw.choice(_PROBES)} {draw.choice(_WATCHING)}")
    draw.shuffle(each)
    return "\n".join([f"{_PROBES[0]} {{ @c0[probefunc] = count(); }}", *each])


def _probes(draw: random.Random) -> str:
    return ", ".join(draw.sample(_PROBES, draw.choice((1, 1, 2, 4))))


def union(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all sites record what any of them does."""
    plain = Wanted.forms

    def forms(self: Wanted, own: Sequence[str], *, has_all: bool) -> Forms:
        del has_all
        several, of_sites = plain(self, own, has_all=True)
        other = Wanted(len(of_sites))
        for form in several:
            other.add(~np.zeros(len(of_sites), np.bool_), form)
        return plain(other, own, has_all=True)

    monkeypatch.setattr(Wanted, "forms", forms)


def printed(sample: Sample, text: str, *words: str) -> tuple[int, list[str]]:
    """The exit status, and what D printed: aggregations as they are sorted."""
    done = kinst_run("-q", *words, "--console", "/dev/null", "-n", text, sample.image)
    assert not done.stderr, (text, done.stderr)
    return done.returncode, done.stdout.splitlines()


def kept() -> list[Standalone]:
    """What the images keep that were made."""
    manifests = [find_manifest(open_image(path)) for path in own_folder("live").glob("*.elf")]
    return [one.standalone for one in manifests if one is not None and one.standalone is not None]


def check(sample: Sample, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_site = printed(sample, text, "--lossless", "--on", on(sample))
    assert by_site == printed(sample, text, "--clock", "icount"), text
    with monkeypatch.context() as patch:
        union(patch)
        assert by_site == printed(sample, text, "--lossless", "--on", on(sample)), text


@pytest.mark.parametrize("machine", MACHINES)
def test_a_mix_prints_what_other_ways_print(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(MACHINES[machine].qemu[0])
    check(MACHINES[machine], program(random.Random(1)), monkeypatch)
    assert {one.action for one in kept()} == {Action.MIX, Action.RECORD}


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES)
def test_so_do_many(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(MACHINES[machine].qemu[0])
    for seed in range(2, 22):
        check(MACHINES[machine], program(random.Random(seed)), monkeypatch)


def test_what_is_counted_is_not_lost_where_records_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring with four places, beside counters."""
    sample = MACHINES["riscv64"]
    needs(sample.qemu[0])
    monkeypatch.setattr("kinst.runtime.live.keeping._MOST_RECORDS", 4)
    text = "fbt::vfs_get:entry { @[probefunc] = count(); } fbt::vfs_lookup:entry { @t[timestamp > 0] = count(); }"
    done = kinst_run("-q", "--on", on(sample), "--console", "/dev/null", "-n", text, sample.image)
    assert "176" in done.stdout.split()
    assert "drops" in done.stderr


def test_a_clause_that_sees_what_was_counted_sees_it_at_its_hit() -> None:
    """No site counts then."""
    sample = MACHINES["riscv64"]
    needs(sample.qemu[0])
    text = "fbt::vfs_get:entry { @n = count(); } fbt::vfs_create:entry /i++ == 3/ { printa(@n); exit(0); }"
    assert printed(sample, text, "--on", on(sample)) == printed(sample, text, "--clock", "icount")
    assert [one.counters for one in kept()] == [0]

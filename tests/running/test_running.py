"""The pieces of `poe prove --run`, with a small program of our own: that it sees what runs, and finds what is wrong."""

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.running.bisecting import culprits
from tests.running.comparing import run
from tests.running.patching import WAYS, Addresses, Way
from tests.running.program import Case, Program, programs
from tests.running.proving import Place, Proving
from tests.running.sandbox import missing
from tests.running.sysroot import lay_out

SOURCE = Path(__file__).parent / "programs" / "small.c"
ENTRIES = Way("entries", "fbt:::entry")
SMALL = Program("small", (), ("/work/small",), (Case("/work/small"), Case("/work/small again")))

needs_compiler = pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("gcc") is None or bool(missing("amd64")),
    reason="needs gcc, amd64 and mounts of its own",
)


def place(folder: Path, *options: str) -> Place:
    root, built = folder / "root", folder / "built"
    lay_out(root)
    built.mkdir()
    command = ["gcc", "-O1", "-nostdlib", "-static", "-fno-stack-protector", "-fcf-protection=none", *options]
    subprocess.run([*command, "-o", built / "small", SOURCE], check=True)
    return Place(root, built, {"/work/small": built / "small"})


@needs_compiler
def test_a_program_does_the_same_in_all_ways(tmp_path: Path) -> None:
    proving = Proving(SMALL, place(tmp_path))
    assert proving.unable() == []
    for way in WAYS:
        outcome = proving.prove(way, is_bisected=False)
        assert outcome.is_same, outcome
        assert outcome.sites >= 5
        assert outcome.hit == 1 if way.action != "count" else 4 < outcome.hit <= outcome.sites


@needs_compiler
def test_what_a_case_leaves_behind_is_kept(tmp_path: Path) -> None:
    where = place(tmp_path)
    _, result, ended = next(run(SMALL, where.root, where.built, {}))
    assert (result.status, ended.status, ended.processes) == (7, 7, {})
    assert len(result.stdout) == len(result.stderr) == 17
    assert "out" in result.files
    assert (where.root / "work").is_dir()
    assert not [*(where.root / "work").iterdir()]


@needs_compiler
def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    outcome = Proving(SMALL, place(tmp_path, "-DDATA")).prove(ENTRIES, is_bisected=True)
    assert len(outcome.differences) == 2
    assert outcome.differences[0][1].startswith("stdout: ")
    assert [blamed.split(" (")[0] for blamed in outcome.blamed] == ["/work/small: constants+0x0"]


@needs_compiler
def test_a_file_that_is_not_used_is_told(tmp_path: Path) -> None:
    where = place(tmp_path)
    other = where.root / "usr" / "bin" / "other"
    shutil.copy(where.built / "small", other)
    outcome = Proving(SMALL, Place(where.root, where.built, {"/usr/bin/other": other})).prove(
        ENTRIES, is_bisected=False
    )
    assert outcome.failures == ("/usr/bin/other: nothing of it ran",)


@pytest.mark.parametrize("bad", [{3}, {0, 99}, {41, 42, 77}])
def test_each_site_that_fails_alone_is_found(bad: set[int]) -> None:
    found = culprits(np.arange(100, dtype=np.uint64), lambda sites: not bad.isdisjoint(sites.tolist()))
    assert [part.tolist() for part in found] == [[site] for site in sorted(bad)]


def test_sites_that_fail_only_together_are_found_together() -> None:
    def fails(sites: Addresses) -> bool:
        return {3, 60} <= set(sites.tolist())

    found = culprits(np.arange(100, dtype=np.uint64), fails)
    assert [part.tolist() for part in found] == [[*range(100)]]


def test_the_table_is_read() -> None:
    found = programs()
    assert len(found) > 60
    assert len([one for one in found.values() if one.machine == "amd64"]) > 50
    case = found["openssl"].cases[1]
    assert case == Case("python3 crypto.py", {"OPENSSL_ia32cap": ":~0x60000000000"})
    assert found["sqlite3"].cases[0] == Case("sqlite3 base.db", {}, "work.sql")
    assert str(found["sqlite3"].cases[0]) == "sqlite3 base.db < work.sql"
    assert len({str(case) for case in found["x264"].cases}) == 24
    assert found["zstd-arm64"].triplet == "aarch64-linux-gnu"


def test_no_source_is_missing() -> None:
    scripts = SOURCE.parent.parent / "scripts"
    for program in programs().values():
        assert all((scripts / source).exists() for source in program.sources), program.name

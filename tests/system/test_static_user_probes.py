"""A program with static probes counts how often it reaches them, in Linux of three machines; usdt counts the same, and
says the same of their arguments. Guarded ones are reached while somebody traces, and nothing is written for that."""

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import at_hand, real_image
from tests.linux_programs import initial_file_system
from tests.system.linux_runs import run_linux
from tests.system.test_user_probes import LIBRARIES, ROOTS
from tests.system.user_programs import COMPILERS
from tests.writers.cpio import DIRECTORY, FILE, LINK, Entry

SOURCE: Final = Path(__file__).with_name("user_probes") / "noted.c"
INIT: Final = """#!/bin/sh
/bin/busybox mount -t proc proc /proc
/bin/static 40 &
/bin/static 21
wait
/bin/moved 20 &
/bin/linked 25
wait
/bin/busybox md5sum /bin/static /bin/moved
/bin/busybox reboot -f
"""
KERNELS: Final = at_hand("linux-6.1-amd64", "linux-6.1-arm64", "linux-6.12-riscv64")
NOTED: Final = re.compile(r"NOTED (\S+) (\d+) steps (\d+) guarded (\d+) sum (-?\d+) seen (\d+) there (\d+)")
COUNTS: Final = """
    usdt:/bin/static:noted:step__done, usdt:/bin/moved::step-done {
        @["steps", pid] = count();
        @sums["sum", pid] = sum(args[0] + args[2] + args[3] + args[4] + args[5]);
        @sums["name", pid] = sum(copyinstr(arg1) == "/bin/linked" ? 1000 : 1);
    }
    usdt:/bin/static:noted:guarded, usdt:/bin/moved:noted:guarded { @["guarded", pid] = count(); }
    END { printa("%s %d %@d\\n", @); printa("%s %d %@d\\n", @sums); }
"""
CHOSEN: Final = """
    usdt:/bin/static:noted:guarded, usdt:/bin/moved:noted:guarded { @["guarded", pid] = count(); }
    uprobe:/bin/static:step:entry, uprobe:/bin/moved:step:entry { @["steps", pid] = count(); }
    syscall::clock_nanosleep:entry /pid == $target/ { @["sleeps", pid] = count(); }
    END { printa("%s %d %@d\\n", @); }
"""


class Told(NamedTuple):
    """What a process says of itself."""

    program: str
    steps: int
    guarded: int
    sum: int
    seen: int  # its semaphore as it loads it
    there: int  # and as it is in memory


def _initrd(machine: str, folder: Path) -> Path:
    more = [Entry("bin/linked", LINK, b"moved")]
    for name, flags in (("static", ("-static", "-no-pie")), ("moved", ("-fpie", "-pie"))):
        built = folder / name
        subprocess.run([COMPILERS[machine], "-O2", "-g", *flags, "-o", built, SOURCE], check=True)
        more.append(Entry(f"bin/{name}", FILE, built.read_bytes()))
    folders = {str(parent)[1:]: None for path in LIBRARIES[machine] for parent in reversed(Path(path).parents)}
    more += [Entry(name, DIRECTORY) for name in folders if name]
    more += [Entry(path[1:], FILE, Path(ROOTS[machine] + path).read_bytes()) for path in LIBRARIES[machine]]
    found = folder / "initrd.cpio"
    found.write_bytes(initial_file_system(machine, INIT, more))
    return found


def _counts(output: str) -> dict[tuple[str, int], int]:
    rows = [line.split() for line in output.splitlines() if line]
    return {(what, int(pid)): int(count) for what, pid, count in rows}


def _told(console: str) -> dict[int, Told]:
    """What processes say, by their numbers."""
    found = {int(pid): Told(name, *map(int, numbers)) for name, pid, *numbers in NOTED.findall(console)}
    assert len(found) == 8
    return found


def _without_semaphores(console: str) -> list[str]:
    """Its lines. Guarded code takes time, so that those of two processes may come in another order."""
    return re.sub(r"(guarded|seen) \d+", "", console).splitlines()


@pytest.mark.long
@pytest.mark.parametrize("cpus", ["1", "2"])
@pytest.mark.parametrize("name", KERNELS)
def test_probes_are_counted_as_the_program_counts_them(name: str, cpus: str, tmp_path: Path) -> None:
    initrd = _initrd(name.rpartition("-")[2], tmp_path)
    output, console = run_linux(name, initrd, [COUNTS], more=["--cpus", cpus])
    told, expected = _told(console), dict[tuple[str, int], int]()
    for pid, one in told.items():
        assert (one.guarded, one.seen, one.there) == (one.steps, 1, 0)
        expected |= {("steps", pid): one.steps, ("sum", pid): one.sum, ("guarded", pid): one.guarded}
        expected["name", pid] = one.steps * (1000 if one.program == "/bin/linked" else 1)
    assert _counts(output) == expected
    if cpus == "1":
        _, plain = run_linux(name, initrd)
        assert {(one.guarded, one.seen, one.there) for one in _told(plain).values()} == {(0, 0, 0)}
        assert sorted(_without_semaphores(console)) == sorted(_without_semaphores(plain))


@pytest.mark.long
@pytest.mark.parametrize("name", KERNELS)
def test_chosen_processes(name: str, tmp_path: Path) -> None:
    initrd = _initrd(name.rpartition("-")[2], tmp_path)
    told = _chosen(name, initrd, ["--exec", "/bin/moved"], lambda _pid, one: one.program != "/bin/static")
    pid = min(number for number, one in told.items() if one.program == "/bin/static")
    _chosen(name, initrd, ["-p", str(pid)], lambda number, _one: number == pid)


def _chosen(name: str, initrd: Path, more: Sequence[str], is_chosen: Callable[[int, Told], bool]) -> dict[int, Told]:
    output, console = run_linux(name, initrd, [CHOSEN], more=more)
    told, expected = _told(console), dict[tuple[str, int], int]()
    for pid, one in told.items():
        chosen = is_chosen(pid, one)
        assert (one.guarded, one.seen, one.there) == ((one.steps, 1, 0) if chosen else (0, 0, 0))
        if chosen:
            sleeps = -(-one.steps // 8)
            expected |= {("steps", pid): one.steps, ("guarded", pid): one.steps, ("sleeps", pid): sleeps}
    assert _counts(output) == expected
    return told


@pytest.mark.long
@pytest.mark.parametrize("name", KERNELS[:1])
def test_from_a_snapshot(name: str, tmp_path: Path) -> None:
    """The files are those of --user then: there is no --initrd."""
    initrd, snapshot = _initrd(name.rpartition("-")[2], tmp_path), tmp_path / "snapshot"
    place = "uprobe:/bin/static:step:entry"
    program = f"{place} /n++/ {{ exit(0); }}"  # not at the first: after exit() no snapshot is taken
    run_linux(name, initrd, [program], more=["--snapshot-at", f"{place}={snapshot}"])
    users = [word for one in ("static", "moved") for word in ("--user", f"/bin/{one}={tmp_path / one}")]
    console = tmp_path / "console"
    words = ["--from", str(snapshot), *users, "-q", "--console", str(console), "--timeout", "120s", "-n", COUNTS]
    result = CliRunner().invoke(run, [*words, str(real_image(name))])
    assert result.exit_code == 0, result.stderr
    told, found = _told(console.read_text(errors="replace")), _counts(result.stdout)
    assert {pid: found["steps", pid] for pid in told} == {pid: one.steps for pid, one in told.items()}
    assert {pid: found["guarded", pid] for pid in told} == {pid: one.guarded for pid, one in told.items()}

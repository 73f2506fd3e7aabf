"""kinst-run --read of a QEMU that somebody else started: by the file that it shares, and by its monitor."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands.in_process import command, kinst_run
from tests.runtime.live.qemus import endless, started
from tests.runtime.readout.qemu import emulator
from tests.runtime.readout.test_files import core as dumped

BASE = 0x8000_0000
TRIES = 20  # each of half a second: if nothing has come by then, nothing comes
COUNTED = 'fbt::work:entry { @ = count(); } tick-50ms { printa("%@d\\n", @); } tick-50ms /++n == 8/ { exit(0); }'


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """It counts each call."""
    out = tmp_path / "alone.elf"
    words = ("--standalone", "--trampoline-base", f"{BASE + 0x80000:#x}", "--probe", "fbt::work:entry", "-o", out)
    done = command("rewrite", endless(tmp_path), *words)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(params=["file", "memfd", "removed", "private"])
def words(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ...]:
    """Kinds of memory: a shared file, a shared one without a name, one that was removed, and QEMU's own."""
    backend = {
        "file": f"memory-backend-file,id=ram0,size=64M,share=on,mem-path={tmp_path / 'ram'}",
        "memfd": "memory-backend-memfd,id=ram0,size=64M,share=on",
        "removed": f"memory-backend-file,id=ram0,size=64M,share=on,mem-path={tmp_path}",
        "private": "memory-backend-ram,id=ram0,size=64M",
    }[request.param]
    return ("-m", "64M", "-object", backend, "-machine", "memory-backend=ram0")


@contextmanager
def running(image: Path, folder: Path, words: tuple[str, ...]) -> Iterator[str]:
    """It runs. Gives its second monitor, for --read."""
    monitor = folder / "another"
    loaded = ("-device", f"loader,file={image},cpu-num=0") if image else ()
    with emulator("riscv64", folder, *words, *loaded, "-qmp", f"unix:{monitor},server=on,wait=off"):
        yield f"qmp:{monitor}"


def counts(*words: object) -> list[int]:
    done = kinst_run(*words, "-qn", COUNTED)
    assert (done.returncode, done.stderr) == (0, "")
    return [int(line) for line in done.stdout.split()]


def grown(*words: object) -> list[int]:
    """The counts of the first reading during which QEMU ran: a host that has others to serve may let it wait."""
    for _ in range(TRIES):
        found = counts(*words)
        if found[-1] > found[0]:
            break
    return found


def test_counts_grow_while_it_runs(image: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    with running(image, tmp_path, words) as source:
        found = grown(image, "--read", source, "--every", "20ms")
        assert found == sorted(found)
        assert found[-1] > found[0] >= 0
        for _ in range(TRIES):
            done = kinst_run(image, "--read", source)  # once
            if int(done.stdout.split()[0]) > found[-1]:
                break
        assert int(done.stdout.split()[0]) > found[-1], done.stderr


def test_a_shared_file_is_read_by_its_address(image: Path, tmp_path: Path) -> None:
    ram = tmp_path / "ram"
    backend = f"memory-backend-file,id=ram0,size=64M,share=on,mem-path={ram}"
    with running(image, tmp_path, ("-m", "64M", "-object", backend, "-machine", "memory-backend=ram0")):
        blocks = ram.stat().st_blocks
        found = grown(image, "--read", f"{ram}@{BASE:#x}", "--every", "20ms")
        assert found[-1] > found[0] >= 0
        elsewhere = counts(image, "--read", f"{ram}@{BASE - 0x20_0000:#x}", "--every", "20ms")  # it is searched for
        assert elsewhere[-1] > found[-1]
        assert ram.stat().st_blocks < blocks + 256  # its holes are holes still


def test_an_image_that_is_not_there_yet_is_awaited(image: Path, tmp_path: Path) -> None:
    ram = tmp_path / "ram"
    ram.write_bytes(bytes(1 << 20))
    words = (image, "--read", f"{ram}@{BASE:#x}", "-qn", "fbt::work:entry { @ = count(); }")
    done = kinst_run(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"kinst-run: {image}: is not in this memory: ")
    assert done.stderr.count("\n") == 1
    done = kinst_run(*words, "--every", "10ms", "--timeout", "100ms")
    first, last = done.stderr.splitlines()
    assert done.returncode == 1
    assert first.startswith(f"kinst-run: {image}: is not in this memory: ") and first.endswith("; it is awaited")
    assert f"kinst-run: {last.removeprefix('kinst-run: ')}; it is awaited" == first


@pytest.mark.parametrize(
    ("source", "status", "why"),
    [
        ("qmp:", 2, "--read qmp:: qmp:SOCKET, for example qmp:/tmp/monitor, or qmp:HOST:PORT"),
        ("qmp:localhost:99999", 2, "--read qmp:localhost:99999: qmp:SOCKET, for example"),
        ("qmp:/nowhere", 1, "qmp:/nowhere: No such file or directory"),
        ("qmp:localhost:1", 1, "qmp:localhost:1: Connection refused"),
    ],
)
def test_what_is_no_monitor_is_one_line(image: Path, source: str, status: int, why: str) -> None:
    done = kinst_run(image, "--read", source)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(f"kinst-run: {why}")
    assert done.stderr.count("\n") == 1


def test_a_core_cannot_be_read_again(image: Path, tmp_path: Path) -> None:
    core = tmp_path / "core"
    core.write_bytes(dumped([(BASE, BASE, bytes(8))]))
    done = kinst_run(image, "--read", core, "--every", "1s")
    why = "kinst-run: --every 1s: a core stays as it is: it is for gdb:, qmp: and FILE@ADDRESS\n"
    assert (done.returncode, done.stderr) == (2, why)


def test_its_end_ends_the_run_with_what_there_is(image: Path, tmp_path: Path) -> None:
    monitor = tmp_path / "another"
    words = ("-m", "64M", "-device", f"loader,file={image},cpu-num=0", "-qmp", f"unix:{monitor},server=on,wait=off")
    backend = f"memory-backend-file,id=ram0,size=64M,share=on,mem-path={tmp_path / 'ram'}"
    with emulator("riscv64", tmp_path, *words, "-object", backend, "-machine", "memory-backend=ram0") as qemu:
        program = 'fbt::work:entry { @ = count(); } tick-100ms { printf("tick\\n"); } END { printa("end %@d\\n", @); }'
        with started(image, "--read", f"qmp:{monitor}", "--every", "20ms", "-qn", program) as run:
            assert run.stdout is not None
            assert run.stdout.readline() == "tick\n"
            qemu.tell("quit")
            out, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert int(out.split()[-1]) > 0
    assert errors == f"kinst-run: qmp:{monitor}: QEMU has ended\n"

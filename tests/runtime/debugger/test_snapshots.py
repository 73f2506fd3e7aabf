"""`monitor snapshot`: wherever a debugger has stopped the guest, a run from there is the rest of the run."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kinst.targets.image import open_image
from tests.commands.in_process import kinst_run
from tests.runtime.debugger.client import Client, debugged
from tests.system.cases import SAMPLES, Case
from tests.system.runs import let_go
from tests.system.snapshots import left_by, traced, whole

_FUNCTIONS = ("hash_bytes", "rpc_release", "kmalloc", "callout_process", "console_putc")
each_sample = pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)


@dataclass
class _Stops:
    """Stops the guest at drawn breakpoints, steps on, and takes a snapshot each time."""

    case: Case
    folder: Path
    seed: int
    count: int
    files: list[Path] = field(default_factory=list, init=False)

    def __call__(self, client: Client) -> None:
        draw, symbols = random.Random(self.seed), open_image(self.case.path).symbols
        for number in range(self.count):
            point = f"{symbols.address_of(draw.choice(_FUNCTIONS)):x}"
            assert client.ask(f"Z0,{point},1") == "OK"
            for _ in range(draw.randrange(1, 6)):
                if client.ask("vCont;c") == "W00":
                    return
            assert client.ask(f"z0,{point},1") == "OK"
            thread = int(client.ask("qC")[2:], 16)
            for _ in range(draw.randrange(20)):
                assert client.ask(f"vCont;s:{thread:x};c").startswith("T05")
            self.files.append(self.folder / f"{number}.snap")
            assert "has the guest at " in client.monitor(f"snapshot {self.files[-1]}")
        assert client.ask("D") == "OK"


@pytest.mark.turns
@pytest.mark.parametrize(
    ("cpus", "count"), [(2, 1), *(pytest.param(*one, marks=pytest.mark.long) for one in ((1, 3), (2, 15)))]
)
@each_sample
def test_a_run_from_a_stop_is_the_rest_of_the_run(case: Case, cpus: int, count: int, tmp_path: Path) -> None:
    stops, words = _Stops(case, tmp_path, seed=cpus, count=count), ("--clock", "icount", "--cpus", str(cpus))
    program = ("-n", "fbt::kmalloc:entry,fbt::hash_bytes:return { @[probefunc] = count(); }")
    done = debugged(case.path, tmp_path, stops, *words, *program)
    plain = kinst_run(case.path, *words, *program)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    _check(case, cpus, stops.files)


def _check(case: Case, cpus: int, files: Sequence[Path]) -> None:
    """A run from each of the files ends as the whole run."""
    left, printed = whole(case, cpus)
    for file in files:
        trace = traced(case, cpus, file)
        let_go(trace, case.until, case.asks)
        assert printed.endswith(trace.console)
        assert left_by(trace.guest.system) == left


def test_a_step_that_ends_the_turn(tmp_path: Path) -> None:
    """Over wfi, with the other CPU's turn coming."""
    case, files = SAMPLES[2], [tmp_path / f"{number}.snap" for number in range(2)]
    start = open_image(case.path).symbols.address_of("_start") or 0
    code = open_image(case.path).read(start, 0x2000)

    def use(client: Client) -> None:
        for wait in re.finditer(rb"\x73\x00\x50\x10", code):
            assert client.ask(f"Z0,{start + wait.start():x},4") == "OK"
        for file in files:
            assert client.ask("vCont;c").startswith("T05")
            thread = int(client.ask("qC")[2:], 16)
            assert client.ask(f"vCont;s:{thread:x}").startswith("T05")
            assert "has the guest at " in client.monitor(f"snapshot {file}")
        assert client.ask("D") == "OK"

    debugged(case.path, tmp_path, use, "--clock", "icount", "--cpus", "2")
    _check(case, 2, files)


def test_only_snapshots_are_replaced(tmp_path: Path) -> None:
    precious, snapshot = tmp_path / "precious", tmp_path / "a.snap"
    precious.write_bytes(b"all that there is")

    def use(client: Client) -> None:
        assert "is not a snapshot" in client.monitor(f"snapshot {precious}")
        assert "to which file?" in client.monitor("snapshot")
        assert "cannot be written" in client.monitor(f"snapshot {tmp_path}/no/file")
        for _ in range(2):
            assert "has the guest at 0 ns" in client.monitor(f"snapshot {snapshot}")
        client.packets.send_last("k")

    debugged(SAMPLES[2].path, tmp_path, use, "--clock", "icount")
    assert precious.read_bytes() == b"all that there is"
    assert snapshot.exists()

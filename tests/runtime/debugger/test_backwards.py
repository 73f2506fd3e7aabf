"""Backwards by the protocol: what was recorded on the way forward is there again on the way back."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kinst.runtime.debugger.history import History, Moment
from kinst.runtime.machine.system import System
from kinst.targets.image import open_image
from tests.commands.in_process import kinst_run
from tests.runtime.debugger.client import Client, debugged
from tests.runtime.debugger.samples import SAMPLES

pytestmark = pytest.mark.turns
machines = pytest.mark.parametrize("machine", SAMPLES)
_WORDS = ("--clock", "icount")
_BEGINNING = "T05replaylog:begin;"


def _address(machine: str, name: str) -> int:
    return open_image(SAMPLES[machine]).symbols.address_of(name) or 0


@dataclass(frozen=True)
class _Seen:
    """What a debugger sees of a stopped guest."""

    thread: str
    time: str
    registers: str
    memory: str


def _seen(client: Client, places: tuple[int, ...]) -> _Seen:
    time = re.search(r"time: ([\d,]+) ns", client.monitor("info"))
    assert time is not None
    return _Seen(client.ask("qC"), time[1], client.ask("g"), "".join(client.ask(f"m{at:x},40") for at in places))


@dataclass
class _Steps:
    """Goes forward by drawn stops, then by steps, each of them recorded, and back by as many."""

    machine: str
    seed: int
    rounds: int = 3
    most: int = 60
    functions: tuple[str, ...] = ("hash_bytes", "rpc_release", "kmalloc", "callout_process")
    backwards: int = field(default=0, init=False)

    def __call__(self, client: Client) -> None:
        draw = random.Random(self.seed)
        places = tuple(_address(self.machine, name) for name in ("soft_ticks", "cpu_stacks"))
        for _ in range(self.rounds):
            point = f"{_address(self.machine, draw.choice(self.functions)):x}"
            assert client.ask(f"Z0,{point},1") == "OK"
            assert client.ask("vCont;c").startswith("T05swbreak")
            assert client.ask(f"z0,{point},1") == "OK"
            thread = int(client.ask("qC")[2:], 16)
            recorded = [_seen(client, places)]
            for _ in range(draw.randrange(1, self.most)):
                assert client.ask(f"vCont;s:{thread:x};c").startswith("T05")
                recorded.append(_seen(client, places))
            for before in reversed(recorded[:-1]):
                assert client.ask("bs") == f"T05thread:{thread:x};"
                assert _seen(client, places) == before
                self.backwards += 1
            for after in recorded[1 : draw.randrange(len(recorded))]:  # and forward again
                assert client.ask(f"vCont;s:{thread:x};c").startswith("T05")
                assert _seen(client, places) == after
        assert client.ask("D") == "OK"


@pytest.mark.parametrize("cpus", [pytest.param(1, marks=pytest.mark.long), 2])
@machines
def test_steps_back_are_the_steps_forward(machine: str, cpus: int, tmp_path: Path) -> None:
    words = (*_WORDS, "--cpus", str(cpus))
    plain, steps = kinst_run(SAMPLES[machine], *words), _Steps(machine, seed=cpus)
    done = debugged(SAMPLES[machine], tmp_path, steps, *words)
    assert steps.backwards > 20
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)


@dataclass
class _Writes:
    """Goes forward by the writes of a variable, each of them recorded, and back by as many."""

    machine: str
    variable: str
    count: int = 5
    writes: list[tuple[int, int]] = field(default_factory=list, init=False)

    def __call__(self, client: Client) -> None:
        at = _address(self.machine, self.variable)

        def value() -> int:
            return int(client.ask(f"m{at:x},4"), 16)

        assert client.ask(f"Z2,{at:x},4") == "OK"
        for _ in range(self.count):
            before = value()
            assert re.fullmatch(f"T05watch:{at:x};thread:[12];", client.ask("vCont;c"))
            self.writes.append((before, value()))
        here, last = _seen(client, (at,)), value()
        seen = list[tuple[int, int]]()
        while (reply := client.ask("bc")) and not reply.startswith(_BEGINNING):
            assert re.fullmatch(f"T05watch:{at:x};thread:[12];", reply)
            seen.append((value(), last))
            last = value()
        assert seen[::-1] == self.writes
        assert client.ask("bc").startswith(_BEGINNING)
        assert client.ask("bs").startswith(_BEGINNING)
        for _ in self.writes:
            assert client.ask("vCont;c").startswith("T05watch")
        assert _seen(client, (at,)) == here
        assert client.ask("D") == "OK"


@pytest.mark.parametrize("cpus", [1, 2])
@machines
def test_back_to_each_write_of_a_variable(machine: str, cpus: int, tmp_path: Path) -> None:
    words = (*_WORDS, "--cpus", str(cpus))
    plain, writes = kinst_run(SAMPLES[machine], *words), _Writes(machine, "soft_ticks")
    done = debugged(SAMPLES[machine], tmp_path, writes, *words)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)


@machines
def test_back_to_each_breakpoint(machine: str, tmp_path: Path) -> None:
    places = (_address(machine, "soft_ticks"), _address(machine, "cpu_stacks"))

    def use(client: Client) -> None:
        points = [f"Z{kind},{_address(machine, name):x},1" for kind, name in enumerate(("kmalloc", "hash_bytes"))]
        assert [client.ask(point) for point in points] == ["OK", "OK"]
        recorded = list[tuple[str, _Seen]]()
        for _ in range(30):
            recorded.append((client.ask("vCont;c"), _seen(client, places)))
        for before in reversed(recorded[:-1]):
            assert (client.ask("bc"), _seen(client, places)) == before
        assert client.ask("bc") == f"{_BEGINNING}thread:1;"
        for after in recorded[:10]:
            assert (client.ask("vCont;c"), _seen(client, places)) == after
        assert client.ask("D") == "OK"

    plain = kinst_run(SAMPLES[machine], *_WORDS)
    done = debugged(SAMPLES[machine], tmp_path, use, *_WORDS)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)


def _refused(machine: str, folder: Path, *words: str) -> list[str]:
    """What is said to who would go backwards in such a run."""
    said = list[str]()

    def use(client: Client) -> None:
        said.extend([client.ask("qSupported:swbreak+"), client.ask("bs"), client.ask("bc"), client.monitor("info")])
        assert client.ask("vCont;s:1;c").startswith("T05")
        assert client.ask("D") == "OK"

    assert debugged(SAMPLES[machine], folder, use, *words).returncode == 0
    return said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "use --clock icount"),
        ((*_WORDS, "-n", "profile-1ms { @ = count(); }"), "while profile:::profile-1ms is enabled"),
        ((*_WORDS, "-wn", 'BEGIN { system("true"); raise(9); }'), "while raise"),
        ((*_WORDS, "-wn", "fbt::kfree:entry { regs[10] = regs[10]; }"), "while regs"),
        ((*_WORDS, "-n", "fbt:::entry { @ = count(); }", "--method", "jump"), "while fbt:"),
        ((*_WORDS, "--log", "exceptions"), "with --log"),
    ],
)
def test_why_there_is_no_way_back(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    supported, step, go_on, info = _refused("riscv64", tmp_path, *words)
    assert "Reverse" not in supported
    assert step == go_on
    assert re.fullmatch(f"E.there is no way back.*{why}.*", step)
    assert why in info


_TRACED = """
fbt:::entry { @calls[probefunc] = count(); }
fbt::rpc_*:entry { @first[arg0] = max(timestamp); last = timestamp; }
fbt::kmalloc:entry { self->size = arg0; }
fbt::kmalloc:return { @sizes = quantize(self->size); self->size = 0; }
fbt::hash_bytes:return /seen++ % 7 == 0/ { printf("%d %x", timestamp, arg1); }
END { printa(@calls); printf("%d %d", seen, last); }
"""


@pytest.mark.parametrize("cpus", [1, 2])
@machines
def test_probes_do_not_fire_twice(machine: str, cpus: int, tmp_path: Path) -> None:
    """Back and forth: from each of the hits at which the guest stops, steps, and calls in between; then to the end."""
    words = (*_WORDS, "--cpus", str(cpus), "-n", _TRACED)
    draw, steps = random.Random(cpus), _Steps(machine, seed=7, rounds=2, most=12)

    def use(client: Client) -> None:
        point = f"{_address(machine, 'hash_bytes'):x}"
        for _ in range(3):
            assert client.ask(f"Z0,{point},1") == "OK"
            for _ in range(draw.randrange(1, 12)):
                assert client.ask("vCont;c").startswith("T05swbreak")
            for _ in range(draw.randrange(1, 4)):
                client.ask("bc")
            assert client.ask(f"z0,{point},1") == "OK"
        steps(client)

    plain, done = kinst_run(SAMPLES[machine], *words), debugged(SAMPLES[machine], tmp_path, use, *words)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert "stays" not in done.stderr


def test_another_run_is_traced_anew(tmp_path: Path) -> None:
    """What a debugger changes in the past is not what was traced: probes fire, and it is said what is left."""
    point = _address("riscv64", "kmalloc")

    def use(client: Client) -> None:
        def forward(count: int) -> None:
            for _ in range(count):
                assert client.ask("vCont;c").startswith("T05swbreak")

        assert client.ask(f"Z0,{point:x},1") == "OK"
        forward(6)
        for _ in range(4):
            assert client.ask("bc").startswith("T05swbreak")
        assert client.ask(f"M{_address('riscv64', 'soft_ticks'):x},4:00000000") == "OK"
        forward(4)
        client.packets.send_last("k")

    words = (*_WORDS, "-n", "fbt::kmalloc:entry { @ = count(); }")
    done = debugged(SAMPLES["riscv64"], tmp_path, use, *words)
    assert int(done.stdout.split()[-1]) == 5 + 4  # before the sixth stop; then from the second stop on
    assert "what probes have recorded of what came then stays" in done.stderr


@machines
def test_what_a_debugger_changes_is_a_new_beginning(machine: str, tmp_path: Path) -> None:
    at, point = _address(machine, "soft_ticks"), _address(machine, "kmalloc")

    def use(client: Client) -> None:
        assert "ReverseStep+;ReverseContinue+" in client.ask("qSupported:swbreak+")
        assert client.ask(f"Z0,{point:x},1") == "OK"
        for _ in range(3):
            assert client.ask("vCont;c").startswith("T05swbreak")
        before = client.ask("g")
        assert client.ask(f"M{at:x},4:07000000") == "OK"
        assert client.ask("bc") == f"{_BEGINNING}thread:1;"
        assert client.ask(f"m{at:x},4") == "07000000"
        assert client.ask("vCont;c").startswith("T05swbreak")
        assert client.ask("bc").startswith("T05swbreak")  # where the new beginning is
        assert client.ask("bc").startswith(_BEGINNING)
        assert client.ask("g") == before
        assert client.ask(f"m{at:x},4") == "07000000"
        client.packets.send_last("k")

    assert debugged(SAMPLES[machine], tmp_path, use, *_WORDS).returncode == 0


@machines
def test_the_console_shows_nothing_twice(machine: str, tmp_path: Path) -> None:
    """Back to the first instruction from near the end, twice, and to the end."""
    point = _address(machine, "kfree")

    def use(client: Client) -> None:
        assert client.ask(f"Z0,{point:x},1") == "OK"
        stops = 0
        while client.ask("vCont;c").startswith("T05") and stops < 100:
            stops += 1
        assert stops == 100
        assert client.ask(f"z0,{point:x},1") == "OK"
        for _ in range(2):
            assert client.ask("bc").startswith(_BEGINNING)
            assert client.ask("bs").startswith(_BEGINNING)
            assert client.ask("vCont;s:1;c").startswith("T05")
        assert client.ask("D") == "OK"

    plain = kinst_run(SAMPLES[machine], *_WORDS)
    done = debugged(SAMPLES[machine], tmp_path, use, *_WORDS)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)


def _later(system: System) -> None:
    system.clock.set(system.clock.now() + 5)


def _with_another_register(system: System) -> None:
    """Which is so rarely used that it has that value for long."""
    system.current.registers.set("s11", 1 << 62)


@pytest.mark.parametrize("change", [_later, _with_another_register])
def test_a_guest_that_does_something_else_is_noticed(
    change: Callable[[System], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot happen is made to happen as a snapshot is restored."""
    system, restore = list[System](), History.restore

    def changed(self: History, moment: Moment) -> None:
        restore(self, moment)
        change(self._system)
        system.append(self._system)

    monkeypatch.setattr(History, "restore", changed)

    def use(client: Client) -> None:
        assert client.ask(f"Z0,{_address('riscv64', 'hash_bytes'):x},1") == "OK"
        assert client.ask("vCont;c").startswith("T05swbreak")
        told = client.ask("bs")
        assert b"has not done again what it did" in bytes.fromhex(told.removeprefix("O"))
        assert client.packets.reply().startswith("T02")
        assert client.ask("bs") == "T05replaylog:begin;thread:1;"
        client.packets.send_last("k")

    done = debugged(SAMPLES["riscv64"], tmp_path, use, *_WORDS)
    assert system
    assert "the guest has not done again what it did before" in done.stderr

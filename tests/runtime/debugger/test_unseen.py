"""A guest that is debugged is the guest that is not: the same console, the same hits, the same last instruction."""

import random
import re
from pathlib import Path

import pytest

from kinst.targets.image import open_image
from tests.commands.in_process import kinst_run
from tests.gated import taking_turns
from tests.runtime.debugger.client import Client, debugged
from tests.runtime.debugger.samples import SAMPLES

_PROGRAM = (
    "fbt:::entry { @[probefunc] = count(); } fbt::rpc_*:return { @r[probefunc] = sum(arg1); } "
    'fbt::hash_bytes:entry { printf("%d %d %d;", cpu, timestamp, arg2); } '
    "fbt::kfree:entry, fbt::memset:entry { @s[stack(3)] = count(); } "
    'END { printf("end %d", timestamp); }'
)
_STOPS = 40


def _functions(image: Path, said: str) -> list[int]:
    """The addresses of the functions that a run has called several times."""
    called = re.findall(r"^  (\w+) +(\d+)$", said, re.MULTILINE)
    symbols = open_image(image).symbols
    return [symbols.address_of(name) or 0 for name, count in called if int(count) > _STOPS]


class _Drawn:
    """Stops and steps, drawn by a seed."""

    def __init__(self, functions: list[int], seed: int) -> None:
        self._draw, self._functions = random.Random(seed), functions
        self.stops = 0

    def __call__(self, client: Client) -> None:
        for _ in range(_STOPS):
            points = [f"{self._draw.choice(self._functions) + self._draw.choice((0, 0, 4, 8)):x}" for _ in range(4)]
            for point in points:
                assert client.ask(f"Z0,{point},1") == "OK"
            reply = client.ask(self._draw.choice(("c", "vCont;c", "vCont;s:1;c", "s")))
            if reply.startswith("W"):
                return
            self.stops += 1
            assert client.ask("g")
            for point in points:
                assert client.ask(f"z0,{point},1") == "OK"
            for _ in range(self._draw.randrange(12)):
                thread = int(client.ask("qC")[2:], 16)
                assert client.ask(f"vCont;s:{thread:x};c").startswith("T05")
        assert client.ask("D") == "OK"


@pytest.mark.parametrize(("machine", "cpus"), taking_turns([*SAMPLES], [1, 2]))
def test_drawn_stops_and_steps(machine: str, cpus: int, tmp_path: Path) -> None:
    image, words = SAMPLES[machine], ("--cpus", str(cpus), "--clock", "icount", "-n", _PROGRAM)
    plain = kinst_run(image, *words)
    drawn = _Drawn(_functions(image, plain.stdout), seed=cpus)
    done = debugged(image, tmp_path, drawn, *words)
    assert drawn.stops > _STOPS // 2
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)

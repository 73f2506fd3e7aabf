"""gdb itself at the door, with scripts of its own commands."""

import re
from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.runtime.debugger.client import needs_gdb, with_gdb
from tests.runtime.debugger.samples import SAMPLES

_WORDS = ("--clock", "icount", "-n", "fbt::hash_bytes:entry,fbt::rpc_release:entry { @[probefunc] = count(); }")
_SCRIPT = (
    "hbreak rpc_release",
    "continue",
    "backtrace 2",
    "info threads",
    "stepi",
    "next",
    "finish",
    "delete",
    "watch soft_ticks",
    "continue",
    "continue",
    "delete",
    "tbreak hash_bytes",
    "continue",
    "print size",
    "print hash_bytes(0, bytes, 3) == hash_bytes(0, bytes, 3)",  # the guest runs meanwhile, and its probes fire
    "info registers pc",
    "monitor info",
    "detach",
)


@needs_gdb
@pytest.mark.parametrize("machine", SAMPLES)
def test_a_session(machine: str, tmp_path: Path) -> None:
    said, done = with_gdb(SAMPLES[machine], tmp_path, _SCRIPT, *_WORDS)
    assert done.returncode == 0
    assert re.search(r"Breakpoint 1, (0x\w+ in )?rpc_release \(request=", said), said
    assert re.search(r"#1 .*client_run", said), said
    assert "* 1    Thread 1 (CPU 0 runs)" in said
    assert re.search(r"kfree\(request->reply.data\);\n.*client_run", said), said
    found = re.findall(r"atchpoint 2: soft_ticks\n\nOld value = (\d+)\nNew value = (\d+)", said)
    assert [(int(old) + 1, int(old)) for old, _ in found] == [(int(new), int(old)) for old, new in found]
    assert len(found) == 2
    assert re.search(r"Temporary breakpoint 3, (0x\w+ in )?hash_bytes", said), said
    assert "$2 = 1" in said
    plain = kinst_run(SAMPLES[machine], *_WORDS)
    counts = [int(re.search(r"hash_bytes +(\d+)", one.stdout)[1]) for one in (plain, done)]  # type: ignore[index]
    assert counts[1] == counts[0] + 2


_BACKWARDS = (
    "break rpc_release",
    "continue",
    "disable 1",
    "watch soft_ticks",
    "continue",
    "continue",
    "reverse-continue",
    "reverse-continue",
    "enable 1",
    "reverse-continue",
    "delete",
    "tbreak hash_bytes",
    "continue",
    "next",
    "reverse-next",
    "reverse-stepi",
    "reverse-continue",
    "detach",
)


@needs_gdb
@pytest.mark.turns
@pytest.mark.parametrize("machine", SAMPLES)
def test_backwards(machine: str, tmp_path: Path) -> None:
    said, done = with_gdb(SAMPLES[machine], tmp_path, _BACKWARDS, "--clock", "icount")
    assert done.returncode == 0
    found = re.findall(r"atchpoint 2: soft_ticks\n\nOld value = (\d+)\nNew value = (\d+)", said)
    assert found == [("0", "1"), ("1", "2"), ("2", "1"), ("1", "0")]
    assert len(re.findall(r"^Breakpoint 1, (0x\w+ in )?rpc_release \(request=", said, re.MULTILINE)) == 2
    assert re.search(r"Temporary breakpoint 3, (0x\w+ in )?hash_bytes", said), said
    assert "No more reverse-execution history." in said
    assert done.stdout == kinst_run(SAMPLES[machine], "--clock", "icount").stdout


_TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial" / "overwritten.md"


@needs_gdb
def test_the_tutorial_shows_what_gdb_says(tmp_path: Path) -> None:
    """Each line that it shows, in this order."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", _TUTORIAL.read_text(), re.MULTILINE | re.DOTALL)
    shown = [line for kind, block in blocks if not kind for line in block.splitlines()]
    lines = [line for line in shown if line and not line.startswith("$ ")]
    commands = [line.removeprefix("(gdb) ") for line in lines if line.startswith("(gdb) ")]
    assert commands[0] == "target remote :1234"
    said, _ = with_gdb(SAMPLES["amd64"], tmp_path, commands[1:], "--clock", "icount")
    at = 0
    for line in lines:
        if not line.startswith("(gdb) "):
            assert line in said[at:], said
            at = said.index(line, at) + len(line)

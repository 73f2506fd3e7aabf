"""lldb itself at the door, with a script of its own commands."""

import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.runtime.debugger.samples import SAMPLES

_LLDB = shutil.which("lldb")
_WORDS = ("--clock", "icount", "-n", "fbt::hash_bytes:entry { @[probefunc] = count(); }")
_SCRIPT = (
    "register read pc",
    "breakpoint set -H -n rpc_release",
    "continue",
    "bt 2",
    "thread step-inst",
    "register read sp",
    "memory read --count 16 $sp",
    "breakpoint delete -f",
    "watchpoint set expression -s 4 -- &soft_ticks",
    "continue",
    "watchpoint delete -f",
    "process plugin packet monitor probes",
    "detach",
)


@pytest.mark.long
@pytest.mark.skipif(_LLDB is None, reason="needs lldb")
@pytest.mark.parametrize("machine", ["amd64", "arm64"])
def test_a_session(machine: str, tmp_path: Path) -> None:
    path, said = tmp_path / "door", list[str]()
    timeout = "settings set plugin.process.gdb-remote.packet-timeout 60"
    lines = [timeout, f"target create {SAMPLES[machine]}", f"process connect unix-connect://{path}", *_SCRIPT]

    def talk() -> None:
        while not path.exists():
            time.sleep(0.01)
        command = [str(_LLDB), "-x", "--batch", *(word for line in lines for word in ("-o", line))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        said.append(done.stdout + done.stderr)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    done = kinst_run(SAMPLES[machine], "--gdb", f"unix:{path}", "--wall-timeout", "120s", *_WORDS)
    thread.join(120)
    assert said, "lldb did not end"
    text, plain = said[0], kinst_run(SAMPLES[machine], *_WORDS)
    assert re.search(r"frame #0: 0x\w+ \S+`rpc_release\(request=0x\w+\) at rpc.c", text), text
    assert re.search(r"frame #1: 0x\w+ \S+`client_run", text), text
    assert "stop reason = instruction step into" in text, text
    assert re.search(r"Watchpoint 1 hit:\nold value: 0x0+\nnew value: 0x\w*1\n", text), text
    assert b"fbt:kernel-" in bytes.fromhex(re.findall(r"response: (\w+)", text)[-1]), text
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)

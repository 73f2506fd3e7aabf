"""kinst-run --top --on: a guest in QEMU on the screen of a real terminal."""

import re
import time
from pathlib import Path

import pytest

from tests.runtime.live.qemus import endless, ends, needs
from tests.runtime.top.tmux_session import TmuxSession
from tests.samples.machines import MACHINES


@pytest.mark.long
def test_a_kernel_from_its_start_to_its_end(tmp_path: Path) -> None:
    sample = MACHINES["riscv64"]
    needs(sample.qemu[0])
    with TmuxSession(tmp_path, "--top", "--on", "qemu -m 64M", sample.image) as top:
        screen = top.shows("ended: power-off")
        assert re.search(r"^ kernel-riscv64\.elf +ended: power-off .*/s +QEMU$", screen, re.MULTILINE)
        assert "kernel: all done, checksum" in screen  # the console follows its end
        assert "CPUs" not in screen
        top.press("s")
        assert re.search(r"│function +count +/s +share +trend", top.shows("by count"))
        top.press("q")
        status, printed = top.ended()
    assert status == 0
    assert re.search(r"^ +820 +\d+\.\d%  memset$", printed, re.MULTILINE)


def test_a_key_and_stop_pause_it(tmp_path: Path) -> None:
    name = f"kinst-{tmp_path.name}"
    program = "fbt::work:entry { @calls[probefunc] = count(); } fbt::work:entry /n++ == 300/ { stop(); }"
    words = ("-w", "--on", f"qemu -m 64M -name {name}", "-n", program)
    with TmuxSession(tmp_path, "--top", *words, endless(tmp_path)) as top:
        top.shows(r"endless\.elf +paused")  # by stop()
        counted = hits(top)
        (process,) = named(name)
        assert hits(top) == counted
        top.press("p")
        top.shows(r"endless\.elf +running")
        end = time.monotonic() + 60
        while hits(top) <= counted:
            assert time.monotonic() < end, top.shows("")
        top.press("p")
        top.shows(r"endless\.elf +paused")
        top.press("q")
        status, printed = top.ended()
    assert status == 0
    assert "stop() by fbt:endless:work:entry" in printed
    assert "the guest is paused: p lets it go on" in printed
    assert ends(process)


def hits(top: TmuxSession) -> int:
    """How many calls the screen shows."""
    found = re.search(r"([\d,]+) hits", top.shows(r"[\d,]+ hits"))
    assert found is not None
    return int(found[1].replace(",", ""))


def named(name: str) -> list[int]:
    """The QEMUs of a name."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            words = (process / "cmdline").read_bytes().split(b"\0") if (process / "cmdline").exists() else [b""]
            if words[0].startswith(b"qemu-system") and name.encode() in words:
                found.append(int(process.name))
    return found

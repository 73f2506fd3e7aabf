"""kinst-run --top on a real terminal, tmux's: what its screen shows, and what its keys do."""

import csv
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.gated import long_after_first
from tests.images import real_image
from tests.runtime.test_cli import COMMAND, ENVIRONMENT, SAMPLE
from tests.runtime.test_report import data
from tests.runtime.top.tmux_session import TmuxSession
from tests.samples.machines import MACHINES

LINES = MACHINES["riscv64"].image.parent / "kernel.out"
PROGRAM = """
fbt:::entry { @calls[probefunc] = count(); }
fbt::kmalloc:entry { @sizes[probefunc] = quantize(arg0); @average = avg(arg0); }
fbt::kmain:entry { printf("the main function of %s", execname); }
END { printf("that was all"); }
"""


def test_a_kernel_from_its_start_to_its_end(tmp_path: Path) -> None:
    with TmuxSession(tmp_path, "--top", SAMPLE) as top:
        screen = top.shows("ended: power-off")
        assert re.search(r"^ kernel-riscv64\.elf +ended: power-off .*/s +virt-riscv64$", screen, re.MULTILINE)
        assert LINES.read_text().splitlines()[-1] in screen  # the console follows its end
        assert re.search(r"││ *0 (runs|idle) +M +power_off", screen)
        top.press("s")
        screen = top.shows("by count")
        assert re.search(r"│function +count +/s +share +trend", screen)
        counts = [int(found.replace(",", "")) for found in re.findall(r"^│\w+ +([\d,]+) ", screen, re.MULTILINE)]
        assert counts == sorted(counts, reverse=True)
        assert len(counts) > 10
        top.press("/")
        top.text("vfs_*e*")
        top.shows(r"@calls: \d with vfs_\*e\*, by count")
        top.press("Enter", "e")
        top.shows(r"\d rows in kinst-top\.csv")
        top.press("?")
        top.shows("what has the focus")
        top.press("q", "q")  # at once: the second is not for the help, which the first has closed
        status, printed = top.ended()
    assert status == 0
    assert re.search(r"^6,\d{3} hits of \d\d probes in [\d.]+ s of the guest's time", printed, re.MULTILINE)
    assert "interrupted" not in printed
    assert re.search(r"^ +820 +13\.\d%  memset$", printed, re.MULTILINE)
    assert "ended: power-off" in printed
    with (tmp_path / "kinst-top.csv").open() as file:
        rows = {row["key"]: int(row["count"]) for row in csv.DictReader(file)}
    assert rows == {"vfs_create": 23, "vfs_report": 1, "vfs_read": 80, "vfs_write": 48, "vfs_get": 176} | rows
    assert all(name.startswith("vfs_") and "e" in name[4:] for name in rows)


def test_a_prompt_is_typed_at_and_the_guest_stands_still_when_it_is_told_to(tmp_path: Path) -> None:
    with TmuxSession(tmp_path, "--top", real_image("u-boot-arm64"), "--clock", "icount") as top:
        top.shows("stop autoboot")
        top.press("c")
        top.shows("Ctrl-A leaves")
        top.press("Enter")
        top.shows("=>")
        top.text("echo q and p are text; printenv baudrate")
        top.press("Enter")
        assert "baudrate=115200" in top.shows(r"^│baudrate=\d+")
        top.shows("^│q and p are text")
        top.press("C-a", "p")
        before = top.shows(r"paused +guest ([\d.]+) s")
        top.press("p")
        top.shows("running")
        top.press("p")
        time = re.search(r"guest ([\d.]+) s", top.shows("paused"))
        earlier = re.search(r"guest ([\d.]+) s", before)
        assert time is not None
        assert earlier is not None
        assert float(time[1]) >= float(earlier[1])
        top.press("C-c")  # also while it stands still
        status, printed = top.ended()
    assert status == 0
    assert re.search(r"interrupted: CPU 0 \w+", printed)


def test_a_program_its_aggregations_and_what_it_prints(tmp_path: Path) -> None:
    words = ("-q", "-n", PROGRAM, "--clock", "icount", "--cpus", "2", "--report", tmp_path / "t.html")
    with TmuxSession(tmp_path, "--top", SAMPLE, *words) as top:
        screen = top.shows("ended: power-off")
        assert "@calls 1/3: " in screen
        assert re.search(r"│key +count +/s guest +/s host", screen)
        assert re.search("│ *1 idle M", screen)
        top.press("n")
        top.shows("@sizes 2/3: 1")
        top.shows(r"^│kmalloc +196 .*[▁▂▃▄▅▆▇█]{3}")
        top.press("n")
        top.shows("@average 3/3: 1")
        top.shows(r"^│all +81,753 *│")
        top.press("o")
        top.shows(r"^│ +81753 ")
        top.press("q")
        status, printed = top.ended()
    assert status == 0
    assert re.search(r"the main function of kernel-riscv64\.elf\s*that was all", printed)
    assert re.search(r"^ +vfs_get +176$", printed, re.MULTILINE)
    assert [one["count"] > 0 for one in data(tmp_path / "t.html")["aggregations"]] == [True, True, True]


def test_a_small_terminal_without_colours(tmp_path: Path) -> None:
    with TmuxSession(tmp_path, "--top", SAMPLE, size=(50, 16), variables={"NO_COLOR": "1"}) as top:
        screen = top.shows("ended: power-off")
        assert re.search(r"│console_putc +757 ", screen)
        assert "kernel: all done" in screen
        assert all(len(line) <= 50 for line in screen.splitlines())
        assert colours(top) == set()
        os.kill(top.process(), signal.SIGTERM)
        status, printed = top.ended()
    assert status == 0
    assert "hits of" in printed


def colours(top: TmuxSession) -> set[tuple[int, ...]]:
    """The colours on the screen that are no grey."""
    shown = re.findall(r"[34]8;2;(\d+);(\d+);(\d+)", top.screen(has_colours=True))
    return {rgb for one in shown if len(set(rgb := tuple(map(int, one)))) > 1}


def test_colours_where_they_are_wanted(tmp_path: Path) -> None:
    with TmuxSession(tmp_path, "--top", SAMPLE, "--wall-timeout", "1") as top:
        top.shows("ended: ")
        assert colours(top)


@pytest.mark.parametrize("limits", long_after_first([(), ("--wall-timeout", "1")]))
def test_it_ends_when_it_is_asked_to_though_its_terminal_has_gone(limits: tuple[str, ...]) -> None:
    ours, its = pty.openpty()
    command, variables = [*COMMAND, "--top", str(SAMPLE), *limits], {**ENVIRONMENT, "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=variables) as run:
        os.close(its)
        shown = b""
        while b"share" not in shown:  # the heading of the table: the screen is there
            shown += os.read(ours, 1 << 16)
        os.close(ours)
        run.send_signal(signal.SIGTERM)
        try:
            assert run.wait(60) >= 0
        finally:
            run.kill()


def test_without_a_terminal_and_where_there_is_nothing_to_watch() -> None:
    for words, why in (
        ((SAMPLE,), "needs a terminal"),
        ((), "no image and no program|give an IMAGE"),
        (("-n", "BEGIN"), "give an IMAGE"),
        ((SAMPLE, "-l"), "not with -l"),
        ((SAMPLE, "--format", "json"), "not with -l, -e, -d or --format"),
        ((SAMPLE, "--read", "dump"), "--read runs nothing"),
    ):
        result = kinst_run("--top", *words)
        assert result.returncode == 2
        assert result.stdout == ""
        assert re.fullmatch(rf"kinst-run: --top: .*({why}).*\n", result.stderr), result.stderr

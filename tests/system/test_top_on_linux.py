"""kinst-run --top on Debian's kernel: the tasks that its own shell starts, on the screen where that is typed at."""

import re
from pathlib import Path

import pytest

from tests.images import real_image
from tests.runtime.top.tmux_session import TmuxSession
from tests.system.test_shell import LINUX, shell


@pytest.mark.long
@pytest.mark.parametrize("name", LINUX)
def test_what_a_shell_starts_is_among_the_tasks(name: str, tmp_path: Path) -> None:
    initrd = shell(name.removeprefix("linux-"), tmp_path)
    options = ("--memory", "256m", "--initrd", initrd)
    with TmuxSession(tmp_path, "--top", real_image(name), *options, size=(150, 60)) as top:
        top.shows(r"^│.*# *│?$")
        top.press("c")
        top.shows("Ctrl-A leaves")
        top.text("yes >/dev/null &")
        top.press("Enter")
        screen = top.shows(r"\d+ R +[\d.]+s +\d+%  yes")
        assert re.search(r"│ *0 runs (ring|EL|U|S)", screen)
        assert re.search(r"\bS +[\d.]+s +\d+%  kthreadd", screen)
        top.press("C-a", "q")
        status, printed = top.ended()
    assert status == 0
    assert re.search(r"hits of [\d,]+ probes", printed)

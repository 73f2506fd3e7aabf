"""The console's last line as a terminal shows it, from what shells and boot loaders print."""

import pytest

from kinst.runtime.machine.console_line import ConsoleLine


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (b"", b""),
        (b"one\r\ntwo", b"two"),
        (b"one\r\n", b""),
        (b"any key:  2 \b\b\b 1 ", b"any key:  1 "),
        (b"progress 10%\rprogress 20%", b"progress 20%"),
        (b"longer\rshort", b"shortr"),
        (b"~ # \x1b[6n", b"~ # "),
        (b"\x1b[1;32mroot\x1b[0m# ", b"root# "),
        (b"# lss\b\b\x1b[J", b"# l"),
        (b"# lss\r\x1b[K# ls", b"# ls"),
        (b"\x07bell\x1bc", b"bell"),
        (b"x" * 5000, b"x" * (5000 - 2048)),
    ],
)
def test_what_is_shown(printed: bytes, shown: bytes) -> None:
    line = ConsoleLine()
    line.add(printed)
    assert line.text == shown


@pytest.mark.parametrize("cut", range(1, 9))
def test_it_may_come_in_any_pieces(cut: int) -> None:
    text = b"a\n# \x1b[12;4mb\x1b[0m"
    line = ConsoleLine()
    for start in range(0, len(text), cut):
        line.add(text[start : start + cut])
    assert line.text == b"# b"

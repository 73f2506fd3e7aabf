"""The console's line on a terminal makes way for records, and comes back below them."""

import pytest

from kinst.runtime.consumer.console_lines import LiveLines, WholeLines


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> bytearray:
    monkeypatch.setenv("COLUMNS", "10")
    return bytearray()


def test_a_line_makes_way_and_comes_back(written: bytearray) -> None:
    lines = LiveLines(written.extend)
    lines.show(b"one\r\n# ls")
    lines.hide()
    lines.hide()
    written += b"record\n"
    lines.unhide()
    lines.unhide()
    lines.show(b"\r\n")
    lines.hide()
    assert written == b"one\r\n# ls\r    \rrecord\n# ls\r\n"


def test_a_line_that_is_wider_than_the_terminal_stays(written: bytearray) -> None:
    lines = LiveLines(written.extend)
    lines.show(b"# 0123456789")
    lines.hide()
    assert written == b"# 0123456789\n"


def test_the_last_line_is_ended(written: bytearray) -> None:
    lines = LiveLines(written.extend)
    lines.show(b"# ")
    lines.finish()
    lines.finish()
    assert written == b"# \n"


def test_a_line_that_does_not_end_is_not_kept() -> None:
    written = list[bytes]()
    lines = WholeLines(written.append)
    lines.show(b"begun")
    assert written == []
    lines.show(bytes(1 << 17))
    assert written == [b"begun" + bytes(1 << 17)]
    lines.show(b"\nnext\nrest")
    lines.finish()
    lines.finish()
    assert written[1:] == [b"\nnext\n", b"rest\n"]


def test_a_line_of_which_all_was_written_is_ended() -> None:
    written = list[bytes]()
    lines = WholeLines(written.append)
    lines.show(bytes(1 << 17))
    lines.finish()
    assert written == [bytes(1 << 17), b"\n"]

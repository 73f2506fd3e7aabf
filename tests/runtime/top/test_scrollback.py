"""The end of a console as lines, and messages that wait for the screen to go."""

from kinst.runtime.top.scrollback import Notes, Scrollback


def test_lines_as_a_terminal_shows_them() -> None:
    printed = Scrollback()
    for piece in (b"one\r\n\x1b[3", b"1mred\x1b[0m\ntypo", b"\b\b\bry \n=> ", b"a\tb"):
        printed.write(piece)
    assert printed.lines() == ["one", "red", "try ", "=> a       b"]
    assert printed.changes == 4


def test_what_a_terminal_would_obey_is_shown() -> None:
    printed = Scrollback()
    printed.write("\x85\xff \u202e".encode("latin-1", "ignore") + "\u202e".encode() + b"\xff\n")
    assert printed.lines()[0].isprintable()


def test_the_last_lines_are_kept() -> None:
    printed = Scrollback()
    printed.write(b"".join(b"%d\n" % number for number in range(20_000)))
    lines = printed.lines()
    assert (lines[-2:], len(lines)) == (["19999", ""], 5001)


def test_messages_wait_while_the_screen_is_shown() -> None:
    shown: list[str] = []
    notes = Notes(shown.append)
    notes.line("before")
    notes.hold()
    notes.line("meanwhile")
    assert shown == ["kinst-run: before\n"]
    notes.release()
    notes.write("after\n")
    assert shown == ["kinst-run: before\n", "kinst-run: meanwhile\n", "after\n"]

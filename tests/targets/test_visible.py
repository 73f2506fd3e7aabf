"""Text that a terminal only shows."""

import pytest

from kinst.targets.visible import text_of, visible, visible_bytes, visible_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("vm_fault", "vm_fault"),
        ("größe π 関数", "größe π 関数"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\tc\r", "a\\x0ab\\x09c\\x0d"),
        ("\x9b31m\x7f\0", "\\x9b31m\\x7f\\x00"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("\udc9b", "\\x9b"),
        ("\U000e0001", "\\U000e0001"),
        ("back\\slash", "back\\slash"),
    ],
)
def test_names(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


def test_lines_keep_their_ends_and_columns() -> None:
    assert visible_lines("a\tb\x1b\nc\r\n") == "a\tb\\x1b\nc\\x0d\n"


def test_bytes_that_are_no_utf8_are_escaped() -> None:
    assert visible_bytes("ü\x9b".encode() + b"\x9b\xff\n\x07") == "ü".encode() + b"\\x9b\\x9b\\xff\n\\x07"
    assert text_of(b"f\xff\x1b\n") == "f\\xff\\x1b\\x0a"

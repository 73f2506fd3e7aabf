"""Regular expressions for the guest's console: what they find, how long they take, and what is none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.runtime.input.expression import expression
from kinst.targets.errors import UsageError
from tests.fuzz.engine import limited

PATTERNS = (
    "login: ", "login: $", "^# $", r"\[ *\d+\.\d+\] ", "a|b", "(?i)PANIC", "a{2,3}b", "[^a-c]", r"\bab\b", r"\x00", ".",
)  # fmt: skip
LINES = (
    "",
    "# ",
    "# #",
    "root login: ",
    "login: x",
    "[  12.5] ab",
    "aab",
    "aaaab",
    "panic",
    "\0",
    "\xff",
    "ab-",
    "cab",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_found_is_what_python_finds(pattern: str) -> None:
    ours, theirs = expression("--until", pattern), re.compile(pattern.encode())
    for line in (one.encode("latin-1") for one in LINES):
        assert ours.is_in(line) == bool(theirs.search(line)), line


@given(st.text(alphabet="ab #:-\xe9\udcff", max_size=3), st.binary(max_size=8))
def test_text_without_operators_is_looked_for_as_it_is(text: str, line: bytes) -> None:
    wanted = text.encode(errors="surrogateescape")
    assert expression("--until", text).is_in(line + wanted)
    assert expression("--until", text).is_in(line) == (wanted in line)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*)*b", "a?" * 60 + "a" * 60])
def test_no_line_takes_long(pattern: str) -> None:
    found = expression("--until", pattern)
    with limited(10):
        assert not found.is_in(b"a" * 59 + b"c" * 5000)


@pytest.mark.parametrize("pattern", ["[", "(", "*", r"(a)\1", "a(?=b)", "(?<!a)b", "a{1001}"])
def test_what_is_no_expression_is_told_in_one_line(pattern: str) -> None:
    with pytest.raises(UsageError, match=f"^--until {re.escape(pattern)}: not a regular expression of RE2: .+$"):
        expression("--until", pattern)


def test_expressions_of_the_same_text_are_the_same() -> None:
    assert expression("--until", "a.b") == expression("--prompt", "a.b") != expression("--until", "a.c")

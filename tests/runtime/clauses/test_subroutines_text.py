"""D's functions on strings, against direct definitions and against C's library."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from posixpath import normpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.runtime.clauses.text_functions import (
    NULL,
    Tokens,
    basename,
    cleanpath,
    dirname,
    index,
    lltostr,
    rindex,
    signed,
    strchr,
    strjoin,
    strrchr,
    strstr,
    strtoll,
    substr,
)
from kinst.runtime.trap.faults import Fault, FaultKind

SIZE = 256
TEXTS = st.lists(st.sampled_from(b"ab/. ,"), max_size=12).map(bytes)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@given(TEXTS, st.sampled_from(b"ab/z"))
def test_strchr_and_strrchr(text: bytes, character: int) -> None:
    places = [at for at in range(len(text)) if text[at] == character]

    assert strchr(text, character) == (text[places[0] :] if places else NULL)
    assert strrchr(text, character) == (text[places[-1] :] if places else NULL)
    assert strchr(text, character + 0x100) == strchr(text, character)


@given(TEXTS, TEXTS, st.integers(-3, 16))
def test_index_finds_as_perl(text: bytes, wanted: bytes, position: int) -> None:
    """perldoc -f index: a position before the start or beyond the end is taken for the nearest in the string."""
    start = min(max(position, 0), len(text))
    places = [at for at in range(len(text) + 1) if text[at : at + len(wanted)] == wanted]

    assert index(text, wanted, position) == next((at for at in places if at >= start), -1)
    assert index(text, wanted) == (places[0] if places else -1)
    assert strstr(text, wanted) == (text[places[0] :] if places else NULL)


@given(TEXTS, TEXTS.filter(bool), st.integers(-3, 16))
def test_rindex_finds_as_perl(text: bytes, wanted: bytes, position: int) -> None:
    places = [at for at in range(len(text) + 1) if text[at : at + len(wanted)] == wanted]

    assert rindex(text, wanted, position) == next((at for at in reversed(places) if at <= position), -1)
    assert rindex(text, wanted) == (places[-1] if places else -1)


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (index, (b"foo", b"", 10), 3),
        (index, (b"foo", b"", -10), 0),
        (index, (b"", b""), 0),
        (index, (b"", b"", 4), 0),
        (index, (b"foo", b"o", 3), -1),
        (index, (b"CANADA", b"DA"), 4),
        (rindex, (b"foo", b""), 3),
        (rindex, (b"foo", b"", -1), 0),
        (rindex, (b"foo", b"o", -1), -1),
        (rindex, (b"foo", b"", 1), 1),
        (rindex, (b"", b""), 0),
        (rindex, (b"foo", b"foo", 100), 0),
    ],
)
def test_edges_of_index(function: Callable[..., int], arguments: tuple[object, ...], expected: int) -> None:
    assert function(*arguments) == expected


@given(st.binary(max_size=10).filter(lambda text: 0 not in text), st.integers(-14, 14), st.integers(-14, 14))
def test_substr_takes_as_perl(text: bytes, start: int, length: int) -> None:
    """The characters whose place is in the range that start and length give, each looked at."""
    begin = start if start >= 0 else start + len(text)
    end = begin + length if length >= 0 else len(text) + length
    inside = bytes(text[at] for at in range(len(text)) if begin <= at < end)

    # What lies all before the text, or begins before it and stops short of its end, is nothing.
    expected = b"" if begin < 0 and length <= 0 else inside
    assert substr(text, start, length, SIZE) == expected


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (1, None, b"oobar"),
        (-3, None, b"bar"),
        (-10, 6, b"fo"),
        (0, -1, b"fooba"),
        (6, None, b""),
        (5, 1 << 62, b"r"),
        (-(1 << 63), None, b""),
        (-8, None, b"foobar"),
    ],
)
def test_edges_of_substr(start: int, length: int | None, expected: bytes) -> None:
    assert substr(b"foobar", start, length, SIZE) == expected


def test_joined_text_must_fit() -> None:
    assert strjoin(b"a" * 100, b"b" * 155, SIZE) == b"a" * 100 + b"b" * 155
    with pytest.raises(Fault) as caught:
        strjoin(b"a" * 100, b"b" * 156, SIZE)
    assert caught.value.kind is FaultKind.NOSCRATCH


# -- paths ------------------------------------------------------------------------------------------------------------

LIBGEN = """
#include <libgen.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    static char line[256], copy[256];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\\n")] = 0;
        puts(basename(strcpy(copy, line)));
        puts(dirname(strcpy(copy, line)));
    }
}
"""


def test_basename_and_dirname_are_those_of_posix(tmp_path: Path) -> None:
    numbers = random.Random(5)
    paths = [
        "",
        "/",
        "//",
        "a",
        "a/",
        "/a",
        *("".join(numbers.choices("ab//.", k=numbers.randint(1, 9))) for _ in range(500)),
    ]
    (tmp_path / "names.c").write_text(LIBGEN)
    subprocess.run(["gcc", "-w", "-o", tmp_path / "names", tmp_path / "names.c"], check=True)
    run = subprocess.run(
        [tmp_path / "names"], input="\n".join(paths) + "\n", check=True, capture_output=True, text=True
    )
    names = ["/" if name == "//" else name for name in run.stdout.splitlines()]  # POSIX leaves "//" open

    assert [basename(path.encode()).decode() for path in paths] == names[::2]
    assert [dirname(path.encode()).decode() for path in paths] == names[1::2]


@given(st.lists(st.sampled_from([b"a", b"bc", b"..", b".", b"", b"...", b".x", b"..y"]), max_size=8))
def test_clean_path_is_the_normal_one(components: list[bytes]) -> None:
    """Of absolute paths; a component in the end keeps what a trailing dot means out of it."""
    path = b"/" + b"/".join([*components, b"end"])

    assert cleanpath(path, SIZE) == normpath(b"/" + path.lstrip(b"/"))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"", b""),
        (b"/", b"/"),
        (b"//", b"/"),
        (b"a//b", b"a/b"),
        (b"/a/.", b"/a/."),
        (b"/a/./", b"/a/"),
        (b"/a/..", b"/"),
        (b"/a/b/..", b"/a/"),
        (b"/a/b/../", b"/a/"),
        (b"/..", b"/"),
        (b"/../a", b"/a"),
        (b"a/../b", b"/b"),
        (b"abc/..", b"a"),
        (b"../a", b"../a"),
        (b"./a", b"./a"),
    ],
)
def test_edges_of_cleanpath(path: bytes, expected: bytes) -> None:
    assert cleanpath(path, SIZE) == expected


def test_clean_path_stops_before_the_string_is_full() -> None:
    assert cleanpath(b"a" * 20, 16) == b"a" * 11
    assert cleanpath(b"/" + b"a" * 20, 16) == b"/" + b"a" * 10
    assert cleanpath(b"a" * 10 + b"/..bcd", 16) == b"a" * 10 + b"/..b"
    assert cleanpath(b"a" * 10 + b"/../" + b"b" * 20, 16) == b"/" + b"b" * 10


# -- numbers ----------------------------------------------------------------------------------------------------------


@given(NUMBERS)
def test_lltostr_in_c_s_bases(value: int) -> None:
    word = value & (1 << 64) - 1

    assert lltostr(value) == str(value).encode()
    assert lltostr(value, 16) == hex(word).encode()
    assert lltostr(value, 8) == (oct(word).replace("o", "") if word else "0").encode()
    assert lltostr(value, 2) == f"{word:b}".encode()
    assert lltostr(word) == lltostr(value)


@given(NUMBERS, st.integers(2, 36))
def test_lltostr_and_strtoll_undo_each_other(value: int, base: int) -> None:
    text = lltostr(value, base)

    assert strtoll(text, base) == value
    assert strtoll(text.upper(), base) == value
    assert int(text, base) & (1 << 64) - 1 == value & (1 << 64) - 1


@given(st.text(alphabet=" \t+-0123456789abcdefxXzZ\n", max_size=12), st.sampled_from([2, 8, 10, 16, 36]))
def test_strtoll_reads_by_hand(text: str, base: int) -> None:
    rest = text.lstrip(" \t")
    sign = -1 if rest.startswith("-") else 1
    rest = rest[1:] if rest[:1] in ("+", "-") else rest
    if base == 16 and rest[:2].lower() == "0x" and rest[2:3].lower() in tuple("0123456789abcdef"):
        rest = rest[2:]
    value = 0
    for character in rest:
        digit = DIGITS.find(character.lower())
        if not 0 <= digit < base:
            break
        value = value * base + digit

    assert strtoll(text.encode(), base) == signed(sign * value)


def test_strtoll_as_c_does(tmp_path: Path) -> None:
    numbers = random.Random(9)
    bases = (2, 7, 8, 10, 16, 36)
    rows = [
        (base, "".join(numbers.choices(" +-0123xfz9", k=numbers.randint(1, 11)))) for base in bases for _ in range(200)
    ]
    (tmp_path / "read.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { int base; char text[64];"
        ' while (scanf("%d;%63[^\\n]", &base, text) == 2) printf("%lld\\n", strtoll(text, 0, base)); }'
    )
    subprocess.run(["gcc", "-w", "-o", tmp_path / "read", tmp_path / "read.c"], check=True)
    lines = "".join(f"{base};{text}\n" for base, text in rows)
    run = subprocess.run([tmp_path / "read"], input=lines, check=True, capture_output=True, text=True)

    assert [strtoll(text.encode(), base) for base, text in rows] == [int(line) for line in run.stdout.split()]


@pytest.mark.parametrize("base", [-1, 0, 1, 37, 1 << 40])
def test_there_are_bases_from_2_to_36(base: int) -> None:
    for call in (lambda: lltostr(1, base), lambda: strtoll(b"1", base)):
        with pytest.raises(Fault) as caught:
            call()
        assert caught.value.kind is FaultKind.ILLOP


def test_numbers_overflow_in_64_bits() -> None:
    assert strtoll(b"9223372036854775808") == -(1 << 63)
    assert strtoll(b"18446744073709551616") == 0
    assert strtoll(b"-9223372036854775809") == (1 << 63) - 1
    assert lltostr(-(1 << 63)) == b"-9223372036854775808"
    assert strtoll(b"7" * 5000) == signed(int("7" * 2500) * 10**2500 + int("7" * 2500))


# -- tokens -----------------------------------------------------------------------------------------------------------


@given(TEXTS, st.sampled_from([b",", b"/.", b"", b"ab", b" ,/.ab"]))
def test_tokens_are_what_is_between_delimiters(text: bytes, delimiters: bytes) -> None:
    expected = [bytes(word) for word in split(text, delimiters)]
    tokens = Tokens()

    found = [tokens.next(text, delimiters, SIZE)]
    while found[-1]:
        found.append(tokens.next(NULL, delimiters, SIZE))

    assert found == [*expected, NULL]
    assert tokens.next(NULL, delimiters, SIZE) == NULL


def split(text: bytes, delimiters: bytes) -> list[list[int]]:
    words: list[list[int]] = [[]]
    for byte in text:
        if byte in delimiters:
            words.append([])
        else:
            words[-1].append(byte)
    return [word for word in words if word]


def test_delimiters_may_change() -> None:
    tokens = Tokens()

    assert tokens.next(b"key=value; rest", b"=", SIZE) == b"key"
    assert tokens.next(NULL, b"=;", SIZE) == b"value"
    assert tokens.next(NULL, b"", SIZE) == b"; rest"
    assert tokens.next(NULL, b";", SIZE) == NULL
    assert tokens.next(b"a]b^c-d\\e", b"]^-\\", SIZE) == b"a"
    assert [tokens.next(NULL, b"]^-\\", SIZE) for _ in range(4)] == [b"b", b"c", b"d", b"e"]


@pytest.mark.parametrize(("size", "expected"), [(8, [b"abcdefg", b"h", b"ij"]), (9, [b"abcdefgh", b"ij"])])
def test_a_long_token_comes_in_pieces(size: int, expected: list[bytes]) -> None:
    tokens = Tokens()
    texts: list[bytes | int] = [b"abcdefgh,ij", *[NULL] * len(expected)]
    assert [tokens.next(text, b",", size) for text in texts] == [*expected, NULL]


# -- large texts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda size: strtoll(b"9" * size),
        lambda size: cleanpath(b"/a/../b/." * (size // 9), size * 2),
        lambda size: basename(b"/" * size),
        lambda size: dirname(b"a/" * (size // 2)),
        lambda size: Tokens().next(b"," * size, b",", size),
        lambda size: substr(b"a" * size, -5, None, size + 1),
        lambda size: rindex(b"a" * size, b"b"),
    ],
)
def test_a_megabyte_takes_no_time(call: Callable[[int], object]) -> None:
    """Linear: quadratic work on this would take minutes."""
    call(1 << 20)

"""printf's output. The C library's printf is the oracle where libdtrace uses it."""

import ctypes
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinst.runtime.clauses.environment import Stack, SymbolName, Value
from kinst.runtime.consumer import printf
from kinst.runtime.dlang import formats
from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.types import DType
from kinst.targets.c_types import Array, Float, Integer

libc = ctypes.CDLL(None)


class Names:
    """Symbols: one function at 0x1000."""

    def object_start(self, address: int, kind: str) -> int:
        return 0x1000 if kind == "sym" else address

    def describe(self, address: int, kind: str) -> str:
        if kind in ("mod", "umod"):
            return "kernel"
        offset = address - 0x1000
        if not 0 <= offset < 0x100:
            return f"{address:#x}"
        return "kernel`main" + (f"+{offset:#x}" if offset else "")


def show(text: bytes, *arguments: tuple[DType, Value]) -> bytes:
    kinds = [kind for kind, _ in arguments]
    parsed = formats.parse(text)
    formats.check_printf(parsed, kinds, function="printf")
    return printf.render(parsed, kinds, [value for _, value in arguments], Names())


def c_printf(text: str, *arguments: object) -> bytes:
    buffer = ctypes.create_string_buffer(1 << 12)
    libc.snprintf(buffer, len(buffer), text.encode(), *arguments)
    return buffer.value


@settings(max_examples=150)
@given(
    marks=st.lists(st.sampled_from("#0-+ '"), max_size=3).map("".join),
    width=st.sampled_from(["", "1", "7", "20"]),
    precision=st.sampled_from(["", ".1", ".6", ".22"]),
    letter=st.sampled_from("diuoxX"),
    kind=st.sampled_from([types.INT8, types.SHORT, types.INT, types.INT64, types.UCHAR, types.UINT16, types.UINT]),
    value=st.sampled_from([0, 1, -1, 7, 127, -128, 255, 65535, 2**31 - 1, -(2**31), 2**32 + 5, 2**63 - 1, -(2**63)]),
)
def test_numbers_as_c_prints_them(
    marks: str, width: str, precision: str, letter: str, kind: Integer, value: int
) -> None:
    """A value is of its type's size; then %d and its kin print it with as many bits, %i with a sign in any case."""
    marks = marks.replace("0", "") if "-" in marks else marks  # of both libdtrace takes the later
    plain = types.bare(kind)
    assert isinstance(plain, Integer)
    bits = 8 * plain.size
    value &= (1 << bits) - 1
    if plain.is_signed and value >> bits - 1:
        value -= 1 << bits
    if letter == "i" and value >> bits - 1 == 1:
        value -= 1 << bits
    is_decimal = letter in "di"
    passed = value if is_decimal else value & (1 << bits) - 1
    c_letter = "u" if letter == "d" and not plain.is_signed else letter
    expected = c_printf(f"%{marks}{width}{precision}ll{c_letter}", ctypes.c_longlong(passed))
    assert show(f"%{marks}{width}{precision}{letter}".encode(), (kind, value)) == expected


@given(
    marks=st.sampled_from(["", "-", "+", " ", "#", "0"]),
    width=st.sampled_from(["", "3", "14"]),
    precision=st.sampled_from(["", ".1", ".3"]),
    letter=st.sampled_from("eEfgG"),
    value=st.floats(allow_nan=False),
)
def test_floats_as_c_prints_them(marks: str, width: str, precision: str, letter: str, value: float) -> None:
    text = f"%{marks}{width}{precision}{letter}"
    traced = bytes(ctypes.c_double(value))
    if "0" in marks and value in (float("inf"), float("-inf")):
        return  # C pads infinities with blanks
    assert show(text.encode(), (Float("double", 8), traced)) == c_printf(text, ctypes.c_double(value))


def test_floats_of_other_sizes() -> None:
    assert show(b"%.2f", (Float("float", 4), bytes(ctypes.c_float(1.5)))) == b"1.50"
    extended = ((16383 + 1) << 64 | 0xC0 << 56).to_bytes(16, "little")
    quad = (((16383 + 1) << 112) | (1 << 111)).to_bytes(16, "little")
    minus_one = ((1 << 15 | 16383) << 64 | 1 << 63).to_bytes(16, "little")
    for data, expected in ((extended, b"3.0"), (quad, b"3.0"), (bytes(16), b"0.0"), (minus_one, b"-1.0")):
        assert show(b"%.1Lf", (Float("long double", 16), data)) == expected


def test_values_wider_than_their_type_are_cut() -> None:
    assert show(b"%d %u %x", (types.INT, 2**32 + 7), (types.INT, -1), (types.SHORT, -1)) == b"7 4294967295 ffff"


def test_sign_is_that_of_the_type() -> None:
    assert show(b"%d %i", (types.UINT64, 2**64 - 1), (types.INT64, -1)) == b"18446744073709551615 -1"


def test_pointers_have_no_prefix() -> None:
    assert show(b"%p %?p|%#p", *[(types.VOID_POINTER, 0xFFFF8000)] * 3) == b"ffff8000         ffff8000|0xffff8000"


def test_strings() -> None:
    field = Array(types.CHAR, 8)
    text = show(b"[%s] [%-6s] [%6s] [%.2s] [%s]", *[(types.STRING, b"abc")] * 4, (field, b"ab\0junk!"))
    assert text == b"[abc] [abc   ] [   abc] [ab] [ab]"
    assert show(b"%.0s", (types.STRING, b"abc")) == b"abc"  # a precision of 0 is none


def test_characters() -> None:
    assert show(b"%c%3c%-3c|%c", (types.INT, 65), (types.CHAR, 66), (types.INT, 0x143), (types.INT, 0)) == b"A  BC  |\0"
    assert show(b"%C %C %C", (types.INT, 10), (types.CHAR, 34), (types.INT, 1)) == rb"\n \" \001"
    assert show(b"%wc", (types.INT, 0x20AC)) == "€".encode()


def test_escaped_strings() -> None:
    assert show(b"%S", (types.STRING, b'a\t"b"\\\x7f\xff\n')) == rb"a\t\"b\"\\\177\377\n"


def test_wide_strings() -> None:
    assert show(b"%ls", (Array(types.INT, 4), "h€\0x".encode("utf-32-le"))) == "h€".encode()


def test_widths_from_arguments() -> None:
    integer = types.INT
    assert show(b"%*d|", (integer, 5), (integer, 3)) == b"    3|"
    assert show(b"%*d|", (integer, -5), (integer, 3)) == b"3    |"
    assert show(b"%-*d|%%|%.*s|", (integer, 5), (integer, 3), (integer, 2), (types.STRING, b"abc")) == b"3    |%|ab|"
    assert show(b"%*.*x|", (integer, 6), (integer, 3), (integer, 10)) == b"   00a|"
    assert show(b"%.*s|", (integer, -1), (types.STRING, b"abc")) == b"abc|"


def test_a_width_may_be_large_but_not_hostile() -> None:
    assert show(b"%*d", (types.INT, 70_000), (types.INT, 3)) == b"3".rjust(70_000)
    most = formats.MOST_COLUMNS
    assert len(show(b"%-*d", (types.INT, most), (types.INT, 3))) == most
    told = b"<%d columns: at most %d can be printed>"
    assert show(b"[%*d]", (types.INT, 2**31 - 1), (types.INT, 3)) == b"[" + told % (2**31 - 1, most) + b"]"
    assert show(b"%.*d", (types.INT, most + 1), (types.INT, 3)) == told % (most + 1, most)
    assert show(b"%.*s", (types.INT, most + 1), (types.STRING, b"abc")) == b"abc"


def test_percent_and_text_alone() -> None:
    assert show(b"100%% of it\n") == b"100% of it\n"


def test_a_long_format_takes_time_in_proportion() -> None:
    assert show(b"%%" * 50_000) == b"%" * 50_000  # what is quadratic would take minutes


def test_symbols() -> None:
    assert show(b"%a %A %10a|", (types.UINT64, 0x1010), (types.UINT64, 0x1000), (types.UINT64, 16)) == (
        b"kernel`main+0x10 kernel`main       0x10|"
    )
    assert show(b"%a", (types.SYMBOL, SymbolName("mod", 0x1000))) == b"kernel"


def test_stacks() -> None:
    stack = Stack((0x1010, 0x20), 20)
    assert show(b"%k", (types.STACK, stack)) == b"\nkernel`main+0x10\n0x20\n"
    assert show(b"%-4k", (types.STACK, stack)) == b"\n    kernel`main+0x10\n    0x20\n"
    assert show(b"%6k", (types.STACK, stack)) == b"\nkernel`main+0x10\n  0x20\n"


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_times() -> None:
    at = 1062577421 * 1_000_000_000 + 999_999_999
    assert show(b"%Y|%22Y|%T", *[(types.INT64, at)] * 3) == (
        b"2003 Sep  3 10:23:41|  2003 Sep  3 10:23:41|Wed, 03 Sep 2003 10:23:41 CEST"
    )


def test_ports() -> None:
    assert show(b"%P", (types.UINT16, 0xFFEE)) == str(0xEEFF).encode()


def row(text: bytes, keys: tuple[tuple[DType, Value], ...], *values: printf.AggregateValue) -> bytes:
    kinds = [kind for kind, _ in keys]
    parsed = formats.parse(text)
    formats.check_printa(parsed, kinds, is_count=False)
    return printf.printa_renderer(parsed, kinds, Names())([value for _, value in keys], values)


def test_printa_rows() -> None:
    keys = ((types.STRING, b"open"), (types.INT, 3))
    assert row(b"%-8s %d %@5d\n", keys, 12) == b"open     3    12\n"
    assert row(b"%@d %s\n", keys, -12) == b"-12 open\n"
    assert row(b"%@x|%@u\n", keys, -1) == b"ffffffffffffffff|18446744073709551615\n"
    assert row(b"%@d %@d %@d %%\n", keys, 1, 2) == b"1 2 2 %\n"
    assert row(b"%*d %@d\n", ((types.INT, 4), (types.INT, 7)), 1) == b"   7 1\n"


def test_distributions_come_from_whoever_draws_them() -> None:
    assert row(b"%s:%@d!", ((types.STRING, b"k"),), lambda: b"\n(drawn)\n") == b"k:\n(drawn)\n!"

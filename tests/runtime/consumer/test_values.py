"""trace(), tracemem(), stacks and symbols, byte for byte."""

import pytest

from kinst.runtime.clauses.environment import Stack, SymbolName
from kinst.runtime.dlang import program
from kinst.runtime.dlang.types.types import CHAR, INT, LONG, SHORT, STRING, SYMBOL, UCHAR, UINT, ULONG, DType
from kinst.targets.c_types import Array, Pointer
from tests.runtime.consumer.recording import expression, printed, trace

HEX_TITLE = b"\n             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n"


@pytest.mark.parametrize(
    ("kind", "value", "loud", "quiet"),
    [
        (LONG, -5, b"               -5", b"-5"),
        (ULONG, (1 << 64) - 1, b"               -1", b"-1"),
        (Pointer(INT), 0x1000, b"             4096", b"4096"),
        (INT, 7, b"        7", b"7"),
        (INT, (1 << 31) + 1, b" -2147483647", b"-2147483647"),
        (UINT, 0xFFFFFFFF, b"       -1", b"-1"),
        (SHORT, -1, b" 65535", b"65535"),
        (SHORT, 3, b"     3", b"3"),
        (CHAR, -1, b" 255", b"255"),
        (UCHAR, 3, b"   3", b"3"),
        (STRING, b"abc", b"  abc" + b" " * 30, b"abc"),
        (STRING, b"", b" " * 35, b""),
        (STRING, b"x" * 40, b"  " + b"x" * 40, b"x" * 40),
        (STRING, b"a\tb\n", b"  a\tb\n" + b" " * 29, b"a\tb\n"),
        (Array(CHAR, 6), b"abc\0\0\0", b"  abc" + b" " * 30, b"abc"),
        (Array(CHAR, 3), b"abc", b"  abc" + b" " * 30, b"abc"),
        (Array(CHAR, 4), b"abc\0", b"  6513249", b"6513249"),  # libdtrace goes by the size
    ],
)
def test_trace(kind: DType, value: object, loud: bytes, quiet: bytes) -> None:
    assert printed(trace(kind), value) == loud
    assert printed(trace(kind), value, quiet=None) == quiet


def test_bytes_that_are_no_text_are_dumped() -> None:
    dump = HEX_TITLE + (
        b"         0: 01 02 61 62 7f ff 20 7e 00 00 00 00 00 00 00 00  ..ab.. ~........\n"
        b"        10: 63" + b"   " * 15 + b"  c\n"
    )
    data = bytes.fromhex("010261627fff207e000000000000000063")

    assert printed(trace(Array(UCHAR, 17)), data) == dump
    assert printed(trace(Array(UCHAR, 17)), data, quiet=None) == dump
    assert printed(program.TraceMemory(expression(LONG), 17, None), data) == dump
    assert printed(program.PrintMemory(17, expression(LONG)), data) == dump


def test_tracemem_dumps_text_too() -> None:
    assert printed(program.TraceMemory(expression(LONG), 2, None), b"hi").endswith(b"  hi\n")


def test_a_string_with_other_bytes_is_dumped_with_its_whole_buffer() -> None:
    dump = printed(trace(STRING), b"\x01", strsize="20")

    assert dump.count(b"\n") == 4
    assert dump.endswith(b"        10: 00 00 00 00" + b"   " * 12 + b"  ....\n")


def test_rawbytes() -> None:
    assert printed(trace(STRING), b"ab", rawbytes=None, strsize="2") == HEX_TITLE + (
        b"         0: 61 62" + b"   " * 14 + b"  ab\n"
    )


def test_stack() -> None:
    stack = Stack((0x1010, 0x1000, 0x2004, 0xDEAD), 20)
    frames = [b"kernel`main+0x10", b"kernel`main", b"kernel`0x2004", b"0xdead"]

    assert printed(program.StackTrace(is_user=False, frames=None), stack) == b"\n" + b"".join(
        b" " * 14 + frame + b"\n" for frame in frames
    )
    assert printed(program.StackTrace(is_user=True, frames=None), stack, stackindent="2") == b"\n" + b"".join(
        b"  " + frame + b"\n" for frame in frames
    )
    assert printed(program.StackTrace(is_user=True, frames=None), Stack((), 20)) == b"\n"


@pytest.mark.parametrize(
    ("kind", "address", "text"),
    [
        ("sym", 0x1010, b"kernel`main"),
        ("mod", 0x1010, b"kernel"),
        ("uaddr", 0x1010, b"kernel`main+0x10"),
        ("sym", 5, b"0x5"),
    ],
)
def test_symbols(kind: str, address: int, text: bytes) -> None:
    action = program.SymbolTrace(program.SymbolKey(SYMBOL, kind, expression(LONG)))

    assert printed(action, SymbolName(kind, address)) == b"  " + text.ljust(50)
    assert printed(trace(SYMBOL), SymbolName(kind, address)) == b"  " + text.ljust(50)

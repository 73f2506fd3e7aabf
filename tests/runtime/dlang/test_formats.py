"""Format strings: what they are made of, and which arguments they take."""

import re

import pytest

from kinst.runtime.dlang import formats
from kinst.runtime.dlang.formats import Mark
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.types import DType
from kinst.targets.c_types import Array, EnumType, Float, Pointer, Typedef

SPAN = Span("", 3, 5, 4, "text")
CHARACTERS = Array(types.CHAR, 16)
DOUBLE = Float("double", 8)
COLOR = EnumType("color", types.UINT, (("RED", 0),))


def tag_of(text: bytes, *arguments: DType) -> str:
    with pytest.raises(DError) as caught:
        formats.check_printf(formats.parse(text, SPAN), arguments, function="printf", span=SPAN)
    assert caught.value.span is SPAN
    return caught.value.tag


def test_parts_of_a_conversion() -> None:
    parsed = formats.parse(b"pid %-5d, %08.3llx%% %*.*s end")
    first, second, percent, last = parsed.conversions
    assert (first.prefix, first.kind.name, first.width, first.marks) == (b"pid ", "d", 5, Mark.LEFT)
    assert (second.prefix, second.kind.name, second.width, second.precision) == (b", ", "llx", 8, 3)
    assert second.marks == Mark.ZEROS
    assert percent.kind.name == "%"
    assert (last.prefix, last.kind.name) == (b" ", "s")
    assert last.marks == Mark.ANY_WIDTH | Mark.ANY_PRECISION
    assert parsed.suffix == b" end"


def test_later_of_zero_and_minus_wins() -> None:
    assert formats.parse(b"%-05d").conversions[0].marks == Mark.ZEROS
    assert formats.parse(b"%0-5d").conversions[0].marks == Mark.LEFT


def test_question_mark_is_the_width_of_a_pointer() -> None:
    assert formats.parse(b"%?p").conversions[0].width == 16


def test_no_field_is_of_gigabytes() -> None:
    assert formats.parse(b"%1048576d").conversions[0].width == formats.MOST_COLUMNS
    assert formats.parse(b"%.4000000000s").conversions[0].precision == 2**31 - 1
    for text in (b"%1048577d", b"%.4000000000d", b"%99999999999999999999s"):
        with pytest.raises(DError, match="conversion #1 makes the output wider than 1048576 columns"):
            formats.parse(text)
    with pytest.raises(DError, match="#2 makes the output wider than 1048576 columns"):
        formats.parse(b"%600000d%600000d")


def test_a_nul_ends_the_format() -> None:
    assert formats.parse(b"a\0%z").suffix == b"a"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (b"%", "#1 has no name"),
        (b"%d %5", "#2 has no name"),
        (b"%l", "#1 has no name"),
        (b"%**d", "more than one '*' for its width"),
        (b"%.**d", "more than one '*' for its precision"),
        (b"%..3d", "more than one '.'"),
        (b"%1$d", "positional"),
        (b"%5%", "takes no flags"),
        (b"%q", "undefined: %q"),
        (b"%llld", "undefined: %llld"),
        (b"%n", "undefined: %n"),
        (b"%" + b"l" * 1_000_000 + b"d", "undefined"),
    ],
)
def test_malformed(text: bytes, part: str) -> None:
    with pytest.raises(DError, match=re.escape(part)) as caught:
        formats.parse(text, SPAN)
    assert caught.value.tag == "D_SYNTAX"


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        (b"%d", types.INT8),
        (b"%u", types.ULONGLONG),
        (b"%x", COLOR),
        (b"%s", types.STRING),
        (b"%S", CHARACTERS),
        (b"%c", types.INT),
        (b"%p", types.VOID_POINTER),
        (b"%p", types.UINT64),
        (b"%a", types.SYMBOL),
        (b"%a", types.ULONG),
        (b"%k", types.STACK),
        (b"%Y", types.INT64),
        (b"%T", Typedef("hrtime_t", types.UINT64)),
        (b"%ld", types.LONG),
        (b"%lld", types.LONG),
        (b"%hd", types.SHORT),
        (b"%lx", types.UINT64),
        (b"%hu", COLOR),
        (b"%P", types.UINT16),
        (b"%f", DOUBLE),
        (b"%lc", types.INT),
        (b"%ls", Array(types.INT, 4)),
        (b"%I", types.STRING),
    ],
)
def test_taken(text: bytes, argument: DType) -> None:
    formats.check_printf(formats.parse(text), (argument,), function="printf")


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        (b"%d", types.STRING),
        (b"%d", types.VOID_POINTER),
        (b"%x", types.CHAR_POINTER),
        (b"%s", types.CHAR_POINTER),
        (b"%s", types.INT),
        (b"%s", Array(types.UCHAR, 4)),
        (b"%s", types.SYMBOL),
        (b"%c", types.LONG),
        (b"%ld", types.INT),
        (b"%ld", types.ULONG),
        (b"%hd", types.INT),
        (b"%lx", types.LONG),
        (b"%Y", types.INT),
        (b"%k", types.INT),
        (b"%a", types.STRING),
        (b"%f", types.INT),
        (b"%Lf", DOUBLE),
        (b"%P", types.INT),
        (b"%d", types.VOID),
        (b"%d", types.Dynamic("aggregation")),
    ],
)
def test_not_taken(text: bytes, argument: DType) -> None:
    assert tag_of(text, argument) == "D_PRINTF_ARG_TYPE"


def test_message_of_a_wrong_type_has_four_lines() -> None:
    with pytest.raises(DError) as caught:
        formats.check_printf(formats.parse(b"%d %s"), (types.INT, Pointer(types.CHAR)), function="printf")
    lines = caught.value.message.splitlines()
    assert lines[0] == "printf( ) argument #3 is incompatible with conversion #2 prototype:"
    assert lines[1] == "\tconversion: %s"
    assert lines[2].startswith("\t prototype: ")
    assert lines[3] == "\t  argument: char *"


@pytest.mark.parametrize(
    ("tag", "text", "arguments"),
    [
        ("D_PRINTF_FMT_EMPTY", b"", ()),
        ("D_PRINTF_ARG_PROTO", b"%d", ()),
        ("D_PRINTF_ARG_PROTO", b"%d%%%d", (types.INT,)),
        ("D_PRINTF_ARG_EXTRA", b"%d", (types.INT, types.INT)),
        ("D_PRINTF_ARG_EXTRA", b"none", (types.INT,)),
        ("D_PRINTF_ARG_EXTRA", b"%*d", (types.INT, types.INT, types.INT)),
        ("D_PRINTF_DYN_PROTO", b"%*d", ()),
        ("D_PRINTF_DYN_PROTO", b"%.*d", ()),
        ("D_PRINTF_DYN_TYPE", b"%*d", (types.STRING, types.INT)),
        ("D_PRINTF_DYN_TYPE", b"%.*d", (types.STRING, types.INT)),
        ("D_PRINTF_AGG_CONV", b"%@d", (types.INT,)),
    ],
)
def test_arguments(tag: str, text: bytes, arguments: tuple[DType, ...]) -> None:
    assert tag_of(text, *arguments) == tag


def test_printa_takes_keys_and_values() -> None:
    keys = (types.STRING, types.INT)
    for text in (b"%s %d %@d\n", b"%s\n", b"%@d %s %@x", b"nothing", b"%-20s %@8u"):
        formats.check_printa(formats.parse(text), keys, is_count=False)


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("D_PRINTF_ARG_PROTO", b"%s %d %d"),
        ("D_PRINTF_ARG_TYPE", b"%d"),
        ("D_PRINTF_ARG_TYPE", b"%@s"),
        ("D_PRINTF_ARG_TYPE", b"%@c"),
        ("D_PRINTF_FMT_EMPTY", b""),
    ],
)
def test_printa_refuses(tag: str, text: bytes) -> None:
    with pytest.raises(DError) as caught:
        formats.check_printa(formats.parse(text), (types.STRING, types.INT), is_count=True, span=SPAN)
    assert caught.value.tag == tag

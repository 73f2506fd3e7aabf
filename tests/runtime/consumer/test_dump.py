"""print(): types and values, byte for byte as libdtrace's rules have it."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.runtime.consumer.dump import dump
from kinst.runtime.dlang.types.types import (
    BOOL,
    CHAR,
    INT,
    INT8,
    LONG,
    SHORT,
    STRING,
    UCHAR,
    UINT64,
    ULONG,
    VOID,
    DType,
)
from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    CType,
    EnumType,
    Float,
    Function,
    Member,
    Pointer,
    Qualified,
    Typedef,
)
from tests.runtime.consumer.recording import NamedSymbols

COLOUR = EnumType("colour", INT, (("RED", 0), ("GREEN", 5), ("BAD", -1)))


def made(tag: str, *members: Member, kind: AggregateKind = AggregateKind.STRUCT, size: int = 64) -> Aggregate:
    aggregate = Aggregate(kind, tag)
    aggregate.complete(members, size, 8)
    return aggregate


def shown(kind: DType, value: int | bytes) -> str:
    return dump(value, kind, NamedSymbols(), 256).decode()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (INT, 0x17, "int 0x17\n"),
        (INT, 0, "int 0\n"),
        (INT, -1, "int 0xffffffff\n"),
        (LONG, -1, "long 0xffffffffffffffff\n"),
        (ULONG, 1 << 63, "unsigned long 0x8000000000000000\n"),
        (SHORT, 0x12345, "short 0x2345\n"),
        (UINT64, 9, "uint64_t 0x9\n"),
        (CHAR, ord("a"), "char 'a'\n"),
        (CHAR, 0, "char '\\0'\n"),
        (CHAR, 10, "char '\\012'\n"),
        (CHAR, -1, "char '\\37777777777'\n"),
        (INT8, 65, "int8_t 'A'\n"),
        (UCHAR, 65, "unsigned char 0x41\n"),
        (BOOL, 1, "_Bool 0x1\n"),
        (STRING, b"foo", 'string "foo"\n'),
        (STRING, b"", 'string ""\n'),
        (Pointer(VOID), 0x1010, "void * 0x1010\n"),
        (Pointer(VOID), 0, "void * 0\n"),
        (Pointer(Function(INT, None)), 0x1010, "int (*)() kernel`main\n"),
        (Pointer(Function(INT, None)), 0x10, "int (*)() 0x10\n"),
        (COLOUR, 5, "enum colour GREEN\n"),
        (COLOUR, (1 << 32) - 1, "enum colour BAD\n"),
        (COLOUR, 7, "enum colour 7\n"),
        (Float("double", 8), struct.pack("<d", 1.5), "double +1.5000000e+00\n"),
        (Float("float", 4), struct.pack("<f", -0.25), "float -2.5000000e-01\n"),
        (
            Float("long double", 16),
            bytes.fromhex("00000000000000c0ff3f000000000000"),
            "long double +1.5000000000000000E+00\n",
        ),
        (Array(INT, 3), struct.pack("<3i", 1, 0, 46), "int [3] [ 0x1, 0, 0x2e ]\n"),
        (Array(CHAR, 8), b"hi\0\0\0\0\0\0", 'char [8] "hi"\n'),
        (Array(CHAR, 3), b"hi!", "char [3] [ 'h', 'i', '!' ]\n"),
        (Array(CHAR, 2), b"\x01\0", "char [2] [ '\\001', '\\0' ]\n"),
        (Array(UCHAR, 2), b"a\0", "unsigned char [2] [ 0x61, 0 ]\n"),
        (Array(INT, 0), b"", "int [0] [  ]\n"),
        (Array(Array(INT, 2), 2), struct.pack("<4i", 1, 2, 3, 4), "int [2][2] [ [ 0x1, 0x2 ], [ 0x3, 0x4 ] ]\n"),
    ],
)
def test_plain_types(kind: DType, value: int | bytes, text: str) -> None:
    assert shown(kind, value) == text


def test_a_long_string_has_no_end() -> None:
    assert dump(b"abc", STRING, NamedSymbols(), 3) == b"string [ 'a', 'b', 'c' ]\n"


def test_struct() -> None:
    inner = made("timespec", Member("tv_sec", Typedef("time_t", LONG), 0), Member("tv_nsec", LONG, 8), size=16)
    outer = Typedef(
        "pancakes_t",
        made(
            "pancakes",
            Member("i", INT, 0),
            Member("name", Array(CHAR, 12), 4),
            Member("t", Typedef("timespec_t", inner), 16),
            Member("next", Pointer(inner), 32),
            Member("none", made("", Member("a", INT, 0), size=4), 40),
            size=48,
        ),
    )
    data = struct.pack("<i12sqqQi4x", 0x14, b"I like", 0, 9, 0x80, 3)

    assert shown(outer, data) == (
        "pancakes_t {\n"
        "    int i = 0x14\n"
        '    char [12] name = [ "I like" ]\n'
        "    timespec_t t = {\n"
        "        time_t tv_sec = 0\n"
        "        long tv_nsec = 0x9\n"
        "    }\n"
        "    struct timespec *next = 0x80\n"
        "    struct none = {\n"
        "        int a = 0x3\n"
        "    }\n"
        "}"
    )


def test_anonymous_members() -> None:
    union = made("", Member("maedhros", INT, 0), Member("fingon", INT, 0), kind=AggregateKind.UNION, size=4)
    inside = made("", Member("fingolfin", INT, 0), Member("", union, 4), size=8)
    elves = made("elves", Member("feanor", INT, 0), Member("", inside, 4), size=12)

    assert shown(elves, struct.pack("<3i", 0x1497, 0x467, 0x587)) == (
        "struct elves {\n"
        "    int feanor = 0x1497\n"
        "    struct  {\n"
        "        int fingolfin = 0x467\n"
        "        union  {\n"
        "            int maedhros = 0x587\n"
        "            int fingon = 0x587\n"
        "        }\n"
        "    }\n"
        "}"
    )


def test_array_of_structs() -> None:
    point = made("point", Member("x", INT, 0), size=4)
    shape = made("shape", Member("points", Array(point, 2), 0), Member("n", INT, 8), size=12)

    assert shown(shape, struct.pack("<3i", 1, 2, 3)) == (
        "struct shape {\n"
        "    struct point [2] points = [ \n"
        "        struct point {\n"
        "            int x = 0x1\n"
        "        }, \n"
        "        struct point {\n"
        "            int x = 0x2\n"
        "        }\n"
        "    ]\n"
        "    int n = 0x3\n"
        "}"
    )


def test_bit_fields() -> None:
    flags = made(
        "flags",
        Member("a", INT, 0, 0, 3),
        Member("b", INT, 0, 3, 5),
        Member("c", INT, 0, 8, 8),
        Member("colour", COLOUR, 4, 0, 4),
        size=8,
    )

    assert shown(flags, struct.pack("<ii", 0x7FD, 0x5)) == (
        "struct flags {\n    int a :3 = 0x5\n    int b :5 = 0x1f\n    int c :8 = 0x7\n    enum colour colour = 0x5\n}"
    )


def test_incomplete_and_empty() -> None:
    assert shown(Aggregate(AggregateKind.STRUCT, "later"), b"") == "struct later <forward decl>\n"
    assert shown(made("nothing", size=0), b"") == "struct nothing {\n"


def test_qualifiers_are_part_of_the_name() -> None:
    assert shown(Qualified(INT, is_const=True), 5) == "const int 0x5\n"


@given(st.integers(1, 400))
def test_deep_types_end(depth: int) -> None:
    kind: CType = made("s0", Member("x", INT, 0), size=4)
    for level in range(1, depth):
        kind = made(f"s{level}", Member("inner", kind, 0), size=4)

    text = shown(kind, struct.pack("<i", 7))

    assert text.endswith("}")
    assert ("int x = 0x7" in text) == (depth <= 65)

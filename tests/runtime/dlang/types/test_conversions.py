"""What types allow, and the range of values: C's compiler is the reference for the latter."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.conversions import (
    are_compatible,
    are_compatible_pointers,
    arithmetic_type,
    common_pointer,
    element_of,
    is_aggregate,
    is_argument_compatible,
    is_arithmetic,
    is_castable,
    is_dynamic,
    is_float,
    is_function,
    is_integer,
    is_pointer,
    is_scalar,
    is_signed,
    is_sizeless_pointer,
    is_string,
    is_string_like,
    is_void,
    promote,
    size_of,
    usual,
    wrap,
)
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import DType
from kinst.targets.c_types import Integer, IntegerKind, Pointer
from tests.runtime.dlang.types.declared import Program

INTEGERS = (
    types.CHAR, types.SCHAR, types.UCHAR, types.SHORT, types.USHORT, types.INT, types.UINT, types.LONG, types.ULONG,
    types.LONGLONG, types.ULONGLONG,
)  # fmt: skip
VALUES = sorted({sign * (1 << bits) + step for bits in range(64) for sign in (1, -1) for step in (-1, 0, 1)})
DECLARED = """
    typedef unsigned long mine_t;
    enum color { RED, GREEN };
    struct s { int x; } s; union u { int x; } u;
    mine_t mine; enum color color; char *text; unsigned char *bytes; char letters[4]; int numbers[4]; int *pointer;
    const int *constant; void *nothing; struct s *to_s; struct t *to_t; union u *to_u; int **deep;
    const int **deep_const;
    void (*call)(int); string name; string *names; float real; long *longs; long long *longer; int i; long l; char c;
    uint64_t *words; struct s array[3]; signed char *signed_text; void (**calls)(int); extern int f(int);
"""
KINDS = {**Program(DECLARED).variables, "stack": types.STACK, "sym": types.SYMBOL, "none": types.VOID}
PREDICATES: dict[Callable[[DType], bool], str] = {
    is_integer: "mine color i l c",
    is_arithmetic: "mine color i l c",
    is_float: "real",
    is_aggregate: "s u",
    is_function: "f",
    is_string: "name",
    is_string_like: "name text letters signed_text",
    is_void: "none",
    is_dynamic: "stack sym",
    is_sizeless_pointer: "nothing call",
    is_signed: "color i l c",
    is_pointer: "text bytes letters numbers pointer constant nothing to_s to_t to_u deep deep_const call names longs "
    "longer words array signed_text calls",
    is_scalar: "mine color i l c text bytes pointer constant nothing to_s to_t to_u deep deep_const call names longs "
    "longer words signed_text calls",
}


@pytest.mark.parametrize("predicate", PREDICATES, ids=lambda predicate: predicate.__name__)
def test_predicates(predicate: Callable[[DType], bool]) -> None:
    assert {name for name, kind in KINDS.items() if predicate(kind)} == set(PREDICATES[predicate].split())


@pytest.fixture(scope="module")
def c_answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What gcc makes of every value in every type, and of the sum of every two types."""
    folder: Path = tmp_path_factory.mktemp("c")
    lines = ["#include <stdio.h>", "#define U(v) ((long long)(v##ull))", "static const long long values[] = {"]
    lines += [f"(long long){value & (1 << 64) - 1}ull," for value in VALUES]
    lines += ["};", "int main(void) {", "for (unsigned n = 0; n < sizeof values / sizeof *values; n++) {"]
    for kind in INTEGERS:
        lines.append(f'printf("{"%lld" if kind.is_signed else "%llu"} ", (long long)({kind.name})values[n]);')
    lines += ['puts(""); }', "}"]
    (folder / "wrap.c").write_text("\n".join(lines))
    subprocess.run(["gcc", "-w", "-fsigned-char", "-o", folder / "wrap", folder / "wrap.c"], check=True)
    yield subprocess.run([folder / "wrap"], check=True, capture_output=True, text=True).stdout


def test_values_wrap_as_in_c(c_answers: str) -> None:
    rows = c_answers.splitlines()
    assert len(rows) == len(VALUES)
    for value, row in zip(VALUES, rows, strict=True):
        assert [wrap(value, kind) for kind in INTEGERS] == [int(word) for word in row.split()], value


@given(st.integers(-(1 << 70), 1 << 70), st.sampled_from(INTEGERS))
def test_wrapped_values_are_in_range_and_congruent(value: int, kind: Integer) -> None:
    wrapped = wrap(value, kind)

    low = -(1 << kind.size * 8 - 1) if kind.is_signed else 0
    assert low <= wrapped < low + (1 << kind.size * 8)
    assert (wrapped - value) % (1 << kind.size * 8) == 0
    assert wrap(wrapped, kind) == wrapped


def test_values_of_other_types_wrap_too() -> None:
    assert wrap(-1, KINDS["pointer"]) == (1 << 64) - 1
    assert wrap(0x1_FFFF_FFFF, KINDS["color"]) == -1
    assert wrap(-1, KINDS["real"]) == 0xFFFF_FFFF
    assert wrap(300, types.BOOL) == 44


@given(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS))
def test_result_is_the_wider_then_the_unsigned_type(left: Integer, right: Integer) -> None:
    result = usual(left, right)

    assert result in (left, right)
    assert result.size == max(left.size, right.size)
    assert usual(right, left) == result
    of_that_size = [kind for kind in (left, right) if kind.size == result.size]
    assert result.is_signed == all(kind.is_signed for kind in of_that_size)


def test_nothing_is_promoted_to_int() -> None:
    """libdtrace leaves narrow types alone, unlike C; enumerations are int."""
    assert usual(types.CHAR, types.CHAR) == types.CHAR
    assert usual(types.CHAR, types.SHORT) == types.SHORT
    assert usual(types.LONG, types.LONGLONG) == types.LONGLONG
    assert usual(KINDS["color"], types.CHAR) == types.INT
    assert promote(KINDS["color"]) == types.INT
    assert promote(types.UINT8) == types.UCHAR


def test_names_of_typedefs_are_kept() -> None:
    assert describe(arithmetic_type(KINDS["mine"], types.INT)) == "mine_t"
    assert describe(arithmetic_type(types.INT, types.UINT32)) == "uint32_t"
    assert describe(arithmetic_type(KINDS["color"], KINDS["color"])) == "int"
    with pytest.raises(TypeError):
        promote(KINDS["pointer"])


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("pointer", "pointer", True),
        ("pointer", "constant", True),
        ("pointer", "numbers", True),
        ("pointer", "nothing", True),
        ("nothing", "array", True),
        ("to_s", "array", True),
        ("deep", "deep_const", True),
        ("call", "call", True),
        ("words", "longs", False),  # unsigned
        ("longs", "longer", False),
        ("pointer", "text", False),
        ("text", "bytes", False),
        ("to_s", "to_t", False),
        ("to_s", "to_u", False),
        ("pointer", "i", False),
        ("pointer", "name", False),
        ("call", "pointer", False),
        ("name", "nothing", True),
        ("name", "text", True),
    ],
)
def test_compatible_pointers(left: str, right: str, expected: bool) -> None:  # noqa: FBT001
    assert are_compatible_pointers(KINDS[left], KINDS[right]) == expected
    assert are_compatible_pointers(KINDS[right], KINDS[left]) == expected


def test_struct_of_another_declaration_is_the_same() -> None:
    other = Program("struct s { int x; } s; struct s *to_s; struct t; struct t *to_t; struct { int x; } n;").variables

    assert are_compatible(KINDS["s"], other["s"])
    assert are_compatible_pointers(KINDS["to_s"], other["to_s"])
    assert are_compatible_pointers(KINDS["to_t"], other["to_t"])
    larger = Program("struct s { int x, y; } s; struct { int x; } n;").variables
    assert not are_compatible(KINDS["s"], larger["s"])
    assert not are_compatible(other["n"], larger["n"])


ARGUMENTS = {
    ("i", "l"), ("i", "color"), ("c", "mine"), ("color", "i"),
    ("name", "text"), ("name", "letters"), ("text", "name"), ("letters", "text"), ("name", "name"),
    ("name", "nothing"), ("nothing", "name"), ("pointer", "numbers"), ("nothing", "to_s"),
    ("to_s", "nothing"), ("s", "s"), ("stack", "stack"), ("sym", "sym"),
}  # fmt: skip
NO_ARGUMENTS = {
    ("i", "pointer"), ("pointer", "i"), ("name", "i"), ("i", "name"), ("name", "bytes"), ("bytes", "name"), ("s", "u"),
    ("s", "to_s"), ("stack", "sym"), ("stack", "i"), ("i", "stack"), ("name", "stack"), ("s", "i"), ("real", "i"),
    ("i", "real"), ("real", "real"), ("i", "none"), ("none", "i"),
}  # fmt: skip


def test_arguments() -> None:
    assert {pair for pair in ARGUMENTS if not is_argument_compatible(KINDS[pair[0]], KINDS[pair[1]])} == set()
    assert {pair for pair in NO_ARGUMENTS if is_argument_compatible(KINDS[pair[0]], KINDS[pair[1]])} == set()


def test_constant_zero_is_a_null_pointer() -> None:
    assert is_argument_compatible(KINDS["pointer"], types.INT, is_zero=True)
    assert is_argument_compatible(KINDS["nothing"], types.INT, is_zero=True)
    assert is_argument_compatible(KINDS["call"], types.INT, is_zero=True)
    assert is_argument_compatible(KINDS["name"], types.INT, is_zero=True)
    assert not is_argument_compatible(KINDS["s"], types.INT, is_zero=True)


CASTS = {
    ("i", "pointer"), ("pointer", "i"), ("color", "l"), ("none", "s"), ("pointer", "letters"), ("s", "s"),
    ("name", "i"), ("name", "text"), ("name", "letters"), ("i", "f"), ("name", "name"), ("to_s", "array"),
}  # fmt: skip
NO_CASTS = {
    ("s", "i"), ("s", "u"), ("i", "s"), ("i", "name"), ("i", "letters"), ("name", "s"), ("i", "real"), ("stack", "i"),
    ("i", "stack"), ("numbers", "i"), ("pointer", "s"),
}  # fmt: skip


def test_casts() -> None:
    assert {pair for pair in CASTS if not is_castable(KINDS[pair[0]], KINDS[pair[1]])} == set()
    assert {pair for pair in NO_CASTS if is_castable(KINDS[pair[0]], KINDS[pair[1]])} == set()


def test_common_pointer_says_more() -> None:
    assert common_pointer(KINDS["pointer"], KINDS["nothing"]) == KINDS["pointer"]
    assert common_pointer(KINDS["nothing"], KINDS["pointer"]) == KINDS["pointer"]


def test_elements() -> None:
    assert element_of(KINDS["names"]) == types.STRING
    assert element_of(KINDS["numbers"]) == types.INT
    assert element_of(KINDS["i"]) is None


def test_sizes() -> None:
    sizes = {"i": 4, "name": 100, "letters": 4, "s": 4, "array": 12, "pointer": 8, "color": 4, "none": 0, "stack": 0,
             "f": 0, "names": 8}  # fmt: skip

    assert {name: size_of(KINDS[name], 100) for name in sizes} == sizes


def test_char_is_char_where_the_abi_makes_it_unsigned() -> None:
    """arm64 and riscv64 debug information says so."""
    assert is_string_like(Pointer(Integer("char", 1, is_signed=False, kind=IntegerKind.CHARACTER)))
    assert not is_string_like(Pointer(types.UCHAR))

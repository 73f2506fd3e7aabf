"""Calls inside expressions."""

from typing import get_args

import pytest

from kinst.runtime.clauses import subroutines
from kinst.runtime.clauses.compile.actions import _EMITTERS
from kinst.runtime.dlang import program
from kinst.runtime.dlang.builtins import ARRAYS, FUNCTIONS, VARIABLES
from kinst.runtime.dlang.check import actions, functions
from kinst.runtime.dlang.check.libraries import INLINES
from kinst.runtime.dlang.check.signatures import ACTIONS, AGGREGATING
from kinst.runtime.dlang.syntax import words
from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.type_names import describe
from tests.runtime.clauses.compile.acting import action, check, error_of, tag_of
from tests.runtime.clauses.compile.running import Ram


def call(text: str) -> program.Call:
    found = action(f"x = {text};")
    assert isinstance(found, program.Evaluate)
    assert isinstance(found.expression, program.Assign)
    value = found.expression.value
    assert isinstance(value, program.Call)
    return value


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("alloca(10)", "void *"),
        ('basename("/a")', "string"),
        ("copyin(0, 1)", "void *"),
        ("copyinstr(0)", "string"),
        ("copyinstr(0, 5)", "string"),
        ("getmajor(1)", "major_t"),
        ("htons(1)", "uint16_t"),
        ('index("a", "b")', "int"),
        ('index("a", "b", 1)', "int"),
        ("inet_ntop(2, alloca(4))", "string"),
        ('json("[1]", "[0]")', "string"),
        ("lltostr(1)", "string"),
        ("lltostr(1, 16)", "string"),
        ("memref(alloca(8), 8)", "uintptr_t *"),
        ("progenyof(1)", "int"),
        ("rand()", "int"),
        ("speculation()", "int"),
        ("strchr(execname, 'a')", "string"),
        ("strlen(execname)", "size_t"),
        ("strlen((char *)arg0)", "size_t"),
        ('strtok(NULL, ",")', "string"),
        ('strtoll("1")', "int64_t"),
        ('substr("abc", 1)', "string"),
        ('substr("abc", 1, 2)', "string"),
    ],
)
def test_results(text: str, result: str) -> None:
    found = call(text)
    assert describe(found.type) == result
    assert found.function == text.partition("(")[0]


def test_text_is_passed_by_value_and_null_is_not() -> None:
    assert call('strtok("a b", " ")').arguments[0] == program.Text(types.STRING, b"a b")
    null = call('strtok(NULL, " ")').arguments[0]
    assert isinstance(null, program.Integer) and null.value == 0
    pointer = call("strlen((char *)arg0)").arguments[0]
    assert isinstance(pointer, program.StringOf)


@pytest.mark.parametrize(
    ("tag", "statement"),
    [
        ("D_PROTO_LEN", "strlen();"),
        ("D_PROTO_LEN", "strlen(execname, 1);"),
        ("D_PROTO_LEN", "rand(1);"),
        ("D_PROTO_LEN", 'index("a");'),
        ("D_PROTO_LEN", 'index("a", "b", 1, 2);'),
        ("D_PROTO_ARG", "strlen(123);"),
        ("D_PROTO_ARG", "basename(timestamp);"),
        ("D_PROTO_ARG", 'copyinstr("a");'),
        ("D_PROTO_ARG", "alloca(execname);"),
        ("D_PROTO_ARG", 'progenyof("a");'),
        ("D_PROTO_ARG", 'lltostr("a");'),
        ("D_FUNC_UNDEF", "x = nosuch(1);"),
        ("D_FUNC_UNDEF", "nosuch();"),
        ("D_FUNC_IDKIND", "x = timestamp();"),
        ("D_FUNC_IDKIND", "y = 1; x = y(1);"),
        ("D_FUNC_IDKIND", "@a(1);"),
        ("D_CG_EXPR", "(void)trace(1);"),
        ("D_CG_EXPR", "count();"),
    ],
)
def test_errors(tag: str, statement: str) -> None:
    assert tag_of(statement) == tag


def test_messages_have_the_shapes_of_libdtrace() -> None:
    assert error_of("strlen();").message == "strlen( ) prototype mismatch: 0 args passed, 1 expected"
    assert error_of('index("a");').message == "index( ) prototype mismatch: 1 arg passed, at least 2 expected"
    lines = error_of("strlen(5);").message.splitlines()
    assert lines[0] == "strlen( ) argument #1 is incompatible with prototype:"
    assert lines[1:] == ["\tprototype: const char *", "\t argument: int"]


def test_copyout_is_destructive_and_does_not_follow_speculate() -> None:
    assert check("BEGIN { copyout(alloca(1), 0, 1); }").is_destructive
    assert check("BEGIN { x = 1; copyoutstr(stringof(x), 0, 1); }").is_destructive
    assert not check("BEGIN { copyin(0, 1); }").is_destructive
    assert tag_of("speculate(1); copyout(alloca(1), 0, 1);") == "D_ACT_SPEC"
    assert tag_of('speculate(1); copyoutstr("a", 0, 1);') == "D_ACT_SPEC"


def test_every_function_that_programs_may_not_redeclare_has_a_prototype() -> None:
    taken_out = {"printt", "typeref"}  # by FreeBSD
    assert words.ACTIONS - taken_out == set(ACTIONS)
    assert set(AGGREGATING) == words.AGGREGATING
    assert words.SUBROUTINES - taken_out == set(functions.SUBROUTINES)
    assert FUNCTIONS == words.ACTIONS | words.AGGREGATING | words.SUBROUTINES


def test_every_action_has_its_check_and_its_code() -> None:
    assert {*actions._CHECKS, *words.STACKS, *words.SYMBOLS} == set(ACTIONS)
    assert set(_EMITTERS) == set(get_args(program.Action))


def test_no_type_of_the_image_hides_a_variable_of_d() -> None:
    """What the parser takes for no type, and what the checker knows."""
    of_libraries = {*INLINES, "fds"}
    assert {*VARIABLES, *ARRAYS, *FUNCTIONS, *of_libraries} == words.GLOBALS


def test_every_subroutine_can_be_run() -> None:
    class Guest:
        memory = Ram()

    table = subroutines.table(Guest(), None, 256)  # type: ignore[arg-type]  # nothing is called
    assert {*table, "speculation"} == {*functions.SUBROUTINES}


def test_nested_calls_are_read_once() -> None:
    """Each argument is looked at once: 60 levels would take years otherwise."""
    text = "execname"
    for _ in range(60):
        text = f"basename({text})"
    assert isinstance(action(f"x = {text};"), program.Evaluate)

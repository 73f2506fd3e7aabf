"""Actions: what they become, what they refuse, and how they may follow each other."""

import pytest

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.actions import action_count, record_size
from kinst.runtime.dlang.record_layout import PRINTED, printed_values
from kinst.runtime.dlang.types import types
from tests.runtime.clauses.compile.acting import action, actions, check, error_of, tag_of


def test_data() -> None:
    assert isinstance(action("trace(1);"), program.Trace)
    assert isinstance(action("print(pid);"), program.Print)
    memory = action("tracemem(arg0, 16);")
    assert isinstance(memory, program.TraceMemory) and (memory.size, memory.dynamic) == (16, None)
    dynamic = action("tracemem(arg0, 16, arg1);")
    assert isinstance(dynamic, program.TraceMemory) and dynamic.dynamic is not None
    reference = action("printm(8, memref(alloca(8), 8));")
    assert isinstance(reference, program.PrintMemory) and reference.size == 8


def test_printf_and_its_kin() -> None:
    made = action('printf("%d %s %k %a\\n", pid, execname, stack(), mod(arg0));')
    assert isinstance(made, program.Printf)
    assert (made.kind, made.format) == ("printf", b"%d %s %k %a\n")
    assert [type(one) for one in made.arguments[2:]] == [program.StackKey, program.SymbolKey]
    for kind in ("system", "freopen"):
        program_of = check(f'BEGIN {{ {kind}("x%d", pid); }}')
        assert program_of.is_destructive
        assert program_of.clauses[0].actions == (program.Printf(kind, b"x%d", _arguments("pid")),)
    assert action('freopen("");') == program.Printf("freopen", b"", ())


def _arguments(text: str) -> tuple[program.Expression, ...]:
    made = action(f"trace({text});")
    assert isinstance(made, program.Trace)
    return (made.value,)


def test_stacks_and_symbols() -> None:
    assert action("stack();") == program.StackTrace(is_user=False, frames=None)
    assert action("stack(5);") == program.StackTrace(is_user=False, frames=5)
    assert action("ustack();") == program.StackTrace(is_user=True, frames=None)
    assert action("ustack(3, 100);") == program.StackTrace(is_user=True, frames=3, string_size=100)
    assert action("jstack();") == program.StackTrace(is_user=True, frames=50, string_size=512)
    for kind in ("sym", "func", "mod", "usym", "ufunc", "umod", "uaddr"):
        made = action(f"{kind}(arg0);")
        assert isinstance(made, program.SymbolTrace) and made.key.kind == kind


def test_control() -> None:
    assert action("exit(3);") == program.Exit(program.Integer(types.INT, 3))
    assert action("discard(1);") == program.Discard(program.Integer(types.INT64, 1))
    assert action("speculate(1);") == program.Speculate(program.Integer(types.INT64, 1))
    assert action("commit(1);") == program.Commit(program.Integer(types.INT64, 1))
    words = [program.Text(types.STRING, word) for word in (b"switchrate", b"1s")]
    assert action('setopt("switchrate");') == program.SetOption((words[0],))
    assert action('setopt("switchrate", "1s");') == program.SetOption((words[0], words[1]))
    assert action("ftruncate();") == program.Truncate()
    for text, argument in (("stop()", None), ("raise(9)", 9), ("breakpoint()", None), ("panic()", None)):
        made = check(f"BEGIN {{ {text}; }}")
        found = made.clauses[0].actions[0]
        assert made.is_destructive and isinstance(found, program.Destructive)
        assert found.argument == (None if argument is None else program.Integer(types.LONG, argument))
    assert isinstance(action("chill(500000000);"), program.Destructive)
    made = check('BEGIN { snapshot("at.snap"); }')
    assert made.destructive == ("snapshot",)
    assert made.clauses[0].actions == (program.Snapshot(program.Text(types.STRING, b"at.snap")),)


def test_expressions_are_statements() -> None:
    assert [type(one) for one in actions("x = 1; x++; x; bcopy(alloca(1), alloca(1), 1);")] == [program.Evaluate] * 4


@pytest.mark.parametrize(
    ("tag", "statement"),
    [
        ("D_TRACE_VOID", "trace(trace(1));"),
        ("D_TRACE_VOID", "trace((void)1);"),
        ("D_TRACE_VOID", "trace(bcopy(alloca(1), alloca(1), 1));"),
        ("D_TRACE_AGG", "@a = count(); trace(@a);"),
        ("D_PRINT_AGG", "@a = count(); print(@a);"),
        ("D_PRINT_VOID", "print(exit(0));"),
        ("D_PROTO_LEN", "trace();"),
        ("D_PROTO_LEN", "trace(1, 2);"),
        ("D_PROTO_LEN", "print();"),
        ("D_CG_EXPR", "trace(stack());"),
        ("D_PROTO_LEN", "tracemem();"),
        ("D_PROTO_LEN", "tracemem(1);"),
        ("D_TRACEMEM_ADDR", "tracemem(execname, 1);"),
        ("D_TRACEMEM_SIZE", "tracemem(1, 0);"),
        ("D_TRACEMEM_SIZE", "tracemem(1, -1);"),
        ("D_TRACEMEM_SIZE", "tracemem(1, pid);"),
        ("D_PROTO_ARG", 'tracemem(1, "a");'),
        ("D_TRACEMEM_ARGS", "tracemem(1, 2, 3, 4);"),
        ("D_TRACEMEM_DYNSIZE", "tracemem(1, 2, execname);"),
        ("D_PROTO_LEN", "printm(1);"),
        ("D_PRINTM_SIZE", "printm(0, memref(alloca(8), 8));"),
        ("D_PRINTM_SIZE", 'printm("a", memref(alloca(8), 8));'),
        ("D_PRINTM_ADDR", "printm(1, 2);"),
        ("D_PROTO_LEN", "printf();"),
        ("D_PRINTF_ARG_FMT", "printf(execname);"),
        ("D_PRINTF_ARG_FMT", "printf(1);"),
        ("D_PRINTF_ARG_TYPE", '@a = count(); printf("%d", @a);'),
        ("D_PRINTF_ARG_TYPE", 'printf("%d", printf("x"));'),
        ("D_PRINTF_ARG_TYPE", 'printf("%d", stack());'),
        ("D_PRINTF_ARG_TYPE", 'printf("%s", (char *)arg0);'),
        ("D_PRINTF_ARG_EXTRA", 'printf("x", 1);'),
        ("D_PRINTF_ARG_PROTO", 'printf("%d");'),
        ("D_PRINTF_AGG_CONV", 'printf("%@d", 1);'),
        ("D_PRINTF_FMT_EMPTY", 'printf("");'),
        ("D_PRINTF_FMT_EMPTY", 'system("");'),
        ("D_SYNTAX", 'printf("%z", 1);'),
        ("D_FREOPEN_INVALID", 'freopen(".");'),
        ("D_PROTO_LEN", "system();"),
        ("D_STACK_PROTO", "stack(1, 2);"),
        ("D_STACK_SIZE", "stack(-1);"),
        ("D_STACK_SIZE", "stack(execname);"),
        ("D_USTACK_FRAMES", "ustack(0);"),
        ("D_USTACK_STRSIZE", "ustack(1, pid);"),
        ("D_USTACK_PROTO", "ustack(1, 2, 3);"),
        ("D_PROTO_ARG", "sym(execname);"),
        ("D_PROTO_LEN", "exit();"),
        ("D_PROTO_LEN", "exit(1, 2);"),
        ("D_PROTO_ARG", "exit(execname);"),
        ("D_PROTO_LEN", "ftruncate(1);"),
        ("D_PROTO_ARG", "setopt(1);"),
        ("D_PROTO_LEN", "stop(1);"),
        ("D_PROTO_ARG", "raise(execname);"),
        ("D_PROTO_ARG", "chill(execname);"),
        ("D_PROTO_LEN", "panic(1);"),
        ("D_PROTO_LEN", "breakpoint(1);"),
        ("D_PROTO_LEN", "speculate();"),
        ("D_PROTO_ARG", "speculate(execname);"),
        ("D_PROTO_LEN", "commit();"),
        ("D_PROTO_LEN", "discard(1, 2);"),
    ],
)
def test_errors(tag: str, statement: str) -> None:
    assert tag_of(statement) == tag


@pytest.mark.parametrize(
    ("tag", "statements"),
    [
        ("D_SPEC_SPEC", "speculate(1); speculate(1);"),
        ("D_SPEC_DREC", "trace(1); speculate(1);"),
        ("D_SPEC_DREC", "@a = count(); speculate(1);"),
        ("D_SPEC_DREC", "exit(0); speculate(1);"),
        ("D_SPEC_COMM", "commit(1); speculate(1);"),
        ("D_AGG_SPEC", "speculate(1); @a = count();"),
        ("D_EXIT_SPEC", "speculate(1); exit(0);"),
        ("D_ACT_SPEC", "speculate(1); stop();"),
        ("D_ACT_SPEC", "speculate(1); raise(9);"),
        ("D_ACT_SPEC", "speculate(1); breakpoint();"),
        ("D_ACT_SPEC", "speculate(1); panic();"),
        ("D_ACT_SPEC", "speculate(1); chill(1);"),
        ("D_ACT_SPEC", 'speculate(1); system("x");'),
        ("D_ACT_SPEC", 'speculate(1); freopen("x");'),
        ("D_COMM_DREC", "trace(1); commit(1);"),
        ("D_COMM_DREC", "@a = count(); commit(1);"),
        ("D_COMM_DREC", "exit(0); commit(1);"),
        ("D_COMM_DREC", 'setopt("quiet"); commit(1);'),
        ("D_COMM_COMM", "commit(1); commit(2);"),
        ("D_COMM_COMM", "speculate(1); commit(1); commit(1); trace(1);"),
        ("D_DREC_COMM", "commit(1); trace(1);"),
        ("D_DREC_COMM", 'commit(1); printf("x");'),
        ("D_DREC_COMM", "commit(1); stack();"),
        ("D_DREC_COMM", "commit(1); sym(arg0);"),
        ("D_DREC_COMM", "commit(1); tracemem(arg0, 1);"),
        ("D_DREC_COMM", "commit(1); exit(0);"),
        ("D_AGG_COMM", "commit(1); @a = count();"),
    ],
)
def test_order(tag: str, statements: str) -> None:
    assert tag_of(statements) == tag


@pytest.mark.parametrize(
    "statements",
    [
        'speculate(1); trace(1); printf("%d", 1); stack();',
        "x = 1; speculate(x); x = 2; trace(x);",
        "commit(1); x = 1;",
        "commit(1); stop();",
        "commit(1); discard(1);",
        "trace(1); discard(1); trace(2);",
        "speculate(1); commit(1);",
        "speculate(1); trace(1); commit(1);",
        "stop(); speculate(1);",
    ],
)
def test_allowed_order(statements: str) -> None:
    assert actions(statements)


def test_each_clause_begins_anew() -> None:
    assert check("BEGIN { trace(1); } BEGIN { commit(1); } END { speculate(1); }").clauses


def test_errors_are_where_they_are() -> None:
    span = error_of("BEGIN\n{\n\ttrace(1);\n\ttracemem(arg0, 0);\n}").span
    assert span is not None and (span.line, span.column) == (4, 17)


@pytest.mark.parametrize(
    ("count", "size", "statements"),
    [
        (0, 12, ""),
        (1, 0, "x = 1;"),
        (2, 0, "@a = count();"),
        (4, 0, "@a[1, 2] = count();"),
        (1, 0, "stop();"),
        (1, 0, "commit(1);"),
        (1, 12, "speculate(1);"),
        (2, 0, "speculate(1); x = 1;"),
        (2, 16, "speculate(1); trace(1);"),
        (1, 24, "trace(arg0);"),
        (1, 16, "trace(pid);"),
        (2, 20, "trace(pid); trace((char)1);"),
        (2, 24, "trace((char)1); trace(arg0);"),
        (1, 272, "trace(execname);"),
        (1, 24, 'printf("x");'),
        (2, 272, 'printf("%d %s", pid, execname);'),
        (1, 16, "exit(0);"),
        (1, 176, "stack();"),
        (1, 40, "stack(3);"),
        (1, 48, "ustack(3);"),
        (1, 24, "sym(arg0);"),
        (1, 32, "usym(arg0);"),
        (1, 32, "tracemem(arg0, 16);"),
        (2, 40, "tracemem(arg0, 16, arg1);"),
        (1, 32, "printm(8, memref(alloca(8), 8));"),
        (4, 32, "@a = count(); @b = count();"),
        (7, 32, "@a[1] = quantize(arg0, 2); @b[1] = quantize(arg0);"),
        (2, 280, 'setopt("quiet");'),
        (2, 528, 'setopt("quiet", "no");'),
    ],
)
def test_numbers_and_sizes(count: int, size: int, statements: str) -> None:
    found = check(f"BEGIN {{ {statements} }}").clauses[0].actions
    if statements.count("@") > 1:
        size = 0
    assert sum(action_count(one) for one in found) == count
    assert record_size(found, 256) == size


def test_numbers_and_sizes_of_actions_on_aggregations() -> None:
    _, *changes = actions("@a = count(); trunc(@a); trunc(@a, 5); printa(@a); printa(@a, @a);")
    assert [action_count(one) for one in changes] == [1, 2, 1, 2]
    assert record_size(changes, 256) == 16 + 8 * 6


def test_size_of_strings_and_stacks_follows_the_options() -> None:
    assert record_size(actions("trace(execname);"), 1024) == 16 + 1024
    assert record_size(actions("stack();"), 256, 5) == 16 + 40


@pytest.mark.parametrize(
    ("declared", "value", "values"),
    [
        ("", "arg0", 1),
        ("", "execname", 256),
        ("struct s { int a : 1, b : 1, c : 1; struct s *next; char text[16]; };", "*(struct s *)arg0", 22),
        ("union u { int a; short b[2]; };", "*(union u *)arg0", 5),
        ("struct s; ", "(struct s *)arg0", 1),
        ("struct a { int x[60000]; int y[60000]; int z[60000]; };", "*(struct a *)arg0", PRINTED),
    ],
)
def test_print_writes_values_that_the_type_has(declared: str, value: str, values: int) -> None:
    found = check(
        f"{declared} BEGIN {{ print({value}); }} BEGIN {{ trace(1); print({value}); print({value}); }}"
    ).clauses
    assert [printed_values(one.actions, 256) for one in found] == [values, 2 * values]


def test_types_nested_in_each_other_are_not_counted_to_the_end() -> None:
    """Thirty levels of two each are a thousand million values."""
    levels = "".join(f"union l{level} {{ union l{level - 1} a, b; }};" for level in range(1, 31))
    found = check(f"union l0 {{ int a; }}; {levels} BEGIN {{ print(*(union l30 *)arg0); }}").clauses[0]
    assert printed_values(found.actions, 256) == PRINTED

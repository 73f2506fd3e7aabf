"""Aggregating statements and the actions on aggregations."""

import pytest

from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import AggregatingFunction
from kinst.runtime.dlang.types import types
from tests.runtime.clauses.compile.acting import action, actions, check, error_of, tag_of


def aggregate(text: str) -> program.Aggregate:
    found = action(text)
    assert isinstance(found, program.Aggregate)
    return found


def test_count() -> None:
    made = aggregate("@ = count();")
    assert made.aggregation.name == "_"
    assert made.aggregation.function is AggregatingFunction.COUNT
    assert (made.keys, made.value, made.increment) == ((), None, None)


def test_keys_and_value() -> None:
    made = aggregate('@a[pid, "x", stack(3), sym(arg0)] = sum(arg1);')
    assert [type(key) for key in made.keys] == [program.Builtin, program.Text, program.StackKey, program.SymbolKey]
    assert made.aggregation.keys[1:] == (types.STRING, types.STACK, types.SYMBOL)
    assert made.value is not None and made.value.type == types.INT64


def test_values_are_signed_words() -> None:
    """Differences of times may be negative: libdtrace prints them so."""
    value = aggregate("@ = sum(timestamp - 5);").value
    assert value is not None and value.type == types.INT64


def test_distributions() -> None:
    assert aggregate("@ = quantize(arg0, 3);").increment == program.Integer(types.INT64, 3)
    assert aggregate("@ = lquantize(arg0, 0, 100, 10);").aggregation.parameters == (0, 100, 10)
    assert aggregate("@ = lquantize(arg0, -5, 10);").aggregation.parameters == (-5, 10, 1)
    assert aggregate("@ = lquantize(arg0, 0, 10, 3, arg1);").increment is not None
    assert aggregate("@ = lquantize(arg0, 0, 10, 3);").aggregation.parameters == (0, 9, 3)  # the last step ends at 9
    assert aggregate("@ = llquantize(arg0, 10, 0, 6, 20);").aggregation.parameters == (10, 0, 6, 20)
    assert aggregate("@ = llquantize(arg0, 10, 0, 6, 20, 2);").increment == program.Integer(types.INT64, 2)


def test_uses_of_one_name_are_one_aggregation() -> None:
    made = check("BEGIN { @a[1] = count(); } END { @b = count(); @a[2] = count(); }")
    assert [(one.number, one.name) for one in made.aggregations] == [(1, "a"), (2, "b")]
    last = made.clauses[1].actions[1]
    assert isinstance(last, program.Aggregate) and last.aggregation is made.aggregations[0]


@pytest.mark.parametrize(
    ("tag", "statement"),
    [
        ("D_IDENT_UNDEF", "@a;"),
        ("D_AGG_NULL", "@a[1, 2] = count(); @a[1, 2];"),
        ("D_AGG_FUNC", "@a = 1;"),
        ("D_AGG_FUNC", "@a = trace(1);"),
        ("D_AGG_FUNC", "@a = strlen(execname);"),
        ("D_FUNC_UNDEF", "@a = nosuch(1);"),
        ("D_FUNC_IDKIND", "@a = timestamp(1);"),
        ("D_AGG_REDEF", "@a = count(); @a = sum(1);"),
        ("D_AGG_MDIM", "@a[1][2] = count();"),
        ("D_AGG_MDIM", "@a[1][2];"),
        ("D_AGG_SCALAR", "@a = sum(execname);"),
        ("D_AGG_SCALAR", '@a = quantize("a");'),
        ("D_PROTO_LEN", "@a = count(1);"),
        ("D_PROTO_LEN", "@a = sum();"),
        ("D_PROTO_LEN", "@a = sum(1, 2);"),
        ("D_PROTO_LEN", "@a = avg(1, 2);"),
        ("D_PROTO_LEN", "@a = quantize();"),
        ("D_PROTO_LEN", "@a = quantize(1, 2, 3);"),
        ("D_PROTO_LEN", "@a = lquantize(1);"),
        ("D_PROTO_LEN", "@a = lquantize(1, 2, 3, 4, 5, 6);"),
        ("D_PROTO_LEN", "@a = llquantize(1, 10, 0, 6, 10, 1, 2);"),
        ("D_PROTO_ARG", "@a = quantize(1, execname);"),
        ("D_PROTO_ARG", '@a = lquantize(1, "a", 10);'),
        ("D_PROTO_LEN", "@a[1] = count(); @a[1, 2] = count();"),
        ("D_PROTO_LEN", "@a[1] = count(); @a = count();"),
        ("D_PROTO_ARG", "@a[1] = count(); @a[execname] = count();"),
        ("D_PROTO_ARG", "@a[stack()] = count(); @a[1] = count();"),
        ("D_KEY_TYPE", "@a[(void)1] = count();"),
        ("D_KEY_TYPE", "@a[trace(1)] = count();"),
        ("D_KEY_TYPE", "@a[count()] = count();"),
        ("D_KEY_TYPE", "@b = count(); @a[@b] = count();"),
        ("D_IDENT_UNDEF", "@a[nosuch] = count();"),
        ("D_IDENT_UNDEF", "@a = sum(nosuch);"),
        ("D_LQUANT_BASETYPE", "@a = lquantize(1, pid, 10);"),
        ("D_LQUANT_BASEVAL", "@a = lquantize(1, 1 << 40, 10);"),
        ("D_LQUANT_LIMTYPE", "@a = lquantize(1, 0, pid);"),
        ("D_LQUANT_LIMVAL", "@a = lquantize(1, 0, 10000000000);"),
        ("D_LQUANT_MISMATCH", "@a = lquantize(1, 10, 0);"),
        ("D_LQUANT_STEPTYPE", "@a = lquantize(1, 0, 10, 0);"),
        ("D_LQUANT_STEPTYPE", "@a = lquantize(1, 0, 10, -1);"),
        ("D_LQUANT_STEPTYPE", "@a = lquantize(1, 0, 10, pid);"),
        ("D_LQUANT_STEPVAL", "@a = lquantize(1, 0, 100000, 65536);"),
        ("D_LQUANT_STEPLARGE", "@a = lquantize(1, 0, 10, 11);"),
        ("D_LQUANT_STEPLARGE", "@a = lquantize(1, 10, 10);"),
        ("D_LQUANT_STEPSMALL", "@a = lquantize(1, 0, 65536);"),
        ("D_LQUANT_MATCHBASE", "@a = lquantize(1, 0, 10); @a = lquantize(1, 1, 11);"),
        ("D_LQUANT_MATCHLIM", "@a = lquantize(1, 0, 10); @a = lquantize(1, 0, 20);"),
        ("D_LQUANT_MATCHSTEP", "@a = lquantize(1, 0, 10); @a = lquantize(1, 0, 10, 2);"),
        ("D_LLQUANT_FACTORTYPE", "@a = llquantize(1, pid, 0, 6, 10);"),
        ("D_LLQUANT_HIGHVAL", "@a = llquantize(1, 10, 0, 65536, 10);"),
        ("D_LLQUANT_FACTORSMALL", "@a = llquantize(1, 1, 0, 6, 10);"),
        ("D_LLQUANT_MAGRANGE", "@a = llquantize(1, 10, 6, 6, 10);"),
        ("D_LLQUANT_FACTORNSTEPS", "@a = llquantize(1, 10, 0, 6, 5);"),
        ("D_LLQUANT_FACTOREVEN", "@a = llquantize(1, 10, 0, 6, 15);"),
        ("D_LLQUANT_FACTOREVEN", "@a = llquantize(1, 10, 0, 6, 30);"),
        ("D_LLQUANT_MAGTOOBIG", "@a = llquantize(1, 10, 0, 100, 10);"),
        ("D_LLQUANT_MAGTOOBIG", "@a = llquantize(1, 65535, 0, 65535, 65535);"),
        ("D_LLQUANT_NSTEPMATCH", "@a = llquantize(1, 10, 0, 6, 10); @a = llquantize(1, 10, 0, 6, 20);"),
        ("D_STACK_SIZE", "@a[stack(0)] = count();"),
        ("D_STACK_SIZE", "@a[stack(pid)] = count();"),
        ("D_STACK_PROTO", "@a[stack(1, 2)] = count();"),
        ("D_USTACK_FRAMES", "@a[ustack(-1)] = count();"),
        ("D_USTACK_STRSIZE", "@a[ustack(1, -1)] = count();"),
        ("D_USTACK_PROTO", "@a[ustack(1, 2, 3)] = count();"),
        ("D_PROTO_LEN", "@a[sym()] = count();"),
    ],
)
def test_errors(tag: str, statement: str) -> None:
    assert tag_of(statement) == tag


def test_prototype_of_keys_in_messages() -> None:
    message = error_of("@a[1] = count(); @a[execname] = count();").message
    assert message.splitlines() == [
        "@a[ ] key #1 is incompatible with prototype:",
        "\tprototype: int",
        "\t argument: string",
    ]


# -- actions on aggregations ------------------------------------------------------------------------------------------


def test_changes() -> None:
    _, clear, trunc, least, normal, plain = actions(
        "@a = sum(1); clear(@a); trunc(@a); trunc(@a, 5); normalize(@a, 1000); denormalize(@a);"
    )
    made = [one for one in (clear, trunc, least, normal, plain) if isinstance(one, program.ChangeAggregation)]
    assert [one.kind for one in made] == ["clear", "trunc", "trunc", "normalize", "denormalize"]
    assert [one.argument for one in made] == [
        None,
        None,
        program.Integer(types.INT64, 5),
        program.Integer(types.INT64, 1000),
        None,
    ]


def test_printa() -> None:
    made = action('@a[pid] = sum(1); @b[pid] = count(); printa("%d %@d %@d\\n", @a, @b);')
    assert isinstance(made, program.Printa)
    assert made.format == b"%d %@d %@d\n"
    assert [one.name for one in made.aggregations] == ["a", "b"]
    bare = action("@a = count(); printa(@a);")
    assert isinstance(bare, program.Printa) and bare.format is None


@pytest.mark.parametrize(
    ("tag", "statement"),
    [
        ("D_CLEAR_PROTO", "clear();"),
        ("D_CLEAR_PROTO", "@a = count(); clear(@a, 1);"),
        ("D_CLEAR_AGGARG", "clear(1);"),
        ("D_CLEAR_AGGARG", "clear(execname);"),
        ("D_CLEAR_AGGBAD", "clear(@a);"),
        ("D_TRUNC_PROTO", "trunc();"),
        ("D_TRUNC_PROTO", "@a = count(); trunc(@a, 1, 2);"),
        ("D_TRUNC_AGGARG", "trunc(1);"),
        ("D_TRUNC_AGGBAD", "trunc(@a);"),
        ("D_TRUNC_SCALAR", "@a = count(); trunc(@a, execname);"),
        ("D_NORMALIZE_PROTO", "@a = count(); normalize(@a);"),
        ("D_NORMALIZE_PROTO", "normalize();"),
        ("D_NORMALIZE_AGGARG", "normalize(1, 2);"),
        ("D_NORMALIZE_AGGBAD", "normalize(@a, 2);"),
        ("D_NORMALIZE_SCALAR", "@a = count(); normalize(@a, execname);"),
        ("D_NORMALIZE_PROTO", "@a = count(); denormalize(@a, 1);"),
        ("D_PROTO_LEN", "printa();"),
        ("D_PRINTA_PROTO", 'printa("%d");'),
        ("D_PRINTA_AGGARG", "printa(1);"),
        ("D_PRINTA_AGGARG", 'printa("%@d", 1);'),
        ("D_PRINTA_AGGARG", "@a = count(); printa(@a, 1);"),
        ("D_PRINTA_AGGBAD", "printa(@a);"),
        ("D_PRINTA_AGGBAD", "BEGIN { printa(@a); } END { @a = count(); }"),
        ("D_PRINTA_AGGKEY", "@a = count(); @b[1] = count(); printa(@a, @b);"),
        ("D_PRINTA_AGGPROTO", "@a[execname] = count(); @b[1] = count(); printa(@a, @b);"),
        ("D_PRINTF_ARG_TYPE", '@a[execname] = count(); printa("%d", @a);'),
        ("D_PRINTF_ARG_TYPE", '@a = count(); printa("%@s", @a);'),
        ("D_PRINTF_ARG_PROTO", '@a = count(); printa("%d %@d", @a);'),
        ("D_SYNTAX", '@a = count(); printa("%q", @a);'),
        ("D_PRINTF_FMT_EMPTY", '@a = count(); printa("", @a);'),
    ],
)
def test_errors_of_actions(tag: str, statement: str) -> None:
    assert tag_of(statement) == tag

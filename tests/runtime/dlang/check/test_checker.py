"""Programs as a whole: clauses, what they share, and what no program can do to the checker."""

import pytest

from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Scope
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types import types as d
from kinst.runtime.dlang.types.types import bare
from tests.runtime.dlang.check.checked import check, checker, tag


def test_each_description_is_a_clause_of_its_own_types() -> None:
    clauses = check("fbt:::entry, BEGIN, fbt:::return /arg0/ { trace(timestamp); }").clauses
    assert [clause.description for clause in clauses] == ["fbt:::entry", "BEGIN", "fbt:::return"]
    assert all(clause.predicate is not None and len(clause.actions) == 1 for clause in clauses)
    assert tag("fbt:::entry, BEGIN { trace(args[0]); }") == "D_ARGS_IDX"


def test_what_matches_nothing_is_checked_but_yields_no_clause() -> None:
    assert check("zero:::, BEGIN { x = 1; }").clauses[0].description == "BEGIN"
    assert tag("zero::: { trace(nosuch); }") == "D_IDENT_UNDEF"


def test_the_lookup_of_probes_fails_where_the_description_stands() -> None:
    with pytest.raises(DError) as error:
        check("BEGIN { } \n none:::x { }")
    assert error.value.tag == "D_PDESC_ZERO"
    assert error.value.span is not None
    assert (error.value.span.line, error.value.span.column) == (2, 2)


def test_actions_are_numbered_as_dtrace_numbers_them() -> None:
    clause = check(
        'BEGIN { x = 1; printf("%d %d", 1, 2); @[x, 1] = count(); trace(x); printf("a"); trace(1); }'
    ).clauses[0]
    assert clause.action_numbers == (1, 2, 4, 8, 9, 10)


def test_a_record_has_the_size_that_decides_about_drops() -> None:
    sizes = [
        clause.record_size
        for clause in check('BEGIN { trace(1L); } BEGIN { x = 1; } BEGIN { } BEGIN { trace("a"); }').clauses
    ]
    assert sizes == [24, 0, 12, 272]


def test_a_program_tells_its_variables_types_and_aggregations() -> None:
    checked = check('struct s { int a; }; self string t; BEGIN { x = 1L; a["k", 2] = execname; @c[pid] = count(); }')
    known = {(variable.scope, variable.name): variable for variable in checked.variables}
    assert bare(known[Scope.GLOBAL, "x"].type) == d.LONG
    assert known[Scope.GLOBAL, "a"].keys == (d.STRING, d.INT)
    assert known[Scope.THREAD, "t"].type == d.STRING
    assert [aggregation.name for aggregation in checked.aggregations] == ["c"]
    assert [getattr(kind, "tag", "") for kind in checked.types] == ["s"]


def test_programs_of_a_session_share_globals_and_keep_their_clause_locals() -> None:
    by = checker()
    check("BEGIN { x = 1; this->y = 1; }", by)
    assert check("inline int two = 2; BEGIN { trace(x); }", by).clauses
    with pytest.raises(DError, match="has not yet been declared"):
        check("BEGIN { trace(this->y); }", by)
    checked = check('BEGIN { this->y = "text"; trace(two); }', by)
    locals_of = {variable.name for variable in checked.variables if variable.scope is Scope.CLAUSE}
    assert len(locals_of) == 2  # one of each type


def test_the_parser_asks_for_types() -> None:
    by = checker()
    assert by.is_type("proc_t") and by.is_type("uint32_t") and by.is_type("string")
    assert not by.is_type("hz") and not by.is_type("execname")
    check("BEGIN { proc_t = 1; }", by)
    assert not by.is_type("proc_t")  # a variable hides the image's type


def test_members_are_loads_at_constant_offsets() -> None:
    action = (
        check("BEGIN { trace(`proc0.p_next->u_char); trace(`table[1][2]); trace(&`proc0.p_next); }").clauses[0].actions
    )
    values = [one.value for one in action if isinstance(one, program.Trace)]
    assert isinstance(values[0], program.Load)
    assert isinstance(values[0].address, program.Binary)
    assert isinstance(values[0].address.left, program.Load)
    assert parts(values[0].address.left.address) == (0x2000, 8)
    assert isinstance(values[1], program.Load) and parts(values[1].address) == (0x6000, 0x18)
    assert parts(values[2]) == (0x2000, 8)


def parts(address: program.Expression) -> tuple[int, int]:
    """Where a symbol was linked, and how far behind it."""
    assert isinstance(address, program.Binary) and address.operator == "+"
    assert isinstance(address.left, program.Linked) and isinstance(address.right, program.Integer)
    return address.left.address, address.right.value


def test_bit_fields_say_which_bits() -> None:
    action = check("fbt::: { trace(args[0]->p_flag); }").clauses[0].actions[0]
    assert isinstance(action, program.Trace) and isinstance(action.value, program.Load)
    assert action.value.bits == (1, 3)


HOSTILE = [
    "inline int a0 = arg0;"
    + "".join(f"inline int a{i + 1} = a{i} + a{i};" for i in range(60))
    + "BEGIN { trace(a60); }",
    "inline int a0[int x] = x + arg0;"
    + "".join(f"inline int a{i + 1}[int x] = a{i}[x] + a{i}[x + 1];" for i in range(60))
    + "BEGIN { trace(a60[1]); }",
    "inline int a0[int x] = x + arg0;"
    + "".join(f"inline int a{i + 1}[int x] = a{i}[x];" for i in range(900))
    + "BEGIN { trace(a900[1]); }",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_inlines_cannot_make_a_program_explode(text: str) -> None:
    assert tag(text) == "D_SYNTAX"


def test_long_chains_are_no_deep_trees() -> None:
    chain = " + ".join(["arg0"] * 100)
    choice = "".join(f"arg0 == {i} ? {i} : " for i in range(100)) + "0"
    assert check(f"BEGIN {{ trace({chain}); trace({choice}); }}").clauses


def test_a_script_of_500_lines_is_checked() -> None:
    clause = (
        'fbt:::entry\n/self->on != 0 && execname == "x"/\n{\n\tself->on = timestamp;\n\tthis->p = args[0];\n'
        '\tprintf("%d %s %d", pid, stringof(this->p->p_name), this->p->p_next->p_pid);\n'
        "\tcounts[probefunc, pid]++;\n}\n"
    )
    by = checker()
    assert len(check(clause * 63, by).clauses) == 63


def test_what_is_less_stable_than_asked_for_is_refused() -> None:
    minimum = "Evolving/Evolving/Common"
    assert tag("BEGIN { trace(`hz); }", checker(amin=minimum)) == "D_ATTR_MIN"
    assert tag("BEGIN { trace(curthread); }", checker(amin=minimum)) == "D_ATTR_MIN"
    assert tag("BEGIN { trace(execname); }", checker(amin=minimum)) == ""
    assert tag("BEGIN { trace(`hz); }", checker(amin="Private/Private/Unknown")) == ""


def test_descriptions_by_the_thousand_cost_little() -> None:
    body = "{ " + "trace(arg0 + 1); " * 1000 + "}"
    clauses = check(",".join(["BEGIN"] * 2000) + body).clauses
    assert len(clauses) == 2000
    assert len({id(clause.actions) for clause in clauses}) == 1  # one body serves all

"""The grammar: what is a program, and what the parser says about what is none."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.unparse import unparse
from tests.runtime.dlang.syntax.reading import bare, clause, error_of, expression, read


def same(left: str, right: str) -> bool:
    return bare(expression(left)) == bare(expression(right))


NO_LOOPS = "D has no loops, so that each clause ends; what is to happen again is a clause at a probe, such as tick-1ms"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a << b + c", "a << (b + c)"),
        ("a < b == c > d", "(a < b) == (c > d)"),
        ("a & b == c", "a & (b == c)"),
        ("a | b ^ c & d", "a | (b ^ (c & d))"),
        ("a || b ^^ c && d", "a || (b ^^ (c && d))"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("a ? b, c : d", "a ? (b, c) : d"),
        ("a || b ? c : d", "(a || b) ? c : d"),
        ("a = b = c", "a = (b = c)"),
        ("a += b ? c : d", "a += (b ? c : d)"),
        ("a = b, c = d", "(a = b), (c = d)"),
        ("-a * !b", "(-a) * (!b)"),
        ("*a++", "*(a++)"),
        ("&a->b[c].d", "&(((a->b)[c]).d)"),
        ("(string)a + b", "((string)a) + b"),
        ("sizeof a + b", "(sizeof a) + b"),
        ("sizeof (int) + b", "(sizeof (int)) + b"),
        ("stringof a->b == c", "(stringof(a->b)) == c"),
        ("a * -b", "a * (-b)"),
        ("a - -b", "a - (-b)"),
        ("a % b / c * d", "((a % b) / c) * d"),
    ],
)
def test_operators_bind_as_in_c(text: str, meaning: str) -> None:
    assert same(text, meaning)


@pytest.mark.parametrize("operator", ["=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "<<=", ">>="])
def test_assignments(operator: str) -> None:
    node = expression(f"x {operator} 1")
    assert isinstance(node, tree.Assignment)
    assert node.operator == operator
    assert error_of(f"BEGIN {{ a + b {operator} 1; }}").message == f'syntax error near "{operator}"'
    assert error_of(f"BEGIN {{ (int)a {operator} 1; }}").tag == "D_SYNTAX"
    assert error_of(f"BEGIN {{ a ? b : c {operator} 1; }}").tag == "D_SYNTAX"


def test_increments_are_told_apart() -> None:
    assert [getattr(expression(text), "operator", None) for text in ("++a", "--a", "a++", "a--")] == [
        "++x",
        "--x",
        "x++",
        "x--",
    ]


def test_names_of_all_kinds() -> None:
    assert bare(expression("self->x")) == ("ScopedName", None, "self", "x")
    assert bare(expression("this->string")) == ("ScopedName", None, "this", "string")
    assert bare(expression("`x")) == ("ExternalName", None, "", "x")
    assert bare(expression("kernel.ko`x")) == ("ExternalName", None, "kernel.ko", "x")
    assert bare(expression("@")) == ("AggregationName", None, "_", None)
    assert bare(expression("@a")) == ("AggregationName", None, "a", None)
    assert bare(expression("@a[x, 1]"))[3] != ()  # type: ignore[index]
    assert bare(expression("f()")) == ("Call", None, "f", ())
    assert bare(expression("m`f()")) == ("Call", None, "m`f", ())


@pytest.mark.parametrize("word", ["string", "int", "if", "probe", "self", "counter", "vnode_t", "sizeof"])
def test_members_may_have_the_names_of_keywords(word: str) -> None:
    for operator in (".", "->"):
        node = expression(f"a{operator}{word}")
        assert isinstance(node, tree.MemberAccess)
        assert (node.name, node.through_pointer) == (word, operator == "->")


def test_casts_are_casts_only_of_types() -> None:
    assert isinstance(expression("(vnode_t *)x"), tree.Cast)
    assert isinstance(expression("(struct anything *)x"), tree.Cast)
    assert isinstance(expression("(kernel`foo_t *)x"), tree.Cast)
    assert isinstance(expression("(kernel`struct foo *)x"), tree.Cast)
    assert isinstance(expression("(unknown_t) * x"), tree.Binary)
    assert isinstance(expression("(count)(x)"), tree.Call)


def test_a_module_may_stand_before_the_word_struct_or_after() -> None:
    before, after = expression("(kernel`struct foo *)x"), expression("(struct kernel`foo *)x")
    assert bare(before) == bare(after)


def test_the_text_says_what_is_a_type() -> None:
    declared, _, used = read("typedef int mine; BEGIN { } END { (mine)x; }").items
    assert isinstance(declared, tree.Declaration)
    assert isinstance(used, tree.Clause)
    assert used.statements is not None
    (statement,) = used.statements
    assert isinstance(statement, tree.ExpressionStatement)
    assert isinstance(statement.expression, tree.Cast)
    hidden = read("int vnode_t; BEGIN { (vnode_t) * x; }").items[-1]
    assert isinstance(hidden, tree.Clause)
    assert isinstance(hidden.statements[0].expression, tree.Binary)  # type: ignore[index, union-attr]


def test_what_is_assigned_is_a_variable_even_if_it_is_a_type_somewhere() -> None:
    assert clause("BEGIN { vnode_t = 1; trace(vnode_t); proc_t[1] = 2; psinfo_t++; }").statements is not None
    assert error_of("BEGIN { trace(vnode_t); }").message == 'syntax error near "vnode_t"'


def test_d_names_win_against_types_of_the_image() -> None:
    unit = read("BEGIN { trace(cpu); trace(id); }", types=["cpu", "id"])
    assert isinstance(unit.items[0], tree.Clause)


@pytest.mark.parametrize(
    "text",
    [
        "sizeof (vnode_t)",
        "sizeof (int *[3])",
        "sizeof x",
        "offsetof(struct foo, bar)",
        "offsetof(vnode_t, vnode_t)",
        "xlate <psinfo_t>(x)->pr_pid",
        "xlate <psinfo_t *>(x)",
        "stringof(x)",
        "stringof x",
        "stringof (char *)x",
        "(int (*)(int, char *))x",
        "(unsigned long long)x",
        "(const char *)x",
        "f(a, b = 1, c ? d : e)",
        "a[1, 2][3]",
        "*(int *)x = 3",
        "(x) = 3",
        "((struct foo *)arg0)->x.y[3]->z",
    ],
)
def test_expressions_that_are_right(text: str) -> None:
    assert not isinstance(expression(text), tree.Name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BEGIN { a b; }", 'syntax error near "b"'),
        ("BEGIN { a; b", "syntax error near end of input"),
        ("BEGIN { trace(; }", 'syntax error near ";"'),
        ("BEGIN { @a[] = count(); }", 'syntax error near "]"'),
        ("BEGIN { f(,); }", 'syntax error near ","'),
        ("BEGIN { a ? b; }", 'syntax error near ";"'),
        ("BEGIN { for (;;) ; }", f'syntax error near "for": {NO_LOOPS}'),
        ("BEGIN { while (1) ; }", f'syntax error near "while": {NO_LOOPS}'),
        ("BEGIN { int x; }", 'syntax error near "int"'),
        ("BEGIN { { a; } }", 'syntax error near "{"'),
        ("BEGIN { if x a; }", 'syntax error near "x"'),
        ("BEGIN { if (x) }", 'syntax error near "}"'),
        ("BEGIN { if (x) a }", 'syntax error near "}"'),
        ("BEGIN { else a; }", 'syntax error near "else"'),
        ("BEGIN { sizeof (int) x; }", 'syntax error near "x"'),
        ("BEGIN { x.1; }", "floating-point constants are not permitted"),
        ("BEGIN { x->; }", 'syntax error near ";"'),
        ("BEGIN, { }", 'syntax error near "{"'),
        ("BEGIN /x { }", 'syntax error near "{"'),
        ("BEGIN /x/ END", "syntax error near end of input"),
        ("BEGIN /x/ /y/ { }", "expected actions { } following probe description and predicate"),
        ("BEGIN // { }", 'syntax error near "/"'),
        ("{ }", 'syntax error near "{"'),
        ("/x/ { }", 'syntax error near "/"'),
        (", { }", 'syntax error near ","'),
        ("int x = 3;", 'syntax error near "="'),
        ("int x", "syntax error near end of input"),
        ("int x BEGIN { }", 'syntax error near "BEGIN"'),
        ("struct foo { };", 'syntax error near "}"'),
        ("struct;", 'syntax error near ";"'),
        ("enum { };", 'syntax error near "}"'),
        ("inline int x;", 'syntax error near ";"'),
        ("static inline int x = 1;", 'syntax error near "inline"'),
        ("translator psinfo_t { };", 'syntax error near "{"'),
        ("translator psinfo_t < proc_t *P > { }", "syntax error near end of input"),
        ("provider p { probe x; };", 'syntax error near ";"'),
        ("counter x;", 'syntax error near "counter"'),
        ("import x;", 'syntax error near "import"'),
        ("BEGIN", "expected predicate and/or actions following probe description"),
        ("BEGIN END { }", "expected predicate and/or actions following probe description"),
        ("BEGIN /x/", "expected actions { } following probe description and predicate"),
        ("BEGIN\n#define x\n{ }", "invalid control directive: #define (-C runs the C preprocessor first)"),
        ("BEGIN\n#nothing x\n{ }", "invalid control directive: #nothing"),
    ],
)
def test_what_is_no_program(text: str, message: str) -> None:
    for suffix in ("", "\n"):
        assert error_of(text + suffix).message == message


def test_only_a_word_can_be_called() -> None:
    assert error_of("BEGIN { 1(2); }").tag == "D_FUNC_IDENT"
    assert error_of("BEGIN { self->x(2); }").tag == "D_FUNC_IDENT"


def test_a_description_needs_no_actions_where_it_is_one() -> None:
    assert clause("BEGIN", is_description=True).statements is None
    assert clause("BEGIN /x/", is_description=True).predicate is not None
    assert clause("vnode_t { }", is_description=True).descriptions[0].text == "vnode_t"
    assert len(read("BEGIN END { }", is_description=True).items) == 2
    assert clause("BEGIN { }").statements == ()


def test_empty_programs() -> None:
    for text in ("", "\n", "/* nothing */", "#pragma D option quiet\n"):
        error = error_of(text)
        assert error.span is not None
        assert (error.tag, error.span.line) == ("D_EMPTY", 1 + text.count("\n"))
        assert all(isinstance(item, tree.Pragma) for item in read(text, allows_empty=True).items)


def test_a_star_after_a_type_is_no_glob() -> None:
    (item,) = read("vnode_t*x;").items
    assert isinstance(item, tree.Declaration)
    (item,) = read("int*x;").items
    assert isinstance(item, tree.Declaration)
    assert clause("vnode*{ }").descriptions[0].text == "vnode*"
    assert clause("int*:x { }").descriptions[0].text == "int*:x"


@pytest.mark.parametrize(
    "text",
    [
        "int x, *y, z[3];",
        "self int x; this string s; self string names[int, string];",
        "int a[string, vnode_t *]; int b[int x, int y];",
        "unsigned long long int x; long unsigned y; const volatile char *const p;",
        "struct foo { int a: 3, b: 4; int: 2; struct { char c; }; union { int d; } e, *f; };",
        "struct foo; struct foo *x; struct foo { struct foo *next; } y;",
        "enum color { RED, GREEN = 3, BLUE = GREEN + 1 } c; enum { X };",
        "typedef int (*handler)(int, char *, ...); typedef int many[3][4]; handler *h;",
        "int f(), g(void), (*h)(int), *(*i)[3]; extern int j; static int k;",
        "typedef int t; struct s { t t; }; t x; struct s y;",
        "kernel`foo_t *x; kernel`struct foo *y; struct kernel`foo *z; enum kernel`e w;",
        "inline int N = 3; inline int sq[int x] = x * x; inline string *s[int a, string b] = 0;",
        "translator psinfo_t < proc_t *P > { pr_pid = P->p_pid; pr_x = P->x ? 1 : 2; };",
        "translator psinfo_t < proc_t *P > { }; provider none { };",
        "provider p { probe a(int, char *); probe b(int x) : (psinfo_t *, int y); probe c(void); probe d(); };",
        "auto int a; register int b; restrict int *c; int d;",
        "string s; string t[int];",
        "size_t x; uint64_t y[size_t];",
    ],
)
def test_declarations(text: str) -> None:
    unit = read(text)
    assert not any(isinstance(item, tree.Clause) for item in unit.items)
    assert bare(read(unparse(unit))) == bare(unit)


def test_declarators_apply_from_the_name_outwards() -> None:
    (item,) = read("int *(*f[3])(char);").items
    assert isinstance(item, tree.Declaration)
    kinds = [type(part).__name__ for part in item.declarators[0].parts]
    assert kinds == ["ArrayPart", "PointerPart", "FunctionPart", "PointerPart"]


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("int struct foo x;", "D_DECL_COMBO"),
        ("struct foo int x;", "D_DECL_COMBO"),
        ("string int x;", "D_DECL_COMBO"),
        ("unsigned vnode_t x;", "D_DECL_SIGNINT"),
        ("int x[int, ...];", "D_DECL_PROTO_VARARGS"),
        ("provider p { probe a(int, ...); };", "D_DECL_PROTO_VARARGS"),
        ("inline int f[int a, ...] = 1;", "D_DECL_PROTO_VARARGS"),
    ],
)
def test_declarations_that_need_nothing_but_the_text_to_be_wrong(text: str, tag: str) -> None:
    assert error_of(text).tag == tag


def test_if_else() -> None:
    node = clause("BEGIN { if (a) b; else if (c) { d; e } else f; g; if (h) ; }")
    assert bare(node.statements) == bare(
        clause("BEGIN { if (a) { b } else { if (c) { d; e; } else { f; } } g; if (h) { } }").statements
    )
    assert node.statements is not None
    assert [type(one).__name__ for one in node.statements] == ["If", "ExpressionStatement", "If"]


def test_an_else_belongs_to_the_nearest_if() -> None:
    assert bare(clause("BEGIN { if (a) if (b) c; else d; }")) == bare(clause("BEGIN { if (a) { if (b) c; else d; } }"))


# -- programs without mercy

_DEEP = 1_500  # fifteen times what is allowed


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN { " + "(" * 100_000,
        "BEGIN { x = " + "(" * _DEEP + "1" + ")" * _DEEP + "; }",
        "BEGIN { x = " + "-" * _DEEP + "1; }",
        "BEGIN { x = " + "!" * _DEEP + "1; }",
        "BEGIN { x = " + "1+" * _DEEP + "1; }",
        "BEGIN { x = " + "(1+" * _DEEP + "1; }",
        "BEGIN { x = " + "1," * _DEEP + "1; }",
        "BEGIN { " + "x=" * _DEEP + "1; }",
        "BEGIN { " + "x?x:" * _DEEP + "1; }",
        "BEGIN { " + "x?" * _DEEP + "1; }",
        "BEGIN { x" + ".x" * _DEEP + "; }",
        "BEGIN { x" + "[1]" * _DEEP + "; }",
        "BEGIN { " + "f(" * _DEEP + "; }",
        "BEGIN { " + "@a[" * _DEEP + "; }",
        "BEGIN { " + "(int)" * _DEEP + "x; }",
        "BEGIN { " + "sizeof " * _DEEP + "x; }",
        "BEGIN { " + "sizeof(int[" * _DEEP + "; }",
        "BEGIN { " + "if (1) " * _DEEP + "; }",
        "BEGIN { " + "if (1) { " * _DEEP + "} " * _DEEP + "}",
        "BEGIN { " + "if (1) ; else " * _DEEP + ";}",
        "int " + "*" * _DEEP + "x;",
        "int " + "(" * _DEEP + "x;",
        "int x" + "[1]" * _DEEP + ";",
        "int x" + "(int (" * _DEEP + ";",
        "struct { " * _DEEP,
    ],
)
def test_programs_that_are_too_deep_are_refused(text: str) -> None:
    assert error_of(text).tag == "D_SYNTAX"


@pytest.mark.parametrize("depth", [20, 100])
def test_programs_that_are_deep_are_not(depth: int) -> None:
    read("BEGIN { x = " + "(" * depth + "1" + ")" * depth + "; }")
    read("BEGIN { x = " + "1 + " * depth + "1; }")
    read("BEGIN { " + "if (1) { " * depth + "} " * depth + "}")
    read("BEGIN { " + "if (1) ; else " * depth + ";}")


def test_trees_within_trees_are_counted_together() -> None:
    """A chain of a hundred in each of a hundred parentheses is a tree of ten thousand."""
    text = "1"
    for _ in range(100):
        text = f"({text})" + "+1" * 100
    assert error_of(f"BEGIN {{ x = {text}; }}").tag == "D_SYNTAX"


def test_long_is_not_deep() -> None:
    long_string = "x" * 1_000_000
    assert isinstance(expression(f'"{long_string}"'), tree.StringLiteral)
    unit = read("BEGIN { " + "x = 1; " * 5_000 + "}")
    assert isinstance(unit.items[0], tree.Clause)
    assert len(unit.items[0].statements or ()) == 5_000


_WORDS = """
    BEGIN fbt::f*:entry 12 0x1f 08 'a' "s" x y self this -> ->x . , ; : :: { } ( ) [ ] / // /* */ + - * % & | ^
    ~ ! ? = == != < > <= >= << >> && || ^^ += ++ -- ... @ @a @a[ ` `x k`x $1 $$1 $pid $nope int char unsigned long
    string struct union enum typedef inline translator provider probe sizeof stringof offsetof xlate if else const
    static vnode_t size_t psinfo_t count() #pragma #line D option \n \t \\ # " ' while self->x this->y (int) 1.5"""


@settings(max_examples=150, deadline=None)
@given(text=st.lists(st.sampled_from(_WORDS.split(" ")), max_size=40).map(" ".join), is_description=st.booleans())
def test_any_words_make_a_program_or_an_error(text: str, *, is_description: bool) -> None:
    _read_or_refuse(text, is_description=is_description)


_TEXT = """
    typedef struct foo { int a : 3 ; struct { char * c ; } ; enum { A , B = 2 } e ; int ( * fn ) ( int , ... ) ; }
    foo_t ; self int x ; int a [ string , int ] ; inline int f [ int n ] = n + 1 ;
    translator psinfo_t < proc_t * P > { pid = P ->pid ; } ; provider p { probe b ( int ) : ( char * c ) ; } ;
    BEGIN , fbt::f*:entry , 12 / self->x && ( a [ "s" , 1 ] / 2 ) == 'c' / { @n [ stack() ] = sum( arg0 ) ;
    x = y ? 1 : 2 , 3 ; trace( ( ( foo_t * ) x ) ->a ) ; if ( x ) { y ; } else if ( z ) * p = sizeof ( int ) ;
    stringof x ; xlate < psinfo_t > ( q ) ->pid ; offsetof ( foo_t , a ) ; } END { `x + kernel`y << $pid ; }"""
_PROGRAM = _TEXT.split(" ")


@settings(max_examples=150, deadline=None)
@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(_PROGRAM)), st.integers(0, 3), st.sampled_from(_WORDS.split(" "))), max_size=4
    )
)
def test_a_program_with_a_few_words_changed_makes_another_or_an_error(edits: list[tuple[int, int, str]]) -> None:
    words = list(_PROGRAM)
    for place, removed, word in edits:
        words[place : place + removed] = [word]
    _read_or_refuse(" ".join(words), is_description=False)
    if not edits:
        assert len(read(" ".join(words)).items) == 8


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60))
def test_any_characters_make_a_program_or_an_error(text: str) -> None:
    _read_or_refuse(text, is_description=False)
    _read_or_refuse(f"BEGIN {{ {text} }}", is_description=False)


def _read_or_refuse(text: str, *, is_description: bool) -> None:
    try:
        unit = read(text, is_description=is_description, allows_empty=True)
    except DError as error:
        assert error.message
        assert error.span is not None
        assert error.span.column >= 1
    else:
        text = unparse(unit)
        if "#pragma" not in text:
            assert bare(read(text, is_description=is_description, allows_empty=True)) == bare(unit)

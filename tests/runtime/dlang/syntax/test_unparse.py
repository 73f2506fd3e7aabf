"""What -d shows is the program."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.sugar import expand
from kinst.runtime.dlang.syntax.unparse import unparse
from tests.runtime.dlang.syntax.reading import NOWHERE, bare, expression, read

SCRIPT = """#pragma D option quiet
#pragma D binding "1.5" x
inline int N = 3;
dtrace:::BEGIN,fbt::vfs_*:entry
/self->ts && (arg0 & 1) != 0/ { self->ts=timestamp; @[execname,"a\\n"] = count(); printf("%d", (int)x);
  if (a) b; else if (c) d; else { e; f } }
END / * p / { }
"""


def test_a_program_in_the_style_of_dtrace() -> None:
    assert unparse(read(SCRIPT)) == (
        "#pragma D option quiet\n"
        '#pragma D binding "1.5" x\n'
        "inline int N = 3;\n"
        "dtrace:::BEGIN,\nfbt::vfs_*:entry\n/self->ts && (arg0 & 1) != 0/\n{\n"
        '\tself->ts = timestamp;\n\t@[execname, "a\\n"] = count();\n\tprintf("%d", (int)x);\n'
        "\tif (a) {\n\t\tb;\n\t} else if (c) {\n\t\td;\n\t} else {\n\t\te;\n\t\tf;\n\t}\n"
        "}\n\n"
        "END\n/ *p/\n{\n}\n\n"
    )


def test_it_can_be_read_again() -> None:
    unit = read(SCRIPT)
    assert bare(read(unparse(unit))) == bare(unit)
    sugared = expand(unit)
    assert bare(read(unparse(sugared))) == bare(sugared)


@pytest.mark.parametrize(
    "text",
    [
        "- -x",
        "-(--x)",
        "+ ++x",
        "& &x",
        "(a, b), c",
        "a = (b, c)",
        "f((a, b), c)",
        "(a ? b : c) ? d : e",
        "a - (b - c)",
        "a << (b << c)",
        "(*x)++",
        "*x++",
        "(1)[2]",
        "(1).x",
        "(@a)[2]",
        "(int)-x",
        "-(int)x",
        "sizeof ((int)x)",
        "sizeof (int)",
        "++(int)x",
        "stringof((char *)x)",
        "(stringof(x))[1]",
        "(a = b) + c",
        "self->x[1, 2]",
        "`x + kernel.ko`x",
        '"kernel-amd64"`x - kernel',
        '(struct "a b"`foo *)x',
        "x ? (a = b) : c",
        "(int (*)[3])x",
        "(struct foo *)x",
        "((struct foo *)x)->y",
        "(*(struct foo **)x)->y",
        '"\\"\\\\\\n\\t\\001\\377"',
        "'a' + 0x10UL + 017",
        "self",
        "@x = sum(1)",
    ],
)
def test_expressions_keep_their_shape(text: str) -> None:
    node = expression(text)
    unit = read(f"BEGIN {{ {text}; }}")
    assert bare(read(unparse(unit))) == bare(unit)
    assert bare(node)


_LEAVES: tuple[tree.Expression, ...] = (
    tree.IntegerLiteral(NOWHERE, 1, "int", "1"),
    tree.StringLiteral(NOWHERE, b"a\n\xff"),
    tree.Name(NOWHERE, "x"),
    tree.ScopedName(NOWHERE, "self", "y"),
    tree.ExternalName(NOWHERE, "m", "z"),
    tree.AggregationName(NOWHERE, "a", None),
)
_INT = tree.TypeName(
    NOWHERE,
    tree.Specifiers(NOWHERE, (), (), tree.BasicType(NOWHERE, ("int",))),
    tree.Declarator(NOWHERE, "", (tree.PointerPart(()),)),
)
_BINARY = "* / % + - << >> < <= > >= == != & ^ | && ^^ || ,"
_UNARY = "+ - ! ~ * & ++x --x x++ x--"


def _assignable(node: tree.Expression) -> tree.Expression:
    is_not = isinstance(node, tree.Binary | tree.Conditional | tree.Assignment | tree.Cast)
    return tree.Unary(NOWHERE, "*", node) if is_not else node


def _grow(choice: int, draw: Callable[[], tree.Expression], word: Callable[[str], str]) -> tree.Expression:
    forms: tuple[Callable[[], tree.Expression], ...] = (
        lambda: tree.Unary(NOWHERE, word(_UNARY), draw()),
        lambda: tree.Binary(NOWHERE, word(_BINARY), draw(), draw()),
        lambda: tree.Conditional(NOWHERE, draw(), draw(), draw()),
        lambda: tree.Assignment(NOWHERE, word("= += <<="), _assignable(draw()), draw()),
        lambda: tree.Cast(NOWHERE, _INT, draw()),
        lambda: tree.SizeOf(NOWHERE, draw()),
        lambda: tree.SizeOf(NOWHERE, _INT),
        lambda: tree.StringOf(NOWHERE, draw()),
        lambda: tree.Translate(NOWHERE, _INT, draw()),
        lambda: tree.Call(NOWHERE, "f", (draw(), draw())),
        lambda: tree.Index(NOWHERE, draw(), (draw(),)),
        lambda: tree.MemberAccess(NOWHERE, draw(), "m", word("-> .") == "->"),
        lambda: tree.AggregationName(NOWHERE, "a", (draw(), draw())),
    )
    return forms[choice % len(forms)]()


def _tree(numbers: list[int]) -> tree.Expression:
    """A tree that these numbers decide, as long as there are any."""
    left = iter(numbers)

    def draw() -> tree.Expression:
        number = next(left, None)
        if number is None or number % 5 == 0:
            return _LEAVES[(number or 0) // 5 % len(_LEAVES)]
        return _grow(number // 5, draw, lambda words: words.split()[next(left, 0) % len(words.split())])

    return draw()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2000), max_size=40).map(_tree))
def test_any_expression_can_be_read_again(node: tree.Expression) -> None:
    statement = tree.ExpressionStatement(NOWHERE, node)
    unit = tree.Unit((tree.Clause(NOWHERE, (tree.ProbeDescription(NOWHERE, "BEGIN"),), node, (statement,)),))
    assert bare(read(unparse(unit))) == bare(unit)

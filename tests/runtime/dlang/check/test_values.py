"""What checked expressions are worth when they run: libdtrace's arithmetic, strings, pointers, inlines, translators."""

from typing import Any

import pytest

from tests.runtime.clauses.compile.running import Script

STRUCT = "struct s { int a; string b; char c[4]; int low : 3; };"
XLATE = f'{STRUCT} translator struct s < int I > {{ a = I + 1; b = "b"; c = "xyz"; low = 2; }};'
SQUARE = "inline int square[int x] = x * x;"
NAMES = 'inline string name[int n, string other] = n == 1 ? "one" : n == 2 ? "two" : other;'

VALUES = [
    # Constants are computed in 64 bits, but for those that C says are unsigned in fewer, and cast as variables are.
    ("", "trace(-8 >> 1); trace((long)-8 >> 1); trace(1 << 40); trace(10u - 11u)", (-4, -4, 0, 2**32 - 1)),
    ("", "trace((uint64_t)-1); trace((int64_t)-1); trace((short)70000); trace(-1 > 0u)", (2**64 - 1, -1, 4464, 1)),
    ("", "trace(-7 / 2); trace(-7 % 2); trace(7 / -2); trace(sizeof(1 / 1L))", (-3, -1, -3, 8)),
    ("", 'trace(!5); trace(~0u); trace(-1u); trace(1 ? 2 : "x")', (0, 2**32 - 1, 2**32 - 1, 2)),
    # Sums and variables are wider than their type until they are recorded; a cast to something wider cuts them first.
    ("int a; int b;", "a = 2147483647; b = 1; trace(a + b > 0); trace((long)(a + b))", (1, -(2**31))),
    ("int a; unsigned int u;", "a = -1; u = 1; trace(a < u); trace(a < (int)u); trace((uint64_t)a)", (0, 1, 2**64 - 1)),
    ("char c; short s;", "c = 127; c++; trace(c); s = 40000; trace(s); trace(c + s)", (-128, -25536, -25408)),
    # Strings are pointers to their characters where a pointer is wanted.
    ("", 's = "hello"; trace(s[1]); trace(*s); trace(s + 2); trace((s + 1)[1])', (101, 104, b"llo", 108)),
    ("", 's = "b"; trace(s == "b"); trace(s < "ba"); trace("abc" == NULL); trace("" == NULL)', (1, 1, 0, 1)),
    ("", 'trace(arg0 ? "a" : NULL); s = "x"; s = 0; trace(s == NULL)', (b"a", 1)),
    # New variables: int64_t below a unary operator, the value's type where assigned.
    ("", "trace(!self->x); trace(-this->y); trace(sizeof(self->x)); x++; trace(sizeof(x))", (1, 0, 8, 8)),
    ("", "x = 'a'; y = timestamp; trace(sizeof(x)); trace(sizeof(y)); z = w = 3; trace(z + w)", (4, 8, 6)),
    # Keys are compared in all 64 bits, by value.
    ("", "self->z[-1] = 3; trace(self->z[(unsigned int)-1]); trace(self->z[-1L])", (0, 3)),
    (
        "",
        'k["x", 1] = "v"; trace(k["x", 1]); trace(k["x", 2] == 0); m[execname]++; trace(m["kernel.elf"])',
        (b"v", 1, 1),
    ),
    # Arrays, pointers and their differences.
    (
        "int a[3]; int b[2][2];",
        "a[arg0] = 9; p = &a[1]; trace(*p); trace(p - &a[0]); p++; p += 1; trace(p - &a[0]); p -= 2; trace(p[0])",
        (9, 1, 3, 9),
    ),
    (
        "int b[2][2];",
        "b[1][arg0] = 5; trace(b[1][1]); trace(*(b[1] + 1)); trace(sizeof(b)); trace(sizeof(b[0]))",
        (5, 5, 16, 8),
    ),
    ("", "p = (int *)alloca(8); *p = 3; p[1] = *p + 1; trace(p[1]); trace(*(p + 1)); trace((char)p[0])", (4, 4, 3)),
    # Structs by value, strings in them, bit-fields.
    (
        f"{STRUCT} struct s x;",
        'x.b = "abc"; x.a = 5; x.low = 3; y = x; y.b = "zz"; trace(y.b); trace(x.b); trace(y.a); trace(y.low)',
        (b"zz", b"abc", 5, 3),
    ),
    (
        f"{STRUCT} struct s x;",
        "trace(sizeof(x.b)); trace(offsetof(struct s, c)); p = &x.a; *p = 4; trace(x.a)",
        (256, 260, 4),
    ),
    ("string a[3];", 'a[1] = "x"; a[2] = a[1]; trace(a[1]); trace(a[0]); trace(a[2])', (b"x", b"", b"x")),
    (
        f"{STRUCT} struct s m[int]; self struct s k[string];",
        'm[1].a = 3; m[2].b = "q"; m[3] = m[1]; self->k["z"].a++; trace(m[3].a); trace(m[2].b); trace(self->k["z"].a)',
        (3, b"q", 1),
    ),
    (
        STRUCT,
        'p = (struct s *)alloca(268); p->b = "hey"; x = *p; r = &p->b; trace(x.b); trace(*r); trace(x.b[1])',
        (b"hey", b"hey", 101),
    ),
    ("union u { int i; char c[4]; } x;", "x.i = 0x41424344; trace(x.c[0]); x.c[1] = 66; trace(x.i)", (68, 0x41424244)),
    ("", "trace((int)((char *)0 + 5)); trace((uintptr_t)&((struct q { int a; int b; } *)0)->b)", (5, 4)),
    # Enumerators are inlines.
    (
        "enum e { A = -3, B } v;",
        "v = A; trace(v == A); trace(v < B); trace(B); trace(v); trace(v + 1)",
        (1, 1, -2, -3, -2),
    ),
    ("enum e { N = 3 }; inline int M = N + 1; int a[M];", "trace(sizeof(a)); trace(M); trace(NULL)", (16, 4, 0)),
    # Inlines: an argument is evaluated once, a constant one stays one.
    (SQUARE, "x = 3; trace(square[x++]); trace(x); trace(square[4]); trace(square[square[2]])", (9, 4, 16, 16)),
    (NAMES, 'trace(name[2, "q"]); trace(name[arg5, "q"]); trace(name[arg0, execname])', (b"two", b"q", b"one")),
    ("int x; inline int y = x;", "x = 1; y = 6; trace(x); y++; trace(x); trace(y)", (6, 7, 7)),
    ("inline uint8_t low[int x] = x;", "trace(low[arg0 + 511]); trace(low[300])", (0, 44)),
    # Translators: a member is its expression, a struct gets what is defined.
    (
        XLATE,
        "trace(xlate<struct s>(4).a); trace(xlate<struct s *>(arg0)->a); trace(xlate<struct s>(1).c)",
        (5, 2, b"xyz"),
    ),
    (
        XLATE,
        "v = xlate<struct s>(7); trace(v.a); trace(v.b); trace(stringof(v.c)); trace(v.low)",
        (8, b"b", b"xyz", 2),
    ),
    (
        f"{XLATE} inline struct s wrapped[int x] = xlate<struct s>(x * 2);",
        "trace(wrapped[arg1].a); trace((*xlate<struct s *>(1)).a)",
        (5, 2),
    ),
    # What libraries define.
    ("", "trace(curpsinfo->pr_pid == pid); trace(curpsinfo->pr_fname); trace(curcpu->cpu_id)", (1, b"kernel.elf", 0)),
]


@pytest.mark.parametrize(("declarations", "body", "expected"), VALUES)
def test_value(declarations: str, body: str, expected: tuple[Any, ...]) -> None:
    script = Script(f"{declarations} BEGIN {{ {body} }}")
    assert script.fire() == [expected]
    assert not script.faults


def test_clauses_see_the_variables_of_those_before_and_programs_the_globals() -> None:
    script = Script(
        "BEGIN { x = 1; self->y = 2; this->z = 3; } BEGIN { trace(x + self->y + this->z); }",
        'BEGIN { trace(x + self->y); this->z = "text"; trace(this->z); }',
    )
    assert script.fire() == [(6,), (3, b"text")]


def test_a_predicate_may_use_what_its_clause_assigns_and_the_other_way_round() -> None:
    script = Script("BEGIN /self->x/ { trace(1); self->x = 0; } BEGIN { self->x = 1; } BEGIN /++y/ { trace(y); }")
    assert script.fire() == [(1,)]
    assert script.fire() == [(1,), (2,)]

"""Programs as text, through lexer, parser, checker and compiler: what firings record."""

import pytest

from kinst.runtime.clauses.environment import Stack, SymbolName
from kinst.runtime.trap.faults import FaultKind
from tests.runtime.clauses.compile.running import GUEST, Script

STRUCT = "struct foo { int a; char b; long c; int low:3; int high:5; };"
RECORDS = [
    ("constants", "", 'trace(1 + 2 * 3); trace("a"); printf("%d %s", arg0, execname)', (7, b"a", (1, b"kernel.elf"))),
    ("updates", "", "x = 5; x += 3; x++; ++x; trace(x); trace(x--); trace(x); trace(x << 3 >> 1)", (10, 10, 9, 36)),
    ("order", "", "this->x = 3; this->y = this->x++ + ++this->x; trace(this->y); trace(this->x)", (8, 5)),
    ("chained", "", "a = b = 7; a <<= 2; a |= 1; a ^= 3; trace(a); a %= 7; trace(a + b); a /= 2; trace(a)", (30, 9, 1)),
    ("choices", "", 'a = 1, b = 2; trace((a, b)); trace(a ? b ? 3 : 4 : 5); trace(a ? "s" : "t")', (2, 3, b"s")),
    ("casts", "", "trace((char)300); trace((unsigned char)-1); trace(-1 > 1u); trace(~0)", (44, 255, 1, -1)),
    ("division", "", "trace(-5 / 2); trace(-5 % 3); trace(arg1 / -2); trace(arg2 % -2)", (-2, -2, -1, 1)),
    ("logic", "", "trace(arg0 ^^ arg1); trace(arg0 ^^ arg9); trace(arg0 && arg9); trace(arg9 || arg1)", (0, 1, 0, 1)),
    ("null", "", 's = "x"; trace(s == NULL); s = NULL; trace(s == NULL); s = ""; trace(s)', (0, 1, b"")),
    (
        "elements",
        "int a[int];",
        "a[1] = 3; a[2]++; a[2] += 4; trace(a[1]); trace(a[2]); a[1] = 0; trace(a[1])",
        (3, 5, 0),
    ),
    (
        "elements of a thread",
        "",
        'self->a[1, "x"] = 5; self->a[1, "x"]--; trace(self->a[1, "x"]); trace(self->a[2, "x"])',
        (4, 0),
    ),
    (
        "members",
        f"{STRUCT} struct foo f;",
        "f.a = 3; f.low = 2; f.high = -1; trace(f.low); trace(f.high); trace(f.a); f.a++; trace(f.a)",
        (2, -1, 3, 4),
    ),
    (
        "copies of a struct",
        f"{STRUCT} struct foo f; self struct foo g;",
        "f.c = 9; self->g = f; self->g.c++; trace(f.c); trace(self->g.c)",
        (9, 10),
    ),
    (
        "arrays",
        "char text[4]; int n[3];",
        "n[1] = 5; n[2] = n[1] * 2; n[2]++; text[0] = 'a'; trace(n); trace(stringof(text))",
        (bytes(4) + b"\5\0\0\0\x0b\0\0\0", b"a"),
    ),
    (
        "alloca",
        "",
        "p = (char *)alloca(10); p[0] = 'h'; p[1] = 'i'; trace(stringof(p)); *p = 65; trace(p[0])",
        (b"hi", 65),
    ),
    (
        "strings",
        "",
        's = strjoin("abc", "def"); trace(s); trace(strlen(s)); trace(substr(s, 2, 2)); trace(s > "abcdea")',
        (b"abcdef", 6, b"cd", 1),
    ),
    ("inlines", "int n; inline int twice[int x] = x + x;", "trace(twice[n++ + 5]); trace(n)", (10, 1)),
    (
        "translators",
        "struct out { int a; int b; }; translator struct out < int p > { a = p + 1; b = p * 2; }; struct out o;",
        "o = xlate <struct out>((int)arg1); trace(o.a); trace(o.b)",
        (3, 4),
    ),
    ("enumerators", "enum e { A, B = 5, C };", "trace(B); trace((enum e)6 == C)", (5, 1)),
    ("registers", "", "trace(uregs[R_RIP]); trace(regs[1]); trace(cpu); trace(args[0])", (1116, 101, 0, 1)),
    (
        "stacks",
        "",
        "stack(2); ustack(2); sym(0x1234); ufunc(0x1234)",
        (
            Stack((256, 257), 2),
            Stack((1, 2), 2, is_user=True, process=42, names=("f+1", "f+2")),
            SymbolName("sym", 0x1000),
            SymbolName("ufunc", 0x1200, 42, "ufunc f"),
        ),
    ),
    (
        "memory",
        "",
        f"trace(*(int *){GUEST}); tracemem({GUEST}, 4); trace(copyinstr({GUEST + 8})); trace(((char *){GUEST})[9])",
        (0x04030201, b"\1\2\3\4", b"text", ord("e")),
    ),
    ("copyout", "", f"copyout((void *){GUEST}, {GUEST + 16}, 4); trace(*(int *){GUEST + 16})", (0x04030201,)),
]


@pytest.mark.parametrize(("before", "text", "expected"), [row[1:] for row in RECORDS], ids=[row[0] for row in RECORDS])
def test_what_a_program_records(before: str, text: str, expected: tuple[object, ...]) -> None:
    script = Script(f"{before} BEGIN {{ {text}; }}")
    script.bench.environment.ram.data[:13] = bytes(range(1, 9)) + b"text\0"
    assert script.fire() == [expected]
    assert script.faults == []


def test_if_is_clauses_one_after_the_other() -> None:
    script = Script("BEGIN { if (arg0 == 1) { trace(10); } else { trace(20); } trace(30); }")
    assert script.fire() == [(10,), (30,)]
    script.bench.arguments = (2,)
    assert script.fire() == [(20,), (30,)]


def test_tokens_go_on_in_the_clauses_of_a_firing() -> None:
    script = Script('BEGIN { trace(strtok("a,b,c", ",")); } BEGIN { trace(strtok(NULL, ",")); }')
    assert [script.fire(), script.fire()] == [[(b"a",), (b"b",)]] * 2


def test_speculations() -> None:
    text = "BEGIN { n = speculation(); } BEGIN { speculate(n); trace(77); } BEGIN { speculate(0); trace(1); }"
    assert Script(text).fire() == []
    assert Script(text, "BEGIN { commit(n); }").fire() == [(77,)]
    assert Script(text, "BEGIN { discard(n); }", "BEGIN { commit(n); }").fire() == []


def test_elapsed_time_by_function() -> None:
    script = Script(
        "fbt:::entry { self->begin = timestamp; }"
        "fbt:::return /self->begin/ { @[probefunc] = sum(timestamp - self->begin); self->begin = 0; }"
    )
    script.fire()
    script.fire()
    assert [contents.table for contents in script.bench.aggregations.take()] == [{(b"m" * 256,): 14}]
    assert not any(dynamic.cells for dynamic in script.bench.state.variables._dynamic.values())


FAULTS = [
    ("BEGIN { trace(1); trace(*(int *)0); }", 2, FaultKind.BADADDR),
    ("BEGIN { trace(10 / arg9); }", 1, FaultKind.DIVZERO),
    ("BEGIN / 10 % arg9 / { trace(1); }", 0, FaultKind.DIVZERO),
    ('BEGIN { printf("%d %d", arg0, *(int *)16); }', 2, FaultKind.BADADDR),
    ("BEGIN { @[arg0, *(int *)16] = count(); }", 3, FaultKind.BADADDR),
    ("BEGIN { @[arg0] = sum(*(int *)16); }", 3, FaultKind.BADADDR),
    ("BEGIN { x = 1; trace(lltostr(5, 1)); }", 2, FaultKind.ILLOP),
    ("BEGIN { alloca(1 << 40); }", 1, FaultKind.NOSCRATCH),
    ("BEGIN { p = (char *)alloca(4); p[9] = 1; }", 2, FaultKind.BADADDR),
    ("BEGIN { commit(-3); }", 1, FaultKind.ILLOP),
]


@pytest.mark.parametrize(("text", "action", "kind"), FAULTS)
def test_faults_name_their_action(text: str, action: int, kind: FaultKind) -> None:
    script = Script(text, "BEGIN { trace(2); }")
    assert script.fire() == [(2,)]
    assert script.faults == [(0, action, kind)]


def test_endless_keys_are_dropped_and_counted() -> None:
    script = Script("BEGIN { n++; a[n] = 1; self->b[n] = n; }", options={"dynvarsize": 4096})
    for _ in range(1000):
        script.fire()
    variables = script.bench.state.variables
    assert sum(len(dynamic.cells) for dynamic in variables._dynamic.values()) < 40
    assert sum(variables.drops.values()) > 1900

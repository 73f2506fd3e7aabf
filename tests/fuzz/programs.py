"""D programs by grammar: most of them near the edge of what compiles, some far beyond."""

from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from kinst.runtime.cli import run as kinst_run
from tests.fuzz.kind import Kind, command

_choose = st.sampled_from
_NUMBERS: Final = (
    *("0", "1", "2", "3", "10", "-1", "0x7fffffff", "0x80000000", "0xffffffffffffffff", "9223372036854775808", "1ull"),
    *("'a'", "'\\0'", "0777", "4294967296", "64", "1.5", "08", "0x"),
)
_TYPES: Final = (
    *(
        "int",
        "char",
        "unsigned char",
        "short",
        "uint64_t",
        "int8_t",
        "long long",
        "string",
        "void",
        "struct s",
        "union u",
    ),
    *("enum e", "int *", "struct s *", "char [4]", "void *", "unsigned", "float", "_Bool", "size_t", "struct missing"),
)
_WORDS: Final = (
    *("x", "y", "self->a", "this->b", "arr[1]", "arr[1, 2]", "s.a", "p->b", "p", "timestamp", "probefunc", "execname"),
    *("arg0", "args[0]", "pid", "errno", "$$", "`missing", "curthread", "stackdepth", "id", "$target", "NULL", "FAST"),
)
_FUNCTIONS: Final = (
    *(
        "strlen",
        "strjoin",
        "substr",
        "strchr",
        "strtok",
        "strstr",
        "index",
        "basename",
        "dirname",
        "cleanpath",
        "lltostr",
    ),
    *("alloca", "copyin", "copyinstr", "bcopy", "rand", "sizeof", "stringof", "htonl", "inet_ntoa", "json", "toupper"),
    *(
        "strtoll",
        "getmajor",
        "progenyof",
        "speculation",
        "mutex_owned",
        "func",
        "typeof",
        "missing",
        "offsetof",
        "ddi_pathname",
    ),
)
_ACTIONS: Final = (
    *(
        "trace",
        "print",
        "printf",
        "tracemem",
        "stack",
        "ustack",
        "exit",
        "speculate",
        "commit",
        "discard",
        "printa",
        "clear",
    ),
    *(
        "trunc",
        "normalize",
        "denormalize",
        "setopt",
        "sym",
        "mod",
        "uaddr",
        "chill",
        "panic",
        "printm",
        "freopen",
        "raise",
        "override",
        "skip",
        "snapshot",
    ),
)
_AGGREGATIONS: Final = ("count", "sum", "avg", "min", "max", "stddev", "quantize", "lquantize", "llquantize", "missing")
_BINARY: Final = (
    *("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "&&", "||", "^^", "==", "!=", "<", "<=", ">", ">=", ","),
    *("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="),
)
_UNARY: Final = ("-", "+", "!", "~", "*", "&", "++", "--")
_STRINGS: Final = (
    '""',
    '"abc"',
    '"a/b/../c"',
    '"%d %s\\n"',
    '"\\x41\\777"',
    '"a,b"',
    '"{\\"a\\": [1, 2]}"',
    '"%"',
    '"1"',
)
_FORMATS: Final = (
    "%d",
    "%s",
    "%5.3d",
    "%-*d",
    "%x",
    "%c",
    "%p",
    "%k",
    "%@d",
    "%Y",
    "%a",
    "%hhd",
    "%llu",
    "%i",
    "%%",
    "%S",
    "%z",
    "%",
)
_PROBES: Final = (
    *(
        "BEGIN",
        "END",
        "ERROR",
        "tick-1ms",
        "tick-3",
        "profile-997",
        "dtrace:::",
        ":::",
        "BEGIN, END",
        "tick-0s",
        "*",
        "syscall:::",
    ),
    *(
        "dtrace:::BEGIN",
        "fbt::main:entry",
        "tick-1ms, BEGIN",
        "profile:::tick-2ms",
        "[",
        "1",
        "BEGIN?",
        "tick-99999999999s",
    ),
)
_DECLARATIONS: Final = (
    *(
        "struct s { int a; struct s *b; char c[4]; int f : 3; };",
        "union u { int a; long b; };",
        "enum e { FAST, SLOW = 7 };",
    ),
    *(
        "typedef struct s *sp;",
        "int arr[int];",
        "self int a;",
        "this string b;",
        "struct s s;",
        "struct s *p;",
        "char x[8];",
    ),
    *(
        "inline int k = 5;",
        "inline int f[int n] = n + 1;",
        "string arr[string, int];",
        "#pragma D option quiet",
        "extern int y;",
    ),
    *(
        "translator struct s < int n > { a = n; };",
        "provider z { probe p(int); };",
        "typedef int int;",
        "struct t { struct t t; };",
    ),
    *(
        "#pragma D option strsize=8",
        "#pragma D option dynvarsize=64",
        "#pragma D option bufsize=64",
        "#pragma D option flowindent",
    ),
    *(
        "#pragma D attributes Stable/Stable/ISA x",
        "#pragma D binding",
        "#line 5",
        "int unsigned",
        "#pragma D option nspec=1",
    ),
)


def _joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(" ".join)


def _listed(each: st.SearchStrategy[str], most: int) -> st.SearchStrategy[str]:
    return st.lists(each, max_size=most).map(", ".join)


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    call = st.tuples(_choose(_FUNCTIONS), _listed(inner, 3)).map(lambda pair: f"{pair[0]}({pair[1]})")
    return st.one_of(
        _joined(inner, _choose(_BINARY), inner),
        _joined(_choose(_UNARY), inner),
        inner.map("({})".format),
        call,
        call,
        st.tuples(_choose(_TYPES), inner).map(lambda pair: f"({pair[0]}){pair[1]}"),
        st.tuples(inner, inner, inner).map(lambda three: "{} ? {} : {}".format(*three)),
        st.tuples(inner, inner).map(lambda two: "{}[{}]".format(*two)),
        inner.map("{}->a".format),
        inner.map("{}++".format),
        _choose(_TYPES).map("sizeof ({})".format),
    )


_EXPRESSIONS: Final = st.recursive(_choose((*_NUMBERS, *_WORDS, *_WORDS, *_STRINGS)), _deeper, max_leaves=8)
_FORMATTED: Final = st.tuples(st.lists(_choose(_FORMATS), max_size=3).map(" ".join), _listed(_EXPRESSIONS, 3)).map(
    lambda pair: f'printf("{pair[0]}", {pair[1]})' if pair[1] else f'printf("{pair[0]}")'
)
_AGGREGATED: Final = st.tuples(
    _choose(("@", "@a", "@b")), _listed(_EXPRESSIONS, 2), _choose(_AGGREGATIONS), _listed(_EXPRESSIONS, 3)
).map(lambda four: f"{four[0]}{f'[{four[1]}]' if four[1] else ''} = {four[2]}({four[3]})")
_ACTED: Final = st.tuples(_choose(_ACTIONS), _listed(st.one_of(_EXPRESSIONS, _choose(("@", "@a"))), 3)).map(
    lambda pair: f"{pair[0]}({pair[1]})"
)
_SIMPLE: Final = st.one_of(_EXPRESSIONS, _ACTED, _ACTED, _FORMATTED, _AGGREGATED).map("{};".format)
_STATEMENTS: Final = st.recursive(
    _SIMPLE,
    lambda inner: st.tuples(_EXPRESSIONS, inner, inner).map(
        lambda three: "if ({}) {{ {} }} else {{ {} }}".format(*three)
    ),
    max_leaves=3,
)
_PREDICATES: Final = st.one_of(st.just(""), st.just(""), _EXPRESSIONS.map("/{}/".format))
_CLAUSES: Final = st.tuples(_choose(_PROBES), _PREDICATES, st.lists(_STATEMENTS, max_size=4).map(" ".join)).map(
    lambda three: "{} {} {{ {} }}".format(*three)
)
_JUNK: Final = st.text(alphabet=" \n\t\"'(){}[];,/*#$@`\\0x1aé\x01", max_size=8)
_PARTS: Final = st.one_of(_CLAUSES, _CLAUSES, _CLAUSES, _choose(_DECLARATIONS), _choose(_DECLARATIONS), _JUNK)
_TEXTS: Final = st.lists(_PARTS, min_size=1, max_size=5).map("\n".join)


def _run(text: str, folder: Path) -> None:
    """Without -w: what would change the guest or the host is refused."""
    script = folder / "program.d"
    script.write_bytes(text.encode(errors="replace"))
    command(kinst_run, "--clock", "icount", "--timeout", "4ms", "-x", "errtags", "-s", script)


PROGRAMS: Final = Kind("programs", _TEXTS, _run)

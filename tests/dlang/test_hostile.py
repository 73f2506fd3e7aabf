"""Programs that mean harm: huge, deep, endless. Each ends in one error, or in drops that are counted, in little time
and memory, and never in a traceback."""

import multiprocessing
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run

MEMORY = 300  # MB that a program may take, beside the tests themselves
TIME = 120  # s until it counts as a hang; the slowest takes two
MANY = 6_000  # many times what is allowed; and twice as many take twice the time


@dataclass(frozen=True, slots=True)
class Hostile:
    """A program, and what stderr must match."""

    name: str
    text: str
    says: str = ""
    options: tuple[str, ...] = ()


def begin(text: str) -> str:
    return f"BEGIN {{ {text} exit(0); }}\n"


def structs(levels: int) -> str:
    """Types of which each is twice as large as the one before."""
    text = "struct s0 { int a; };\n"
    for level in range(1, levels):
        text += f"struct s{level} {{ struct s{level - 1} a, b; }};\n"
    return text


def doubling(levels: int) -> str:
    """Inlines of which each stands for twice as much as the one before."""
    text = "inline int a0 = timestamp;\n"
    for level in range(1, levels):
        text += f"inline int a{level} = a{level - 1} + a{level - 1};\n"
    return text


DOUBLING = 'string s; BEGIN { s = "0123456789abcdef"; } ' + "BEGIN { s = strjoin(s, s); } " * 26
MEGABYTES = ("-x", "strsize=1m")
MANY_VARIABLES = ("-x", "dynvarsize=1t")
LARGE = 'int i; string s; BEGIN { s = "0123456789abcdef"; } ' + "BEGIN { s = strjoin(s, s); } " * 15
FILLED = "tick-1ms {{ {} = strjoin(s, lltostr(i)); i++; }} tick-1ms /i == 1000/ {{ exit(0); }}"
SPECULATED = """int j; tick-1ms /i % {} == 0 && i < 1000/ {{ x = speculation(); }}
tick-1ms /i < 1000/ {{ i++; speculate(x); printf("%s", strjoin(s, lltostr(i))); }}
tick-1ms /i >= 1000/ {{ discard(++j); }} tick-1ms /j == 500/ {{ exit(0); }}"""
SPECULATIONS = (*MEGABYTES, "-x", "nspec=1000000000", "-x")
DEEP = r"D_SYNTAX\] line 1: \w+ is nested too deeply"
PROGRAMS = [
    # -- deep
    Hostile("parentheses", begin(f"x = {'(' * MANY}1{')' * MANY};"), DEEP),
    Hostile("unary", begin(f"x = {'- ' * MANY}1;"), DEEP),
    Hostile("not", begin(f"x = {'!' * MANY}1;"), DEEP),
    Hostile("sums", begin(f"x = 1{' + 1' * MANY};"), DEEP),
    Hostile("conditions", begin(f"x = {'1 ? 1 : ' * MANY}1;"), DEEP),
    Hostile("casts", begin(f"x = {'(int)' * MANY}1;"), DEEP),
    Hostile("assignments", begin(f"{'x = ' * MANY}1;"), DEEP),
    Hostile("commas", begin(f"x = ({'1, ' * MANY}1);"), DEEP),
    Hostile("indexes", begin(f"x{'[1]' * MANY} = 1;"), DEEP),
    Hostile("members", "struct s { struct s *a; } *p; " + begin(f"trace(p{'->a' * MANY});"), DEEP),
    Hostile("predicate", f"BEGIN /{'1 && ' * MANY}1/ {{ exit(0); }}", DEEP),
    Hostile("blocks", begin("if (1) { " * 5000 + "}" * 5000), DEEP),
    Hostile("else", begin("if (0) x = 1; else " * 5000 + "x = 2;"), DEEP),
    Hostile("pointers", f"int {'*' * MANY}x; {begin('')}", DEEP),
    Hostile("arrays", f"int x{'[2]' * MANY}; {begin('')}", DEEP),
    Hostile("functions", begin(f"x = {'strjoin(' * MANY}"), DEEP),
    # -- long
    Hostile("text", begin(f'trace("{"a" * 1_000_000}");'), "matched 1 probe"),
    Hostile("key", begin(f'@["{"a" * 1_000_000}"] = count();'), "matched 1 probe"),
    Hostile("identifier", begin(f"{'a' * 1_000_000} = 1;"), "matched 1 probe"),
    Hostile("number", begin(f"x = {'1' * 1_000_000};"), "D_INT_OFLOW"),
    Hostile("comment", f"/* {'a' * 1_000_000}", "D_SYNTAX"),
    Hostile("unfinished", f'BEGIN {{ trace("{"a" * 1_000_000}', "D_SYNTAX"),
    Hostile("keys", begin(f"@[{'1, ' * MANY}1] = count();"), "matched 1 probe"),
    Hostile("arguments", begin(f"strlen({'1, ' * MANY}1);"), "D_PROTO_LEN"),
    Hostile("conversions", begin(f'printf("{"%d" * MANY}");'), "D_PRINTF_ARG_PROTO"),
    Hostile("statements", begin("x = 1; " * MANY), "matched 1 probe"),
    Hostile("variables", begin("".join(f"v{n} = {n}; " for n in range(10_000))), "matched 1 probe"),
    Hostile("clauses", begin("") + "BEGIN { x++; }\n" * 10_000, "matched 10001 probes"),
    Hostile("descriptions", f"{', '.join(['BEGIN'] * 10_000)} {{ exit(0); }}", "matched 10000 probes"),
    Hostile("aggregations", begin("".join(f"@a{n} = count(); " for n in range(10_000))), "matched 1 probe"),
    Hostile("probes", "".join(f"tick-{n}ms {{ x++; }}\n" for n in range(1, 2000)) + begin(""), "D_PDESC_ZERO"),
    Hostile("pattern", f"{'*a' * 500}b {{ exit(0); }}", "D_PDESC"),
    Hostile("brackets", f"{'[' * 5000} {{ exit(0); }}", "D_PDESC"),
    Hostile("colons", f"{':' * 5000} {{ exit(0); }}", "D_PDESC_INVAL"),
    # -- large
    Hostile("width", begin('printf("%99999999d", 1);'), "wider than 1048576 columns"),
    Hostile("widths", begin(f'printf("{"%600000d" * 2}", 1, 2);'), "#2 makes the output wider than 1048576 columns"),
    Hostile("precision", begin('printf("%.99999999d", 1);'), "wider than 1048576 columns"),
    Hostile("precision of text", begin('printf("%.99999999s", "x");'), "matched 1 probe"),
    Hostile("stars", begin(f'printf("{"%*d" * 400}"{", 1000000, 1" * 400});'), "matched 1 probe"),
    Hostile("star", begin('printf("%*d", 2147483647, 1);'), "matched 1 probe"),
    Hostile("struct", f"struct s {{ char a[1000000000]; }} v; {begin('trace(v.a[5]);')}", "too large"),
    Hostile("array", f"int x[0x7fffffff]; {begin('x[5] = 1;')}", "D_DECL_ARRBIG"),
    Hostile("structs", f"{structs(64)} {begin('')}", "matched 1 probe"),
    Hostile("structs-printed", f"{structs(24)} struct s19 v; {begin('print(v);')}", "matched 1 probe"),
    Hostile("structs-dropped", f"{structs(24)} struct s23 v; {begin('print(v);')}", "1 drop on CPU 0"),
    Hostile("inlines", f"{doubling(64)} {begin('trace(a63);')}", "D_SYNTAX"),
    Hostile("inline-itself", f"inline int f[int x] = f[x]; {begin('trace(f[1]);')}", "D_VAR_UNDEF"),
    Hostile("struct-itself", f"struct s {{ struct s a; }}; {begin('')}", "D_DECL_INCOMPLETE"),
    Hostile("scratch", begin("x = alloca(1 << 62);"), "out of scratch space in action #1"),
    Hostile("copyin", begin("x = copyin(0, 0x7fffffffffffffff);"), "out of scratch space in action #1"),
    Hostile("bcopy", begin("bcopy(alloca(8), alloca(8), -1);"), "invalid address"),
    Hostile("bytes", begin("tracemem(0, 2000000000);"), "drop|invalid address"),
    Hostile("strsize", begin('x = "abc"; trace(strjoin(x, x));'), "1 drop on CPU 0", ("-x", "strsize=1g")),
    Hostile("strsize-too-large", begin('trace("");'), "Value too large", ("-x", "strsize=1t")),
    Hostile("strings", DOUBLING + begin("trace(strlen(s));"), "out of scratch space", ("-x", "strsize=2g")),
    Hostile("variables-large", LARGE + FILLED.format("x[i]"), "dynamic variable drops", (*MEGABYTES, *MANY_VARIABLES)),
    Hostile("threads-large", LARGE + FILLED.format("self->x[i]"), "dynamic variable", (*MEGABYTES, *MANY_VARIABLES)),
    Hostile("speculations-large", LARGE + SPECULATED.format(1000), "speculative drops", (*SPECULATIONS, "specsize=1t")),
    Hostile("speculations-many", LARGE + SPECULATED.format(2), "speculative drops", (*SPECULATIONS, "specsize=3m")),
    Hostile("scratchsize", begin("x = alloca(1 << 30);"), "out of scratch space", ("-x", "scratchsize=1t")),
    Hostile("strsize-long", begin(f'x = "{"/." * 400_000}"; trace(strlen(cleanpath(x)));'), "", ("-x", "strsize=1m")),
    Hostile("json", begin(f'trace(json("{"[" * 400_000}", "{"[0]" * 200_000}"));'), "", ("-x", "strsize=1m")),
    Hostile("stackindent", begin("stack();"), "matched 1 probe", ("-x", "stackindent=1000000000")),
    Hostile("stackframes", begin("stack();"), "drop", ("-x", "stackframes=1000000000")),
    Hostile("frames", begin("ustack(1000000000, 1000000000);"), "drop"),
    Hostile("nspec", begin("x = speculation();"), "matched 1 probe", ("-x", "nspec=2000000000")),
    Hostile("bufsize", begin("trace(1);"), "matched 1 probe", ("-x", "bufsize=1000t")),
    Hostile("ring", begin("trace(1);"), "matched 1 probe", ("-x", "bufsize=1000t", "-x", "bufpolicy=ring")),
    # -- endless
    Hostile(
        "elements",
        "int i; tick-1ms { x[i++] = i; } tick-1ms /i == 20000/ { exit(0); }",
        "dynamic variable drops",
        ("-x", "dynvarsize=1k"),
    ),
    Hostile(
        "rows",
        "int i; tick-1ms { @[i++] = count(); } tick-1ms /i == 20000/ { exit(0); }",
        r"\d+ aggregation drops on CPU 0",
        ("-q", "-x", "aggsize=1k"),
    ),
    Hostile(
        "records",
        'int i; tick-1ms { printf("%s", probename); i++; } tick-1ms /i == 2000/ { exit(0); }',
        r"\d+ drops on CPU 0",
        ("-q", "-x", "bufsize=4k"),
    ),
    Hostile("errors", "BEGIN { *(int *)0; } " * 2000 + begin(""), "invalid address"),
    Hostile("errors-in-error", "BEGIN { *(int *)0; } ERROR { *(int *)0; } " + begin(""), "1 error in ERROR probe"),
    Hostile("rates", begin(""), "D_PDESC_ZERO|matched", ("-n", "tick-0s", "-n", "profile-99999999hz")),
    # -- odd
    Hostile("zero-byte", begin("") + "\0", "D_SYNTAX"),
    Hostile("control", begin("") + "\x01\x1b", "D_SYNTAX"),
    Hostile("eight-bit", begin("\xe4 = 1;"), "D_SYNTAX"),
    Hostile("line", '#line 2147483648 "a"\nBEGIN { exit(0)', "D_SYNTAX"),
    Hostile("line-overflow", '# 99999999999999999999 "a"\nBEGIN { exit(0)', "D_INT_OFLOW"),
    Hostile("macro", begin("trace($99999999999999999999);"), "D_MACRO"),
]


def harm(words: list[str]) -> tuple[int, str, str, int]:
    """Exit status, stderr, what went wrong inside, and MB that the program took; in a process of its own."""
    before = kilobytes("VmRSS")
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    wrong = "" if isinstance(result.exception, SystemExit | None) else repr(result.exception)
    return result.exit_code, result.stderr, wrong, (kilobytes("VmHWM") - before) >> 10


def kilobytes(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_harm(program: Hostile, tmp_path: Path) -> None:
    script = tmp_path / "hostile.d"
    script.write_text(program.text, "latin-1")
    words = ["--clock", "icount", "-x", "errtags", *program.options, "-s", str(script), "-"]
    with multiprocessing.get_context("fork").Pool(1) as processes:
        status, errors, wrong, taken = processes.apply_async(harm, (words,)).get(TIME)
    assert wrong == ""
    assert "internal error" not in errors
    assert status in (0, 1), errors[-500:]
    assert re.search(program.says, errors), errors[-500:]
    assert taken < MEMORY

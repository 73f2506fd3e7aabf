"""A command line that makes no sense: one line in our form, exit code 2, and what was probably meant."""

from pathlib import Path

import pytest

from tests.commands.all_commands import COMMANDS, run

NOTHING = "no image and no program: give an IMAGE, or a program with -n or -s"
SAMPLE = Path(__file__).parent.parent.parent / "samples" / "kernel-riscv64.elf"
INLINECALL = "kinst-inlinecall [OPTIONS] FUNCTION IMAGE"


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_is_none(name: str) -> None:
    result = run(name, "--fomat", "json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{name}: --fomat: no such option; nearest --format")
    assert result.stderr.endswith(f" ({name} --help)\n") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_format_that_is_none(name: str) -> None:
    arguments: dict[str, list[object]] = {
        "kinst-run": ["-n", "BEGIN"],
        "kinst-diff": [SAMPLE, SAMPLE],
        "kinst-inlinecall": ["f", SAMPLE],
    }
    result = run(name, *arguments.get(name, [SAMPLE]), "--format", "jsn")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{name}: --format: 'jsn' is not one of 'text', 'json'")
    assert "; nearest json" in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("kinst-list", [], "IMAGE: is missing: kinst-list [OPTIONS] IMAGE [SPEC]..."),
        ("kinst-diff", [SAMPLE], "PATCHED: is missing: kinst-diff [OPTIONS] ORIGINAL PATCHED"),
        ("kinst-rewrite", [SAMPLE, "--probe"], "--probe: option '--probe' requires an argument"),
        ("kinst-rewrite", [SAMPLE, "more"], "got unexpected extra argument (more): kinst-rewrite [OPTIONS] IMAGE"),
        ("kinst-run", [SAMPLE, "--cpus", "two"], "--cpus: 'two' is not a valid integer"),
        ("kinst-run", ["--color", "alway"], "--color: 'alway' is not one of 'auto', 'always', 'never'; nearest always"),
        ("kinst-run", [], f"{NOTHING}: kinst-run [OPTIONS] [IMAGE] [ARG]..."),
        ("kinst-run", ["-S"], "-S: no such option: programs are not compiled to DIF (kinst-run --help)"),
        ("kinst-run", [SAMPLE, "-p", "1", "--exec", "sh"],
         "-p 1, --exec sh: one of them says which processes are meant"),
        ("kinst-run", [SAMPLE, "--exec", "/bin/"], "--exec /bin/: is no path of a program in the guest"),
        ("kinst-list", ["--wr\nong"], "--wr\\x0aong: no such option (kinst-list --help)"),
        ("kinst-inlinecall", ["v2_limits"], f"IMAGE: is missing: {INLINECALL}"),
        ("kinst-inlinecall", [SAMPLE], f"FUNCTION: is missing: {INLINECALL}"),
        ("kinst-inlinecall", [SAMPLE, "v2_limits"],
         f"{SAMPLE}: is a file, in the place of the function: {INLINECALL}: v2_limits comes first"),
    ],
)  # fmt: skip
def test_each_is_one_line(name: str, arguments: list[object], message: str) -> None:
    result = run(name, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [f"{name}: {message}"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("kinst-list", [SAMPLE.with_name("kernel-riscv.elf")], "No such file or directory; nearest kernel-riscv64.elf"),
        ("kinst-run", ["-n", "BGIN { exit(0); }"], ":::BGIN does not match any probes: nearest BEGIN"),
        ("kinst-run", ["-n", "BEGIN", "-x", "bufpolicy=rng"], "specified option: it is one of ring, fill, switch"),
        (
            "kinst-run",
            ["-n", "uprobe:/bin/sh:main"],
            "does not match any probes: uprobe:/bin/sh:main:entry is what bpftrace calls uprobe:/bin/sh:main",
        ),
        (
            "kinst-run",
            ["-n", "usdt:/bin/x:query"],
            "does not match any probes: usdt:/bin/x::query is what bpftrace calls usdt:/bin/x:query",
        ),
    ],
)
def test_what_was_probably_meant(name: str, arguments: list[object], message: str) -> None:
    result = run(name, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("kprobe:kmalloc", "fbt::kmalloc:entry is what bpftrace calls kprobe:kmalloc"),
        ("kprobe::kmalloc:entry", "fbt::kmalloc:entry is what bpftrace calls kprobe:kmalloc"),
        ("kprobe:kmalloc+0x10", "kinst::kmalloc:0x10 is what bpftrace calls kprobe:kmalloc+0x10"),
        ("kretprobe:kmalloc", "fbt::kmalloc:return is what bpftrace calls kretprobe:kmalloc"),
        ("tracepoint:sched:sched_switch",
         "sdt:sched::sched_switch is what bpftrace calls tracepoint:sched:sched_switch"),
        ("tracepoint:syscalls:sys_enter_openat",
         "syscall::openat:entry is what bpftrace calls tracepoint:syscalls:sys_enter_openat"),
        ("interval:s:1", "tick-1s is what bpftrace calls interval:s:1"),
        ("profile:hz:99", "profile-99 is what bpftrace calls profile:hz:99"),
        ("hardware:cache-misses:1000", "no events of a CPU or of the host are counted here"),
    ],
)  # fmt: skip
def test_names_of_bpftrace_are_translated(theirs: str, ours: str) -> None:
    result = run("kinst-run", SAMPLE, "-n", f"{theirs} {{ trace(1); }}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f": no provider {theirs.partition(':')[0]}: {ours}" in result.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "syscall::read:entry"], "provider syscall has no probes here: it needs a Linux kernel"),
        (["-n", "sched:::on-cpu"], "provider sched has no probes here: it needs a Linux kernel"),
        (["-n", 'BEGIN { system("true"); }'], "Destructive actions not allowed: system() needs -w"),
        (["-n", 'BEGIN { x = 1; freopen("a"); }'], "Destructive actions not allowed: freopen() needs -w"),
        (["-n", "BEGIN", "-x", "strsize=abc"], "Invalid value for specified option: a size in bytes, such as 1k"),
        (["-n", "BEGIN", "-x", "aggrate=often"], "a time or a frequency, such as 100ms or 10hz"),
        (["-n", "BEGIN { for (i = 0; i < 3; i++) trace(i); }"], 'near "for": D has no loops'),
        (["-n", "BEGIN { while (1) { } }"], 'near "while": D has no loops'),
        (["-n", "fbt:brd:brd_init:entry"], "kinst-run finds brd.ko in the --initrd, or --module brd=FILE names it"),
    ],
)
def test_the_line_says_what_to_do(arguments: list[str], message: str) -> None:
    result = run("kinst-run", SAMPLE, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr.splitlines()[0]


def test_a_program_of_several_lines_is_not_repeated() -> None:
    """The line, the cause and the place, once."""
    result = run("kinst-run", SAMPLE, "-n", "BEGIN\n{\n    trace(1);\n    foo(3);\n}\nEND { trace(2); }")
    assert result.stderr.splitlines() == [
        "kinst-run: invalid probe specifier: line 4: undefined function name: foo",
        "        foo(3);",
        "        ^^^^^^",
    ]


def test_a_file_without_probes_is_said_to_be_none() -> None:
    same = run("kinst-diff", SAMPLE, SAMPLE)
    assert (same.exit_code, same.stdout) == (0, "the files are identical, and not patched\n")
    other = run("kinst-diff", SAMPLE, SAMPLE.with_name("kernel-arm64.elf"))
    assert other.exit_code == 1
    assert other.stdout.splitlines()[-1].endswith(": the second file is not patched, it has no manifest")

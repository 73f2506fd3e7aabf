"""Every option that dtrace(1) has with one letter, what it says, and how it ends; without an image."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.runtime.cli import run

ROOT = Path(__file__).parent.parent.parent
HEADER = "CPU     ID                    FUNCTION:NAME\n"
TABLE = "   ID   PROVIDER            MODULE                          FUNCTION NAME\n"
DONE = "BEGIN { exit(0); }"


def kinst_run(*arguments: str | Path, text: str | None = None) -> Result:
    words = ["--clock", "icount", *(str(argument) for argument in arguments)]
    return CliRunner().invoke(run, words, input=text, prog_name="kinst-run")


def row(name: str, rest: str = "", number: int = 1) -> str:
    return f"  0 {number:6d} {name:>32s} {rest}\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "hello.d"
    path.write_text('#!/usr/sbin/dtrace -s\nBEGIN { trace("hello"); exit(0); }\n')
    return path


# -- programs ---------------------------------------------------------------------------------------------------------


def test_a_script(script: Path) -> None:
    result = kinst_run("-s", script)
    assert result.stdout == HEADER + row(":BEGIN", f"  {'hello':33}") + "\n"
    assert result.stderr == f"kinst-run: script '{script}' matched 1 probe\n"
    assert result.exit_code == 0


def test_a_script_from_standard_input() -> None:
    result = kinst_run("-q", "-s", "-", text='BEGIN { printf("from there\\n"); exit(0); }')
    assert (result.stdout, result.stderr, result.exit_code) == ("from there\n\n", "", 0)


def test_letters_in_one_word(script: Path) -> None:
    result = kinst_run("-qs", script)
    assert (result.stdout, result.stderr) == ("hello\n", "")


def test_programs_in_their_order(tmp_path: Path) -> None:
    """Clauses of a probe run in the order of the programs, whichever way each was given; variables are the same."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.d").write_text(f'BEGIN {{ printf("{name} %d\\n", n++); }}\n')
    one, two = tmp_path / "one.d", tmp_path / "two.d"
    said = kinst_run(
        "-q", "-n", "int n;", "-n", 'BEGIN { printf("zero %d\\n", n++); }', "-s", two, "-s", one, "-n", DONE
    ).stdout  # fmt: skip
    assert said == "zero 0\ntwo 1\none 2\n\n"
    said = kinst_run("-q", "-s", one, "-P", 'dtrace { printf("%s %d\\n", probename, n++); exit(0); }').stdout
    assert said == "one 0\nBEGIN 1\nEND 2\n\n"


def test_a_later_program_sees_types_and_inlines_of_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "types.d"
    path.write_text("typedef struct s { int a; } s_t;\ninline int N = 5;\ns_t v;\n")
    use = 'BEGIN { v.a = N; printf("%d %d\\n", v.a, sizeof (s_t)); exit(0); }'
    result = kinst_run("-q", "-s", path, "-n", use)
    assert (result.stdout, result.stderr) == ("5 4\n\n", "")


@pytest.mark.parametrize(
    ("option", "text", "title", "count"),
    [
        ("-n", "BEGIN", "BEGIN", 1),
        ("-n", "dtrace:::BEGIN", "dtrace:::BEGIN", 1),
        ("-n", ":::BEGIN", ":::BEGIN", 1),
        ("-n", "dtrace:::", "dtrace:::", 3),
        ("-n", "BEGIN /timestamp/ { trace(1); }", "BEGIN ", 1),
        ("-n", "BEGIN, END", "BEGIN, END", 2),
        ("-P", "dtrace", "dtrace", 3),
        ("-P", "dtrace { trace(1); }", "dtrace ", 3),
        ("-P", "d*e", "d*e", 3),
        ("-m", "dtrace:", "dtrace:", 3),
        ("-f", "dtrace::", "dtrace::", 3),
        ("-i", "1", "1", 1),
        ("-i", "1 /1/ { trace(1); }", "1 ", 1),
    ],
)
def test_descriptions(option: str, text: str, title: str, count: int) -> None:
    result = kinst_run(option, text, "-n", DONE)
    matched = f"matched {count} probe{'s' * (count != 1)}"
    assert (
        result.stderr
        == f"kinst-run: description '{title}' {matched}\nkinst-run: description 'BEGIN ' matched 1 probe\n"
    )
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("option", "text", "tag", "says"),
    [
        ("-n", "nosuch", "D_PDESC_ZERO", "probe description :::nosuch does not match any probes: a word alone is"),
        ("-P", "nosuch", "D_PDESC_ZERO", "probe description nosuch::: does not match any probes"),
        ("-m", "nosuch", "D_PDESC_ZERO", "probe description :nosuch:: does not match any probes"),
        ("-m", "dtrace:nosuch", "D_PDESC_ZERO", "probe description dtrace:nosuch:: does not match any probes"),
        ("-f", "nosuch", "D_PDESC_ZERO", "probe description ::nosuch: does not match any probes"),
        ("-f", "BEGIN", "D_PDESC_ZERO", "probe description ::BEGIN: does not match any probes"),
        ("-f", "dtrace::nosuch", "D_PDESC_ZERO", "probe description dtrace::nosuch: does not match any probes"),
        ("-i", "99999", "D_PDESC_INVAL", 'invalid probe description "99999": Unknown probe identifier'),
        ("-n", "a:b:c:d:e", "D_PDESC_INVAL", 'invalid probe description "a:b:c:d:e": Overspecified'),
        ("-m", "a:b:c", "D_PDESC_INVAL", "Overspecified probe description"),
        ("-n", "", "D_EMPTY", "empty D program translation unit"),
        ("-n", "BEGIN {", "D_SYNTAX", "syntax error near end of input"),
        ("-n", "BEGIN { x = ; }", "D_SYNTAX", 'syntax error near ";"'),
        ("-n", "BEGIN { x = y; }", "D_IDENT_UNDEF", "failed to resolve y: Unknown variable name"),
        ("-P", "dtrace { x = y; }", "D_IDENT_UNDEF", "failed to resolve y: Unknown variable name"),
    ],
)
def test_wrong_descriptions(option: str, text: str, tag: str, says: str) -> None:
    plain, tagged = kinst_run(option, text), kinst_run("-x", "errtags", option, text)
    assert plain.stderr.startswith(f"kinst-run: invalid probe specifier {text}: ")
    assert tagged.stderr.startswith(f"kinst-run: invalid probe specifier {text}: [{tag}] ")
    assert says in plain.stderr
    assert (plain.stdout, plain.exit_code, tagged.exit_code) == ("", 1, 1)


def test_a_wrong_script(tmp_path: Path) -> None:
    path = tmp_path / "wrong.d"
    path.write_text("BEGIN\n{\n\tx = y;\n}\n")
    plain, tagged = kinst_run("-s", path), kinst_run("-x", "errtags", "-s", path)
    assert plain.stderr.splitlines()[0] == (
        f"kinst-run: failed to compile script {path}: line 3: failed to resolve y: Unknown variable name"
    )
    assert f"{path}: [D_IDENT_UNDEF] line 3: failed" in tagged.stderr
    assert (plain.stdout, plain.exit_code) == ("", 1)


def test_the_first_error_ends_it(script: Path) -> None:
    result = kinst_run("-s", script, "-n", "nosuch", "-n", "neither")
    assert result.stderr.startswith("kinst-run: invalid probe specifier nosuch: ")
    assert "neither" not in result.stderr
    assert (result.stdout, result.exit_code) == ("", 1)


SIZE = "failed to set -x strsize: Invalid value for specified option: a size in bytes, such as 1k"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-s", "nowhere.d"], "failed to open nowhere.d: No such file or directory"),
        (["-s", "/"], "failed to open /: Is a directory"),
        (["-n", "int x;"], "no probes specified"),
        (["-q"], "no probes specified"),
        (["-s", "/dev/zero"], "failed to open /dev/zero: it is longer than 67108864 bytes"),
        (["-n", DONE, "one"], "extraneous argument 'one' ($1 is not referenced)"),
        (
            ["-n", 'BEGIN { system("true"); }'],
            "could not enable tracing: Destructive actions not allowed: system() needs -w",
        ),
        (["-n", DONE, "-x", "nosuch"], "failed to set -x nosuch: Invalid option name"),
        (["-n", DONE, "-x", "nosuch=1"], "failed to set -x nosuch: Invalid option name"),
        (["-n", DONE, "-x", "strsize=1x"], SIZE),
        (["-n", DONE, "-x", "strsize=-1"], SIZE),
        (["-n", DONE, "-x", "strsize"], SIZE),
        (["-n", DONE, "-x", "quiet=maybe"], "Invalid value for specified option: on, off or a number, such as 8"),
        (["-n", DONE, "-x", "bufpolicy=often"], "Invalid value for specified option: it is one of ring, fill, switch"),
        (
            ["-n", DONE, "-x", "switchrate=1y"],
            "Invalid value for specified option: a time or a frequency, such as 100ms or 10hz",
        ),
        (
            ["-n", DONE, "-b", "much"],
            "failed to set -b much: Invalid value for specified option: a size in bytes, such as 4k",
        ),
        (["-n", DONE, "-X", "z"], "failed to set -X z: Invalid value for specified option: it is one of a, c, s, t"),
        (
            ["-q", "-n", DONE, "-o", "/nowhere/out"],
            "failed to open output file '/nowhere/out': No such file or directory",
        ),
    ],
)
def test_errors(arguments: list[str], says: str) -> None:
    result = kinst_run(*arguments)
    assert result.stderr.splitlines()[0].endswith(says)
    assert (result.stdout, result.exit_code) == ("", 1)


@pytest.mark.parametrize(
    "arguments", [["-s"], ["-n"], ["-x"], ["-K"], ["--nosuch"], ["-o"], [], ["-n", DONE, "--timeout", "1y"]]
)
def test_wrong_usage(arguments: list[str]) -> None:
    result = CliRunner().invoke(run, arguments, prog_name="kinst-run")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream(closed: str, tmp_path: Path) -> None:
    """Of a process; it is nowhere then."""
    code = "from kinst.runtime.cli import run; run(prog_name='kinst-run')"
    words = ["-q", "-o", str(tmp_path / "out"), "-n", 'BEGIN { printf("done\\n"); exit(5); }']
    environment = os.environ | {"PYTHONPATH": f"{ROOT / '.typing'}:{ROOT}"}
    command = ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-c", code, *words]
    assert subprocess.run(command, env=environment, check=False).returncode == 5
    assert (tmp_path / "out").read_text() == "done\n\n"


# -- what else ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1, 2, 7, 255])
def test_exit_status(status: int) -> None:
    assert kinst_run("-n", f"BEGIN {{ exit({status}); }}").exit_code == status


def test_e_compiles_only() -> None:
    result = kinst_run("-e", "-n", "BEGIN { trace(1); }", "-n", "tick-1s")
    said = "kinst-run: description 'BEGIN ' matched 1 probe\nkinst-run: description 'tick-1s' matched 1 probe\n"
    assert (result.stdout, result.stderr, result.exit_code) == ("", said, 0)
    assert kinst_run("-e", "-n", "BEGIN {").exit_code == 1


def test_compiling_libraries_alone(tmp_path: Path) -> None:
    """-e needs no program: what there is to check are the libraries, a chain of a thousand, too."""
    assert kinst_run("-e").exit_code == 0
    for number in range(1000):
        (tmp_path / f"{number}.d").write_text(f"#pragma D depends_on library {number + 1}.d\n")
    missing = kinst_run("-e", "-L", tmp_path)
    assert missing.exit_code == 1
    assert f"failed to compile library {tmp_path / '999.d'}: line 1: no library 1000.d" in missing.stderr
    for number in range(10, 1000):
        (tmp_path / f"{number}.d").unlink()
    (tmp_path / "10.d").write_text("inline int END_OF_CHAIN = 1;\n")
    assert kinst_run("-e", "-L", tmp_path).exit_code == 0
    (tmp_path / "10.d").write_text("#pragma D depends_on library 5.d\n")
    assert "libraries in a circle" in kinst_run("-e", "-L", tmp_path).stderr


def test_l_lists() -> None:
    assert kinst_run("-l", "-n", "BEGIN").stdout == TABLE + f"    1     dtrace {'':17} {'':33} BEGIN\n"
    names = [line.split()[-1] for line in kinst_run("-l", "-P", "dtrace").stdout.splitlines()]
    assert names == ["NAME", "BEGIN", "END", "ERROR"]
    everything = kinst_run("-l")
    assert everything.exit_code == 0
    assert everything.stdout.startswith(TABLE)
    assert re.search(r" profile .* profile-97\n", everything.stdout)
    assert len(everything.stdout.splitlines()) == len(set(everything.stdout.splitlines())) > 10


def test_l_lists_the_probes_of_a_script(script: Path) -> None:
    assert kinst_run("-l", "-s", script).stdout == kinst_run("-l", "-n", "BEGIN").stdout


def test_l_says_what_matches_nothing() -> None:
    result = kinst_run("-l", "-n", "nosuch", "-n", "BEGIN", "-f", "neither")
    assert [line.split()[-1] for line in result.stdout.splitlines()] == ["NAME", "BEGIN"]
    assert result.stderr == (
        "kinst-run: failed to match :::nosuch: No probe matches description: a word alone is the name of a probe; "
        "those of a function nosuch are nosuch:\n"
        "kinst-run: failed to match ::neither:: No probe matches description\n"
    )


def test_l_compiles() -> None:
    result = kinst_run("-l", "-n", "BEGIN { nosuch(); }")
    assert (result.stdout, result.exit_code) == ("", 1)


def test_lv_tells_more() -> None:
    said = kinst_run("-lv", "-n", "BEGIN").stdout
    assert said.startswith(TABLE)
    assert said.count("Identifier Names:") == 2
    assert "Argument Types\n\t\tNone\n" in said


def test_v_reports_stability() -> None:
    result = kinst_run("-v", "-n", DONE)
    assert "Stability attributes for description BEGIN" in result.stdout.replace("'", "")
    assert result.exit_code == 0


def test_z_lets_descriptions_match_nothing() -> None:
    result = kinst_run("-Z", "-n", "nosuch { trace(1); }", "-n", DONE)
    assert (result.stdout, result.exit_code) == (HEADER + row(":BEGIN") + "\n", 0)
    assert "description 'nosuch ' matched 0 probes" in result.stderr
    assert kinst_run("-Z", "-n", "nosuch").exit_code == 0


def test_z_tells_what_a_quiet_script_does_not_see() -> None:
    script = "#pragma D option quiet\nBEGIN, nosuch { exit(0); }"
    assert kinst_run("-Z", "-n", script).stderr.startswith("kinst-run: :::nosuch matches no probe: a word alone")
    assert kinst_run("-Z", "-q", "-n", script).stderr == ""


def test_capital_v() -> None:
    result = kinst_run("-V")
    assert re.fullmatch(r"kinst-run \d+\.\d+\.\d+, D \d+\.\d+\n", result.stdout)


def test_o_appends(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("before\n")
    for number in (1, 2):
        assert kinst_run("-q", "-o", out, "-n", f'BEGIN {{ printf("{number}\\n"); exit(0); }}').stdout == ""
    assert out.read_text() == "before\n1\n\n2\n\n"


def test_q_leaves_only_what_is_printed() -> None:
    result = kinst_run("-q", "-n", 'BEGIN { trace(5); trace("a"); printf("%d\\n", 6); exit(0); }')
    assert (result.stdout, result.stderr) == ("5a6\n\n", "")


def test_quiet_in_the_program_silences_the_messages_too() -> None:
    result = kinst_run("-n", "#pragma D option quiet\nBEGIN { exit(0); }")
    assert (result.stdout, result.stderr) == ("\n", "")


def test_f_indents() -> None:
    said = kinst_run("-F", "-n", "BEGIN { trace(1); exit(0); }").stdout
    assert said == "CPU FUNCTION                                 \n" + f"  0 {'| :BEGIN':41}  {1:8d}\n\n"


def test_w_allows_destructive_actions() -> None:
    result = kinst_run("-q", "-w", "-n", 'BEGIN { system("echo %s", "out"); exit(0); }')
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n\n", "", 0)


def test_preprocessor(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "test-numbers.h").write_text('#define VALUE 7\n#define NAME "seven"\n')
    path = tmp_path / "main.d"
    path.write_text('#include "test-numbers.h"\nBEGIN { printf("%d %s %d\\n", VALUE, NAME, ARGUMENT); exit(0); }\n')
    included = kinst_run("-q", "-C", "-I", folder, "-D", "ARGUMENT=5", "-s", path)
    assert (included.stdout, included.stderr) == ("7 seven 5\n\n", "")
    named = kinst_run("-q", "-C", "-H", "-I", folder, "-D", "ARGUMENT", "-s", path)
    assert named.stdout == "7 seven 1\n\n"
    assert "test-numbers.h" in capfd.readouterr().err  # from cpp itself
    missing = kinst_run("-q", "-C", "-D", "ARGUMENT=5", "-s", path)
    assert (missing.stdout, missing.exit_code) == ("", 1)
    assert "test-numbers.h" in capfd.readouterr().err
    undefined = kinst_run("-x", "errtags", "-C", "-I", folder, "-D", "ARGUMENT=5", "-U", "ARGUMENT", "-s", path)
    assert "[D_IDENT_UNDEF]" in undefined.stderr


def test_preprocessor_of_options() -> None:
    result = kinst_run("-q", "-x", "cpp", "-x", "define=A=3", "-n", 'BEGIN { printf("%d\\n", A); exit(0); }')
    assert result.stdout == "3\n\n"


def test_errors_name_the_included_file(tmp_path: Path) -> None:
    (tmp_path / "wrong.h").write_text("\n\nint x = ;\n")
    path = tmp_path / "main.d"
    path.write_text('#include "wrong.h"\nBEGIN { exit(0); }\n')
    result = kinst_run("-C", "-s", path)
    assert re.search(r'"[^"]*wrong.h", line 3: ', result.stderr), result.stderr


def test_arguments(tmp_path: Path) -> None:
    path = tmp_path / "arguments.d"
    path.write_text('BEGIN { printf("%s %d %s %s\\n", $$0, $1, $$2, $3); exit(0); }\n')
    result = kinst_run("-q", "-s", path, "-", "5", "name", "two words")
    assert result.stdout == f"{path} 5 name two words\n\n"


def test_timeout_without_an_image() -> None:
    result = kinst_run("-q", "-n", "tick-1s { n++; }", "-n", 'END { printf("%d\\n", n); }', "--timeout", "3500ms")
    assert (result.stdout, result.exit_code) == ("3\n\n", 0)


@pytest.mark.parametrize(
    ("option", "text", "wanted"),
    [
        ("strsize=4", 'trace("abcdef");', "abcd"),
        ("strsize=0x4", 'trace("abcdef");', "abcd"),
        ("quiet=yes", "trace(1);", "1"),
        ("stackindent=3", "stack();", "\n"),
        ("aggsortrev", "@[1] = count(); @[2] = count(); @[2] = count(); printa(\"%d \", @);", "2 1 "),
        ("aggsortkey", "@[1] = sum(5); @[2] = sum(3); printa(\"%d \", @);", "1 2 "),
        ("nspec=2", "trace(speculation()); trace(speculation()); trace(speculation());", "120"),
        ("rawbytes", "trace(1);", "1"),
    ],
)  # fmt: skip
def test_options(option: str, text: str, wanted: str) -> None:
    assert kinst_run("-q", "-x", option, "-n", f"BEGIN {{ {text} exit(0); }}").stdout == wanted + "\n"


def test_a_pragma_overrides_the_command_line() -> None:
    program = '#pragma D option strsize=4\nBEGIN { trace("abcdef"); exit(0); }'
    assert kinst_run("-q", "-x", "strsize=8", "-n", program).stdout == "abcd\n"

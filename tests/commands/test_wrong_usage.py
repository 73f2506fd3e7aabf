"""A command line that makes no sense: one line in our form, exit code 2, and what was probably meant."""

from pathlib import Path

import pytest

from tests.commands.all_commands import COMMANDS, run

NOTHING = "no image and no program: give an IMAGE, or a program with -n or -s"
NO_PROCESS = "an IMAGE is run, and not a process of this system"
SAMPLE = Path(__file__).parent.parent.parent / "samples" / "kernel-riscv64.elf"


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
        ("kinst-run", ["-p", "1"], f"-p: no such option: {NO_PROCESS} (kinst-run --help)"),
        ("kinst-list", ["--wr\nong"], "--wr\\x0aong: no such option (kinst-list --help)"),
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
    ],
)
def test_what_was_probably_meant(name: str, arguments: list[object], message: str) -> None:
    result = run(name, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr.splitlines()[0]

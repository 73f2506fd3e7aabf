"""What is spelled alike is alike in all commands."""

import json
from collections import defaultdict
from pathlib import Path

import click
import pytest

from tests.commands.all_commands import COMMANDS, run
from tests.rewriter.programs import small


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return small().write(tmp_path)


def spellings() -> dict[str, dict[str, frozenset[str]]]:
    """Spelling -> command -> all spellings of that option there."""
    found: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for name, command in COMMANDS.items():
        for one in command.get_params(click.Context(command)):
            if isinstance(one, click.Option) and not one.hidden:
                for spelling in one.opts:
                    found[spelling][name] = frozenset(one.opts)
    return found


def test_a_letter_means_the_same_word_in_all_commands() -> None:
    differing = {spelling: where for spelling, where in spellings().items() if len(set(where.values())) > 1}
    assert differing.keys() == {"-p"}  # a process, as dtrace's; a probe for commands that dtrace does not have


@pytest.mark.parametrize("spelling", ["-h", "--help", "--version", "--format", "-q", "-v", "--color", "--help-all"])
def test_every_command_has_these(spelling: str) -> None:
    assert spellings()[spelling].keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_format_begins_with_text_and_has_json(name: str) -> None:
    (form,) = (one for one in COMMANDS[name].params if "--format" in one.opts)
    assert isinstance(form.type, click.Choice)
    assert list(form.type.choices)[:2] == ["text", "json"] and form.default == "text"


@pytest.mark.parametrize(
    ("name", "words", "instead"),
    [
        ("kinst-rewrite", ["-p", "fbt:::", "-n"], "-n: no such option: it is --dry-run"),
        ("kinst-rewrite", ["--module", "other"], "--module: no such option: it is --name"),
        ("kinst-list", ["-d"], "-d: no such option: it is --disassemble"),
        ("kinst-list", ["--json"], "--json: no such option: it is --format json"),
        ("kinst-run", ["--json"], "--json: no such option: it is --format json"),
    ],
)
def test_there_is_one_spelling_which_others_are_told(name: str, words: list[str], instead: str, image: Path) -> None:
    result = run(name, image, *words)
    assert (result.exit_code, result.stderr) == (2, f"{name}: {instead} ({name} --help)\n")


def test_verbose_tells_of_each_refusal_and_quiet_of_none(image: Path) -> None:
    for name, words in (("kinst-rewrite", ["-p", "fbt:::entry"]), ("kinst-list", ["fbt:::entry"])):
        plain, every, none = (run(name, image, *words, *more) for more in ([], ["-v"], ["-q"]))
        assert plain.stdout == none.stdout
        pairs = zip(plain.stdout.splitlines(), every.stdout.splitlines(), strict=True)
        assert all(line.startswith(short.rstrip()) for short, line in pairs)  # kinst-list says what vouches for each
        assert plain.stderr.count("\n") == 1 and "2 of 7 refused" in plain.stderr
        assert every.stderr.count("no instruction at the function's entry") == 2
        assert none.stderr == ""


def test_quiet_and_verbose_of_a_difference(image: Path) -> None:
    run("kinst-rewrite", image, "-p", "kinst:::")
    patched = image.with_name("small.kinst.elf")
    assert run("kinst-diff", image, patched, "-q").stdout == "every difference is explained\n"
    assert len(run("kinst-diff", image, patched, "-v").stdout.splitlines()) > 2


def test_json_of_every_command_is_json(image: Path) -> None:
    run("kinst-rewrite", image, "-p", "kinst:::")
    patched = image.with_name("small.kinst.elf")
    for name, words in (
        ("kinst-rewrite", [image, "-p", "kinst:::", "--dry-run"]),
        ("kinst-list", [image]),
        ("kinst-diff", [image, patched]),
        ("kinst-run", ["-qn", "BEGIN { trace(1); exit(0); }"]),
    ):
        assert json.loads(run(name, *words, "--format", "json").stdout)

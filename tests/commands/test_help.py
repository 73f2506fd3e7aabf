"""--help of every command: on one screen, in groups, with examples; --help-all: everything."""

from pathlib import Path

import click
import pytest

from tests.commands.all_commands import COMMANDS, run

ROOT = Path(__file__).parent.parent.parent
SCREEN = 53  # lines, at 80 columns


def options(name: str) -> list[click.Option]:
    """Those that are not hidden."""
    command = COMMANDS[name]
    known = command.get_params(click.Context(command))
    return [one for one in known if isinstance(one, click.Option) and not one.hidden]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_screen_and_teaches_by_example(name: str) -> None:
    lines = run(name, "--help").stdout.splitlines()
    assert len(lines) <= SCREEN and max(map(len, lines)) <= 80
    shown = lines[lines.index("Examples:") + 1 :]
    assert 2 <= sum(line.startswith(f"  {name} ") for line in shown) <= 3
    assert lines[-1].startswith("Recipes, in $(kinst-samples --docs): ")


@pytest.mark.parametrize("name", COMMANDS)
def test_what_help_leaves_out_is_counted_and_is_in_the_whole_help(name: str) -> None:
    brief, whole = run(name, "--help").stdout, run(name, "--help-all").stdout
    left = [one for one in options(name) if f" {one.opts[0]}" not in brief]
    counted = f"\n{len(left)} more option{'' if len(left) == 1 else 's'}, "
    assert (counted in brief) == bool(left) and "more option" not in whole
    for one in options(name):
        assert all(f" {spelling}" in whole for spelling in one.opts)
        assert "".join((one.help or "").split()) in "".join(whole.split())  # however it is wrapped


@pytest.mark.parametrize("name", COMMANDS)
def test_options_stand_under_headings(name: str) -> None:
    """An option of click's own would have none."""
    text = run(name, "--help").stdout
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings[0] == "Examples:" and headings[-1] == "Help:" and len(headings) == len(set(headings)) >= 3


@pytest.mark.parametrize("name", COMMANDS)
def test_the_documents_that_help_names_are_there(name: str) -> None:
    assert COMMANDS[name].pages
    missing = [page for page in COMMANDS[name].pages if not (ROOT / page).exists()]
    assert missing == []

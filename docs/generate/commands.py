"""pyproject.toml and click -> what there is to say of each command, for any kind of document."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import cleandoc
from itertools import groupby
from pathlib import Path
from typing import Final

import click

from kinst.rewriter.commandline.command import Command
from kinst.rewriter.commandline.help import Example
from kinst.rewriter.commandline.option import Option

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@dataclass(frozen=True, slots=True)
class OptionText:
    """One option: how it is written, what it does, and the words that it takes, if it takes some only."""

    spelling: str
    text: str
    words: tuple[str, ...]

    @property
    def is_choice_untold(self) -> bool:
        """Whether the text leaves words out that it could name."""
        return any(word not in self.text for word in self.words)


@dataclass(frozen=True, slots=True)
class CommandText:
    """One command. `usage`: what follows its name."""

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    examples: tuple[Example, ...]
    groups: tuple[tuple[str, tuple[OptionText, ...]], ...]

    @property
    def summary(self) -> str:
        """The first sentence."""
        return self.paragraphs[0].split(". ")[0].rstrip(".")


def commands() -> list[CommandText]:
    """Those that an installation has, in the project's order."""
    return [_text(name, _command(entry)) for name, entry in PROJECT["scripts"].items()]


def _command(entry: str) -> click.Command:
    """The command behind a console script: the entry says which it imports."""
    module, name = entry.split(":")
    script = getattr(import_module(module), name)
    assert isinstance(script, partial), entry
    command = getattr(import_module(script.args[0]), script.args[1])
    assert isinstance(command, click.Command), entry
    return command


def _text(name: str, command: click.Command) -> CommandText:
    ctx = click.Context(command, info_name=name, max_content_width=10_000)
    examples = command.examples if isinstance(command, Command) else ()
    paragraphs = tuple(" ".join(part.split()) for part in cleandoc(command.help or "").split("\n\n"))
    usage = " ".join(command.collect_usage_pieces(ctx))
    return CommandText(name, usage, paragraphs, tuple(examples), tuple(_groups(command, ctx)))


def _groups(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, tuple[OptionText, ...]]]:
    options = [one for one in command.get_params(ctx) if isinstance(one, click.Option) and not one.hidden]
    order = list(dict.fromkeys(map(_group, options)))
    for group, members in groupby(sorted(options, key=lambda one: order.index(_group(one))), key=_group):
        yield group, tuple(_option(one, ctx) for one in members)


def _group(one: click.Option) -> str:
    return one.group if isinstance(one, Option) else "Help"


def _option(one: click.Option, ctx: click.Context) -> OptionText:
    spelling, text = one.get_help_record(ctx) or ("", "")
    words = tuple(map(str, one.type.choices)) if isinstance(one.type, click.Choice) else ()
    return OptionText(spelling, text, words)

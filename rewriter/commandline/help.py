"""A command -> its help: on one screen, or with every option in full."""

from collections.abc import Sequence
from inspect import cleandoc
from itertools import groupby
from typing import Final

import click

from kinst.rewriter.commandline.option import Option
from kinst.rewriter.shell.wording import counted
from kinst.targets.values import dataclass

_GROUP: Final = "Help"  # of options that are not ours
_FIRST: Final = 26  # the widest column of spellings
_SHOWN: Final = 3  # examples on one screen
_BETWEEN: Final = 2  # the columns


@dataclass(frozen=True, slots=True)
class Example:
    """A command line that works, and what it does in a few words."""

    line: str
    says: str


def write_help(
    command: click.Command,
    ctx: click.Context,
    formatter: click.HelpFormatter,
    examples: Sequence[Example],
    pages: Sequence[str],
    *,
    is_full: bool,
) -> None:
    """Write the help of a command. `pages`: documents to read next."""
    command.format_usage(ctx, formatter)
    with formatter.indentation():
        for paragraph in _paragraphs(command.help or "")[: None if is_full else 1]:
            formatter.write_paragraph()
            formatter.write_text(paragraph)
    _write_examples(formatter, examples if is_full else examples[:_SHOWN])
    options = [one for one in command.get_params(ctx) if isinstance(one, click.Option) and not one.hidden]
    shown = [one for one in options if is_full or not _is_rare(one)]
    order = list(dict.fromkeys(map(_group, shown)))
    width = min(max(len(_spelling(one, ctx)) for one in shown), _FIRST)
    for group, members in groupby(sorted(shown, key=lambda one: order.index(_group(one))), key=_group):
        rows = [(_spelling(one, ctx).ljust(width), _text(one, ctx, is_full=is_full)) for one in members]
        with formatter.section(group):
            formatter.write_dl(rows, col_max=_FIRST, col_spacing=_BETWEEN)
    _write_end(formatter, len(options) - len(shown), pages)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in cleandoc(text).split("\n\n")]


def _write_examples(formatter: click.HelpFormatter, examples: Sequence[Example]) -> None:
    with formatter.section("Examples"):
        for example in examples:
            one_line = f"  {example.line}  # {example.says}\n"
            if len(one_line) <= formatter.width:
                formatter.write(one_line)
                continue
            formatter.write(f"  {example.line}\n")
            with formatter.indentation(), formatter.indentation():
                formatter.write_text(example.says)


def _write_end(formatter: click.HelpFormatter, left: int, pages: Sequence[str]) -> None:
    formatter.write_paragraph()
    if left:
        formatter.write(f"{counted(left, 'more option')}, more examples and all there is to say: --help-all\n")
    if pages:
        formatter.write(f"Recipes, in $(kinst-samples --docs): {', '.join(pages)}\n")


def _group(one: click.Option) -> str:
    return one.group if isinstance(one, Option) else _GROUP


def _is_rare(one: click.Option) -> bool:
    return isinstance(one, Option) and one.is_rare


def _record(one: click.Option, ctx: click.Context) -> tuple[str, str]:
    return one.get_help_record(ctx) or ("", "")


def _spelling(one: click.Option, ctx: click.Context) -> str:
    return _record(one, ctx)[0]


def _text(one: click.Option, ctx: click.Context, *, is_full: bool) -> str:
    brief = one.brief if isinstance(one, Option) else None
    return brief if brief is not None and not is_full else _record(one, ctx)[1]

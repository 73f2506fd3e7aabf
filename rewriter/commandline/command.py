"""A command of ours: click's, with help in groups on one screen, errors of one line."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click

from kinst.rewriter.commandline.color import When, choose
from kinst.rewriter.commandline.help import Example, write_help
from kinst.rewriter.commandline.option import Choice, Option
from kinst.rewriter.commandline.reporting import reported
from kinst.rewriter.commandline.shells import ASKING, SHELLS
from kinst.rewriter.commandline.wrong_usage import wrong_usage
from kinst.targets.errors import UsageError

_FULL: Final = "kinst.full_help"
_PARSER: Final = "kinst.parser"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_ABSENT: Final = {"--json": "it is --format json"}
_WIDTH: Final = 100  # of help, where the terminal is wider


class Command(click.Command):
    """A command. `examples` are part of its help, and `pages` name the documents to read next.

    `absent` are options that users know from elsewhere and that it does not have, with the reason or a substitute.
    """

    def __init__(
        self,
        name: str | None,
        *,
        examples: Sequence[Example] = (),
        pages: Sequence[str] = (),
        absent: Mapping[str, str] = _NONE,
        **settings: Any,
    ) -> None:
        super().__init__(name, **settings | {"context_settings": {"max_content_width": _WIDTH}})
        self.examples, self.pages, self.absent = tuple(examples), tuple(pages), {**_ABSENT, **absent}
        self.params += [_full_help(), _color(), _completion()]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002  click's own
        **extra: Any,
    ) -> Any:
        """Read the command line, run, and end the process unless click is told not to."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        name = prog_name or Path(sys.argv[0]).name
        if ASKING in os.environ:
            from kinst.rewriter.commandline.completion import print_answer

            print_answer(self, name)
            sys.exit(0)
        with reported(name):
            try:
                code = super().main(args, name, complete_var, standalone_mode=False, **extra)
            except click.UsageError as error:
                raise UsageError(wrong_usage(error, name, self.absent)) from None
            except click.Abort:
                code = 128 + signal.SIGINT
        sys.exit(code if isinstance(code, int) else 0)

    def make_parser(self, ctx: click.Context) -> Any:
        """click's parser, which keeps nothing of a command line; made once for who reads it twice, as it takes longer
        to make than to use with a hundred options."""
        if _PARSER not in ctx.meta:
            ctx.meta[_PARSER] = super().make_parser(ctx)
        return ctx.meta[_PARSER]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        if ctx.resilient_parsing and args and args[-1].startswith("-"):
            args = args[:-1]  # click stops at an option whose value is still to come, and would miss the image
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run what the command line asks for. Raises UsageError if it would overwrite a file that it names for
        something else."""
        from kinst.rewriter.commandline.apart import check_files_of  # --help does not need it

        check_files_of(ctx)
        return super().invoke(ctx)

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Those of --help."""
        del ctx
        return ["-h", "--help"]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write --help, or --help-all."""
        write_help(self, ctx, formatter, self.examples, self.pages, is_full=bool(ctx.meta.get(_FULL)))


def _color() -> Option:
    return Option(
        ["--color"],
        group="Help",
        type=Choice([when.value for when in When]),
        metavar="WHEN",
        default=When.AUTO.value,
        is_eager=True,
        expose_value=False,
        callback=choose,
        help="Colours of errors: auto (on a terminal, unless NO_COLOR is set), always or never.",
        brief="Colours: auto, always or never.",
    )


def _full_help() -> Option:
    return Option(
        ["--help-all"],
        group="Help",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_full_help,
        help="Show all options and examples, and exit.",
    )


def _show_full_help(ctx: click.Context, _option: click.Parameter, is_wanted: bool) -> None:  # noqa: FBT001  click's own
    if is_wanted and not ctx.resilient_parsing:
        ctx.meta[_FULL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _completion() -> Option:
    return Option(
        ["--completion"],
        group="Help",
        type=Choice(SHELLS),
        metavar="SHELL",
        is_rare=True,
        is_eager=True,
        expose_value=False,
        callback=_show_script,
        help='Print what makes a shell complete the words of all commands, for eval "$(...)": bash, zsh or fish.',
    )


def _show_script(ctx: click.Context, _option: click.Parameter, shell: str | None) -> None:
    if shell is not None and not ctx.resilient_parsing:
        from kinst.rewriter.commandline.completion import script

        click.echo(script(shell), nl=False)
        ctx.exit()

"""--color, NO_COLOR and what a stream is -> whether text on it is coloured, and text in colours."""

import os
from enum import Enum
from typing import TextIO

import click


class When(Enum):
    """What --color can be."""

    AUTO = "auto"  # on a terminal, unless NO_COLOR is set (no-color.org)
    ALWAYS = "always"
    NEVER = "never"


def choose(ctx: click.Context, _option: click.Parameter, chosen: str) -> None:
    """The callback of --color. click, too, keeps to what it sets."""
    match When(chosen):
        case When.ALWAYS:
            ctx.color = True
        case When.NEVER:
            ctx.color = False
        case _ if os.environ.get("NO_COLOR"):
            ctx.color = False


def is_colored(stream: TextIO) -> bool:
    """Whether what is written to a stream now may have colours."""
    ctx = click.get_current_context(silent=True)
    if ctx is not None and ctx.color is not None:
        return ctx.color
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, color: str) -> str:
    """Bold text in one of click's colours, for a stream that `is_colored`."""
    return click.style(text, fg=color, bold=True)

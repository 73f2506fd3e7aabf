"""The beginning of an option's value for kinst-run -> completions, for values that are neither files nor fixed
words."""

from collections.abc import Callable, Iterable
from typing import Final

import click
from click.shell_completion import CompletionItem

from kinst.rewriter.commandline.probe_completion import Items, complete_function, complete_program
from kinst.runtime.dlang.options import Options
from kinst.runtime.tracing.programs.program_text import Origin
from kinst.targets.machines.registry import MACHINES
from kinst.targets.probe import PROVIDERS

Completer = Callable[[click.Context, click.Parameter, str], Items]


def complete_file(_ctx: click.Context, _param: click.Parameter, text: str) -> Items:
    """Files, which the shell completes."""
    return [CompletionItem(text, type="file")]


def complete_d_option(_ctx: click.Context, _param: click.Parameter, text: str) -> Items:
    """The options of D; those that take a value with an equals sign."""
    found = [name for name in Options.names() if name.startswith(text)]
    return [
        CompletionItem(name) if Options.is_switch(name) else CompletionItem(f"{name}=", type="open")
        for name in sorted(found)
    ]


def complete_machine(_ctx: click.Context, _param: click.Parameter, text: str) -> Items:
    """The names of machines."""
    return _beginning(text, MACHINES)


def _complete_provider(_ctx: click.Context, _param: click.Parameter, text: str) -> Items:
    return _beginning(text, PROVIDERS)


def _beginning(text: str, words: Iterable[str]) -> Items:
    return [CompletionItem(word) for word in words if word.startswith(text)]


PROGRAM_COMPLETERS: Final[dict[Origin, Completer]] = {
    Origin.NAME: complete_program,
    Origin.SCRIPT: complete_file,
    Origin.FUNCTION: complete_function,
    Origin.PROVIDER: _complete_provider,
}

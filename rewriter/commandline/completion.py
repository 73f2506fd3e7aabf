"""A line of the shell up to the cursor -> what may follow, for bash, zsh and fish; and the scripts that make them ask.

The shells' functions run the command with KINST_COMPLETE set and read its answer: a first line that says what the
values are (`plain`; `open`: no blank after them; `described`; `file`: the shell knows better), then a value a line.
"""

import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete

from kinst.rewriter.commandline.quoting import Words, offered, words_of
from kinst.rewriter.commandline.shells import ASKING, SHELLS

_FIRST_PART: Final = re.compile(r"[;:.,] ")  # what is after it in a help text is too long for a line


def script(shell: str) -> str:
    """The script by which a shell completes the words of all commands."""
    names = sorted(one.name for one in distribution("kinst-rewrite").entry_points.select(group="console_scripts"))
    text = (Path(__file__).parent / "scripts" / shell).read_text()
    return text.replace("@COMMANDS@", " ".join(names))


def answer(command: click.Command, name: str, shell: str) -> str:
    """The possible words at the cursor of the line that the shell's environment variables describe."""
    line = _line(shell)
    completion = ShellComplete(command, {}, name, ASKING)
    items = completion.get_completions(list(line.whole[1:]), line.last)
    if any(one.type in ("file", "dir") for one in items):
        return "file\n"
    lines = [shown for shown in (_shown(one, line, shell) for one in items) if shown is not None]
    return "\n".join([_kind(items, shell), *lines]) + "\n"


def _kind(items: "Sequence[CompletionItem[str]]", shell: str) -> str:
    if any(one.type == "open" for one in items):
        return "open"
    return "described" if shell != "bash" and any(one.help for one in items) else "plain"


def _shown(item: "CompletionItem[str]", line: Words, shell: str) -> str | None:
    option, equals, _ = line.last.partition("=")
    value = f"{option}={item.value}" if equals and option.startswith("--") else str(item.value)
    value = value.removeprefix(line.begun) if shell == "bash" else value
    spelled = offered(value, shell, line.quote)
    if shell == "bash" or not item.help or spelled is None:
        return spelled
    return f"{spelled}\t{_FIRST_PART.split(item.help)[0]}"


def _line(shell: str) -> Words:
    raw = os.fsencode(os.environ.get("KINST_LINE", ""))
    point = os.environ.get("KINST_POINT", "")
    text = os.fsdecode(raw[: int(point)] if point.isdecimal() else raw)
    return words_of(text, os.environ.get("KINST_BREAKS", "") if shell == "bash" else "")


def print_answer(command: click.Command, name: str) -> None:
    """Answer a shell, as KINST_COMPLETE says; with nothing for an unknown shell."""
    shell = os.environ[ASKING]
    if shell in SHELLS:
        sys.stdout.write(answer(command, name, shell))

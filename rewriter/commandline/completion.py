"""A line of the shell up to the cursor -> what may follow, for bash, zsh and fish; and the scripts that make them ask.

The shells' functions run the command with KINST_COMPLETE set and read its answer: a first line that says what the
values are (`plain`; `open`: no blank behind them; `described`; `file`: the shell knows better), then a value a line.
"""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from kinst.rewriter.commandline.shells import ASKING, SHELLS

_CURSOR: Final = "\0"
_QUOTES: Final = "'\""
_FIRST_PART: Final = re.compile(r"[;:.,] ")  # what is behind it in a help text is more than fits a line


@dataclass(frozen=True, slots=True)
class _Line:
    """What is typed. `begun` of the last word is not replaced by the shell, which sees a word of its own behind it."""

    words: tuple[str, ...]  # whole ones, behind the command
    last: str  # the one at the cursor, perhaps empty
    begun: str


def script(shell: str) -> str:
    """What a shell must read to complete the words of all commands."""
    names = sorted(one.name for one in distribution("kinst-rewrite").entry_points.select(group="console_scripts"))
    text = (Path(__file__).parent / "scripts" / shell).read_text()
    return text.replace("@COMMANDS@", " ".join(names))


def answer(command: click.Command, name: str, shell: str) -> str:
    """What may stand at the cursor of the line that the shell's environment variables tell."""
    line = _line(shell)
    completion = ShellComplete(command, {}, name, ASKING)
    items = completion.get_completions(list(line.words), line.last)
    if any(one.type in ("file", "dir") for one in items):
        return "file\n"
    lines = [_shown(one, line, shell) for one in items]
    return "\n".join([_kind(items, shell), *lines]) + "\n"


def _kind(items: "Sequence[CompletionItem[str]]", shell: str) -> str:
    if any(one.type == "open" for one in items):
        return "open"
    return "described" if shell != "bash" and any(one.help for one in items) else "plain"


def _shown(item: "CompletionItem[str]", line: _Line, shell: str) -> str:
    option, equals, _ = line.last.partition("=")
    value = f"{option}={item.value}" if equals and option.startswith("--") else str(item.value)
    value = value.removeprefix(line.begun)
    return f"{value}\t{_FIRST_PART.split(item.help)[0]}" if shell != "bash" and item.help else value


def _line(shell: str) -> _Line:
    raw = os.fsencode(os.environ.get("KINST_LINE", ""))
    point = os.environ.get("KINST_POINT", "")
    text = os.fsdecode(raw[: int(point)] if point.isdecimal() else raw)
    _, *words = split_arg_string(text + _CURSOR)
    last = words.pop().removesuffix(_CURSOR) if words else ""
    breaks = os.environ.get("KINST_BREAKS", "") if shell == "bash" else ""
    return _Line(tuple(words), last, _begun(text, last, breaks))


def _begun(text: str, last: str, breaks: str) -> str:
    """The part of the last word that bash takes for words of their own: up to the last of its characters that end a
    word, or up to a quote that is open."""
    quote = _open_quote(text)
    if quote is not None:
        return last.removesuffix(text[quote + 1 :])
    return last[: 1 + max(last.rfind(one) for one in breaks)] if breaks else ""


def _open_quote(text: str) -> int | None:
    """Where the quote is that has no partner yet."""
    at: int | None = None
    is_escaped = False
    for index, letter in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif letter == "\\" and (at is None or text[at] == '"'):
            is_escaped = True
        elif at is None and letter in _QUOTES:
            at = index
        elif at is not None and letter == text[at]:
            at = None
    return at


def print_answer(command: click.Command, name: str) -> None:
    """Answer a shell, as KINST_COMPLETE says; with nothing if it is no shell that we know."""
    shell = os.environ[ASKING]
    if shell in SHELLS:
        sys.stdout.write(answer(command, name, shell))

"""What a command prints -> stdout in large pieces, and remarks on stderr."""

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from kinst.rewriter.shell.fresh_file import replaced_file

_LINES: Final = 1 << 14  # written at a time


def write_lines(lines: Iterable[str], path: Path | None = None) -> None:
    """Lines to stdout, or to a file that appears when it is complete, in large pieces: a kernel has millions."""
    if path is None:
        for piece in _pieces(lines):
            sys.stdout.write(piece)
        sys.stdout.flush()
        return
    with replaced_file(path) as file:
        for piece in _pieces(lines):
            file.write(piece.encode("utf-8", "backslashreplace"))


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    lines = iter(lines)
    while chunk := list(islice(lines, _LINES)):
        yield "\n".join(chunk) + "\n"


def remark(lines: Iterable[str]) -> None:
    """Lines to stderr, each after the name of the command."""
    for line in lines:
        click.echo(f"{click.get_current_context().info_name}: {line}", err=True)


def json_array(values: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The lines of a JSON array, one value a line: a million are not held in memory."""
    separator = "["
    for value in values:
        yield f"{separator}{json.dumps(value)}"
        separator = ","
    yield "[]" if separator == "[" else "]"

"""What a command has to say -> stdout in large pieces, and remarks on stderr."""

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import click

_LINES: Final = 1 << 14  # written at a time


def write_lines(lines: Iterable[str]) -> None:
    """Lines to stdout in large pieces: a kernel has millions."""
    lines = iter(lines)
    while chunk := list(islice(lines, _LINES)):
        sys.stdout.write("\n".join(chunk) + "\n")
    sys.stdout.flush()


def remark(lines: Iterable[str]) -> None:
    """Lines to stderr, each behind the name of the command."""
    for line in lines:
        click.echo(f"{click.get_current_context().info_name}: {line}", err=True)


def json_array(values: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The lines of a JSON array, one value a line: a million are not held in memory."""
    separator = "["
    for value in values:
        yield f"{separator}{json.dumps(value)}"
        separator = ","
    yield "[]" if separator == "[" else "]"

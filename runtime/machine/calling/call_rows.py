"""Lines of arguments -> calls: each line says what stands between the parentheses of one, or what $1 and $name mean.

data, size                   the first line may name columns
hex"00ff10", 3
"a text", 7                  arguments as `arguments` has them; empty lines, and lines that begin with #, are skipped
"""

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, cast

from kinst.runtime.machine.calling.arguments import Argument, parse_arguments
from kinst.runtime.machine.calling.template import Call, CallTemplate
from kinst.targets.errors import UsageError

LONGEST_LINE: Final = 1 << 22  # bytes
_HEADER: Final = re.compile(r"\s*[A-Za-z_]\w*\s*(,\s*[A-Za-z_]\w*\s*)*")


def calls_of(template: CallTemplate, file: BinaryIO, name: str) -> Iterator[Call]:
    """The calls that a file's lines ask for, read as they are wanted.

    Args:
        template: the call; one without $1 or $name has its arguments from the lines if it has none, and is made as it
            is for each line otherwise.
        file: the lines.
        name: the file's, for messages.

    Raises:
        UsageError: a line is not as it should be; the message names it.
    """
    columns: Sequence[str] = ()
    bind, width = None, template.width
    for number, text in _lines(file, name):
        where = f"{name}:{number}"
        if bind is None and _HEADER.fullmatch(text):
            columns = tuple(one.strip() for one in text.split(","))
            bind, width = template.binder(columns, name), max(width, len(columns))
            continue
        bind = bind or template.binder((), name)
        row = cast("tuple[Argument, ...]", parse_arguments(text, where))
        if not template.arguments and not columns:
            yield CallTemplate(template.function, row, "").binder((), name)(())
            continue
        if len(row) < width:
            raise UsageError(f"{where}: has {len(row)} of {width} arguments")
        yield bind(row)


def _lines(file: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise UsageError(f"{name}:{number}: the line is longer than {LONGEST_LINE:,} bytes")
        text = line.decode(errors="surrogateescape").strip()
        if text and not text.startswith("#"):
            yield number, text

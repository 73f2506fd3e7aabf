"""A batch file -> its tables, at a cost that is bounded by its size.

Python's reader of TOML takes memory with the square of the parts of a dotted key (1.9 GB for one of 40 kB), and its own
exceptions for what is nested too deeply and for numbers of thousands of digits.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kinst.targets.errors import UsageError

_LARGEST: Final = 1 << 20  # bytes
_MOST_PARTS: Final = 64  # of the keys of a line; a batch has keys of one
_SPECIAL: Final = re.compile("[\"'#\n]")
_ENDS: Final = {  # of what begins like this; a backslash before it keeps a string in double quotes open
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*+"""', re.DOTALL),
    "'''": re.compile(r"(?:[^']|'(?!''))*+'''", re.DOTALL),
    '"': re.compile(r'(?:[^"\\\n]|\\.)*+"'),
    "'": re.compile(r"[^'\n]*+'"),
    "#": re.compile(r"[^\n]*+"),
}


def read_batch(path: Path) -> Mapping[str, Any]:
    """The tables of a file. Raises UsageError: it is not a TOML file, or has keys of too many parts."""
    text = content(path, _LARGEST)
    if any(count >= _MOST_PARTS for count in _dots(text)):
        raise UsageError(f"{path}: a key of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{path}: is nested too deeply") from None
    except ValueError as error:  # tomllib's own are of this kind, and so is that of a number that is too long
        raise UsageError(f"{path}: {error}") from None


def content(path: Path, largest: int) -> str:
    """The text of a file. Raises UsageError: it cannot be read, is not text, or has more than `largest` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
        if len(data) > largest:
            raise UsageError(f"{path}: has more than {largest >> 20:,} MiB")
        return data.decode()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not text") from None


def _dots(text: str) -> Iterator[int]:
    """How many dots each line has outside strings and comments, up to one that is not closed, which the reader reports
    of."""
    at = count = 0
    while (found := _SPECIAL.search(text, at)) is not None:
        count += text.count(".", at, found.start())
        if found[0] == "\n":
            yield count
            count, at = 0, found.end()
            continue
        start = next(start for start in _ENDS if text.startswith(start, found.start()))
        end = _ENDS[start].match(text, found.start() + len(start))
        if end is None:
            break
        at = end.end()
    yield count + text.count(".", at)

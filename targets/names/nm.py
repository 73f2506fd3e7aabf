"""Lines of a System.map or of nm's output: "address [size] type name", addresses in hex -> `Entry`.

Undefined symbols (no address) are skipped, and what nm prints after the name (a version or a module in brackets) is
dropped.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kinst.targets.errors import ImageError
from kinst.targets.names.entry import Entry

_UNDEFINED: Final = frozenset("Uwv")
_TYPES: Final = frozenset("abBcCdDgGiInNpPrRsStTuUvVwW-?A")


def entries(lines: Sequence[str]) -> Iterator[Entry]:
    """Those of a whole file. Raises ImageError: a line is none of these, with its number after a colon."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield from _entry(number, line)


def _entry(number: int, line: str) -> Iterator[Entry]:
    words = line.split()
    if (len(words) == 2 and words[0] in _UNDEFINED) or (len(words) == 1 and words[0].endswith(":")):
        return
    has_size = len(words) >= 4 and len(words[1]) > 1
    try:
        address, size = int(words[0], 16), int(words[1], 16) if has_size else 0
        letter, name = words[2 if has_size else 1], words[3 if has_size else 2]
    except (ValueError, IndexError):
        letter = name = ""
        address = size = 0
    if len(letter) != 1 or letter not in _TYPES or address >> 64 or size >> 64 or address < 0:
        raise ImageError(f":{number}: not a line of System.map or nm: {line.strip()[:60]!r}")
    yield address, size, letter, name

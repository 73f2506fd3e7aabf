"""IDA's MAP file (File > Produce file > Create MAP file) -> `Entry`.

     Start         Length     Name                   Class
     0001:00000000 00001C280H .text                  CODE
      Address         Publics by Value
     0001:00000000       _start                       segment:offset, from the start of the segment

What is in a segment of class CODE is a function, unless IDA made its name for a jump's target or for data.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kinst.targets.names.entry import DATA, FUNCTION, LABEL, Entry

_HEADING: Final = re.compile(r"\s*Address\s+Publics by (Value|Name)")
_SEGMENT: Final = re.compile(r"\s*([0-9a-f]{4,}):[0-9a-f]{8,16}\s+[0-9a-f]{8,17}H\s+\S+\s+(\S+)", re.IGNORECASE)
_PUBLIC: Final = re.compile(r"\s*([0-9a-f]{4,}):([0-9a-f]{4,16})\s+([^\s(]+).*", re.IGNORECASE)
_MADE: Final = re.compile(
    r"(loc|locret|off|seg|asc|byte|word|dword|qword|tbyte|xmmword|flt|dbl|stru|unk|algn|jpt|def)_[0-9A-Fa-f_]+"
)


def is_map(lines: Sequence[str]) -> bool:
    """Whether a file that begins so is one."""
    return any(_HEADING.match(line) for line in lines)


def entries(lines: Sequence[str]) -> Iterator[Entry]:
    """The public names by value, or by name if that is all that there is; their addresses are offsets."""
    code = {found[1] for line in lines if (found := _SEGMENT.match(line)) and found[2].upper() == "CODE"}
    seen = set[tuple[int, str]]()
    for line in _publics(lines):
        found = _PUBLIC.fullmatch(line)
        if found is None or (int(found[2], 16), found[3]) in seen:
            continue
        seen.add((int(found[2], 16), found[3]))
        is_code = found[1] in code or not code
        letter = (LABEL if _MADE.fullmatch(found[3]) else FUNCTION) if is_code else DATA
        yield int(found[2], 16), 0, letter, found[3]


def _publics(lines: Sequence[str]) -> Iterator[str]:
    is_in = False
    for line in lines:
        is_in = is_in or _HEADING.match(line) is not None
        if is_in:
            yield line

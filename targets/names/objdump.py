"""Lines of objdump -t (also of LLVM's) -> `Entry`: what is a function is said there, and how long it is.

80000000 g     F .text  0000000000000042 .hidden name      address, flags, section, size, visibility, name
flags, seven characters: l, g, u or !; w; C; W; I or i; d or D; F, f or O
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kinst.targets.names.entry import DATA, FUNCTION, LABEL, Entry

_LINE: Final = re.compile(
    r"([0-9a-f]{8,16}) (.{7}) (\S+)\s+([0-9a-f]{8,16})\s+(?:(?:\.\w+|0x[0-9a-f]+) )?(\S.*)", re.IGNORECASE
)
_HEADING: Final = ("SYMBOL TABLE:", "DYNAMIC SYMBOL TABLE:")


def is_table(lines: Sequence[str]) -> bool:
    """Whether a file that begins so is one."""
    return any(line.strip() in _HEADING for line in lines)


def entries(lines: Sequence[str]) -> Iterator[Entry]:
    """The symbols of a section."""
    for line in lines:
        found = _LINE.fullmatch(line)
        if found is None or found[3] == "*UND*" or "d" in found[2]:  # of sections and files
            continue
        flag = found[2][-1]
        letter = FUNCTION if flag == "F" else DATA if flag == "O" else LABEL
        if found[2][0] == "l":
            letter = letter.lower()
        yield int(found[1], 16), int(found[4], 16), "a" if found[3] == "*ABS*" else letter, found[5].strip()
